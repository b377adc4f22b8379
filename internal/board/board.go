// Package board holds what is shown of a running instance: how it is, what it
// leads, every partition's segments as runs of the same state, what is stuck
// and why, and the last passes. It knows nothing of HTTP or of pages.
//
// It is fed by the calls of offload.Observer, offload.ScanObserver and
// offload.LoopObserver, and asks its Sources for the rest. Whatever it gives out
// is a copy that nobody changes any more; all methods may be called from any
// goroutine. A reader never holds up a pass for longer than it takes to copy one
// pointer per partition.
//
// It costs a few hundred bytes per partition, whatever the number of segments,
// and each tick about as much as there are segments that are not settled: a
// partition whose manifest is as it was is not summed up again.
//
// Non-guarantees: between two scans the runs follow what this instance does, not
// what others do; the next scan puts that right. Times of problems and passes are
// those of this host's clock, and begin anew with the program; times of segments
// and of the scan are those of the Redis server.
package board

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Config is what stays the same while the program runs.
type Config struct {
	Instance Instance
	SLA      time.Duration // a sealed segment that waits longer breaks it; tick-interval and sla together
	Enabled  bool          // offloading is switched on
}

// Sources tell what others know. Each is asked at every look, from any
// goroutine, and must be quick; nil means that nobody knows.
type Sources struct {
	Alive    func() error    // why a restart is needed; nil = it is not
	Outages  func() []Outage // what can't be used at present
	Eviction func() Eviction // what Redis may evict
}

// Board is what is shown. Make one with New.
type Board struct {
	cfg     Config
	sources Sources
	now     func() time.Time
	seed    maphash.Seed

	mu       sync.RWMutex
	role     Role
	since    time.Time // of the role
	lost     string    // why the lead was lost last; "" = it was not
	scanned  time.Time // by the Redis clock; zero = there is no scan to be shown
	parts    []*part   // in the scan's order; each is replaced, never changed
	at       map[segment.Partition]int
	counts   offload.Counts
	lag      offload.Lag
	unsure   bool // something could not be read, or waits without saying since when
	doubt    string
	warnings []string
	paused   segment.Pauses
	sla      time.Duration // that of the configuration, until SetSLA
	members  []Member
	settings []Setting
	removed  []Removed
	problems problems
	current  *Current
	passes   []Pass    // the newest last
	uploads  []*upload // under way, the oldest first
}

// New makes a board that shows an instance that has only begun.
func New(c Config, s Sources) *Board {
	return newBoard(c, s, time.Now)
}

func newBoard(c Config, s Sources, now func() time.Time) *Board {
	b := &Board{cfg: c, sources: s, now: now, seed: maphash.MakeSeed(), role: Starting, since: now(), sla: c.SLA}
	b.clear()
	return b
}

// clear forgets what a scan has found: another instance knows better now.
func (b *Board) clear() {
	b.scanned, b.parts, b.at = time.Time{}, nil, map[segment.Partition]int{}
	b.counts, b.lag, b.unsure, b.doubt = offload.Counts{}, offload.Lag{}, false, ""
	b.warnings, b.removed, b.problems, b.current = nil, nil, newProblems(), nil
}

// Planned implements offload.Observer.
func (b *Board) Planned(p offload.Plan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts, b.lag, b.paused = p.Counts, p.Lag, p.Paused
	b.unsure = p.Lag.Unknown > 0 || len(p.Problems) > 0
	b.warnings, b.removed, b.doubt = slices.Clone(p.Warnings), nil, ""
	if p.Doubt != nil {
		b.doubt = p.Doubt.Error()
	}
	for _, t := range p.Removed {
		b.removed = append(b.removed, Removed{Topic: t.Topic.Name, Since: time.UnixMilli(t.Since).UTC(), Phase: string(t.Phase)})
	}
	b.current = &Current{StartedAt: b.now().UTC(), Planned: planned(p)}
}

func planned(p offload.Plan) int {
	n := len(p.Setup) + len(p.Expiry)
	for _, jobs := range p.Jobs {
		n += len(jobs)
	}
	return n
}

// SetSLA changes how long a sealed segment may wait.
func (b *Board) SetSLA(sla time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sla = sla
}

