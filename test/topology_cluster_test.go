package test

import (
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// clustered is a Redis Cluster of six. The worker is the documented user.
type clustered struct {
	*topology
	nodes *redisserver.Nodes
}

func newClustered(t *testing.T) *clustered {
	t.Helper()
	users := topologyUsers(withWait(documentedLine(t, "../docs/redis-acl-cluster.txt"), 1))
	x := &clustered{nodes: redisserver.StartCluster(t, users, redisserver.Args("--appendonly", "yes"))}
	x.topology = newTopology(t, "KORVET_REDIS_URI="+x.nodes.All[0].UserURI(aclUser, aclPassword), "KORVET_REDIS_CLUSTER=true",
		"KORVET_STORAGE_OFFLOAD_WAIT_REPLICAS=1")
	x.redis, x.of = x.nodes.All[0], x.nodes.Of
	x.node = func() *redisserver.Server { return x.nodes.Primaries()[0] }
	return x
}

// elsewhere is a primary that does not have a key.
func (x *clustered) elsewhere(key string) *redisserver.Server {
	for _, p := range x.nodes.Primaries() {
		if p != x.nodes.Of(key) {
			return p
		}
	}
	x.t.Fatal("one node has everything")
	return nil
}

// mustHaveRefusedNothing checks that the smallest user is large enough.
func (x *clustered) mustHaveRefusedNothing() {
	x.t.Helper()
	for _, n := range x.nodes.All {
		if log := strings.TrimSpace(n.Exec("ACL", "LOG")); log != "" {
			x.t.Errorf("%s refused something: %s", n.Addr, log)
		}
	}
}

// The whole life of segments in a cluster, while slots are moved and a node
// dies: the manifests' slots and the streams' are at different nodes, as it
// happens, and none of the keys has a hash tag.
//
//fault:redis | Slots of a cluster move while segments are copied and dropped | a manifest and streams are moved by MIGRATE, and their slots stay half moved (MOVED, ASK) until the segments are dropped | scripts, durable changes and pages follow, and nothing is lost
//fault:redis | A primary of a cluster is killed in mid-drop | SIGKILL of the node that has a manifest, whose replica is promoted | the other partitions go on, and that one when its replica leads
func TestClusterLife(t *testing.T) {
	t.Parallel()
	x := newClustered(t)
	const segments = 10
	x.load(segments, 300)
	x.nodes.AwaitReplicas()
	worker := x.start("run")
	x.reaches(worker, "2 present", 3)
	keys := []string{x.layout.ManifestKey(x.parts[0])}
	for n := range segment.Number(4) {
		keys = append(keys, x.layout.SegmentKey(x.parts[n], segments-1-n))
	}
	var ends []func()
	for _, key := range keys {
		step, end := x.nodes.Move(key, x.elsewhere(key))
		step(key)
		ends = append(ends, end)
	}
	x.reaches(worker, "2 present", len(x.ledger)/2)
	x.nodes.Exec("HSET", x.layout.TopicKey("orders"), "local.retention.ms", "1")
	x.reaches(worker, "4 gone", len(x.ledger)/4)
	for _, end := range ends {
		end()
	}
	x.kill(x.layout.ManifestKey(x.parts[0]))
	x.settles(worker, "4 gone")
	x.ends(worker)
	report := x.mustHaveAll(true)
	t.Logf("%+v\n%s", report.Tally, worker.log())
	x.mustHaveRefusedNothing()
}

// kill kills the primary of a key, waits until its replica leads, and starts it
// again as a replica.
func (x *clustered) kill(key string) {
	x.t.Helper()
	old := x.nodes.Of(key)
	heir := x.nodes.ReplicaOf(old)
	old.Stop()
	x.promoted(heir)
	old.Relaunch()
	x.nodes.AwaitReplicas()
}

func (x *clustered) promoted(heir *redisserver.Server) {
	x.t.Helper()
	await(x.t, "the replica leads", time.Minute, func() bool { return heir.IsPrimary() })
	for _, p := range x.nodes.Primaries() {
		p.AwaitCluster()
	}
}

// In a cluster the manifest and the stream are at different nodes, so a failover
// may lose a flip and leave a removal. With wait-replicas nothing is removed
// before a replica knows why.
//
//fault:redis | A failover in a cluster loses removals, and GONE is kept at another node | the replica of a node with streams is down while they are removed, and is promoted then | they are there again, and are removed again
//fault:redis | A failover in a cluster loses flips, and the streams are at other nodes | the replica of a manifest's node is down while segments are copied, with wait-replicas 1, and is promoted then | no local copy of that manifest was removed, and nothing is lost
func TestAClusterLosesFlips(t *testing.T) {
	t.Parallel()
	x := newClustered(t)
	x.load(4, 300, "local.retention.ms", "1") // a leader looks for no more of them in a partition
	x.nodes.AwaitReplicas()
	old := x.nodes.Of(x.layout.ManifestKey(x.parts[0]))
	heir := x.nodes.ReplicaOf(old)
	heir.Stop()
	worker := x.start("run")
	x.reaches(worker, "3 dropping", 1)
	await(t, "no replica confirms", time.Minute, func() bool { return strings.Contains(worker.log(), "0 of 1 replicas") })
	for key, w := range x.ledger {
		if x.nodes.Of(x.layout.ManifestKey(w.partition)) != old {
			continue
		}
		if got := strings.TrimSpace(x.nodes.Exec("EXISTS", key)); got != "1" {
			t.Errorf("stream %s was removed, and no replica knows why", key)
		}
	}
	old.Stop()
	heir.Relaunch()
	x.promoted(heir)
	old.Relaunch()
	x.nodes.AwaitReplicas()
	x.settles(worker, "4 gone")
	await(t, "what came back is removed again", time.Minute, func() bool { return x.left() == 0 })
	x.ends(worker)
	x.mustHaveAll(true)
	x.mustHaveRefusedNothing()
}

// left is how many of the loaded streams there are.
func (x *clustered) left() (n int) {
	x.t.Helper()
	for key := range x.ledger {
		reply, err := x.node().TryFollow("EXISTS", key)
		if err != nil {
			x.t.Fatal(err)
		}
		if strings.TrimSpace(reply) != "0" {
			n++
		}
	}
	return n
}

// The user for a cluster is the other one and three commands more.
func TestTheClustersACLIsTheOther(t *testing.T) {
	want := strings.Replace(documentedACL(t), " +info ", " +info +cluster|slots +cluster|shards +asking ", 1)
	if got := documentedLine(t, "../docs/redis-acl-cluster.txt"); got != want {
		t.Errorf("docs/redis-acl-cluster.txt is\n%s\nwant\n%s", got, want)
	}
}

// What is wrong about the address of a server is found at the start, and said in
// one line with what to write.
func TestTheWrongModeIsNamed(t *testing.T) {
	t.Parallel()
	x := newWatched(t, 0)
	node := redisserver.Start(t, redisserver.Cluster(true))
	sentinel := x.sentinels.Nodes[0].Addr
	for name, c := range map[string]struct{ uri, cluster, says string }{
		"a server for a node":     {x.primary.URI(), "true", "set korvet.redis.cluster to false"},
		"a node for a server":     {node.URI(), "false", "set korvet.redis.cluster to true"},
		"a sentinel for a server": {"redis://" + sentinel, "false", "redis+sentinel://" + sentinel + "/master-name"},
		"a server for a sentinel": {"redis+sentinel://" + x.primary.Addr + "/korvet", "false", "it is a server and no sentinel: write redis://"},
		"another master":          {"redis+sentinel://" + sentinel + "/mymaster", "false", "no primary of that name: mymaster"},
		"sentinels for a cluster": {x.sentinels.URI(""), "true", "no sentinels watch a Redis Cluster"},
		"no master":               {"redis+sentinel://" + sentinel, "false", "want redis+sentinel://[user:password@]sentinel[:port][,sentinel[:port]...]/master-name"},
	} {
		t.Run(name, func(t *testing.T) {
			r := *x.rig
			r.t = t
			r.env = append(r.env, "KORVET_REDIS_URI="+c.uri, "KORVET_REDIS_CLUSTER="+c.cluster)
			if !strings.HasPrefix(c.uri, "redis+sentinel") {
				r.env = append(r.env, "KORVET_REDIS_SENTINEL_USERNAME=", "KORVET_REDIS_SENTINEL_PASSWORD=")
			}
			_, stderr, code := r.run("run", "--once")
			if code == 0 || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d\n%s", code, stderr)
			}
		})
	}
}
