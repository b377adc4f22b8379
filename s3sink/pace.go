package s3sink

import (
	"context"
	"time"
)

// deadline ends an attempt after a time. The time in which its body has to wait
// for Options.Pace does not count: what is held back on purpose is not slow.
type deadline struct {
	timer *time.Timer
	left  time.Duration
	since time.Time // when the clock was started last
}

// withDeadline returns a context that ends with the cause
// context.DeadlineExceeded when the time is up. The caller calls stop.
func withDeadline(ctx context.Context, limit time.Duration) (_ context.Context, d *deadline, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	d = &deadline{left: limit, since: time.Now()}
	d.timer = time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	return ctx, d, func() {
		d.timer.Stop()
		cancel(nil)
	}
}

// hold stops the clock until the function is called that it returns. It is for
// the one goroutine that reads the body.
func (d *deadline) hold() (goOn func()) {
	if !d.timer.Stop() { // the time is up, or the attempt is over
		return func() {}
	}
	d.left -= time.Since(d.since)
	return func() {
		d.since = time.Now()
		d.timer.Reset(max(d.left, 0))
	}
}

// pace is Options.Pace for the body of an attempt.
func (b *bucket) pace(d *deadline) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		defer d.hold()()
		return b.opt.Pace(ctx, n)
	}
}
