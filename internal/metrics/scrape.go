package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"korvet-offload/offload"
)

// scrape is the collector of what is made of the state at each scrape.
type scrape struct {
	r     *Registry
	descs map[string]*prometheus.Desc
	kinds map[string]kind
}

func newScrape(r *Registry) *scrape {
	s := &scrape{r: r, descs: map[string]*prometheus.Desc{}, kinds: map[string]kind{}}
	for _, m := range table() {
		if !counted(m) {
			s.descs[m.name] = prometheus.NewDesc(m.name, m.help, names(m.labels), nil)
			s.kinds[m.name] = m.kind
		}
	}
	return s
}

// Describe implements prometheus.Collector.
func (s *scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *scrape) Collect(ch chan<- prometheus.Metric) {
	up := s.r.opt.Up() // takes locks of its own
	for _, m := range s.all(up) {
		ch <- m
	}
}

func (s *scrape) all(up bool) []prometheus.Metric {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	v := &view{scrape: s, state: &s.r.state, now: s.r.opt.Now()}
	v.set(workerUp, truth(up))
	v.set(applicationBuild, 1, s.r.opt.Version, s.r.opt.Revision, s.r.opt.Go)
	v.worker()
	v.redis()
	if v.state.verified != nil {
		v.verified(v.state.verified)
	}
	if v.state.found != nil {
		v.found(v.state.found)
		v.backlog(v.state.found)
		if s.r.opt.Topics {
			v.topics(v.state.found)
		}
	}
	return v.out
}

// view is one scrape.
type view struct {
	*scrape
	state *state
	now   time.Time
	out   []prometheus.Metric
}

func (v *view) set(name string, value float64, labels ...string) {
	kind := prometheus.GaugeValue
	if v.kinds[name] == counter {
		kind = prometheus.CounterValue
	}
	v.out = append(v.out, prometheus.MustNewConstMetric(v.descs[name], kind, value, labels...))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (v *view) worker() {
	s := v.state
	v.set(leader, truth(s.leads))
	v.set(shards, float64(v.r.opt.Shards))
	v.set(shardsHeld, float64(s.heldShards()))
	v.set(slaSeconds, s.sla.Seconds())
	v.set(paused, truth(s.paused))
	v.set(pausedTopics, float64(s.pausedTopics))
	v.set(throttleLimit, float64(s.limit))
	v.set(uploadRate, float64(s.rate))
}

func (v *view) redis() {
	s := v.state
	if used, ok := s.memory.used(); ok {
		v.set(usedMemory, float64(used))
		v.set(maxMemory, float64(max(0, s.memory.most)))
	}
	if left, ok := s.memory.left(); ok {
		v.set(headroomSeconds, left, limitMemory)
	}
	if s.eviction != "" {
		for _, risk := range EvictionRisks() {
			v.set(evictionRisk, truth(risk == s.eviction), risk)
		}
	}
}

// found shows what the last scan and the last pass have found.
func (v *view) found(f *found) {
	c, lag := f.plan.Counts, f.plan.Lag
	for state, n := range map[string]int{stateOpen: c.Open, stateSealed: c.Sealed, stateBoth: c.Both, stateRemote: c.Remote - c.Both,
		stateDeleting: c.Deleting, stateIllegal: c.Illegal} {
		v.set(segments, float64(n), state)
	}
	v.set(topicCount, float64(c.Topics))
	v.set(partitionCount, float64(c.Partitions))
	v.set(unuploaded, float64(c.Unuploaded))
	v.set(overdueSegments, float64(lag.Overdue))
	v.set(overdueLongest, lag.LongestOverdue.Seconds())
	v.set(held, float64(f.held))
	if !f.success.IsZero() {
		v.set(passLastSuccess, float64(f.success.UnixMilli())/1000)
	}
	n := map[offload.Reason]int{}
	for _, reason := range f.parked {
		n[reason]++
	}
	for _, reason := range offload.Reasons() {
		v.set(parked, float64(n[reason]), string(reason))
	}
}

// backlog shows how much waits, of all topics.
func (v *view) backlog(f *found) {
	b, now := f.backlog, f.backlog.now(v.now)
	var all line
	oldest := 0.0
	least := map[string]float64{}
	for _, l := range b.lines {
		all.segments += l.segments
		all.bytes += l.bytes
		all.unknown += l.unknown
		oldest = max(oldest, l.oldest(now))
		for limit, left := range l.rooms(now) {
			if before, ok := least[limit]; !ok || left < before {
				least[limit] = left
			}
		}
	}
	v.set(lagSegments, float64(all.segments))
	v.set(lagBytes, float64(all.bytes))
	v.set(lagUnknown, float64(all.unknown))
	v.set(lagOldest, oldest)
	for limit, left := range least {
		v.set(headroomSeconds, left, limit)
	}
	if met := oldest <= v.state.sla.Seconds(); !met || all.unknown == 0 && !f.doubts {
		v.set(slaMet, truth(met))
	}
}

// rooms is how long it takes until each retention comes to what waits.
func (l *line) rooms(now int64) map[string]float64 {
	rooms := map[string]float64{}
	for limit, r := range map[string]*room{limitLocal: &l.local, limitTotal: &l.total} {
		if left, ok := l.left(r, now); ok {
			rooms[limit] = left
		}
	}
	return rooms
}

// topics shows the same by topic.
func (v *view) topics(f *found) {
	now := f.backlog.now(v.now)
	for _, label := range slices.Sorted(maps.Keys(f.backlog.lines)) {
		l := f.backlog.lines[label]
		v.set(topicLagSegments, float64(l.segments), label)
		v.set(topicLagBytes, float64(l.bytes), label)
		v.set(topicLagOldest, l.oldest(now), label)
		for limit, left := range l.rooms(now) {
			v.set(topicHeadroom, left, label, limit)
		}
	}
	for label, a := range v.state.archived {
		v.set(topicSegments, float64(a.segments), label)
		v.set(topicBytes, float64(a.bytes), label)
	}
	type cell struct{ label, reason string }
	n := map[cell]int{}
	for p, reason := range f.parked {
		if p.topic != "" {
			n[cell{v.state.topics.label(topic{p.topic, p.plain}), string(reason)}]++
		}
	}
	for c, n := range n {
		v.set(topicParked, float64(n), c.label, c.reason)
	}
}
