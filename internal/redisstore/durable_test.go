package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// hangUpOn makes a server close the connection instead of answering a command,
// and counts.
func hangUpOn(m *miniredis.Miniredis, command string) (sent func() int32) {
	return intercept(m, command, func(c *server.Peer) { c.Close() })
}

// answerTo makes a server answer a command with an error, and counts.
func answerTo(m *miniredis.Miniredis, command, err string) (sent func() int32) {
	return intercept(m, command, func(c *server.Peer) { c.WriteError(err) })
}

func intercept(m *miniredis.Miniredis, command string, answer func(c *server.Peer)) (sent func() int32) {
	var n atomic.Int32
	m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != command {
			return false
		}
		n.Add(1)
		answer(c)
		return true
	})
	return n.Load
}

// withReplica starts a server and a replica of it that is in step.
func withReplica(t *testing.T) (primary, replica *redisserver.Server) {
	t.Helper()
	atOnce := redisserver.Args("--repl-diskless-sync-delay", "0")
	primary, replica = redisserver.Start(t, atOnce), redisserver.Start(t, atOnce)
	replica.Exec("REPLICAOF", "127.0.0.1", strconv.Itoa(primary.Port))
	eventually(t, "a replica in step", func() bool {
		return strings.Contains(replica.Exec("INFO", "replication"), "master_link_status:up") && primary.Exec("WAIT", "1", "1000") == "1"
	})
	return primary, replica
}

func durable(ctx context.Context, s *Store, old, new string) (bool, error) {
	return s.Change(ctx, orders, segment.Change{Old: old, New: new, Durable: true})
}

//fault:redis | a replica does not confirm in time | SIGSTOP of the replica, then SIGCONT | never a success, and the change is known to be made
func TestADurableChangeWaitsForReplicas(t *testing.T) {
	primary, replica := withReplica(t)
	c := config(primary)
	c.WaitReplicas, c.Timeout = 1, 30*time.Second
	patient := open(t, c)
	c.Timeout = 3 * time.Second
	s := open(t, c)
	if ok, err := durable(t.Context(), patient, "", "1"); !ok || err != nil {
		t.Fatalf("with the replica: %t, %v", ok, err)
	}
	if got := replica.Exec("HGET", ordersKey(), "0"); got != "1" {
		t.Errorf("the replica has %q", got)
	}
	replica.Freeze()
	start := time.Now()
	ok, err := durable(t.Context(), s, "1", "2")
	if !ok || !errors.Is(err, ErrNotReplicated) || ClassOf(err) != NotReplicated {
		t.Errorf("without it: %t, class %s, %v", ok, ClassOf(err), err)
	}
	if !strings.Contains(err.Error(), "WAIT "+ordersKey()) || !strings.Contains(err.Error(), "0 of 1 replicas within 1.5s") {
		t.Errorf("%q does not tell the facts", err)
	}
	if took := time.Since(start); took < 1500*time.Millisecond || took > 10*time.Second {
		t.Errorf("it waited for %s, want half of the timeout", took)
	}
	if got := primary.Exec("HGET", ordersKey(), "0"); got != "2" {
		t.Errorf("the entry is %q", got)
	}
	start = time.Now()
	if ok, err := durable(t.Context(), patient, "1", "3"); ok || err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("a change that was lost: %t, %v, after %s", ok, err, time.Since(start))
	}
	if ok, err := swap(t.Context(), s, 0, "2", "3"); !ok || err != nil {
		t.Errorf("a change that need not be durable: %t, %v", ok, err)
	}
	replica.Thaw()
	eventually(t, "replication", func() bool { ok, err := durable(t.Context(), patient, "3", "3"); return ok && err == nil })
}

func TestADurableChangeWaitsForAsManyReplicas(t *testing.T) {
	primary, _ := withReplica(t)
	c := config(primary)
	c.WaitReplicas, c.Timeout = 2, 2*time.Second
	if ok, err := durable(t.Context(), open(t, c), "", "1"); !ok || !errors.Is(err, ErrNotReplicated) || !strings.Contains(err.Error(), "1 of 2 replicas") {
		t.Errorf("%t, %v", ok, err)
	}
}

