package network

import (
	"strings"
	"testing"
	"time"
)

// fault is what is done to a network while there is work of each kind.
type fault struct {
	name  string
	begin func(p *proxy)
	end   func(p *proxy)
	lasts time.Duration
	cuts  bool // nothing can be done meanwhile, so the program is not ready
}

// toxics makes a fault of toxics.
func toxics(name string, lasts time.Duration, cuts bool, all ...toxic) fault {
	return fault{name, func(p *proxy) { p.add(all...) }, func(p *proxy) { p.lift(all...) }, lasts, cuts}
}

// faults are those that both servers can be behind.
func faults() []fault { //fault:test TestFaults
	resets := down("reset_peer", map[string]any{"timeout": 50})
	return []fault{
		//fault:network | answers are late, and some later than others | the proxy delays them by 150 ms give or take 100 | all work is done, only later
		toxics("latency", 2*time.Second, false, down("latency", map[string]any{"latency": 150, "jitter": 100})),
		//fault:network | connections are reset, again and again | the proxy answers with RST 50 ms after the first byte of every connection | the work goes on by itself once it stops
		{"reset", func(p *proxy) { p.add(resets); p.cutAll() }, func(p *proxy) { p.lift(resets) }, 2 * time.Second, true},
		//fault:network | a half-open connection: requests arrive, and answers do not | the proxy swallows what the server sends and keeps the connections | what was done without an answer is not done twice
		toxics("answers vanish", leaseTime+time.Second, false, hole("downstream")),
		//fault:network | a half-open connection: requests vanish | the proxy swallows what the program sends and keeps the connections | the work goes on by itself once it stops
		toxics("requests vanish", leaseTime+time.Second, false, hole("upstream")),
		//fault:network | a black hole: connections are taken, and nothing passes | the proxy swallows both directions and keeps the connections | the work goes on by itself once it stops
		toxics("black hole", leaseTime+time.Second, false, hole("upstream"), hole("downstream")),
		//fault:network | the line is very slow | the proxy passes 20 KB in a second, each way | all work is done, only later
		toxics("slow drip", 2*time.Second, false, down("bandwidth", map[string]any{"rate": 20}), up("bandwidth", map[string]any{"rate": 20})),
		//fault:network | answers come in tiny pieces | the proxy cuts them into pieces of some 20 bytes with pauses | they are put together rightly
		toxics("tiny pieces", 2*time.Second, false, down("slicer", map[string]any{"average_size": 20, "size_variation": 10, "delay": 100})),
		//fault:network | nobody listens, for longer than the lease | the proxy refuses connections | the leadership ends in time, and the work goes on by itself once it is over
		{"refused", func(p *proxy) { p.off() }, func(p *proxy) { p.on() }, 2 * leaseTime, true},
		//fault:network | connections end, again and again | the proxy closes all of them every 100 ms | the work goes on, and nothing is done twice
		{"flapping", func(p *proxy) {
			for range 10 {
				p.cutAll()
				<-time.After(100 * time.Millisecond)
			}
		}, func(*proxy) {}, 0, false},
	}
}

// Each fault, at each server, begins when the work does, and when half of it is
// done; while it lasts the program stays alive and does not pretend to be ready;
// afterwards all is done within a bound, and the checker finds nothing.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	for _, f := range faults() {
		for _, server := range []string{"redis", "store"} {
			for _, moment := range []string{"at once", "half done"} {
				t.Run(strings.Join([]string{server, f.name, moment}, "/"), func(t *testing.T) {
					t.Parallel()
					newWorld(t, s, usual()).suffer(f, server, moment)
				})
			}
		}
	}
}

// suffer lets a fault come at a moment. The line is slow anyway, so that there
// is always something under way.
func (w *world) suffer(f fault, server, moment string) {
	redis, store := newProxy(w.t, w.redis.Addr), newProxy(w.t, w.s3.Endpoint)
	p := w.start(redis.addr(), store.addr())
	redis.add(up("latency", map[string]any{"latency": 5}))
	store.add(up("latency", map[string]any{"latency": 30}))
	faulty := map[string]*proxy{"redis": redis, "store": store}[server]
	all := w.left()
	w.begin()
	if moment == "half done" {
		await(w.t, "half of the work is done", 30*time.Second, func() bool { return w.left() <= all/2 })
	}
	f.begin(faulty)
	until := time.Now().Add(f.lasts)
	if f.cuts || server == "redis" && strings.Contains(f.name, "vanish") {
		await(w.t, "not ready", 40*time.Second, p.ready(false))
	}
	for time.Now().Before(until) {
		p.mustLive(f.name)
		<-time.After(50 * time.Millisecond)
	}
	f.end(faulty)
	w.t.Logf("%d of %d segments left when the fault is over", w.left(), all)
	w.mustSettle(60*time.Second, p)
}
