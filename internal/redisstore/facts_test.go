package redisstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
)

// all is everything that can be asked.
func (s *Store) allFacts(t *testing.T, leases ...string) Facts {
	t.Helper()
	return s.Facts(t.Context(), Look{Leases: leases, Config: true, Rights: true, WaitAOF: true})
}

func onlyNode(t *testing.T, f Facts) Node {
	t.Helper()
	if len(f.Nodes) != 1 || f.Nodes[0].Err != nil {
		t.Fatalf("%+v", f.Nodes)
	}
	return f.Nodes[0]
}

func TestFactsOfAGoodServer(t *testing.T) {
	server := redisserver.Start(t, redisserver.Args("--appendonly", "yes", "--maxmemory", "100mb"))
	server.Exec("SADD", "korvet:topics", "orders")
	server.Exec("HSET", "korvet:topic:orders", "remote.storage.enable", "true")
	f := open(t, config(server)).allFacts(t, "korvet:storage:offload:lease")
	n := onlyNode(t, f)
	if n.Address != server.Addr || !strings.HasPrefix(n.Product, "Redis ") || !n.Suitable || n.Cluster || n.Sentinel || !n.Primary || n.Loading || !n.AOF || len(n.Failed) > 0 {
		t.Errorf("%+v", n)
	}
	if n.Policy != "noeviction" || n.MaxMemory != 100<<20 || n.UsedMemory <= 0 || n.SystemMemory <= n.UsedMemory {
		t.Errorf("%+v", n)
	}
	if n.NoConfig != nil || len(n.Config) != len(configNames()) || n.Config["appendfsync"] != "everysec" || !strings.HasPrefix(n.Config["client-output-buffer-limit"], "normal ") {
		t.Errorf("%v %v", n.NoConfig, n.Config)
	}
	if f.Clock.Err != nil || f.Clock.Skew.Abs() > time.Second {
		t.Errorf("%+v", f.Clock)
	}
	if len(f.Leases) != 1 || f.Leases[0].Held || f.Leases[0].Err != nil {
		t.Errorf("%+v", f.Leases)
	}
	if f.NoTopics != nil || len(f.Topics) != 1 || f.Registry != RegistrySet || len(f.Lacks) > 0 || f.NoRights != nil {
		t.Errorf("%+v", f)
	}
	if f.NoAOF == nil || !strings.Contains(f.NoAOF.Error(), "7.2") { // Debian's is 7.0
		t.Errorf("%v", f.NoAOF)
	}
}

func TestFactsOfLeases(t *testing.T) {
	server := redisserver.Start(t)
	server.Exec("SET", "a", "token", "PX", "60000")
	server.Exec("SET", "b", "token")
	server.Exec("LPUSH", "c", "token")
	f := open(t, config(server)).allFacts(t, "a", "b", "c", "d")
	a, b, c, d := f.Leases[0], f.Leases[1], f.Leases[2], f.Leases[3]
	if !a.Held || a.TTL <= 50*time.Second || a.TTL > time.Minute {
		t.Errorf("%+v", a)
	}
	if !b.Held || b.TTL >= 0 {
		t.Errorf("%+v", b)
	}
	if c.Held || ClassOf(c.Err) != WrongType || d.Held || d.Err != nil {
		t.Errorf("%+v %+v", c, d)
	}
}

func TestFactsOfReplicas(t *testing.T) {
	primary := redisserver.Start(t, redisserver.Args("--repl-diskless-sync-delay", "0"))
	replica := redisserver.Start(t)
	replica.Exec("REPLICAOF", "127.0.0.1", fmt.Sprint(primary.Port))
	s := open(t, config(primary))
	eventually(t, "the replica is in step", func() bool {
		n := onlyNode(t, s.allFacts(t))
		return len(n.Replicas) == 1 && n.Replicas[0].Online && n.Replicas[0].Address == replica.Addr && n.Replicas[0].Behind == 0
	})
	primary.Exec("REPLICAOF", "127.0.0.1", "1")
	if n := onlyNode(t, s.allFacts(t)); n.Primary || n.Follows != "127.0.0.1:1" {
		t.Errorf("%+v", n)
	}
}

