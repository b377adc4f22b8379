package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// holder is one leadership, from Acquire to release.
type holder struct {
	cfg     Config
	redis   commands
	working func() error // what is wrong with the work; see Lease.RenewWhile
	token   string
	end     context.CancelCauseFunc
	expiry  *time.Timer // ends the leadership, whether or not Redis answers
	renewed atomic.Pointer[time.Time]
	failed  atomic.Pointer[error] // why the last renewal did not work; nil = it did
	stop    context.CancelFunc    // of the renewal
	stopped chan struct{}
	lender  *task // looks whether the lease is asked for; nil = nobody does
}

// hold begins a leadership whose key was set by a request sent at that time.
func hold(ctx context.Context, l *Lease, token string, sent time.Time) (context.Context, *holder) {
	h := &holder{cfg: l.cfg, redis: l.redis, working: l.working, token: token, stopped: make(chan struct{})}
	leadership, end := context.WithCancelCause(ctx)
	h.end = end
	h.renewed.Store(&sent)
	h.expiry = time.AfterFunc(h.cfg.valid()-time.Since(sent), func() {
		h.end(h.lateError())
	})
	renewal, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	go h.renew(renewal)
	return leadership, h
}

// lateError is the loss of a key that could not be renewed in time.
func (h *holder) lateError() error {
	if why := h.failed.Load(); why != nil {
		return fmt.Errorf("%w: %s could not be renewed in time: %w", ErrLost, h.cfg.Key, *why)
	}
	return fmt.Errorf("%w: %s could not be renewed in time", ErrLost, h.cfg.Key)
}

func (h *holder) renewedAt() time.Time { return *h.renewed.Load() }

// renew prolongs the key until it is stopped or the lease is lost. A call
// that does not return holds up nothing but itself: expiry ends the leadership.
func (h *holder) renew(ctx context.Context) {
	defer close(h.stopped)
	for pause := h.cfg.interval(); h.wait(ctx, pause); {
		switch err := h.renewOnce(ctx); {
		case err == nil:
			h.failed.Store(nil)
			pause = h.cfg.interval() - time.Since(h.renewedAt())
		case errors.Is(err, ErrLost):
			h.end(err)
			return
		default:
			why := cause(ctx, err)
			h.failed.Store(&why)
			pause = h.cfg.retry() // expiry decides when that is too late
		}
	}
}

// wait is false when there is nothing to renew any more. The end of the
// caller's own context is no loss: the lease is kept until it is given back.
func (h *holder) wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return time.Since(h.renewedAt()) < h.cfg.valid()
	case <-ctx.Done():
		return false
	}
}

// renewOnce prolongs the key, and the leadership by as much, counted from
// before the request was sent.
func (h *holder) renewOnce(ctx context.Context) error {
	if err := h.working(); err != nil {
		return fmt.Errorf("%w: %s is not renewed: %w", ErrLost, h.cfg.Key, err)
	}
	sent := time.Now()
	limited, done := limit(ctx, h.cfg.callTimeout())
	defer done()
	ok, err := h.redis.renew(limited, h.cfg.Key, h.token, h.cfg.Duration)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%w: %s is gone or another's", ErrLost, h.cfg.Key)
	case !h.expiry.Stop():
		return fmt.Errorf("%w: %s was renewed too late", ErrLost, h.cfg.Key) // the leadership has ended
	}
	h.renewed.Store(&sent)
	h.expiry.Reset(h.cfg.valid() - time.Since(sent))
	return nil
}

// giveBack ends the leadership, waits for the renewal and deletes the key.
func (h *holder) giveBack(ctx context.Context) error {
	h.end(nil)
	h.stop()
	select {
	case <-h.stopped:
	case <-ctx.Done():
		return fmt.Errorf("release lease %s: a renewal is still under way: %w", h.cfg.Key, ctx.Err())
	}
	h.expiry.Stop()
	limited, done := limit(ctx, h.cfg.callTimeout())
	defer done()
	if err := h.redis.release(limited, h.cfg.Key, h.token); err != nil {
		return fmt.Errorf("release lease %s: %w; it expires within %s", h.cfg.Key, cause(ctx, err), h.cfg.Duration)
	}
	return nil
}
