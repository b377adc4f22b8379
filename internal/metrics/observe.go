package metrics

import (
	"errors"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// observer is a Registry as a worker wants it.
type observer struct{ r *Registry }

// Planned implements offload.Observer.
func (o observer) Planned(p offload.Plan) {
	now := o.r.opt.Now()
	o.r.set(func(s *state) { s.planned(p, now) })
}

// Advanced implements offload.Observer.
func (observer) Advanced(int, int) {}

// Finished implements offload.Observer.
func (o observer) Finished(out offload.Outcome) {
	c := &o.r.count
	c.outcomesTotal.of(string(out.Result)).Inc()
	switch out.Result {
	case offload.Copied, offload.Adopted:
		o.copied(out)
	case offload.Reopened:
		o.reopened(out)
	}
	o.r.set(func(s *state) { s.finished(out) })
}

func (o observer) copied(out offload.Outcome) {
	c := &o.r.count
	c.archiveSeconds.of(succeeded, tierRemote).Observe(out.Duration.Seconds())
	c.archiveSegments.Inc()
	c.archiveBytes.Add(float64(out.BytesOut))
	c.archiveMessages.Add(float64(out.Contents.Count))
	c.sourceBytes.Add(float64(out.BytesIn))
	c.savedBytes.Add(float64(max(0, out.BytesIn-out.BytesOut)))
}

// reopened counts why a segment is LOCAL again.
func (o observer) reopened(out offload.Outcome) {
	switch late := out.Cause == nil || errors.Is(out.Cause, segment.ErrStreamChanged); {
	case !late:
		o.r.count.damagedObjects.Inc()
	case out.Action == offload.Drop:
		o.r.count.lateAppends.of(foundAtDrop).Inc()
	default:
		o.r.count.lateAppends.of(foundAtDelete).Inc()
	}
}

// Failed implements offload.Observer.
func (o observer) Failed(p offload.Problem) {
	c, reason := &o.r.count, string(p.Reason)
	c.workerFailures.of(partOf(p.Action), reason).Inc()
	if p.Action == offload.Copy {
		c.archiveFailures.of(reason).Inc()
		c.archiveSeconds.of(failed, tierRemote).Observe(p.Took.Seconds())
		if p.Reason == offload.ReasonChanged {
			c.lateAppends.of(foundAtCopy).Inc()
		}
	}
	o.r.set(func(s *state) { s.park(p) })
}

// loopObserver is a Registry as the loop around a worker wants it.
type loopObserver struct{ r *Registry }

// Leads implements offload.LoopObserver.
func (o loopObserver) Leads() {
	o.r.count.leaderChanges.of(changeGained).Inc()
	o.r.set(func(s *state) { s.leads = true })
}

// Follows implements offload.LoopObserver.
func (o loopObserver) Follows() { o.r.set((*state).follow) }

// Lost implements offload.LoopObserver.
func (o loopObserver) Lost(error) {
	o.r.count.leaderChanges.of(changeLost).Inc()
	o.r.set((*state).follow)
}

// Failed implements offload.LoopObserver.
func (o loopObserver) Failed(err error) {
	reason := offload.ReasonOf(err)
	if reason == offload.ReasonOther { // only Redis is asked for a lease
		reason = offload.ReasonRedis
	}
	o.r.count.workerFailures.of(partLease, string(reason)).Inc()
}

// Passed implements offload.LoopObserver.
func (o loopObserver) Passed(r offload.Report, err error) {
	c, result := &o.r.count, succeeded
	if err != nil {
		result = failed
	}
	c.passSeconds.of(result).Observe(r.Duration.Seconds())
	for _, t := range r.Phases {
		c.passPhaseSeconds.of(string(t.Phase)).Observe(t.Duration.Seconds())
	}
	if r.Plan.At.IsZero() { // there was no scan
		if err != nil {
			c.workerFailures.of(partScan, string(offload.ReasonOf(err))).Inc()
		}
		return
	}
	now := o.r.opt.Now()
	o.r.set(func(s *state) { s.passed(r, err, now) })
}
