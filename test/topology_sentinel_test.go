package test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
)

// watched is a primary with a replica and three sentinels. The worker is the
// documented user at the servers, and the documented user at the sentinels.
type watched struct {
	*topology
	primary, replica *redisserver.Server // as they were at the start
	sentinels        *redisserver.Sentinels
}

func newWatched(t *testing.T, wait int) *watched {
	t.Helper()
	users := topologyUsers(withWait(documentedACL(t), wait))
	primary := redisserver.Start(t, users)
	replica := redisserver.Start(t, users, redisserver.ReplicaOf(primary), redisserver.Args("--appendonly", "yes"))
	primary.AwaitReplica(replica)
	g := redisserver.StartSentinels(t, "korvet", primary, 1, topologyUsers(documentedLine(t, "../docs/redis-acl-sentinel.txt")))
	x := &watched{primary: primary, replica: replica, sentinels: g}
	x.topology = newTopology(t, "KORVET_REDIS_URI="+g.URI(aclUser+":"+aclPassword),
		"KORVET_REDIS_SENTINEL_USERNAME="+aclUser, "KORVET_REDIS_SENTINEL_PASSWORD="+aclPassword,
		fmt.Sprintf("KORVET_STORAGE_OFFLOAD_WAIT_REPLICAS=%d", wait))
	x.node = func() *redisserver.Server {
		if g.Primary() == replica.Addr {
			return replica
		}
		return primary
	}
	x.of = func(string) *redisserver.Server { return x.node() }
	x.redis = primary
	return x
}

// withWait is a line of the documentation's for a worker that waits for
// replicas, which needs one command more.
func withWait(line string, wait int) string {
	if wait == 0 {
		return line
	}
	return strings.Replace(line, " +ping ", " +wait +ping ", 1)
}

// documentedLine is a user of the documentation that is one line of a file.
func documentedLine(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(text))
	if strings.Contains(line, "\n") || !strings.HasPrefix(line, "user "+aclUser+" on >"+aclPassword+" ") {
		t.Fatalf("want one line for user %s: %s", aclUser, line)
	}
	return line
}

// joins makes the old primary a replica of the new one, as the sentinels would
// in ten seconds.
func (x *watched) joins() {
	if !x.primary.Up() {
		x.primary.Relaunch()
	}
	x.primary.Exec("REPLICAOF", "127.0.0.1", fmt.Sprint(x.replica.Port))
}

func (x *watched) killed() {
	x.primary.Stop()
	x.sentinels.AwaitPrimary(x.replica)
	x.joins()
}

// frozen lets the old primary go on as one, when there is another.
func (x *watched) frozen() {
	x.primary.Freeze()
	x.sentinels.AwaitPrimary(x.replica)
	x.primary.Thaw()
}

// handedOver lets the old primary go on as one until the sentinels tell it.
func (x *watched) handedOver() {
	x.sentinels.Nodes[0].Exec("SENTINEL", "FAILOVER", "korvet")
	x.sentinels.AwaitPrimary(x.replica)
}

// mustHaveRefusedNothing checks that the smallest users are large enough.
func (x *watched) mustHaveRefusedNothing() {
	x.t.Helper()
	for _, s := range append(x.sentinels.Nodes, x.primary, x.replica) {
		if !s.Up() {
			continue
		}
		if log := strings.TrimSpace(s.Exec("ACL", "LOG")); log != "" {
			x.t.Errorf("%s refused something: %s", s.Addr, log)
		}
	}
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait    int
		dropped bool
		fail    func(*watched)
	}{
		//fault:redis | The primary is killed in mid-copy, and its replica promoted by the sentinels | SIGKILL of the primary, with producers that count what a replica has | all of it is readable, and every segment gets copied
		"killed in mid-copy": {0, false, (*watched).killed},
		//fault:redis | The primary is killed in mid-drop, and its replica promoted | SIGKILL between two removals, with wait-replicas 1 | all that a replica had is readable, and every segment gets dropped once a replica is there again
		"killed in mid-drop, with wait-replicas": {1, true, (*watched).killed},
		//fault:redis | A primary that is handed over goes on taking writes until it is told | SENTINEL FAILOVER in mid-copy, with wait-replicas 1 | what the worker writes there is lost with it, and nothing else
		"handed over in mid-copy, with wait-replicas": {1, false, (*watched).handedOver},
		//fault:redis | A primary that has slept through its failover goes on as one | SIGSTOP of the primary in mid-drop, and SIGCONT after the promotion | what it is told then harms nothing, and the worker is with the new one within seconds
		"frozen in mid-drop": {0, true, (*watched).frozen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newWatched(t, c.wait)
			local, middle, last := "-2", "2 present", "2 present"
			if c.dropped {
				local, middle, last = "3000", "4 gone", "4 gone"
			}
			x.load(20, 500, "segment.ms", "2000", "local.retention.ms", local)
			x.primary.AwaitReplica(x.replica)
			end := x.produce(x.sentinels.Primary)
			worker := x.start("run")
			if at := x.reaches(worker, middle, 5); at[middle] >= 80 {
				t.Errorf("it is not in the middle of anything: %v", at)
			}
			c.fail(x)
			before := x.books.Len()
			x.goesOn(before)
			end()
			x.settles(worker, last)
			x.ends(worker)
			report := x.mustHaveAll(c.dropped)
			t.Logf("%d messages counted, %d of them after the failover; %+v\n%s", x.books.Len(), x.books.Len()-before, report.Tally, worker.log())
			x.mustHaveRefusedNothing()
		})
	}
}