// A user who may do little gets what it may see, and the names of the rules for
// the rest; and what every start looks at leaves no trace in the ACL log.
func TestFactsForTheSmallestUser(t *testing.T) {
	line, err := os.ReadFile(filepath.Join("..", "..", "docs", "redis-acl.txt"))
	if err != nil {
		t.Fatal(err)
	}
	server := redisserver.Start(t, redisserver.Users("user default on nopass ~* &* +@all", strings.TrimSpace(string(line)), "user nobody on >x -@all +hello +auth +ping"))
	c := config(server)
	c.URI = server.UserURI("korvet-offload", "CHANGE-ME")
	s := open(t, c)
	lease := c.Layout.LeaseKey()
	if f := s.Facts(t.Context(), Look{Leases: []string{lease}}); onlyNode(t, f).NoConfig == nil || f.NoTopics != nil || f.Leases[0].Err != nil || f.Clock.Err != nil {
		t.Errorf("%+v", f)
	}
	if log := strings.TrimSpace(server.Exec("ACL", "LOG")); log != "" {
		t.Errorf("the server refused something: %s", log)
	}
	if f := s.allFacts(t, lease); ClassOf(onlyNode(t, f).NoConfig) != Permission || len(f.Lacks) > 0 {
		t.Errorf("%+v", f)
	}
	c.URI = server.UserURI("nobody", "x")
	f := open(t, c).allFacts(t, lease)
	for what, err := range map[string]error{"info": f.Nodes[0].Err, "time": f.Clock.Err, "topics": f.NoTopics, "lease": f.Leases[0].Err} {
		if ClassOf(err) != Permission {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(f.Lacks) < 10 {
		t.Errorf("%q", f.Lacks)
	}
}

func TestFactsOfACluster(t *testing.T) {
	server := redisserver.Start(t, redisserver.Cluster(true))
	c := config(server)
	c.Cluster = true
	if n := onlyNode(t, open(t, c).allFacts(t)); !n.Cluster || !n.Primary {
		t.Errorf("%+v", n)
	}
}

func TestFactsOfAServerThatGoesAway(t *testing.T) {
	server := redisserver.Start(t)
	c := config(server)
	c.Timeout = 200 * time.Millisecond
	s := open(t, c)
	server.Freeze()
	f := s.allFacts(t, "a")
	server.Thaw()
	for what, err := range map[string]error{"info": f.Nodes[0].Err, "time": f.Clock.Err, "topics": f.NoTopics, "lease": f.Leases[0].Err, "rights": f.NoRights} {
		if ClassOf(err) != Unavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Servers tell anything.
func TestReadNode(t *testing.T) {
	for text, want := range map[string]Node{
		"": {Product: "Redis ", Primary: true, MaxMemory: -1, UsedMemory: -1, SystemMemory: -1},
		"redis_version:7.4\r\nrlec_version:7.8.2\r\nmaxmemory:-5\r\nused_memory:1e9\r\ntotal_system_memory:99999999999999999999\r\n": {Product: "Redis Enterprise 7.8.2 (compatible with Redis 7.4)", Suitable: true,
			Primary: true, MaxMemory: -5, UsedMemory: -1, SystemMemory: -1},
		"redis_version:7.2\nvalkey_version:8.0\nrole:slave\nmaster_host:h\nmaster_port:1\nloading:1\naof_last_write_status:err": {Product: "Valkey 8.0 (compatible with Redis 7.2)", Suitable: true,
			Follows: "h:1", Loading: true, Failed: []string{"aof_last_write_status is err"}, MaxMemory: -1, UsedMemory: -1, SystemMemory: -1},
		"slave0:\nslave2:ip=a": {Product: "Redis ", Primary: true, MaxMemory: -1, UsedMemory: -1, SystemMemory: -1, Replicas: []Replica{{Address: ":"}}},
		"master_repl_offset:100\nslave0:ip=a,port=1,state=online,offset=40,lag=99999999999": {Product: "Redis ", Primary: true, MaxMemory: -1, UsedMemory: -1, SystemMemory: -1,
			Replicas: []Replica{{Address: "a:1", Online: true, Behind: 60, Lag: maxLag * time.Second}}},
	} {
		if got := readNode(infoLines(text)); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%q:\n%+v\n%+v", text, got, want)
		}
	}
}
