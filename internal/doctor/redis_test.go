package doctor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"korvet-offload/internal/redisstore"
	"korvet-offload/segment"
)

var errNoPermission = redisstore.Error{Op: "CONFIG GET", Class: redisstore.Permission, Err: errors.New("NOPERM")}

// healthy is a server about which there is nothing to say.
func healthy() redisstore.Node {
	return redisstore.Node{
		Address: "h:1", Product: "Redis 7.2.4", Suitable: true, Primary: true,
		Policy: "noeviction", MaxMemory: 1 << 30, UsedMemory: 100 << 20, SystemMemory: 8 << 30, AOF: true,
		Replicas: []redisstore.Replica{{Address: "r:1", Online: true}},
		Config: map[string]string{"appendfsync": "everysec", "save": "", "min-replicas-to-write": "0",
			"client-output-buffer-limit": "normal 0 0 0 slave 268435456 67108864 60", "timeout": "0"},
	}
}

func wants() RedisWant {
	return RedisWant{Tick: time.Minute, Lease: 2 * time.Minute, Rights: true, Holders: map[string]string{"l": "a-1"}}
}

func TestHealthyRedis(t *testing.T) {
	facts := redisstore.Facts{Nodes: []redisstore.Node{healthy()}, Leases: []redisstore.LeaseKey{{Key: "l"}},
		Registry: redisstore.RegistrySet, Topics: []segment.Topic{offloadedTopic("orders")}}
	all := OfRedis(facts, wants())
	for _, f := range all {
		if f.Verdict != OK && f.ID != "redis.wait-aof" {
			t.Errorf("%+v", f)
		}
	}
	if len(all) != len(redisChecks()) {
		t.Errorf("%d findings of %d checks", len(all), len(redisChecks()))
	}
}

func TestRedisNodes(t *testing.T) {
	type change = func(*redisstore.Node, *RedisWant)
	config := func(name, value string) change {
		return func(n *redisstore.Node, _ *RedisWant) { n.Config[name] = value }
	}
	unconfigured := func(n *redisstore.Node, _ *RedisWant) { n.Config, n.NoConfig = nil, &errNoPermission }
	for i, tt := range []struct {
		id     string
		change change
		want   Verdict
		word   string
	}{
		{"redis.version", func(n *redisstore.Node, _ *RedisWant) { n.Suitable, n.Product = false, "Redis 5.0.3" }, Fail, "5.0.3"},
		{"redis.mode", func(n *redisstore.Node, _ *RedisWant) { n.Cluster = true }, Fail, "cluster to true"},
		{"redis.mode", func(_ *redisstore.Node, w *RedisWant) { w.Cluster = true }, Fail, "cluster to false"},
		{"redis.mode", func(n *redisstore.Node, w *RedisWant) { n.Cluster, w.Cluster = true, true }, OK, "Cluster"},
		{"redis.mode", func(n *redisstore.Node, _ *RedisWant) { n.Sentinel = true }, Fail, "redis+sentinel://h:1/"},
		{"redis.role", func(n *redisstore.Node, _ *RedisWant) { n.Primary, n.Follows = false, "p:1" }, Fail, "replica of p:1"},
		{"redis.role", func(n *redisstore.Node, _ *RedisWant) { n.Primary, n.Cluster, n.Follows = false, true, "p:1" }, OK, "replica of p:1"},
		{"redis.policy", func(n *redisstore.Node, _ *RedisWant) { n.Policy = "allkeys-lru" }, Fail, "noeviction"},
		{"redis.policy", func(n *redisstore.Node, _ *RedisWant) { n.Policy = "volatile-ttl" }, Warn, "noeviction"},
		{"redis.policy", func(n *redisstore.Node, _ *RedisWant) { n.Policy = "" }, Skipped, "does not say"},
		{"redis.policy", func(n *redisstore.Node, _ *RedisWant) { n.Policy, n.MaxMemory = "allkeys-lru", 0 }, OK, "not set"},
		{"redis.memory", func(n *redisstore.Node, _ *RedisWant) { n.UsedMemory = 900 << 20 }, Warn, "87 %"},
		{"redis.memory", func(n *redisstore.Node, _ *RedisWant) { n.UsedMemory = 1000 << 20 }, Fail, "97 %"},
		{"redis.memory", func(n *redisstore.Node, _ *RedisWant) { n.MaxMemory, n.UsedMemory = 0, 7<<30 }, Warn, "the machine"},
		{"redis.memory", func(n *redisstore.Node, _ *RedisWant) { n.MaxMemory, n.SystemMemory = 0, -1 }, Skipped, "does not say"},
		{"redis.memory", func(n *redisstore.Node, _ *RedisWant) { n.UsedMemory = -1 }, Skipped, "does not say"},
		{"redis.persistence", func(n *redisstore.Node, _ *RedisWant) { n.Failed = []string{"rdb_last_bgsave_status is err"} }, Fail, "disk"},
		{"redis.persistence", func(n *redisstore.Node, _ *RedisWant) { n.Loading = true }, Warn, "loads"},
		{"redis.persistence", config("appendfsync", "no"), Warn, "everysec"},
		{"redis.persistence", func(n *redisstore.Node, _ *RedisWant) { n.AOF = false }, Warn, "nothing outlives"},
		{"redis.persistence", func(n *redisstore.Node, _ *RedisWant) { n.AOF = false; n.Config["save"] = "3600 1" }, Warn, "save 3600 1"},
		{"redis.persistence", func(n *redisstore.Node, w *RedisWant) { n.AOF = false; unconfigured(n, w) }, Skipped, "+config|get"},
		{"redis.persistence", unconfigured, OK, "on"},
		{"redis.replicas", func(_ *redisstore.Node, w *RedisWant) { w.WaitReplicas = 2 }, Fail, "1 replica in step, wait-replicas 2"},
		{"redis.replicas", func(n *redisstore.Node, w *RedisWant) { n.Replicas[0].Online = false; w.WaitReplicas = 1 }, Fail, "0 replicas"},
		{"redis.replicas", func(n *redisstore.Node, _ *RedisWant) { n.Replicas[0].Lag = time.Minute; n.Replicas[0].Behind = 2048 }, Warn, "r:1 was heard of 1m0s ago, and is 2.0 KiB behind"},
		{"redis.min-replicas", config("min-replicas-to-write", "2"), Fail, "refuses writes"},
		{"redis.min-replicas", config("min-replicas-to-write", "1"), OK, "1"},
		{"redis.min-replicas", unconfigured, Skipped, "+config|get"},
		{"redis.output-buffer", config("client-output-buffer-limit", "normal 1048576 0 0 slave 0 0 0"), Warn, "1.0 MiB"},
		{"redis.output-buffer", config("client-output-buffer-limit", "normal 0 4194304 10 pubsub 0 0 0"), Warn, "4.0 MiB"},
		{"redis.output-buffer", config("client-output-buffer-limit", "slave 1 1 1 normal 33554432 0 0"), OK, "32.0 MiB"},
		{"redis.output-buffer", config("client-output-buffer-limit", "nonsense"), OK, "not set"},
		{"redis.output-buffer", unconfigured, Skipped, "+config|get"},
		{"redis.timeout", config("timeout", "30"), Warn, "30s"},
		{"redis.timeout", config("timeout", "300"), OK, "300"},
		{"redis.timeout", unconfigured, Skipped, "+config|get"},
	} {
		n, w := healthy(), wants()
		tt.change(&n, &w)
		all := OfRedis(redisstore.Facts{Nodes: []redisstore.Node{n}}, w)
		expect(t, fmt.Sprintf("%d %s", i, tt.id), find(t, all, tt.id), tt.want, tt.word)
	}
}