//fault:redis | the primary or the replica hangs while a change is waited for | SIGSTOP of either | it ends with its context
func TestADurableChangeEndsWithItsContext(t *testing.T) {
	primary, replica := withReplica(t)
	c := config(primary)
	c.WaitReplicas = 1
	s := open(t, c)
	for name, frozen := range map[string]*redisserver.Server{"in the wait": replica, "in the change": primary} {
		frozen.Freeze()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		if _, err := durable(ctx, s, "", name); !errors.Is(err, context.Canceled) || time.Since(start) > time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(start))
		}
		frozen.Thaw()
		eventually(t, "an answer", func() bool { _, err := s.Now(t.Context()); return err == nil })
		primary.Exec("DEL", ordersKey())
	}
}

//fault:redis | the primary is restarted between durable changes | a restart of redis-server | the next one is made on a new connection
func TestADurableChangeAfterARestart(t *testing.T) {
	primary := redisserver.Start(t)
	c := config(primary)
	c.WaitReplicas, c.Timeout = 1, 200*time.Millisecond
	s := open(t, c)
	for range 2 {
		if ok, err := durable(t.Context(), s, "", "1"); !ok || !errors.Is(err, ErrNotReplicated) {
			t.Fatalf("%t, %v", ok, err)
		}
		primary.Restart()
		eventually(t, "an answer", func() bool { _, err := s.Now(t.Context()); return err == nil })
	}
}

