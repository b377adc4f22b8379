package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// ErrLost is the cause of a leadership's end that nobody asked for: the key
// was gone or another's, or could not be renewed in time, or was not renewed
// because the work under it hangs.
var ErrLost = errors.New("lease lost")

// ErrHeld says that the lease is held by somebody else; *HeldError has for
// how long yet.
var ErrHeld = errors.New("lease is held by another")

// HeldError is ErrHeld with what is known of it.
type HeldError struct {
	Key       string
	Remaining time.Duration // until it expires unless it is renewed; negative if it never does
}

func (e *HeldError) Error() string {
	if e.Remaining < 0 {
		return fmt.Sprintf("lease %s: %s and never expires: somebody else wrote the key; delete it", e.Key, ErrHeld)
	}
	return fmt.Sprintf("lease %s: %s for another %s", e.Key, ErrHeld, e.Remaining)
}

func (e *HeldError) Unwrap() error { return ErrHeld }

// commands is what a lease needs of Redis. Each call may fail with its answer
// lost on the way.
type commands interface {
	// acquire takes the key for a time if it is free or holds the token
	// already; otherwise held is for how long it is taken yet.
	acquire(ctx context.Context, key, token string, d time.Duration) (ok bool, held time.Duration, err error)
	// renew prolongs the key if it holds the token.
	renew(ctx context.Context, key, token string, d time.Duration) (bool, error)
	// release deletes the key if it holds the token.
	release(ctx context.Context, key, token string) error
	// wanted returns what the key by which leases are asked for holds; "" if it
	// is not there, or would never lapse and so is no request.
	wanted(ctx context.Context, key string) (string, error)
}

// Lease is one process's claim to a key. Its methods may be called from any
// goroutine; it is held once at a time.
type Lease struct {
	cfg     Config
	redis   commands
	working func() error
	roster  roster // for Borrow to say who holds it; nil = it can't
	lends   bool   // hands itself over to whoever asks; the leases of a group do not: the group does
	door    *door

	turn  sync.Mutex // of Acquire; guards spare
	spare string     // token of an attempt whose answer was lost: the key may hold it

	mu     sync.Mutex // never held while Redis is asked
	holder *holder
	asker  string // for whom it is being given away; "" = for nobody
}

// New makes a lease of a key. The duration must be positive; renewals happen
// at a third of it. Whoever asks for it by Borrow gets it.
func New(client rueidis.Client, c Config) *Lease {
	s := newScripts(client)
	l := newLease(s, c)
	l.roster, l.lends = s, true
	return l
}

func newLease(redis commands, c Config) *Lease {
	return &Lease{cfg: c, redis: redis, working: func() error { return nil }, door: newDoor()}
}

// RenewWhile makes the lease ask, before each renewal, whether the work under
// it goes on. An error ends the leadership with ErrLost and itself as cause: a
// process whose work hangs must not keep others from leading. The question
// comes from a goroutine of the lease and must not block. It is set before the
// first Acquire.
func (l *Lease) RenewWhile(working func() error) { l.working = working }

// Acquire takes the lease. The context that it returns is the leadership: it
// ends with ctx, with release, with the cause ErrLost, or, when the lease was
// given to whoever has asked for it by Borrow, with a *LentError. The lease is
// renewed until release is called or it is lost, even when ctx has ended, so
// that work can be wound up under it.
//
// release must be called, when the work under the leadership is done. It waits
// for the renewal to end and deletes the key if it is still ours; an error
// means that the key may stay until it expires. Calling it again does nothing
// and returns the same.
//
// When somebody else holds the lease, or has asked for it, the error is ErrHeld:
// a *HeldError or a *LentError.
func (l *Lease) Acquire(ctx context.Context) (leadership context.Context, release func(context.Context) error, err error) {
	if l.lends {
		switch asker, err := askedFor(ctx, l.redis, l.cfg); {
		case errors.Is(err, errNoAnswer): // there would be none to the other question either
			return nil, nil, fmt.Errorf("acquire lease %s: %w", l.cfg.Key, err)
		case err == nil && asker != "":
			return nil, nil, &LentError{l.cfg.Key, asker}
		}
	}
	return l.acquire(ctx, l.lends)
}

// acquire takes the lease, whether or not somebody has asked for it.
func (l *Lease) acquire(ctx context.Context, lends bool) (leadership context.Context, release func(context.Context) error, err error) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.held() != nil {
		return nil, nil, fmt.Errorf("acquire lease %s: this process has not given it back yet", l.cfg.Key)
	}
	token := l.spare
	if token == "" {
		token = rand.Text()
	}
	sent := time.Now()
	limited, done := limit(ctx, l.cfg.callTimeout())
	defer done()
	ok, held, err := l.redis.acquire(limited, l.cfg.Key, token, l.cfg.Duration)
	if err != nil {
		l.spare = token
		return nil, nil, fmt.Errorf("acquire lease %s: %w", l.cfg.Key, cause(ctx, err))
	}
	if !ok {
		return nil, nil, &HeldError{l.cfg.Key, held}
	}
	l.spare = ""
	leadership, h := hold(ctx, l, token, sent)
	l.set(h)
	if lends {
		h.lender = background(leadership, func(ctx context.Context) { l.lend(ctx, h) })
	}
	return leadership, l.release(h), nil
}

// Held says whether this process has the lease and has given it to nobody: the
// work under it may still go on after it was lost.
func (l *Lease) Held() bool { return l.held() != nil }

func (l *Lease) held() *holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder
}

func (l *Lease) set(h *holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder, l.asker = h, ""
	l.door.open()
}

// unset forgets a holder, unless there is another one by now.
func (l *Lease) unset(h *holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == h {
		l.holder, l.asker = nil, ""
	}
}

// release gives the holder's lease back, once.
func (l *Lease) release(h *holder) func(context.Context) error {
	var once sync.Once
	var err error
	return func(ctx context.Context) error {
		once.Do(func() {
			err = errors.Join(h.lender.stop(ctx), h.giveBack(ctx))
			l.unset(h)
		})
		return err
	}
}

// Healthy is false when this process holds on to a leadership that it could
// not renew: a full renewal interval has passed since the key must have
// expired, and release has not been called. A follower is healthy, and so is a
// leader that gave up in time.
func (l *Lease) Healthy(now time.Time) bool {
	h := l.held()
	return h == nil || now.Sub(h.renewedAt()) <= l.cfg.Duration+l.cfg.interval()
}

// interval is from one renewal to the next.
func (c Config) interval() time.Duration { return c.Duration / 3 }

// retry is from a renewal that failed to the next.
func (c Config) retry() time.Duration { return c.Duration / 12 }

// callTimeout bounds one call, so that another fits in before the end.
func (c Config) callTimeout() time.Duration { return c.Duration / 6 }

// valid is how long a leadership lasts from when its renewal was sent.
func (c Config) valid() time.Duration { return c.Duration - c.Duration/10 }

// errNoAnswer stands in for the end of limit's context.
var errNoAnswer = errors.New("no answer from Redis in time")

// cause tells the end of one call's time from that of the caller's context.
func cause(ctx context.Context, err error) error {
	if (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) && ctx.Err() == nil {
		return errNoAnswer
	}
	return err
}

// limit ends a context after a time without showing a deadline: with a
// deadline the Redis library waits for that alone, and does not see when ctx
// ends.
func limit(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(timeout, cancel)
	return hidden{ctx}, func() {
		timer.Stop()
		cancel()
	}
}

type hidden struct{ context.Context }

func (hidden) Deadline() (time.Time, bool) { return time.Time{}, false }
