package offload

import (
	"context"
	"errors"
	"time"
)

// ErrFollower says that somebody else holds the lease.
var ErrFollower = errors.New("another instance leads")

// releaseTime is how long giving the lease back may take. If Redis does not
// answer by then, the lease lapses by itself.
const releaseTime = 5 * time.Second

// Leader decides which instance works. Where several share the work, it is
// about having a share at all; which one it is may change meanwhile (Share).
type Leader interface {
	// Acquire tries once to take the lease. ErrFollower means that somebody
	// else has it. The context that it returns ends when the lease is lost or
	// ctx ends; release gives the lease back, waits for what renews it, and is
	// called once.
	Acquire(ctx context.Context) (lead context.Context, release func(context.Context) error, err error)
}

// LoopObserver is told what the loop does.
type LoopObserver interface {
	Leads()                     // this instance leads from now on
	Follows()                   // somebody else leads; told at every tick
	Lost(cause error)           // this instance leads no longer, against its will
	Passed(r Report, err error) // a pass is over
	Failed(err error)           // the lease could not be asked for
}

// Loop does a pass at once and then every tick-interval, from start to start,
// for as long as it leads; as a follower it asks for the lease at every tick.
// Where the work is shared, a shard that is gained is worked on at once; and so
// is all after Configure.
// It returns when ctx ends, with all work awaited and the lease given back.
func Loop(ctx context.Context, w *Worker, leader Leader, o LoopObserver) {
	tick := w.cfg.TickInterval
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var t term
	defer func() { t.end(ctx) }()
	for ctx.Err() == nil { // a tick may be due when it ends
		tick = w.retune(ticker, tick)
		if t.lead == nil {
			w.lookAround(ctx)
		}
		leads, since := t.begin(ctx, leader, o)
		if since {
			w.Reset() // another instance may have led meanwhile
		}
		if leads {
			o.Passed(w.RunOnce(t.lead))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-w.gained():
		case <-w.news.came:
		}
	}
}

// term is the time between taking the lease and giving it back.
type term struct {
	lead    context.Context // lives no longer than Loop, which owns the term
	release func(context.Context) error
}

// begin says whether this instance leads now, and whether it has only begun to.
func (t *term) begin(ctx context.Context, leader Leader, o LoopObserver) (leads, since bool) {
	if t.lead != nil && t.lead.Err() != nil && ctx.Err() == nil {
		o.Lost(context.Cause(t.lead))
		t.end(ctx)
	}
	if t.lead != nil {
		return true, false
	}
	lead, release, err := leader.Acquire(ctx)
	switch {
	case err == nil:
		t.lead, t.release = lead, release
		o.Leads()
		return true, true
	case errors.Is(err, ErrFollower):
		o.Follows()
	case ctx.Err() == nil:
		o.Failed(err)
	}
	return false, false
}

// end gives the lease back, even when ctx has ended.
func (t *term) end(ctx context.Context) {
	if t.lead == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_ = t.release(ctx) // Redis may be gone; the lease then lapses by itself
	t.lead, t.release = nil, nil
}
