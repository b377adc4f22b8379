package command

import (
	"go.uber.org/zap"

	"korvet-offload/offload"
)

// loopJournal is a journal as offload.Loop wants it.
type loopJournal struct {
	*journal
	rest     func()      // told when a pass is over, or there is none
	stopping func() bool // the program has been told to stop
}

// Failed implements offload.LoopObserver.
func (l loopJournal) Failed(err error) {
	l.rest()
	l.loopFailed(err)
}

// Follows implements offload.LoopObserver. A follower has looked at the clock.
func (l loopJournal) Follows() {
	l.rest()
	l.journal.Follows()
}

// goesOn ends what was said of a pass that hung or waited.
func (l loopJournal) goesOn() {
	for _, p := range []part{partPass, partAnswer} {
		if l.isDown(p) {
			l.works(p)
		}
	}
}

// Passed implements offload.LoopObserver. A pass that ends because the
// program does is no fault.
func (l loopJournal) Passed(r offload.Report, err error) {
	l.rest()
	defer l.goesOn()
	if err == nil || !l.stopping() {
		l.journal.Passed(r, err)
		return
	}
	l.log.Info("pass stopped; the next run goes on from the manifests", zap.Int("segments", len(r.Outcomes)), zap.Int("segments_left", r.Left))
}
