package board

import (
	"cmp"
	"hash/maphash"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// part is one partition. It is never changed: what changes is a copy.
type part struct {
	id     segment.Partition
	mark   uint64 // of the scan that runs and totals are of; 0 = changed since
	phase  offload.Phase
	totals offload.Totals
	runs   []offload.Run
	parked []segment.Number // ordered, maxParked at most
	stucks int              // problems, of the partition and of its segments
	err    string           // why it could not be read; the runs are those of before
}

// maxParked is how many segments of one partition are shown as parked.
const maxParked = offload.MaxRuns / 2

// partOf is what a scan says of a partition, of which something may be known.
func partOf(s *offload.PartitionScan, was *part, seed maphash.Seed) *part {
	if was == nil {
		was = &part{id: s.Partition}
	}
	if s.Err != nil {
		p := *was
		p.err, p.phase, p.mark = s.Err.Error(), s.Topic.Phase, 0
		return &p
	}
	now := s.Print(seed) | 1
	if was.mark == now && was.phase == s.Topic.Phase {
		return was
	}
	return &part{id: s.Partition, mark: now, phase: s.Topic.Phase, totals: s.Totals(), runs: s.Timeline(),
		parked: was.parked, stucks: was.stucks}
}

// after is the partition when something was done to one of its segments.
func (p *part) after(o offload.Outcome) *part {
	to, moves := movedTo(o.Result)
	if !moves {
		return p
	}
	q := *p
	q.mark = 0
	was := find(p.runs, o.Segment)
	count(&q.totals, was, -1)
	var now []offload.Run
	if to != "" {
		r := offload.Run{State: to, First: o.Segment, Last: o.Segment, Count: 1, FirstAt: was.FirstAt, LastAt: was.LastAt,
			Messages: cmp.Or(o.Contents.Count, was.Messages), Bytes: cmp.Or(o.BytesOut, was.Bytes)}
		now = append(now, r)
		count(&q.totals, r, 1)
	}
	next := offload.Run{State: offload.RunOpen, First: o.Segment + 1, Last: o.Segment + 1, Count: 1}
	if o.Result == offload.Rolled && find(p.runs, next.First).Count == 0 {
		now = append(now, next)
		count(&q.totals, next, 1)
	}
	q.runs = offload.ShortenRuns(replace(p.runs, o.Segment, now...))
	return &q
}

// movedTo is the state that a result leaves a segment in; "" = none, it is
// gone. False means that the result changes nothing that is shown.
func movedTo(r offload.Result) (offload.RunState, bool) {
	switch r {
	case offload.Created:
		return offload.RunOpen, true
	case offload.Rolled, offload.Reopened:
		return offload.RunSealed, true
	case offload.Copied, offload.Adopted:
		return offload.RunBoth, true
	case offload.Dropped, offload.Returned:
		return offload.RunRemote, true
	case offload.Hidden:
		return offload.RunDeleting, true
	case offload.Expired, offload.ExpiredUnuploaded:
		return "", true
	}
	return "", false
}