// SetPaused notes what is paused, as somebody has just read or changed it. Every
// plan says it too.
func (b *Board) SetPaused(all segment.Pauses) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = all
}

// SetMembers notes which instances there are, this one among them.
func (b *Board) SetMembers(all []Member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.members = slices.Clone(all)
}

// SetSettings notes the settings in effect, secrets redacted.
func (b *Board) SetSettings(all []Setting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settings = slices.Clone(all)
}

// Advanced implements offload.Observer.
func (b *Board) Advanced(_, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != nil {
		b.current.BytesIn += int64(bytes)
	}
}

// Scanned implements offload.ScanObserver.
func (b *Board) Scanned(s *offload.Scan) {
	b.mu.RLock()
	before, at := b.parts, b.at
	b.mu.RUnlock() // only a pass changes what these hold, and this is the pass
	parts, places := make([]*part, len(s.Partitions)), at
	if !samePlaces(before, s.Partitions) {
		places = make(map[segment.Partition]int, len(parts))
		for i := range s.Partitions {
			places[s.Partitions[i].Partition] = i
		}
	}
	for i := range s.Partitions {
		var was *part
		if k, known := at[s.Partitions[i].Partition]; known {
			was = before[k]
		}
		parts[i] = partOf(&s.Partitions[i], was, b.seed)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scanned, b.parts, b.at = s.At.UTC(), parts, places
}

// samePlaces says whether each partition is where it was.
func samePlaces(before []*part, now []offload.PartitionScan) bool {
	if len(before) != len(now) {
		return false
	}
	for i := range now {
		if before[i].id != now[i].Partition {
			return false
		}
	}
	return true
}

// Finished implements offload.Observer.
func (b *Board) Finished(o offload.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != nil {
		b.current.Done++
		b.current.BytesOut += stored(o)
	}
	if i, known := b.at[o.Partition]; known {
		b.parts[i] = b.parts[i].after(o)
	}
	switch o.Result {
	case offload.Copied, offload.Adopted:
		b.lag = caughtUp(b.lag)
	}
}

// caughtUp is a lag that has a segment less. Which one of them was the oldest
// nobody remembers; the next scan knows.
func caughtUp(l offload.Lag) offload.Lag {
	if l.Segments <= 1 {
		return offload.Lag{Overdue: l.Overdue, LongestOverdue: l.LongestOverdue}
	}
	l.Bytes -= l.Bytes / int64(l.Segments)
	l.Segments--
	return l
}

// Failed implements offload.Observer.
func (b *Board) Failed(p offload.Problem) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != nil && p.Segment != "" {
		b.current.Failed++
	}
	b.problems = b.problems.with(p, b.now())
	b.mark(p)
}

// mark notes in its partition that something is stuck.
func (b *Board) mark(p offload.Problem) {
	id := segment.Partition{Topic: p.Topic, Number: p.Partition, Plain: p.Plain}
	if i, known := b.at[id]; known {
		b.parts[i] = b.parts[i].stuck(p)
	}
}

// Passed implements offload.LoopObserver.
func (b *Board) Passed(r offload.Report, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.current = nil
	b.passes = append(b.passes, passOf(r, err, now))
	if over := len(b.passes) - keptPasses; over > 0 {
		b.passes = slices.Delete(b.passes, 0, over)
	}
	if r.Plan.At.IsZero() {
		return // nothing was found out: what was known stays
	}
	b.problems = b.problems.anew(r.Problems, now)
	for i, p := range b.parts {
		b.parts[i] = p.unstuck()
	}
	for _, p := range r.Problems {
		b.mark(p)
	}
}

// Leads implements offload.LoopObserver.
func (b *Board) Leads() { b.become(Leading, "") }

// Follows implements offload.LoopObserver.
func (b *Board) Follows() { b.become(Following, "") }

// Lost implements offload.LoopObserver.
func (b *Board) Lost(cause error) { b.become(Starting, cause.Error()) }

func (b *Board) become(r Role, lost string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.role == r {
		return
	}
	b.role, b.since = r, b.now()
	if lost != "" || r == Leading {
		b.lost = lost
	}
	if r == Following {
		b.clear()
	}
}
