package network

import (
	"syscall"
	"testing"
	"time"
)

// stopTime is how long an instance may take to end on SIGTERM; its
// orchestrator's patience is 30 s.
const stopTime = 20 * time.Second

// SIGTERM ends an instance in time and with code 0 whatever it waits for, and
// the next run goes on from where it was.
func TestStopping(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	for name, c := range map[string]struct {
		server string
		f      fault
		env    []string
	}{
		//fault:network | the program is told to stop while Redis is a black hole | SIGTERM in the middle of the work, the proxy swallows | it ends with code 0 within 20 s, and the next run goes on
		"redis, requests vanish": {server: "redis", f: toxics("", 0, true, hole("upstream"))},
		"redis, answers vanish":  {server: "redis", f: toxics("", 0, true, hole("downstream"))},
		"redis, black hole":      {server: "redis", f: toxics("", 0, true, hole("upstream"), hole("downstream"))},
		"redis, refused":         {server: "redis", f: fault{"", func(p *proxy) { p.off() }, func(p *proxy) { p.on() }, 0, true}},
		"redis, slow drip":       {server: "redis", f: toxics("", 0, true, down("bandwidth", map[string]any{"rate": 1}))},
		//fault:network | the program is told to stop while the store is a black hole | SIGTERM in the middle of the work, the proxy swallows | it ends with code 0 within 20 s, and the next run goes on
		"store, requests vanish": {server: "store", f: toxics("", 0, true, hole("upstream"))},
		"store, answers vanish":  {server: "store", f: toxics("", 0, true, hole("downstream"))},
		"store, black hole":      {server: "store", f: toxics("", 0, true, hole("upstream"), hole("downstream"))},
		//fault:network | the program is told to stop in the middle of an upload in parts, while the store is a black hole | SIGTERM, the proxy swallows | the parts can't be removed, and it ends with code 0 within 20 s
		"store, black hole in an upload in parts": {server: "store", f: toxics("", 0, true, hole("upstream"), hole("downstream")),
			env: []string{"KORVET_STORAGE_S3_MULTIPART_THRESHOLD=1"}},
		//fault:network | the program is told to stop in a back-off | SIGTERM while requests to the store are refused and repeated | it ends with code 0 at once
		"store, refused":   {server: "store", f: fault{"", func(p *proxy) { p.off() }, func(p *proxy) { p.on() }, 0, true}},
		"store, slow drip": {server: "store", f: toxics("", 0, true, up("bandwidth", map[string]any{"rate": 1}))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s, usual())
			w.env = c.env
			redis, store := newProxy(t, s.redis.Addr), newProxy(t, s.s3.Endpoint)
			p := w.start(redis.addr(), store.addr())
			redis.add(up("latency", map[string]any{"latency": 5}))
			store.add(up("latency", map[string]any{"latency": 30}))
			all := w.left()
			w.begin()
			await(t, "half of the work is done", 20*time.Second, func() bool { return w.left() <= all/2 })
			c.f.begin(map[string]*proxy{"redis": redis, "store": store}[c.server])
			<-time.After(500 * time.Millisecond) // it runs into it
			p.signal(syscall.SIGTERM)
			code, took := p.wait(stopTime)
			t.Logf("stopped after %s", took.Round(10*time.Millisecond))
			if code != 0 || took > 8*time.Second {
				t.Errorf("exit %d after %s", code, took)
			}
			w.judge(false)
			w.mustSettle(60*time.Second, w.start(s.redis.Addr, s.s3.Endpoint))
		})
	}
}

// The second signal waits for nothing.
func TestASecondSignal(t *testing.T) {
	//fault:network | the program is told to stop twice while Redis is a black hole | two SIGTERM, the proxy swallows | the second one ends it at once
	t.Parallel()
	w := newWorld(t, newServers(t), usual())
	redis := newProxy(t, w.redis.Addr)
	w.env = []string{"KORVET_REDIS_TIMEOUT=10s", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=30s"} // so that the first one waits
	p := w.start(redis.addr(), w.s3.Endpoint)
	redis.add(hole("upstream"), hole("downstream"))
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		t.Fatal("it did not wait for the lease to be given back")
	case <-time.After(500 * time.Millisecond):
	}
	p.signal(syscall.SIGTERM)
	if code, took := p.wait(stopTime); code != -1 || took > time.Second {
		t.Errorf("exit %d after %s", code, took)
	}
}

// An instance that has not reached Redis yet stops as well.
func TestStoppingBeforeItBegan(t *testing.T) {
	//fault:network | Redis takes the connection and says nothing, from the start | the proxy swallows both directions from the first connection on | the program is alive and not ready, and ends at once when it is told to
	t.Parallel()
	w := newWorld(t, newServers(t), usual())
	redis := newProxy(t, w.redis.Addr)
	redis.add(hole("upstream"), hole("downstream"))
	p := launch(t, w.environ(redis.addr(), w.s3.Endpoint), "run")
	await(t, "it waits", 15*time.Second, p.said("waiting for redis"))
	if !p.ready(false)() {
		t.Error("ready without Redis")
	}
	p.mustLive("waiting")
	p.signal(syscall.SIGTERM)
	if code, took := p.wait(stopTime); code != 0 || took > 5*time.Second {
		t.Errorf("exit %d after %s", code, took)
	}
}

// However long the timeouts are, the program ends in time.
func TestStoppingWithLongTimeouts(t *testing.T) {
	//fault:network | the program is told to stop while Redis is a black hole, and the timeout of commands is a minute | SIGTERM in the middle of the work, the proxy swallows | it ends with code 0 within 20 s all the same
	t.Parallel()
	w := newWorld(t, newServers(t), usual())
	w.env = []string{"KORVET_REDIS_TIMEOUT=1m", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=2m"}
	redis := newProxy(t, w.redis.Addr)
	p := w.start(redis.addr(), w.s3.Endpoint)
	redis.add(up("latency", map[string]any{"latency": 30}))
	w.begin()
	await(t, "the work has begun", 30*time.Second, func() bool { return w.left() <= 8 })
	redis.add(hole("upstream"), hole("downstream"))
	<-time.After(500 * time.Millisecond)
	p.signal(syscall.SIGTERM)
	code, took := p.wait(stopTime + 3*time.Second)
	if t.Logf("stopped after %s", took.Round(10*time.Millisecond)); code != 0 {
		t.Errorf("exit %d after %s", code, took)
	}
}
