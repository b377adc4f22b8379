package test

import (
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

//fault:redis | The server may evict any key when it is full | maxmemory-policy allkeys-lru at the start and while the daemon runs, and noeviction again | a warning at the start, one line when it ends, another when it comes back, and status shows it
func TestADangerousPolicyIsSaid(t *testing.T) {
	r := newFileRig(t)
	r.one(2, 20)
	policy := func(name string) { r.redis.Exec("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", name) }
	policy("allkeys-lru")
	const danger, over = "redis may evict streams", "redis evicts no streams any more"
	d := r.ticking()
	said := func(what string, times int) {
		t.Helper()
		await(t, what, 20*time.Second, func() bool { return strings.Count(d.worker.log(), what) == times })
	}
	said(danger, 1)
	await(t, "five ticks pass", 20*time.Second, after(time.Second))
	said(danger, 1)
	if log := d.worker.log(); !strings.Contains(log, "maxmemory-policy allkeys-lru") || !strings.Contains(log, "set maxmemory-policy to noeviction") {
		t.Errorf("it is not said what to do: %s", log)
	}
	stdout, stderr, code := r.run("status")
	if code != 0 || !strings.Contains(stderr, "warning: ") || !strings.Contains(stderr, "maxmemory-policy allkeys-lru") {
		t.Errorf("status: exit %d\n%s%s", code, stdout, stderr)
	}
	if stdout, _, _ := r.run("status", "--output", "json"); !strings.Contains(stdout, `"risk": "streams"`) {
		t.Errorf("status: %s", stdout)
	}
	policy("volatile-lru")
	said(over, 1)
	if stdout, stderr, _ := r.run("status", "--output", "json"); !strings.Contains(stdout, `"risk": "lease"`) || stderr != "" {
		t.Errorf("status: %s%s", stdout, stderr)
	}
	policy("allkeys-random")
	said(danger, 2)
	policy("noeviction")
	said(over, 2)
	d.mustGoOn()
}

//fault:redis | The same where strict-redis is set | allkeys-lru and a user without INFO, then noeviction | the start is refused with exit code 2 and one line, before anything is written
func TestStrictRedisRefusesTheStart(t *testing.T) {
	r := newFileRig(t)
	r.one(2, 20)
	before := r.redis.Exec("HGETALL", r.layout.ManifestKey(segment.Partition{Topic: "orders"}))
	r.env = []string{"KORVET_STORAGE_OFFLOAD_STRICT_REDIS=true"}
	refused := func(words ...string) {
		t.Helper()
		for _, args := range [][]string{{"run"}, {"run", "--once"}} {
			_, stderr, code := r.run(args...)
			lines := strings.SplitAfter(stderr, "\n")
			for i, l := range lines {
				if strings.Contains(l, "korvet-offload: ") {
					oneLine(t, lines[i], append(words, "korvet.storage.offload.strict-redis")...)
				}
			}
			if code != 2 || !strings.Contains(stderr, "strict-redis") {
				t.Errorf("%q: exit %d\n%s", args, code, stderr)
			}
		}
	}
	r.redis.Exec("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
	refused("maxmemory-policy allkeys-lru", "set maxmemory-policy to noeviction")
	r.redis.Exec("CONFIG", "SET", "maxmemory-policy", "noeviction")
	r.redis.Exec("ACL", "SETUSER", "worker", "on", ">pw", "~*", "+@all", "-info")
	env := r.env
	r.env = append(r.env, "KORVET_REDIS_URI="+r.redis.UserURI("worker", "pw"))
	refused("+info")
	if now := r.redis.Exec("HGETALL", r.layout.ManifestKey(segment.Partition{Topic: "orders"})); now != before || len(r.objects()) != 0 {
		t.Errorf("something was done: %s", now)
	}
	r.env = env
	if _, stderr, code := r.run("run", "--once"); code != 0 {
		t.Errorf("noeviction: exit %d\n%s", code, stderr)
	}
	r.mustBeDone()
}

//fault:redis | The server evicts a stream that was not copied | a real eviction by allkeys-lru of the stream that was not used for longest | source_missing, no file, and the other segments move
func TestAnEvictedStreamIsMissing(t *testing.T) {
	r := newFileRig(t)
	r.one(6, 3000)
	orders := segment.Partition{Topic: "orders"}
	victim := r.layout.SegmentKey(orders, 2)
	await(t, "everything gets old", 20*time.Second, after(3*time.Second))
	for key := range strings.Lines(r.redis.Exec("KEYS", "*")) {
		if key = strings.TrimSpace(key); key != victim {
			r.redis.Exec("TOUCH", key)
		}
	}
	r.redis.Exec("CONFIG", "SET", "maxmemory-samples", "64", "maxmemory-policy", "allkeys-lru")
	r.redis.Exec("CONFIG", "SET", "maxmemory", strings.TrimSpace(rest(r.redis.Exec("INFO", "memory"), "used_memory:")))
	await(t, "a stream is evicted", 20*time.Second, func() bool {
		r.redis.Exec("XADD", "filler", "*", "value", strings.Repeat("x", 1000))
		return r.redis.Exec("EXISTS", victim) == "0"
	})
	r.redis.Exec("CONFIG", "SET", "maxmemory", "0")
	if n := strings.TrimSpace(rest(r.redis.Exec("INFO", "stats"), "evicted_keys:")); n != "1" {
		t.Fatalf("%s keys were evicted", n)
	}
	out := r.pass(1, "--output", "json")
	if !strings.Contains(out, `"reason": "source_missing"`) || !strings.Contains(out, victim) {
		t.Errorf("%s", out)
	}
	for key, e := range r.entries() {
		if (e.Tier == segment.Remote) == (key == victim) {
			t.Errorf("%s: %s", key, e.Encode())
		}
	}
	if n := len(r.objects()); n != 5 {
		t.Errorf("%d objects", n)
	}
}
