package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// full says whether the server refuses a producer's message.
func (r *rig) full() bool {
	_, err := r.redis.TryExec("XADD", "probe", "*", "value", strings.Repeat("x", 1000))
	if err != nil && !strings.Contains(err.Error(), "OOM") {
		r.t.Fatal(err)
	}
	return err != nil
}

// fill sets the server's limit to what it holds, so that it takes no message
// any more.
func (r *rig) fill() {
	r.t.Helper()
	for range 20 {
		used := strings.TrimSpace(rest(r.redis.Exec("INFO", "memory"), "used_memory:"))
		r.redis.Exec("CONFIG", "SET", "maxmemory", used, "maxmemory-policy", "noeviction")
		for range 200 {
			if r.full() {
				return
			}
		}
	}
	r.t.Fatal("the server does not get full")
}

// rest is the rest of the line behind a mark.
func rest(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

//fault:redis | Redis has reached maxmemory with noeviction and refuses every producer | maxmemory set to what is in use while 24 segments are due, the daemon of the built binary | segments are sealed, copied and dropped, and by that producers can write again
func TestAFullRedisIsEmptied(t *testing.T) {
	r := newFileRig(t)
	r.one(24, 2000)
	p := segment.Partition{Topic: "orders"}
	r.redis.Exec("HSET", r.layout.ManifestKey(p), "24", fmt.Sprintf(`{"v":1,"state":"OPEN","tier":"LOCAL","openedAt":%d}`, time.Now().Add(-time.Hour).UnixMilli()))
	r.redis.Exec("XADD", r.layout.SegmentKey(p, 24), "*", "value", "x")
	r.set("orders", "local.retention.ms", "1000", "segment.ms", "60000")
	r.fill()
	d := r.ticking()
	await(t, "every copy in Redis is dropped", 40*time.Second, func() bool {
		for _, e := range r.entries() {
			if e.Local != segment.Gone {
				return false
			}
		}
		return true
	})
	if !strings.Contains(r.redis.Exec("HGET", r.layout.ManifestKey(p), "24"), `"state":"SEALED"`) || r.redis.Exec("HEXISTS", r.layout.ManifestKey(p), "25") != "1" {
		t.Errorf("the open segment was not sealed: %s", r.redis.Exec("HGETALL", r.layout.ManifestKey(p)))
	}
	for key, e := range r.entries() {
		r.mustHold(r.ledger[key], e)
		if r.redis.Exec("EXISTS", key) != "0" {
			t.Errorf("%s is still there", key)
		}
	}
	await(t, "producers can write again", 20*time.Second, func() bool { return !r.full() })
	d.mustLive()
	if strings.Contains(d.worker.log(), "OOM") || strings.Contains(d.worker.log(), `"level":"error"`) {
		t.Errorf("%s", d.worker.log())
	}
}

//fault:redis | Redis is far beyond maxmemory, so that nothing that is freed helps | maxmemory 1 at each step of a life: seal, copy, drop, hide, delete, and the lease | each step is done, and what can't be done is said with what to raise
func TestEveryStepAtAFullRedis(t *testing.T) {
	r := newFileRig(t)
	r.one(2, 100)
	p := segment.Partition{Topic: "orders"}
	r.redis.Exec("HSET", r.layout.ManifestKey(p), "2", fmt.Sprintf(`{"v":1,"state":"OPEN","tier":"LOCAL","openedAt":%d}`, time.Now().Add(-time.Hour).UnixMilli()))
	r.redis.Exec("XADD", r.layout.SegmentKey(p, 2), "*", "value", "x")
	r.env = []string{"KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0", "KORVET_STORAGE_OFFLOAD_DELETE_GRACE=0"}
	settings := func(s ...string) {
		r.redis.Exec("CONFIG", "SET", "maxmemory", "0")
		r.set("orders", s...)
		r.redis.Exec("CONFIG", "SET", "maxmemory", "1")
	}
	settings("segment.ms", "60000")
	if out := r.pass(0); !strings.Contains(out, "2 of 2 sealed segments moved") {
		t.Errorf("seal and copy: %s", out)
	}
	if out := r.pass(0); !strings.Contains(out, "1 of 1 sealed segment moved") {
		t.Errorf("copy of what was sealed: %s", out)
	}
	r.mustBeRight()
	settings("local.retention.ms", "1000")
	await(t, "they are past local retention", 20*time.Second, after(1100*time.Millisecond))
	if out := r.pass(0); !strings.Contains(out, "3 dropped") {
		t.Errorf("drop: %s", out)
	}
	settings("retention.ms", "1000")
	if out := r.pass(0); !strings.Contains(out, "3 hidden") {
		t.Errorf("hide: %s", out)
	}
	if out := r.pass(0); !strings.Contains(out, "3 expired") {
		t.Errorf("delete: %s", out)
	}
	if left := r.objects(); len(left) != 0 || r.redis.Exec("HLEN", r.layout.ManifestKey(p)) != "1" {
		t.Errorf("left: %q, %s", left, r.redis.Exec("HGETALL", r.layout.ManifestKey(p)))
	}
	if r.redis.Exec("EXISTS", r.layout.LeaseKey()) != "0" {
		t.Error("the lease was not given back")
	}
}
