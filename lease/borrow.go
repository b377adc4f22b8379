package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// wantedFor is how long a request for the leases lasts unless it is renewed, as
// it is by whoever has made it: so a borrower that was killed keeps nobody from
// the leases any longer.
const wantedFor = 30 * time.Second

// The waits of a borrower.
const (
	askEvery   = 250 * time.Millisecond // from the first attempt to the next; then twice as long, and so on
	askAtLeast = time.Second            // up to this
	listenFor  = 30 * time.Second       // until an instance that is at work must have said that it hands over
	finishFor  = 15 * time.Minute       // until one that has said so must be done with what it is at
	aliveAfter = 5 * time.Second        // a record that is rewritten so long after the request is that of a live instance
)

// Borrow takes the lease for the work of somebody who is not to wait until its
// holder stops: it writes into Config.WantedKey that who asks for it, and
// whoever holds the lease ends its leadership (*LentError) when the jobs under
// way are done, and does not take it again before giveBack, or before this
// process has been gone for 30 s.
//
// It waits for the holder: for one that has not said that it hands over until
// its key can have lapsed, and for one that finishes what it is at up to 15
// minutes. tell is called with what is waited for, when that changes, by this
// goroutine. When it was in vain the error is ErrHeld and says who holds the
// lease and what can be done.
//
// lead ends with ctx, with giveBack, and with the cause ErrLost when the lease,
// or the request for it, is lost. giveBack must be called when the work under
// lead is done.
func (l *Lease) Borrow(ctx context.Context, who string, tell func(string)) (lead context.Context, giveBack func(context.Context) error, err error) {
	c := l.cfg
	c.Shards = 1
	return newBorrower(l.redis, l.roster, c, tell).borrow(ctx, who, l)
}

// Borrow is Lease.Borrow of all leases. This instance need not be a member.
func (g *Group) Borrow(ctx context.Context, who string, tell func(string)) (lead context.Context, giveBack func(context.Context) error, err error) {
	g.reopen()
	return newBorrower(g.redis, g.book.redis, g.cfg, tell).borrow(ctx, who, g)
}

// borrowed is a lease, or all of a group.
type borrowed interface {
	// tryAll takes what it can. ErrHeld means that somebody else has some of it
	// yet; what was taken is kept.
	tryAll(ctx context.Context) (lead context.Context, release func(context.Context) error, err error)
	// giveUp gives back what was taken without a leadership.
	giveUp(ctx context.Context) error
}

func (l *Lease) tryAll(ctx context.Context) (context.Context, func(context.Context) error, error) {
	return l.acquire(ctx, false)
}

func (l *Lease) giveUp(context.Context) error { return nil }

func (g *Group) tryAll(ctx context.Context) (context.Context, func(context.Context) error, error) {
	g.turn.Lock()
	defer g.turn.Unlock()
	_ = g.handOver(ctx) // what was lost meanwhile is taken again
	err := g.take(ctx, g.cfg.Shards-len(g.Held()), make([]bool, g.cfg.Shards))
	if missing := g.cfg.Shards - len(g.Held()); err == nil && missing > 0 {
		err = fmt.Errorf("%w: %d of the %d shards", ErrHeld, missing, g.cfg.Shards)
	}
	if err != nil {
		return nil, nil, err
	}
	return g.begin(ctx, nil, func(error) bool { return false })
}

func (g *Group) giveUp(ctx context.Context) error {
	g.turn.Lock()
	defer g.turn.Unlock()
	return g.giveBack(ctx, func(*slot) bool { return true })
}

// borrower is one request for leases. It is used by one goroutine.
type borrower struct {
	cfg   Config
	redis commands
	book  book
	tell  func(string)
	told  string

	asked time.Time        // by this host's clock
	first map[string]int64 // when each instance was seen, as its record said at the first look
	parts []*part          // the leases of these settings, and of each other number that an instance has
}

// part is the leases of one number of shards.
type part struct {
	of      int
	what    borrowed
	lead    context.Context // nil until all of them are taken; lives as long as the request, which owns it
	release func(context.Context) error
}

func newBorrower(redis commands, r roster, c Config, tell func(string)) *borrower {
	return &borrower{cfg: c, redis: redis, book: book{cfg: c, redis: r}, tell: tell, first: map[string]int64{}}
}

// request is the lease of the key by which the leases are asked for.
func (b *borrower) request(who string) *Lease {
	l := newLease(b.redis, Config{Key: b.cfg.WantedKey(), Duration: wantedFor})
	l.spare = strings.ToValidUTF8(who, "?") + "#" + rand.Text() // what the key holds
	return l
}

func (b *borrower) borrow(ctx context.Context, who string, what borrowed) (lead context.Context, giveBack func(context.Context) error, err error) {
	b.asked = time.Now()
	asking, withdraw, err := b.ask(ctx, who)
	if err != nil {
		return nil, nil, err
	}
	b.parts = []*part{{of: b.cfg.Shards, what: what}}
	if err := b.wait(asking); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		return nil, nil, errors.Join(err, b.giveBack(clean), withdraw(clean))
	}
	lead, end := context.WithCancelCause(asking)
	for _, p := range b.parts {
		context.AfterFunc(p.lead, func() { end(context.Cause(p.lead)) })
	}
	var once sync.Once
	var failed error
	return lead, func(ctx context.Context) error {
		once.Do(func() {
			end(nil)
			failed = errors.Join(b.giveBack(ctx), withdraw(ctx))
		})
		return failed
	}, nil
}

