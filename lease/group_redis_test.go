package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
)

const membersKey = "korvet:storage:offload:members"

func groupOf(t *testing.T, s *redisserver.Server, id string, shards int) *Group {
	t.Helper()
	return NewGroup(client(t, s), Config{Key: key, Members: membersKey, Duration: 6 * time.Second, Shards: shards},
		Member{ID: id, Host: "host \"of\" " + id, Version: "1.2.3", Address: "127.0.0.1:1"})
}

// running runs a group until the function that it returns is called.
func running(t *testing.T, g *Group) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { g.Run(ctx, func(View) {}) })
	stop = sync.OnceFunc(func() {
		cancel()
		ran.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// using has a group's work done, by one that asks and one that works, until the
// test ends.
func using(t *testing.T, g *Group) {
	ctx, stop := context.WithCancel(t.Context())
	var used sync.WaitGroup
	for _, use := range []func(){
		func() {
			if !g.Healthy(time.Now()) {
				t.Error("not healthy")
			}
		},
		func() {
			for i := range g.Terms() {
				if leave, ok := g.Enter(i); ok {
					leave()
				}
			}
		},
	} {
		used.Go(func() {
			for ctx.Err() == nil {
				use()
				<-time.After(time.Millisecond)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		used.Wait()
	})
}

// become polls until groups hold so many leases.
func become(t *testing.T, want string, groups ...*Group) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		var n []int
		for _, g := range groups {
			n = append(n, len(g.Held()))
		}
		if fmt.Sprint(n) == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("shares %v, want %s", n, want)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestGroupsOnAServer(t *testing.T) {
	//fault:leaders | Two instances share the leases of one Redis, and one leaves | A real server | Each has half of them within seconds, the Hash of the members says who holds which, and the one that stays takes all
	t.Parallel()
	s := redisserver.Start(t)
	a, b := groupOf(t, s, "a", 4), groupOf(t, s, "b", 4)
	running(t, a)
	become(t, "[4]", a)
	using(t, a)
	stop := running(t, b)
	become(t, "[2 2]", a, b)
	for i := range 4 {
		if ttl := s.Exec("PTTL", fmt.Sprintf("%s:%d/4", key, i)); ttl == "-1" || ttl == "-2" {
			t.Errorf("lease %d lapses in %s", i, ttl)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		members, err := Members(t.Context(), client(t, s), a.cfg)
		if err == nil && len(members) == 2 && len(members[0].Shards) == 2 && len(members[1].Shards) == 2 {
			m := members[1]
			if m.ID != "b" || m.Host != `host "of" b` || m.Version != "1.2.3" || m.Address != "127.0.0.1:1" || m.Of != 4 || m.StartedAt == 0 || m.SeenAt < m.StartedAt {
				t.Errorf("member %+v", m)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("members %+v, %v", members, err)
		}
		<-time.After(20 * time.Millisecond)
	}
	var raw map[string]any
	if err := json.Unmarshal([]byte(s.Exec("HGET", membersKey, "a")), &raw); err != nil || raw["v"] != 1.0 || len(raw) != 8 {
		t.Errorf("record %v, %v", raw, err)
	}
	stop()
	become(t, "[4]", a)
	if got := strings.TrimSpace(s.Exec("HKEYS", membersKey)); got != "a" {
		t.Errorf("members %q", got)
	}
}

func TestMembersRecords(t *testing.T) {
	//fault:input | The Hash of the instances holds what is no record, or an old one | HSET of foreign fields, real server | What is old is cleaned away by whoever writes and not by whoever looks, what is no record stays and counts for nobody
	s := redisserver.Start(t)
	s.Exec("HSET", membersKey, "old", `{"v":1,"seenAt":1000,"shards":[0],"of":2}`, "foreign", "x", "odd", fmt.Sprintf(`{"seenAt":%d,"shards":"no"}`, time.Now().UnixMilli()))
	g := groupOf(t, s, "a", 2)
	members, err := Members(t.Context(), g.book.redis.(*scripts).client, g.cfg)
	if err != nil || len(members) != 0 || strings.TrimSpace(s.Exec("HLEN", membersKey)) != "3" {
		t.Errorf("members %+v, %v", members, err)
	}
	if _, err := g.round(t.Context()); err != nil || len(g.Held()) != 2 {
		t.Errorf("held %v, %v", g.Held(), err)
	}
	if got := strings.TrimSpace(s.Exec("HEXISTS", membersKey, "old")) + strings.TrimSpace(s.Exec("HLEN", membersKey)); got != "03" {
		t.Errorf("the old record, and the number of all: %s", got)
	}
	_, release, err := g.Acquire(t.Context())
	if err != nil || release(t.Context()) != nil {
		t.Error(err)
	}
}

// It is by leading that memory is freed.
func TestAGroupOfAFullServer(t *testing.T) {
	//fault:redis | maxmemory is reached, and several instances share the work | CONFIG SET maxmemory 1 | An instance can still join, take its leases and give them back
	s := redisserver.Start(t)
	s.Exec("CONFIG", "SET", "maxmemory", "1")
	g := groupOf(t, s, "a", 2)
	_, release, err := g.Acquire(t.Context())
	if err != nil || len(g.Held()) != 2 || strings.TrimSpace(s.Exec("HLEN", membersKey)) != "1" {
		t.Fatalf("held %v, %v", g.Held(), err)
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMembersOfAnotherType(t *testing.T) {
	//fault:input | The key of the instances is a List | RPUSH on the key, real server | With several leases it is an error that names the key; with a single one it is told, and the work goes on
	s := redisserver.Start(t)
	s.Exec("RPUSH", membersKey, "x")
	if _, _, err := groupOf(t, s, "a", 2).Acquire(t.Context()); err == nil || !strings.Contains(err.Error(), membersKey) {
		t.Errorf("acquire: %v", err)
	}
	l := New(client(t, s), Config{Key: key, Members: membersKey, Duration: 6 * time.Second})
	_, release, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := NewPresence(client(t, s), l, Member{ID: "a"})
	ctx, stop := context.WithCancel(t.Context())
	var view View
	p.Run(ctx, func(v View) {
		view = v
		stop()
	})
	if view.Err == nil || fmt.Sprint(view.Held) != "[0]" {
		t.Errorf("told %+v", view)
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPresenceOfASingleLease(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t)
	l := New(client(t, s), Config{Key: key, Members: membersKey, Duration: 6 * time.Second})
	p := NewPresence(client(t, s), l, Member{ID: "a", Host: "h"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	views := make(chan View, 100)
	var ran sync.WaitGroup
	ran.Go(func() { p.Run(ctx, func(v View) { views <- v }) })
	first := <-views
	_, release, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := <-views
	if len(first.Members) != 1 || len(first.Members[0].Shards) != 0 || fmt.Sprint(second.Members[0].Shards) != "[0]" || second.Members[0].Of != 1 ||
		second.Members[0].StartedAt != first.Members[0].StartedAt {
		t.Errorf("told %+v, then %+v", first, second)
	}
	stop()
	ran.Wait()
	if got := strings.TrimSpace(s.Exec("EXISTS", membersKey)); got != "0" {
		t.Error("the record was left behind")
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A record from the future is that of an instance that died before the server's
// clock was set back. Nobody waits for it.
func TestAMemberFromTheFuture(t *testing.T) {
	//fault:time | The Redis clock is set back after an instance has died | A record of an instance, years ahead, that claims every shard | It counts as gone and is removed, and the others take all shards
	s := redisserver.Start(t)
	s.Exec("HSET", membersKey, "ghost", `{"v":1,"host":"h","version":"1","address":"","shards":[0,1,2],"of":3,"startedAt":1,"seenAt":9999999999999}`)
	g := groupOf(t, s, "a", 3)
	running(t, g)
	awaitHeld(t, g, 3)
	if got := s.Exec("HKEYS", membersKey); strings.TrimSpace(got) != "a" {
		t.Errorf("the members are %q", got)
	}
}

// One key that is no lease does not keep an instance from the others, in
// whatever order it asks for them.
func TestAShardsKeyOfAnotherType(t *testing.T) {
	//fault:input | The key of one of several leases is a List | RPUSH on each of the keys in turn | The error names it, and the instance takes the others
	for i := range 3 {
		s := redisserver.Start(t)
		bad := Config{Key: key, Shards: 3}.ShardKey(i)
		s.Exec("RPUSH", bad, "x")
		g := groupOf(t, s, "a", 3)
		running(t, g)
		awaitHeld(t, g, 2)
		if _, err := g.round(t.Context()); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("the error does not name %s: %v", bad, err)
		}
	}
}

func awaitHeld(t *testing.T, g *Group, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); len(g.Held()) != n; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it holds %v, want %d", g.Held(), n)
		}
	}
}
