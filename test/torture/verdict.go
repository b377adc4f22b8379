package torture

import (
	"slices"
	"syscall"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// patience is how long everything may take to come to rest once the troubles
// are over.
const patience = time.Minute

// settle ends all troubles and waits until there is nothing more to do.
func (p *play) settle() {
	p.Fail(0, 0)
	p.back()
	p.clock(p.ever - p.offset) // nothing lies in the future then
	for i := range p.workers {
		w := &p.workers[i]
		if w.runs() {
			w.process.Signal(syscall.SIGCONT) // a sleeper does what it was about to do
		}
	}
	p.wait(200 * time.Millisecond)
	p.alone()
	p.start(0)
	var waits string
	if !p.await(patience, func() bool { waits = p.unsettled(); return waits == "" || len(p.wrong) > 0 }) {
		p.fail("it does not come to rest within %s: %s; the worker's log: %s", patience, waits, tail(p.workers[0].process.Log()))
	}
	p.end(&p.workers[0])
}

// unsettled is something that the worker still has to do; "" = nothing.
func (p *play) unsettled() string {
	for _, part := range partitions() {
		all := p.stored(part)
		if len(all) == 0 && (!part.Plain || p.Do("EXISTS", events) == int64(1)) {
			return part.String() + " has no segment"
		}
		for _, s := range all {
			if e := s.Entry; !p.atRest(part, s) {
				return part.String() + "/" + s.Number.String() + " " + string(e.Encode())
			}
		}
	}
	return ""
}

// atRest says whether an entry stays as it is.
func (p *play) atRest(part segment.Partition, s segment.Stored) bool {
	key := p.key(part, s)
	switch e := s.Entry; {
	case p.touched[key]:
		return true // it may be stuck, and then is reported
	case e.State == segment.Open && part.Plain:
		info, err := p.ReadStream(key, e.From.String(), "+")
		return err == nil && len(info) == 0
	case e.State == segment.Open:
		return p.Do("XLEN", key) == int64(0)
	case e.State == segment.Deleting: // what came late holds it
		return p.hasLate(key) && p.Do("EXISTS", key) == int64(1)
	case e.Tier == segment.Remote && e.Local == segment.Gone:
		return part.Topic != short || p.hasLate(key) && p.Do("EXISTS", key) == int64(1)
	}
	return false
}

// judge has the checker look at what is left.
func (p *play) judge() {
	if len(p.wrong) > 0 {
		return
	}
	report := p.Judge(partitions(), checker.Rules{May: p.may(time.Now().UnixMilli()), Settled: true, OrphanAge: time.Hour})
	for _, f := range report.Findings {
		switch {
		case f.Kind == checker.Stray && p.allLate(f):
			p.tally.Add(Strays, len(f.IDs))
		case p.touched[f.Key] && (f.Kind == checker.Late || f.Kind == checker.StreamGone):
		default:
			p.fail("%s", f)
		}
	}
	p.count(report)
}

func (p *play) allLate(f checker.Finding) bool {
	return !slices.ContainsFunc(f.IDs, func(id string) bool { return !p.late[name(f.Key, id)] })
}

// count counts what the workers have done.
func (p *play) count(r checker.Report) {
	for _, part := range partitions() {
		all := p.stored(part)
		for _, s := range all {
			if s.Entry.Tier == segment.Remote {
				p.tally.Add(Copied, 1)
			}
			if s.Entry.Local == segment.Gone {
				p.tally.Add(Dropped, 1)
			}
		}
		if part.Topic == short && len(all) > 0 {
			p.tally.Add(Expired, int(all[len(all)-1].Number)+1-len(all)) //nolint:gosec // a small one
		}
	}
	p.tally.Add("messages on the store", r.Tally.OnStore)
}
