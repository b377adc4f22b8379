package offload

import (
	"cmp"
	"hash/maphash"
	"slices"

	"korvet-offload/segment"
)

// RunState is what the segments of a run have in common.
type RunState string

// The states, in the order of a segment's life.
const (
	RunOpen     RunState = "open"     // producers append to it
	RunSealed   RunState = "sealed"   // in Redis only, and waits to be copied
	RunBoth     RunState = "both"     // on the store, with a local copy
	RunRemote   RunState = "remote"   // on the store only
	RunDeleting RunState = "deleting" // hidden from readers, about to go
	RunIllegal  RunState = "illegal"  // its value is no entry
	RunMixed    RunState = "mixed"    // several of these in turn: older than the newest MaxRuns runs
)

// MaxRuns is how many runs a timeline has at most. Where the states alternate
// more often, the oldest runs are one.
const MaxRuns = 128

// Run is a row of segments of one partition that are in the same state, with
// none of another state between them.
type Run struct {
	State    RunState
	First    segment.Number
	Last     segment.Number
	Count    int   // fewer than Last-First+1 where numbers are missing
	Messages int64 // as far as the entries say; of open ones, as far as it was measured
	Bytes    int64 // of the objects; of what is in Redis only, as far as it was measured

	// FirstAt and LastAt are times of the first and the last segment, epoch ms,
	// 0 where not known: when it was opened (open), sealed (sealed) or hidden
	// (deleting), else the age of its newest entry.
	FirstAt, LastAt int64
}

// add takes a run of the same state that follows.
func (r *Run) add(next Run) {
	r.Last, r.LastAt = next.Last, next.LastAt
	r.Count += next.Count
	r.Messages += next.Messages
	r.Bytes += next.Bytes
}

// AppendRun adds a run to a timeline, or makes it part of the last one.
func AppendRun(runs []Run, next Run) []Run {
	if n := len(runs); n > 0 && runs[n-1].State == next.State {
		runs[n-1].add(next)
		return runs
	}
	return append(runs, next)
}

// Timeline sums up the partition's segments in runs, the oldest first. The
// usual partition, with one run for each state, costs as much as it has
// segments that are not settled; the settled ones are gone through only where
// their states alternate.
func (p *PartitionScan) Timeline() []Run {
	var runs []Run
	if p.index == nil {
		return nil
	}
	gone, present, active := &span{l: &p.index.gone}, &span{l: &p.index.present}, p.Active
	for {
		g, inGone := gone.next()
		h, inPresent := present.next()
		a, isActive := segment.Number(0), len(active) > 0
		if isActive {
			a = active[0].Number
		}
		switch {
		case isActive && (!inGone || a < g) && (!inPresent || a < h):
			runs = AppendRun(runs, p.runOf(active[0]))
			active = active[1:]
		case inGone && (!inPresent || g < h):
			runs = AppendRun(runs, gone.take(RunRemote, lower(h, inPresent, a, isActive)))
		case inPresent:
			runs = AppendRun(runs, present.take(RunBoth, lower(g, inGone, a, isActive)))
		default:
			return slices.Clone(ShortenRuns(runs))
		}
		runs = boundRuns(runs)
	}
}

// boundRuns keeps a timeline that grows from having twice MaxRuns runs, and
// shortens it to MaxRuns.
func boundRuns(runs []Run) []Run {
	if len(runs) < 2*MaxRuns {
		return runs
	}
	return ShortenRuns(runs)
}

// ShortenRuns makes the oldest runs one, so that there are MaxRuns at most.
func ShortenRuns(runs []Run) []Run {
	over := len(runs) - MaxRuns
	if over <= 0 {
		return runs
	}
	for i := 1; i <= over; i++ {
		runs[0].add(runs[i])
	}
	runs[0].State = RunMixed
	return slices.Delete(runs, 1, over+1)
}

// lower is the lower of two numbers that are there; the largest number where
// none is.
func lower(a segment.Number, isA bool, b segment.Number, isB bool) segment.Number {
	low := ^segment.Number(0)
	if isA {
		low = a
	}
	if isB {
		low = min(low, b)
	}
	return low
}

// runOf is the run of one segment that is not settled.
func (p *PartitionScan) runOf(s segment.Stored) Run {
	e := s.Entry
	r := Run{First: s.Number, Last: s.Number, Count: 1, Messages: max(0, e.Count)}
	if e.Object != nil {
		r.Bytes = e.Object.Bytes
	} else {
		measured := p.Streams[s.Number]
		r.Messages = max(r.Messages, measured.Length)
		r.Bytes = max(0, p.Topic.Topic.Settings.Size(r.Messages, measured.Bytes))
	}
	switch {
	case s.Err != nil:
		return Run{State: RunIllegal, First: s.Number, Last: s.Number, Count: 1}
	case e.State == segment.Open:
		r.State, r.FirstAt = RunOpen, e.OpenedAt
	case e.State == segment.Deleting:
		r.State, r.FirstAt = RunDeleting, e.DeletingAt
	case e.Tier == segment.Remote:
		r.State, r.FirstAt = RunBoth, cmp.Or(int64(e.LastID.Ms), e.SealedAt) //nolint:gosec // shown only
	default:
		r.State, r.FirstAt = RunSealed, e.SealedAt
	}
	r.LastAt = r.FirstAt
	return r
}

// span is the part of a ledger that was not gone through yet.
type span struct {
	l    *ledger
	from int
}

func (s *span) next() (segment.Number, bool) {
	if s.from == len(s.l.list) {
		return 0, false
	}
	return s.l.list[s.from].number, true
}

// take makes a run of what comes before a number.
func (s *span) take(state RunState, before segment.Number) Run {
	rest := s.l.list[s.from:]
	n, _ := slices.BinarySearchFunc(rest, before, func(s settled, n segment.Number) int { return cmp.Compare(s.number, n) })
	taken := rest[:n]
	s.from += n
	r := Run{State: state, First: taken[0].number, Last: taken[n-1].number, Count: n, FirstAt: taken[0].at, LastAt: taken[n-1].at}
	if n == len(s.l.list) { // all of it, as usual
		r.Messages, r.Bytes = s.l.messages, s.l.objects
		return r
	}
	for _, t := range taken {
		r.Messages += t.count
		r.Bytes += t.bytes
	}
	return r
}

// Print is a fingerprint of what Timeline and Totals say: as long as it is the
// same, so are they. Fingerprints of two seeds can't be compared.
func (p *PartitionScan) Print(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, len(p.Alien))
	for _, s := range p.Active {
		maphash.WriteComparable(&h, s.Number)
		maphash.WriteComparable(&h, p.Streams[s.Number])
		maphash.WriteComparable(&h, s.Err != nil)
		h.WriteString(s.Raw)
	}
	if p.index != nil {
		for _, l := range []*ledger{&p.index.gone, &p.index.present} {
			maphash.WriteComparable(&h, l.extent())
		}
	}
	return h.Sum64()
}

// extent is what changes with every change of a ledger: segments come and go
// at its ends, or from its middle, and never come back.
type extent struct {
	length            int
	first, last       segment.Number
	messages, objects int64
}

func (l *ledger) extent() extent {
	e := extent{length: len(l.list), last: l.highest(), messages: l.messages, objects: l.objects}
	if e.length > 0 {
		e.first = l.list[0].number
	}
	return e
}
