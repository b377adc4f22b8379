package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

// Options of a Registry.
type Options struct {
	Version  string // of the build
	Revision string // of the source; "" = not known
	Go       string // version of Go

	Topics    bool          // a series for each topic
	MaxTopics int           // topics that have one, 1 or more; the others share one
	SLA       time.Duration // that a sealed segment may wait: tick-interval and sla together
	Shards    int           // leases that instances share, 1 or more

	Up  func() bool      // whether Redis, the lease and the store work; asked at each scrape; nil = always
	Now func() time.Time // of this host, monotonic; nil = time.Now
}

// Registry holds all metrics of one worker.
type Registry struct {
	opt   Options
	prom  *prometheus.Registry
	count instruments

	mu    sync.Mutex
	state state
}

// New makes a registry in which nothing has happened yet.
func New(o Options) *Registry {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Up == nil {
		o.Up = func() bool { return true }
	}
	r := &Registry{opt: o, prom: prometheus.NewRegistry()}
	r.state = newState(o)
	r.prom.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newScrape(r))
	r.count = newInstruments(r.prom)
	return r
}

// Handler answers what Prometheus asks for, in the format that it prefers.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// SetPaused says what is paused: everything, or so many topics and plain
// streams by name.
func (r *Registry) SetPaused(all bool, byName int) {
	r.set(func(s *state) { s.paused, s.pausedTopics = all, byName })
}

// SetUploadRate says which upload-rate is in effect, in bytes per second; 0 =
// no limit.
func (r *Registry) SetUploadRate(rate int64) { r.set(func(s *state) { s.rate = rate }) }

// SetSLA says how long a sealed segment may wait from now on.
func (r *Registry) SetSLA(sla time.Duration) { r.set(func(s *state) { s.sla = sla }) }

// SetShards says how many shards this instance holds. Without it, one that
// leads holds one.
func (r *Registry) SetShards(held int) { r.set(func(s *state) { s.shards = held }) }

// SetEviction says what Redis may evict: one of EvictionRisks.
func (r *Registry) SetEviction(risk string) { r.set(func(s *state) { s.eviction = risk }) }

// SetMemory takes a look at the memory of a Redis server: what it uses and what
// it may use, in bytes; 0 = no limit. The speed at which it fills comes from the
// looks of the last minutes.
func (r *Registry) SetMemory(node string, used, most int64) {
	now := r.opt.Now()
	r.set(func(s *state) { s.memory.look(node, used, most, now) })
}

func (r *Registry) set(change func(*state)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.state)
}

// UploadWaited counts time that an upload has waited for upload-rate.
func (r *Registry) UploadWaited(d time.Duration) {
	r.count.rateWaits.Add(d.Seconds())
}

// StoreCall counts an attempt at a request to S3.
func (r *Registry) StoreCall(c s3sink.Call) {
	outcome := outcomeOK
	if c.Class != "" {
		outcome = string(c.Class)
	}
	r.count.s3Calls.of(c.Op, outcome).Inc()
	r.count.s3Seconds.of(c.Op).Observe(c.Took.Seconds())
	if c.Waited > 0 {
		r.count.throttleSeconds.of(causeStore).Add(c.Waited.Seconds())
	}
}

// StoreEvent takes what a store tells of itself.
func (r *Registry) StoreEvent(e s3sink.Event) {
	switch {
	case e.Op == "limit":
		r.set(func(s *state) { s.limit = e.Limit })
	case e.Attempt > 0:
		r.count.s3Retries.of(e.Op, string(e.Class)).Inc()
	}
}

// Observer counts what a worker does.
func (r *Registry) Observer() offload.Observer { return observer{r} }

// LoopObserver counts what the loop around a worker does.
func (r *Registry) LoopObserver() offload.LoopObserver { return loopObserver{r} }
