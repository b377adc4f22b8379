package redisserver

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Nodes is a Redis Cluster of three primaries with a replica each, which takes a
// node for dead after three seconds.
type Nodes struct {
	All []*Server
	t   testing.TB
}

// StartCluster starts six nodes and makes them a cluster, as redis-cli does it.
// Options are those of each node.
func StartCluster(t testing.TB, options ...Option) *Nodes {
	t.Helper()
	c := &Nodes{t: t}
	args := []string{"--cluster", "create"}
	options = append([]Option{Cluster(false), Args("--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0")}, options...)
	for range 6 {
		n := Start(t, options...)
		c.All = append(c.All, n)
		args = append(args, n.Addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redis-cli", append(args, "--cluster-replicas", "1", "--cluster-yes")...)
	cmd.Env = c.All[0].cliEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("create the cluster: %v: %s", err, out)
	}
	for _, n := range c.All {
		n.AwaitCluster()
		n.Exec("CONFIG", "SET", "cluster-node-timeout", "3000") // while they meet it would be too short
	}
	c.AwaitReplicas()
	return c
}

// AwaitReplicas waits until each primary has a replica that is in step.
func (c *Nodes) AwaitReplicas() {
	c.t.Helper()
	for _, p := range c.Primaries() {
		p.await("replica in step", func() bool { return strings.Contains(p.Exec("INFO", "replication"), "state=online") })
		p.AwaitReplica(c.ReplicaOf(p))
	}
}

// Primaries are the nodes that are up and take themselves for primaries.
func (c *Nodes) Primaries() (all []*Server) {
	for _, n := range c.All {
		if n.Up() && n.IsPrimary() {
			all = append(all, n)
		}
	}
	return all
}

// ReplicaOf is the replica of a primary; the test fails if there is none.
func (c *Nodes) ReplicaOf(primary *Server) *Server {
	c.t.Helper()
	for _, n := range c.All {
		if n.Up() && !n.IsPrimary() && infoOf(n, "master_port") == strconv.Itoa(primary.Port) {
			return n
		}
	}
	c.t.Fatalf("redis-server at %s has no replica", primary.Addr)
	return nil
}

// Of is the primary that serves the slot of a key.
func (c *Nodes) Of(key string) *Server {
	c.t.Helper()
	for _, p := range c.Primaries() {
		if _, err := p.TryExec("EXISTS", key); err == nil {
			return p
		}
	}
	c.t.Fatalf("no node serves %s", key)
	return nil
}

// Exec runs a command at the node of its key, its second word.
func (c *Nodes) Exec(command ...string) string {
	c.t.Helper()
	return c.Of(command[1]).Exec(command...)
}

// Move begins to move a key's slot to another primary. step moves one key there,
// if it is there yet; end gives the slot to it.
func (c *Nodes) Move(key string, to *Server) (step func(key string), end func()) {
	c.t.Helper()
	from := c.Of(key)
	slot := from.Exec("CLUSTER", "KEYSLOT", key)
	to.Exec("CLUSTER", "SETSLOT", slot, "IMPORTING", from.Exec("CLUSTER", "MYID"))
	from.Exec("CLUSTER", "SETSLOT", slot, "MIGRATING", to.Exec("CLUSTER", "MYID"))
	step = func(key string) { from.Exec("MIGRATE", "127.0.0.1", strconv.Itoa(to.Port), key, "0", "60000") }
	end = func() {
		for left := from.Exec("CLUSTER", "GETKEYSINSLOT", slot, "1000"); left != ""; left = from.Exec("CLUSTER", "GETKEYSINSLOT", slot, "1000") {
			for _, key := range strings.Fields(left) {
				step(key)
			}
		}
		id := to.Exec("CLUSTER", "MYID")
		for _, n := range slices.Concat([]*Server{to, from}, c.Primaries()) {
			n.Exec("CLUSTER", "SETSLOT", slot, "NODE", id)
		}
	}
	return step, end
}