// giveBack gives back all that was taken.
func (b *borrower) giveBack(ctx context.Context) error {
	var errs []error
	for _, p := range b.parts {
		if p.lead == nil {
			errs = append(errs, p.what.giveUp(ctx))
		} else {
			errs = append(errs, p.release(ctx))
		}
	}
	return errors.Join(errs...)
}

// ask makes the request. It waits for another borrower to be done.
func (b *borrower) ask(ctx context.Context, who string) (asking context.Context, withdraw func(context.Context) error, err error) {
	l := b.request(who)
	for every := askEvery; ; every = min(2*every, askAtLeast) {
		asking, withdraw, err = l.acquire(ctx, false)
		if held := (*HeldError)(nil); !errors.As(err, &held) || held.Remaining < 0 { // or it never lapses
			return asking, withdraw, err
		}
		other, _ := askedFor(ctx, b.redis, b.cfg)
		if waited := time.Since(b.asked); waited > b.lapses() {
			return nil, nil, fmt.Errorf("borrow the lease: %w: %.200q has borrowed it, and has not given it back for %s; wait until it is done, or stop it",
				ErrHeld, other, waited.Round(time.Second))
		}
		b.say(fmt.Sprintf("%.200q has borrowed the lease; waiting until it is given back", other))
		if err := pause(ctx, every); err != nil {
			return nil, nil, err
		}
	}
}

// wait takes all that there is to take, as whoever has it hands it over.
func (b *borrower) wait(asking context.Context) error {
	for every := askEvery; ; every = min(2*every, askAtLeast) {
		members := b.look(asking)
		held, err := b.tryAll(asking)
		if err != nil || !held {
			return err
		}
		waiting, err := b.judge(members, time.Since(b.asked))
		if err != nil {
			return err
		}
		b.say(waiting)
		if err := pause(asking, every); err != nil {
			return err
		}
	}
}

// tryAll tries to take what is missing, and says whether another holds some of
// it yet.
func (b *borrower) tryAll(asking context.Context) (held bool, err error) {
	for _, p := range b.parts {
		if p.lead != nil {
			continue
		}
		lead, release, err := p.what.tryAll(asking)
		never := (*HeldError)(nil)
		switch {
		case err == nil:
			p.lead, p.release = lead, release
		case !errors.Is(err, ErrHeld), errors.As(err, &never) && never.Remaining < 0:
			return false, err
		default:
			held = true
		}
	}
	return held, nil
}

// look returns the instances that run. Those whose number of leases is another
// one are at work on leases of their own, which are borrowed as well. That they
// can't be looked at is no fault: it is the leases that count.
func (b *borrower) look(ctx context.Context) []Member {
	if b.book.redis == nil {
		return nil
	}
	members, err := b.book.look(ctx)
	if err != nil {
		return nil
	}
	for _, m := range members {
		if _, seen := b.first[m.ID]; !seen {
			b.first[m.ID] = m.SeenAt
		}
		if m.Of < 1 || m.Of > MaxShards || slices.ContainsFunc(b.parts, func(p *part) bool { return p.of == m.Of }) {
			continue
		}
		b.parts = append(b.parts, &part{of: m.Of, what: b.leases(m.Of)})
	}
	return members
}

// leases are those of another number of shards.
func (b *borrower) leases(of int) borrowed {
	c := b.cfg
	c.Shards = of
	if of == 1 {
		return newLease(b.redis, c)
	}
	return newGroup(b.redis, nil, c, Member{})
}

// judge says what is waited for, and why it is not waited for any longer.
func (b *borrower) judge(members []Member, waited time.Duration) (waiting string, err error) {
	gaveUp := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("borrow the lease: %w: "+format, append([]any{ErrHeld}, args...)...)
	}
	holders := slices.DeleteFunc(members, func(m Member) bool { return len(m.Shards) == 0 })
	for _, m := range holders {
		switch name := fmt.Sprintf("%.100q (%.50s)", m.ID, m.Version); {
		case m.Lends != "" && waited > finishFor:
			return gaveUp("%s hands it over, and has not finished what it is at for %s; try again later, or stop it", name, waited.Round(time.Second))
		case m.Lends != "":
			return "waiting for " + name + ", which finishes what it is at", nil
		case waited > listenFor && m.SeenAt-b.first[m.ID] >= aliveAfter.Milliseconds():
			return gaveUp("%s does not hand it over: it may be of a version that does not know how; stop it, do this again, and then start it", name)
		}
	}
	switch {
	case waited > b.lapses() && len(holders) > 0:
		return gaveUp("%.100q has it, and has not been heard of for a while; try again, or see what has become of it", holders[0].ID)
	case waited > b.lapses():
		return gaveUp("whoever has it does not show itself in %s, as run --once and older versions do not; wait until it is done, or stop it", b.cfg.Members)
	case len(holders) > 0:
		return fmt.Sprintf("waiting for %.100q to hand over the lease", holders[0].ID), nil
	}
	return "waiting for the lease", nil
}

// lapses is after how long the key of a holder that is gone has lapsed for sure.
func (b *borrower) lapses() time.Duration { return max(b.cfg.Duration, listenFor) + 10*time.Second }

// say tells what is waited for, once.
func (b *borrower) say(waiting string) {
	if waiting != b.told {
		b.told = waiting
		b.tell(waiting)
	}
}

// pause waits until the next attempt.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the lease: %w", context.Cause(ctx))
	}
}
