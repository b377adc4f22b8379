package redisserver

import (
	"strings"
	"testing"
)

func TestSentinelsFailOver(t *testing.T) {
	primary := Start(t)
	replica := Start(t, ReplicaOf(primary))
	primary.Exec("SET", "a", "b")
	primary.AwaitReplica(replica)
	g := StartSentinels(t, "orders", primary, 1)
	if g.Primary() != primary.Addr || !strings.HasSuffix(g.URI("u:p"), "/orders") || !strings.HasPrefix(g.URI("u:p"), "redis+sentinel://u:p@127.0.0.1:") {
		t.Errorf("primary %s, URI %s", g.Primary(), g.URI("u:p"))
	}
	primary.Stop()
	g.AwaitPrimary(replica)
	if got := replica.Exec("GET", "a"); got != "b" {
		t.Errorf("a = %q", got)
	}
}

func TestAClusterLosesANodeAndMovesASlot(t *testing.T) {
	c := StartCluster(t)
	if n := len(c.Primaries()); n != 3 {
		t.Fatalf("%d primaries", n)
	}
	c.Exec("SET", "{tag}a", "1")
	c.Exec("SET", "{tag}b", "2")
	from := c.Of("{tag}a")
	to := c.Primaries()[0]
	if to == from {
		to = c.Primaries()[1]
	}
	step, end := c.Move("{tag}a", to)
	step("{tag}a")
	if reply, err := from.TryExec("GET", "{tag}a"); err == nil || !strings.Contains(err.Error(), "ASK") {
		t.Errorf("a key that has moved: %s, %v", reply, err)
	}
	end()
	if c.Of("{tag}b") != to || c.Exec("GET", "{tag}b") != "2" {
		t.Error("the slot is not where it was moved to")
	}
	c.AwaitReplicas()
	replica := c.ReplicaOf(to)
	to.Stop()
	replica.await("promotion", replica.IsPrimary)
	replica.AwaitCluster()
	if got := c.Exec("GET", "{tag}a"); got != "1" {
		t.Errorf("{tag}a = %q", got)
	}
}