//fault:redis | WAITAOF answers too few, in another shape, with an error, or hangs up | a server that answers so | never read as a success
func TestWaitAOF(t *testing.T) {
	for name, c := range map[string]struct {
		reply    func(c *server.Peer)
		replicas int
		class    Class
		says     string
	}{
		"on disk":       {ints(1, 0), 0, "", ""},
		"on two":        {ints(1, 1), 1, "", ""},
		"not here":      {ints(0, 1), 1, NotReplicated, "at 0 of 1 primary, 1 of 1 replicas"},
		"not there":     {ints(1, 1), 2, NotReplicated, "1 of 2 replicas"},
		"nowhere":       {ints(0, 0), 0, NotReplicated, "at 0 of 1 primary"},
		"another shape": {ints(1), 0, Protocol, "two numbers"},
		"no numbers":    {func(c *server.Peer) { c.WriteOK() }, 0, Protocol, "WAITAOF"},
		"switched off": {func(c *server.Peer) {
			c.WriteError("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
		}, 0, Other, "appendonly is disabled"},
		"hangs up":          {func(c *server.Peer) { c.Close() }, 0, Unavailable, "WAITAOF"},
		"may not":           {func(c *server.Peer) { c.WriteError("NOPERM this user has no permissions to run the 'waitaof' command") }, 0, Permission, "+waitaof"},
		"unblocked by hand": {func(c *server.Peer) { c.WriteError("UNBLOCKED client unblocked via CLIENT UNBLOCK") }, 0, Other, "UNBLOCKED"},
	} {
		t.Run(name, func(t *testing.T) {
			m := miniredis.RunT(t)
			s := open(t, Config{URI: "redis://" + m.Addr(), Layout: segment.DefaultLayout(), Timeout: 2 * time.Second})
			s.cfg.WaitAOF, s.cfg.WaitReplicas = true, c.replicas
			var asked atomic.Value
			waitAOF(t, m, func(p *server.Peer, args []string) { asked.Store(strings.Join(args, " ")); c.reply(p) })
			ok, err := durable(t.Context(), s, "", "1")
			if !ok || ClassOf(err) != c.class || (err != nil) != errors.Is(err, ErrNotReplicated) {
				t.Errorf("%t, class %q, %v", ok, ClassOf(err), err)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
			if got, want := asked.Load(), "1 "+string(rune('0'+c.replicas))+" 1000"; got != want {
				t.Errorf("WAITAOF %v, want %s", got, want)
			}
			asked.Store("")
			if ok, err := durable(t.Context(), s, "2", "3"); ok || err != nil || asked.Load() != "" {
				t.Errorf("a change that was lost: %t, %v; waited %v", ok, err, asked.Load())
			}
		})
	}
}

// waitAOF teaches a server the command.
func waitAOF(t *testing.T, m *miniredis.Miniredis, reply func(c *server.Peer, args []string)) {
	t.Helper()
	err := m.Server().Register("WAITAOF", func(c *server.Peer, _ string, args []string) { reply(c, args) })
	if err != nil {
		t.Fatal(err)
	}
}

func ints(numbers ...int) func(c *server.Peer) {
	return func(c *server.Peer) {
		c.WriteLen(len(numbers))
		for _, n := range numbers {
			c.WriteInt(n)
		}
	}
}

func TestOpenWithWaitAOF(t *testing.T) {
	for name, c := range map[string]struct {
		reply func(c *server.Peer)
		class Class
		says  string
	}{
		"on": {ints(1, 0), "", ""},
		"off": {func(c *server.Peer) {
			c.WriteError("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
		}, Other, "set appendonly to yes"},
		"on a replica": {func(c *server.Peer) {
			c.WriteError("ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and are not propagated.")
		}, "", ""},
		"hangs up": {func(c *server.Peer) { c.Close() }, Unavailable, "WAITAOF"},
	} {
		m := miniredis.RunT(t)
		waitAOF(t, m, func(p *server.Peer, _ []string) { c.reply(p) })
		s, err := Open(t.Context(), Config{URI: "redis://" + m.Addr(), Layout: segment.DefaultLayout(), WaitAOF: true}, nil, nil)
		if ClassOf(err) != c.class || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: class %q, %v", name, ClassOf(err), err)
		}
		if err == nil {
			s.Close()
		}
	}
}

// TestOpenWithWaitAOFOnAnOldServer: the packaged server is from before 7.2.
//
//fault:redis | the server is too old for wait-aof | a real server of before 7.2 | the start is refused with what to set
func TestOpenWithWaitAOFOnAnOldServer(t *testing.T) {
	c := config(redisserver.Start(t, redisserver.Args("--appendonly", "yes")))
	c.WaitAOF = true
	s, err := Open(t.Context(), c, nil, nil)
	if err == nil {
		s.Close()
		t.Fatal("no error: from Redis 7.2 on this test needs an older server")
	}
	for _, word := range []string{"WAITAOF", "korvet.storage.offload.wait-aof", "Redis 7.2"} {
		if ClassOf(err) != Other || !strings.Contains(err.Error(), word) {
			t.Errorf("class %s, %q does not say %s", ClassOf(err), err, word)
		}
	}
	c.WaitAOF = false
	s = open(t, c)
	s.cfg.WaitAOF = true // as if the server had been another one at the start
	if got := wrong(s.Check(t.Context())); len(got) != 1 || got[0] != "wait-aof" {
		t.Errorf("%v", got)
	}
	if ok, err := durable(t.Context(), s, "", "1"); !ok || !errors.Is(err, ErrNotReplicated) {
		t.Errorf("a durable change: %t, %v", ok, err)
	}
}

func TestCheckCountsReplicas(t *testing.T) {
	primary, replica := withReplica(t)
	c := config(primary)
	c.WaitReplicas = 1
	s := open(t, c)
	if got := wrong(s.Check(t.Context())); len(got) != 0 {
		t.Errorf("with one: %v", s.Check(t.Context()))
	}
	replica.Exec("REPLICAOF", "NO", "ONE")
	eventually(t, "no replica", func() bool { return strings.Contains(primary.Exec("INFO", "replication"), "connected_slaves:0") })
	var found string
	for _, f := range s.Check(t.Context()) {
		if !f.OK {
			found += f.String()
		}
	}
	if !strings.Contains(found, "wait-replicas: WRONG: 0 of 1 replicas connected") {
		t.Errorf("with none: %q", found)
	}
}