// A server that may not be asked for anything is no fault.
func TestRedisThatTellsNothing(t *testing.T) {
	info := redisstore.Error{Op: "INFO", Class: redisstore.Permission, Err: errors.New("NOPERM")}
	for _, f := range OfRedis(redisstore.Facts{Nodes: []redisstore.Node{{Address: "h:1", Err: &info}},
		Clock: redisstore.Clock{Err: &info}, NoTopics: &info, Leases: []redisstore.LeaseKey{{Key: "l", Err: &info}}, NoAOF: &info},
		RedisWant{WaitAOF: true}) {
		if f.Verdict != Skipped && f.ID != "redis.reach" {
			t.Errorf("%+v", f)
		}
		if f.Verdict == Skipped && f.Do == "" {
			t.Errorf("%s does not say what to grant", f.ID)
		}
	}
}

// Of several servers the worst counts, and is named.
func TestWorstOfSeveralServers(t *testing.T) {
	bad, replica := healthy(), healthy()
	bad.Address, bad.Policy, bad.Cluster = "h:2", "allkeys-lru", true
	replica.Address, replica.Primary, replica.Cluster, replica.AOF = "h:3", false, true, false
	first := healthy()
	first.Cluster = true
	w := wants()
	w.Cluster = true
	all := OfRedis(redisstore.Facts{Nodes: []redisstore.Node{first, bad, replica}}, w)
	expect(t, "policy", find(t, all, "redis.policy"), Fail, "h:2: allkeys-lru")
	expect(t, "persistence of a replica", find(t, all, "redis.persistence"), OK, "h:1: append-only")
	all = OfRedis(redisstore.Facts{Nodes: []redisstore.Node{replica}}, w)
	expect(t, "no primary", find(t, all, "redis.memory"), Skipped, "no primary")
}

