package network

import (
	"testing"
	"time"
)

// An instance that is cut off from Redis alone loses the lead to another one,
// which does the work; the one that was cut off is not ready and alive, and
// does no harm when it comes back in the middle of what it was doing.
func TestAnotherTakesOver(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	for name, f := range map[string]fault{
		//fault:leaders | the leader is cut off from Redis, and the other instance is not | the leader's proxy swallows both directions | the other one takes over within the lease, and the old one does no harm when it comes back
		"black hole": toxics("", 0, true, hole("upstream"), hole("downstream")),
		//fault:leaders | the leader hears nothing from Redis, which hears the leader | the leader's proxy swallows answers | the old leader gives up the lead, and what it did without an answer is not done twice
		"answers vanish": toxics("", 0, true, hole("downstream")),
		//fault:leaders | the leader's connections to Redis are refused | the leader's proxy is off | the other one takes over within the lease, and the old one does no harm when it comes back
		"refused": {"", func(p *proxy) { p.off() }, func(p *proxy) { p.on() }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s, usual())
			redis, store := newProxy(t, s.redis.Addr), newProxy(t, s.s3.Endpoint)
			first := w.start(redis.addr(), store.addr())
			second := launch(t, w.environ(s.redis.Addr, s.s3.Endpoint), "run")
			await(t, "the second one follows", 20*time.Second, second.said("another instance leads"))
			redis.add(up("latency", map[string]any{"latency": 5}))
			store.add(up("latency", map[string]any{"latency": 30}))
			all := w.left()
			w.begin()
			await(t, "half of the work is done", 20*time.Second, func() bool { return w.left() <= all/2 })
			f.begin(redis)
			cut := time.Now()
			await(t, "the second one leads", leaseTime+10*time.Second, second.said("this instance leads"))
			t.Logf("took over after %s", time.Since(cut).Round(10*time.Millisecond))
			await(t, "the first one is not ready", 15*time.Second, first.ready(false))
			first.mustLive("cut off")
			await(t, "the second one does the work", 20*time.Second, w.done)
			if !second.ready(true)() {
				t.Error("the second one is not ready")
			}
			f.end(redis)
			await(t, "the first one follows", 20*time.Second, first.said("another instance leads"))
			w.mustSettle(time.Second, first, second)
		})
	}
}

// An instance that is cut off from the store alone keeps the lead: it is not
// ready, loses nothing, and goes on when the store is there again.
func TestCutOffFromTheStore(t *testing.T) {
	//fault:network | the leader is cut off from the store alone | the leader's proxy refuses connections | it keeps the lead and is not ready, and goes on by itself once it is over
	t.Parallel()
	w := newWorld(t, newServers(t), usual())
	store := newProxy(t, w.s3.Endpoint)
	first := w.start(w.redis.Addr, store.addr())
	second := launch(t, w.environ(w.redis.Addr, w.s3.Endpoint), "run")
	await(t, "the second one follows", 20*time.Second, second.said("another instance leads"))
	store.off()
	w.begin()
	await(t, "the first one is not ready", 30*time.Second, first.ready(false))
	first.mustLive("cut off")
	if second.said("this instance leads")() {
		t.Error("the second one leads as well")
	}
	w.judge(false)
	store.on()
	w.mustSettle(30*time.Second, first, second)
}
