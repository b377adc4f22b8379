package board

import (
	"cmp"
	"slices"
	"time"

	"korvet-offload/offload"
)

const (
	// maxProblems is how many problems are kept one by one; all are counted.
	maxProblems = 1000
	// maxText bounds what is shown of an error.
	maxText = 600
)

// problems is what is stuck. It is never changed: what changes is a copy.
type problems struct {
	list     []Problem // the worst first, maxProblems at most
	byReason map[string]int
	since    map[sameProblem]time.Time
	total    int
	loss     int
}

// sameProblem is what makes a problem the one that was there before.
type sameProblem struct {
	where  string
	reason offload.Reason
}

func newProblems() problems {
	return problems{byReason: map[string]int{}, since: map[sameProblem]time.Time{}}
}

// anew is the problems of a pass. Those that were there before keep their time.
func (p problems) anew(found []offload.Problem, now time.Time) problems {
	n := newProblems()
	for _, f := range found {
		n.add(f, p.since, now)
	}
	n.order()
	return n
}

// with is the problems with one that has just come.
func (p problems) with(f offload.Problem, now time.Time) problems {
	if _, known := p.since[sameProblem{f.Where(), f.Reason}]; known || len(p.list) >= maxProblems {
		return p
	}
	p.list = slices.Clone(p.list)
	p.add(f, nil, now)
	p.order()
	return p
}

func (p *problems) add(f offload.Problem, before map[sameProblem]time.Time, now time.Time) {
	key := sameProblem{f.Where(), f.Reason}
	if _, twice := p.since[key]; twice {
		return
	}
	since, known := before[key]
	if !known {
		since = now
	}
	p.since[key] = since
	p.total++
	p.byReason[string(f.Reason)]++
	if f.Reason.Loss() {
		p.loss++
	}
	p.list = append(p.list, problemOf(f, since))
	if len(p.list) >= 2*maxProblems {
		p.order()
	}
}

// order puts the worst first: what seems lost, then what has lasted longest.
func (p *problems) order() {
	slices.SortStableFunc(p.list, func(a, b Problem) int {
		return cmp.Or(worse(a.Loss, b.Loss), a.Since.Compare(b.Since))
	})
	p.list = p.list[:min(len(p.list), maxProblems)]
}

// worse orders what is bad before what is not.
func worse(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func problemOf(f offload.Problem, since time.Time) Problem {
	p := Problem{Where: f.Where(), Topic: f.Topic, Plain: f.Plain, Segment: f.Segment, Reason: string(f.Reason), Loss: f.Reason.Loss(), Since: since.UTC()}
	if f.Err != nil {
		p.Text = shorten(f.Err.Error())
	}
	if f.Partition >= 0 {
		n := f.Partition
		p.Partition = &n
	}
	if !f.Retry.IsZero() {
		at := f.Retry.UTC()
		p.Retry = &at
	}
	return p
}

// shorten bounds a text that may have come from outside.
func shorten(s string) string {
	if r := []rune(s); len(r) > maxText {
		return string(r[:maxText]) + "…"
	}
	return s
}