func TestRestOfRedis(t *testing.T) {
	down := redisstore.Error{Op: "TIME", Class: redisstore.Unavailable, Err: errors.New("gone")}
	broken := segment.Topic{Name: "bad", Err: errors.New("retention.ms = \"soon\"")}
	for i, tt := range []struct {
		id    string
		facts redisstore.Facts
		want  Verdict
		word  string
	}{
		{"redis.clock", redisstore.Facts{Clock: redisstore.Clock{Skew: 3 * time.Second}}, Warn, "3s ahead"},
		{"redis.clock", redisstore.Facts{Clock: redisstore.Clock{Skew: -24 * time.Hour}}, Warn, "24h0m0s behind"},
		{"redis.clock", redisstore.Facts{Clock: redisstore.Clock{Skew: 2 * time.Second}}, OK, "2s ahead"},
		{"redis.clock", redisstore.Facts{Clock: redisstore.Clock{Err: &down}}, Skipped, "gone"},
		{"redis.lease", redisstore.Facts{}, Skipped, "not looked"},
		{"redis.lease", redisstore.Facts{Leases: []redisstore.LeaseKey{{Key: "l", Held: true, TTL: -1}}}, Fail, "never lapses"},
		{"redis.lease", redisstore.Facts{Leases: []redisstore.LeaseKey{{Key: "l", Held: true, TTL: time.Hour}}}, Warn, "a-1"},
		{"redis.lease", redisstore.Facts{Leases: []redisstore.LeaseKey{{Key: "l", Held: true, TTL: time.Minute}}}, OK, "1m0s"},
		{"redis.lease", redisstore.Facts{Leases: []redisstore.LeaseKey{{Key: "l:0/2"}, {Key: "l:1/2", Held: true, TTL: time.Second}}}, OK, "1 of 2 shards"},
		{"redis.lease", redisstore.Facts{Leases: []redisstore.LeaseKey{{Key: "l:0/2"}, {Key: "l:1/2", Held: true, TTL: -1}}}, Fail, "l:1/2"},
		{"redis.topics", redisstore.Facts{NoTopics: &down}, Skipped, "gone"},
		{"redis.topics", redisstore.Facts{Registry: redisstore.RegistryNone}, Warn, "korvet.namespace"},
		{"redis.topics", redisstore.Facts{Topics: []segment.Topic{broken, offloadedTopic("a")}}, Warn, "soon"},
		{"redis.acl", redisstore.Facts{Lacks: []string{"+unlink ~x"}}, Fail, "+unlink ~x"},
		{"redis.acl", redisstore.Facts{NoRights: &down}, Skipped, "gone"},
		{"redis.acl", redisstore.Facts{Lacks: []string{"+time"}, NoRights: &errNoPermission}, Fail, "+time"},
	} {
		all := OfRedis(tt.facts, wants())
		expect(t, fmt.Sprintf("%d %s", i, tt.id), find(t, all, tt.id), tt.want, tt.word)
	}
	w := wants()
	w.WaitAOF = true
	expect(t, "wait-aof", find(t, OfRedis(redisstore.Facts{}, w), "redis.wait-aof"), OK, "WAITAOF")
	expect(t, "no wait-aof", find(t, OfRedis(redisstore.Facts{NoAOF: &down}, w), "redis.wait-aof"), Fail, "wait-aof to false")
}

func TestNoRedis(t *testing.T) {
	for class, word := range map[redisstore.Class]string{
		redisstore.Unavailable: "korvet.redis.uri", redisstore.Auth: "password", redisstore.TLS: "rediss", redisstore.WrongMode: "cluster", redisstore.Permission: "redis-acl.txt",
	} {
		all := NoRedis(&redisstore.Error{Op: "CONNECT", Class: class, Err: errors.New("no")})
		if len(all) != 1 {
			t.Fatalf("%+v", all)
		}
		expect(t, string(class), all[0], Fail, word)
	}
}

func offloadedTopic(name string) segment.Topic {
	t := segment.Topic{Name: name, Settings: segment.DefaultTopicSettings()}
	t.Settings.RemoteStorage = true
	return t
}

// A plain stream is no topic, and is as good as one.
func TestPlainStreamsAreCountedApart(t *testing.T) {
	stream, off := offloadedTopic("clicks:raw"), offloadedTopic("off")
	stream.Plain, off.Settings.RemoteStorage = true, false
	f := redisstore.Facts{Registry: redisstore.RegistrySet, Topics: []segment.Topic{offloadedTopic("orders"), stream, off}}
	expect(t, "both", topics(f), OK, "registry: set; 1 topic, 1 plain stream to be offloaded, 1 not")
	f.Topics = f.Topics[1:]
	expect(t, "a stream alone", topics(f), OK, "0 topics, 1 plain stream to be offloaded, 1 not")
}