// behind has something happen that the replica does not get to know of, before
// it takes the primary's place.
func (x *watched) behind(during func()) {
	x.replica.Stop()
	during()
	x.primary.Stop()
	x.replica.Relaunch()
	x.sentinels.AwaitPrimary(x.replica)
}

// claims gives Redis the id by which a root is its own, as an earlier upload has. A
// failover that loses even that leaves what looks like an emptied Redis.
func (x *watched) claims() { x.primary.Exec("SET", x.layout.ClusterKey(), "the-one") }

// What is lost in a failover is a piece at the end, never one in the middle: a
// flip that a replica does not have, then nothing that came behind it, or a
// removal, and the flip is there.
func TestAReplicaThatIsBehindIsPromoted(t *testing.T) {
	t.Parallel()
	//fault:redis | A failover loses flips that were done | the replica is down while segments are copied, and is promoted then | the segments are LOCAL again, with their streams, and their objects are adopted
	t.Run("without the flips", func(t *testing.T) {
		t.Parallel()
		x := newWatched(t, 0)
		x.load(5, 500)
		x.claims()
		x.primary.AwaitReplica(x.replica)
		var worker *process
		x.behind(func() {
			worker = x.start("run")
			x.reaches(worker, "2 present", 10)
		})
		x.settles(worker, "2 present")
		x.ends(worker)
		x.mustHaveAll(true)
		if n := len(x.objects()); n != len(x.ledger) {
			t.Errorf("%d objects of %d segments: some were not adopted", n, len(x.ledger))
		}
	})
	//fault:redis | A failover loses removals and keeps the flips | the replica is down while local copies are removed, and is promoted then | they are there again, and are removed again
	t.Run("without the removals", func(t *testing.T) {
		t.Parallel()
		x := newWatched(t, 0)
		x.load(5, 500)
		worker := x.start("run")
		x.settles(worker, "2 present")
		x.primary.AwaitReplica(x.replica)
		drop := func() { x.node().Exec("HSET", x.layout.TopicKey("orders"), "local.retention.ms", "1") }
		x.behind(func() {
			drop()
			x.reaches(worker, "4 gone", len(x.ledger))
		})
		if all, err := x.ranks(); err != nil || all["2 present"] != len(x.ledger) {
			t.Errorf("after the failover: %v, %v", all, err)
		}
		drop()
		x.settles(worker, "4 gone")
		x.ends(worker)
		x.mustHaveAll(true)
	})
	//fault:redis | The replica is away, and the worker is to wait for it | the replica is down while segments are copied, with wait-replicas 1, and is promoted then | no local copy was removed, and nothing is lost
	t.Run("with wait-replicas", func(t *testing.T) {
		t.Parallel()
		x := newWatched(t, 1)
		x.load(5, 500, "local.retention.ms", "1")
		x.claims()
		x.primary.AwaitReplica(x.replica)
		var worker *process
		x.behind(func() {
			worker = x.start("run")
			x.reaches(worker, "3 dropping", 1)
			for key := range x.ledger {
				if got := strings.TrimSpace(x.primary.Exec("EXISTS", key)); got != "1" {
					t.Errorf("stream %s was removed, and no replica knows why", key)
				}
			}
		})
		x.joins()
		x.settles(worker, "4 gone")
		x.ends(worker)
		x.mustHaveAll(true)
		x.mustHaveRefusedNothing()
	})
}
