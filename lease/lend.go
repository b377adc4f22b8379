package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// LentError is ErrHeld where somebody has asked for the lease by Borrow, and has
// it, or gets it when the jobs under way are done, until it is given back.
type LentError struct {
	Key string
	To  string // as the borrower calls itself
}

func (e *LentError) Error() string {
	return fmt.Sprintf("lease %s: %s: it is lent to %.200q", e.Key, ErrHeld, e.To)
}

func (e *LentError) Unwrap() error { return ErrHeld }

// Asked returns who has asked for the leases of a configuration by Borrow, or
// works under them; "" if nobody does. It changes nothing and is for showing.
func Asked(ctx context.Context, client rueidis.Client, c Config) (who string, err error) {
	return askedFor(ctx, newScripts(client), c)
}

func askedFor(ctx context.Context, redis commands, c Config) (who string, err error) {
	limited, done := limit(ctx, c.callTimeout())
	defer done()
	value, err := redis.wanted(limited, c.WantedKey())
	if err != nil {
		return "", fmt.Errorf("look who asks for the lease in %s: %w", c.WantedKey(), cause(ctx, err))
	}
	if at := strings.LastIndexByte(value, '#'); at > 0 {
		return value[:at], nil // what follows tells it from another borrower of that name
	}
	return value, nil
}

// asks is askedFor for whoever has the lease. A server that answers and does not
// say who asks, for want of a right, is one at which nobody does: the work goes
// on, also where it had said before. Without an answer all stays as it is.
func asks(ctx context.Context, redis commands, c Config) (who string, err error) {
	who, err = askedFor(ctx, redis, c)
	if errors.Is(err, errReply) {
		return "", nil
	}
	return who, err
}

// door lets jobs in for as long as the lease is not about to be given away.
type door struct {
	emptied chan struct{} // gives a value when the last one has left and it is closed

	mu     sync.Mutex
	closed bool
	inside int
}

func newDoor() *door { return &door{emptied: make(chan struct{}, 1)} }

func (d *door) enter() (leave func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false
	}
	d.inside++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.inside--; d.inside == 0 && d.closed {
			signal(d.emptied)
		}
	}, true
}

func (d *door) open() { d.set(false) }

// close lets nobody in any more, and says whether nobody is in.
func (d *door) close() (empty bool) { return d.set(true) == 0 }

func (d *door) set(closed bool) (inside int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = closed
	return d.inside
}

// Enter says whether something may begin under the lease, which it may unless
// the lease is about to be given to whoever has asked for it, or was. If so,
// leave is called once when it is over, and the lease is not given away before.
func (l *Lease) Enter() (leave func(), ok bool) { return l.door.enter() }

// Lends returns for whom the lease is about to be given away, when the jobs
// under way are done; "" if for nobody.
func (l *Lease) Lends() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asker
}

// lend looks, until the leadership ends, whether the lease is asked for, and
// then ends the leadership and gives the lease back as soon as nobody is in.
func (l *Lease) lend(leadership context.Context, h *holder) {
	tick := time.NewTicker(l.cfg.lookEvery())
	defer tick.Stop()
	for {
		select {
		case <-leadership.Done():
			return
		case <-tick.C:
		case <-l.door.emptied:
		}
		if asker, gives := l.gives(leadership); gives {
			l.give(context.WithoutCancel(leadership), h, asker)
			return
		}
	}
}

// give ends a leadership and gives the lease back. Where that fails it is tried
// again when the leadership is released, and the key lapses otherwise.
func (l *Lease) give(ctx context.Context, h *holder, asker string) {
	h.end(&LentError{l.cfg.Key, asker})
	limited, done := limit(ctx, 2*l.cfg.callTimeout())
	defer done()
	_ = h.giveBack(limited)
	l.unset(h)
}

// gives says whether the lease is to be given away now, and to whom. A request
// that has lapsed opens the door again.
func (l *Lease) gives(ctx context.Context) (asker string, now bool) {
	asker, err := asks(ctx, l.redis, l.cfg)
	if err != nil {
		return "", false
	}
	l.mu.Lock()
	l.asker = asker
	l.mu.Unlock()
	if asker == "" {
		l.door.open()
		return "", false
	}
	return asker, l.door.close()
}

// Lends is Lease.Lends of all leases.
func (g *Group) Lends() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asker
}

// lend closes all leases where somebody has asked for them. The caller holds
// turn. When nobody asks any more they are opened, or taken again, as the share is
// then. Where it can't be found out all stays as it is; it is an error where there
// is no answer at all.
func (g *Group) lend(ctx context.Context) error {
	asker, err := asks(ctx, g.redis, g.cfg)
	if errors.Is(err, errNoAnswer) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // the next look tells, and the leases are asked for meanwhile
	}
	g.mu.Lock()
	g.asker = asker
	g.mu.Unlock()
	if asker != "" {
		g.adjust(0)
	}
	return nil
}

// lendAll does for leases outside of any share what rounds do for the others,
// until the leadership ends.
func (g *Group) lendAll(leadership context.Context) {
	tick := time.NewTicker(g.cfg.lookEvery())
	defer tick.Stop()
	for {
		select {
		case <-leadership.Done():
			return
		case <-tick.C:
		case <-g.wake:
		}
		g.turn.Lock()
		if err := g.lend(leadership); err == nil && g.Lends() == "" {
			g.adjust(g.cfg.Shards)
		}
		_ = g.handOver(context.WithoutCancel(leadership)) // they lapse otherwise
		g.turn.Unlock()
	}
}

// task is a goroutine that somebody waits for.
type task struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func background(ctx context.Context, do func(context.Context)) *task {
	ctx, cancel := context.WithCancel(ctx)
	t := &task{cancel, make(chan struct{})}
	go func() {
		defer close(t.ended)
		do(ctx)
	}()
	return t
}

// stop ends the task and waits for it; of nil there is nothing to wait for.
func (t *task) stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.cancel()
	select {
	case <-t.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("look who asks for the lease: it is still under way: %w", ctx.Err())
	}
}
