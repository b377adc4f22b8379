package board

import (
	"cmp"
	"slices"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// find is the run of one segment; the zero Run if the timeline has none.
func find(runs []offload.Run, n segment.Number) offload.Run {
	i, there := slices.BinarySearchFunc(runs, n, place)
	if !there {
		return offload.Run{}
	}
	_, at, _ := split(runs[i], n)
	return at
}

// replace puts runs of one segment each, or none, in the place of a segment,
// which need not be there. The timeline that is given stays as it is.
func replace(runs []offload.Run, n segment.Number, by ...offload.Run) []offload.Run {
	i, there := slices.BinarySearchFunc(runs, n, place)
	behind := runs[i:]
	var left, right offload.Run
	if there {
		left, _, right = split(runs[i], n)
		behind = runs[i+1:]
	}
	result := make([]offload.Run, 0, len(runs)+3)
	for _, r := range slices.Concat(runs[:i], []offload.Run{left}, by, []offload.Run{right}, behind) {
		if r.Count > 0 {
			result = offload.AppendRun(result, r)
		}
	}
	return result
}

// place compares a run with a segment that may be in it.
func place(r offload.Run, n segment.Number) int {
	switch {
	case r.Last < n:
		return -1
	case r.First > n:
		return 1
	}
	return 0
}

// split divides a run into what is before a segment, the segment, and what is
// behind it, as if its segments were alike; the next scan knows better.
func split(r offload.Run, n segment.Number) (left, at, right offload.Run) {
	left, at, right = r, r, r
	before := int(min(uint64(n-r.First), uint64(r.Count-1))) //nolint:gosec // r.Count-1 at most
	if n == r.Last {
		before = r.Count - 1
	}
	part := func(p *offload.Run, count int) {
		share := float64(count) / float64(r.Count)
		p.Count, p.Messages, p.Bytes = count, int64(float64(r.Messages)*share), int64(float64(r.Bytes)*share)
	}
	part(&left, before)
	part(&at, 1)
	part(&right, r.Count-1-before)
	if left.Count > 0 {
		left.Last = n - 1
	}
	if right.Count > 0 {
		right.First = n + 1
	}
	at.First, at.Last = n, n
	if at.LastAt = r.LastAt; n != r.Last {
		at.LastAt = r.FirstAt
	}
	at.FirstAt = at.LastAt
	return left, at, right
}

// overlay shows the parked segments of a timeline as runs of their own.
func overlay(runs []offload.Run, parked []segment.Number) []Run {
	var shown []Run
	for _, r := range runs {
		for len(parked) > 0 && parked[0] < r.First {
			parked = parked[1:]
		}
		for len(parked) > 0 && parked[0] <= r.Last && r.State != offload.RunIllegal && r.State != offload.RunMixed {
			left, at, right := split(r, parked[0])
			shown = appendShown(shown, left, string(left.State))
			shown = appendShown(shown, at, StateParked)
			r, parked = right, parked[1:]
		}
		shown = appendShown(shown, r, string(r.State))
	}
	return shown
}

// appendShown adds a run, if it holds something, or makes it part of the last
// one.
func appendShown(shown []Run, r offload.Run, state string) []Run {
	if r.Count == 0 {
		return shown
	}
	if n := len(shown); n > 0 && shown[n-1].State == state {
		last := &shown[n-1]
		last.Last, last.LastAt = r.Last, clock(r.LastAt)
		last.Count += r.Count
		last.Messages += r.Messages
		last.Bytes += r.Bytes
		return shown
	}
	return append(shown, Run{State: state, First: r.First, Last: r.Last, Count: r.Count, Messages: r.Messages, Bytes: r.Bytes,
		FirstAt: clock(r.FirstAt), LastAt: clock(r.LastAt)})
}

// count adds a run of one segment to totals, or takes it away.
func count(t *offload.Totals, r offload.Run, by int) {
	switch r.State {
	case offload.RunOpen:
		t.Open += by
	case offload.RunSealed:
		t.Sealed += by
	case offload.RunDeleting:
		t.Deleting += by
	case offload.RunIllegal:
		t.Illegal += by
	case offload.RunBoth, offload.RunRemote:
		t.Remote += by
		t.Messages += int64(by) * r.Messages
		t.Bytes += int64(by) * r.Bytes
		if r.State == offload.RunBoth {
			t.Both += by
		}
	}
}

// stuck is the partition with one more problem.
func (p *part) stuck(f offload.Problem) *part {
	q := *p
	q.stucks++
	n, err := segment.ParseNumber(f.Segment)
	i, there := slices.BinarySearchFunc(q.parked, n, cmp.Compare[segment.Number])
	if err == nil && !there && len(q.parked) < maxParked {
		q.parked = slices.Insert(slices.Clone(q.parked), i, n)
	}
	return &q
}

// unstuck is the partition without its problems.
func (p *part) unstuck() *part {
	if p.stucks == 0 {
		return p
	}
	q := *p
	q.parked, q.stucks = nil, 0
	return &q
}
