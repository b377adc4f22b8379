package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// round brings this instance nearer to its share, and returns the members. An
// error says what could not be asked for; what is held is kept all the same.
func (g *Group) round(ctx context.Context) ([]Member, error) {
	g.turn.Lock()
	defer g.turn.Unlock()
	if g.isClosed() {
		return nil, nil
	}
	if err := g.working(); err != nil {
		return nil, fmt.Errorf("this instance does not count among the others: %w", err)
	}
	if err := g.lend(ctx); err != nil {
		return nil, err
	}
	err := g.handOver(ctx)
	members, lerr := g.look(ctx)
	if lerr != nil {
		return nil, errors.Join(err, lerr)
	}
	if g.Lends() == "" {
		want, taken := g.share(members)
		err = errors.Join(err, g.take(ctx, g.adjust(want), taken))
	}
	err = errors.Join(err, g.handOver(ctx))
	if g.refused || g.book.says(g.Held(), g.Lends()) {
		return members, err
	}
	after, lerr := g.book.write(ctx, g.Held(), g.Lends()) // others wait for it
	if lerr == nil {
		members = after
	}
	return members, errors.Join(err, lerr)
}

func (g *Group) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// look returns the members, and writes this instance's record when that is due.
func (g *Group) look(ctx context.Context) ([]Member, error) {
	if held, lends := g.Held(), g.Lends(); !g.refused && g.book.due(held, lends) {
		return g.book.write(ctx, held, lends)
	}
	return g.book.look(ctx)
}

// share is how many leases this instance should hold, and which ones others say
// that they hold. Those of whom the number of leases is another one are at work
// on leases of their own.
func (g *Group) share(members []Member) (want int, taken []bool) {
	self := g.book.self.ID
	loads, taken := []load{{self, len(g.Held())}}, make([]bool, g.cfg.Shards)
	for _, m := range members {
		if m.ID == self || m.Of != g.cfg.Shards {
			continue
		}
		loads = append(loads, load{m.ID, len(m.Shards)})
		for _, i := range m.Shards {
			if i >= 0 && i < len(taken) {
				taken[i] = true
			}
		}
	}
	return share(g.cfg.Shards, self, loads), taken
}

// adjust closes the leases that are more than the share, the last ones first,
// or opens such ones again, and returns how many are missing then.
func (g *Group) adjust(want int) (missing int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.slots {
		if g.slots[i].open() {
			want--
		}
	}
	for i := range g.slots {
		if s := &g.slots[i]; want > 0 && s.closing && !s.lost {
			s.closing = false
			signal(g.gained)
			want--
		}
	}
	for i := len(g.slots) - 1; i >= 0 && want < 0; i-- {
		if s := &g.slots[i]; s.open() {
			s.closing = true
			want++
		}
	}
	return want
}

// take takes up to so many leases that are free. That another one has some is
// no error. After an error the next attempt asks for any lease, to see whether
// there is an answer again.
func (g *Group) take(ctx context.Context, missing int, taken []bool) error {
	if g.refused {
		taken = make([]bool, len(taken))
	}
	var never error // a lease that nobody will ever give back, or a key that is none
	for _, i := range candidates(g.book.self.ID, taken) {
		if missing <= 0 && !g.refused || g.isClosed() {
			break
		}
		if g.has(i) {
			continue
		}
		lead, release, err := g.slots[i].lease.Acquire(ctx)
		none := errors.Is(err, errNoLease)
		g.refused = err != nil && !errors.Is(err, ErrHeld) && !none && ctx.Err() == nil
		var held *HeldError
		switch {
		case err == nil:
			g.taken(lead, i, release)
			missing--
		case none, errors.As(err, &held) && held.Remaining < 0:
			never = err
		case !errors.Is(err, ErrHeld):
			return err
		}
	}
	return never
}

func (g *Group) has(i int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slots[i].release != nil
}

// taken notes that a lease is held, until it is lost or given back.
func (g *Group) taken(lead context.Context, i int, release func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.slots[i]
	s.term++
	term := s.term
	unwatch := context.AfterFunc(lead, func() { g.ended(i, term, context.Cause(lead)) })
	s.release = func(ctx context.Context) error {
		unwatch()
		return release(ctx)
	}
	signal(g.gained)
}

// ended is told when a lease's own leadership has ended. If it was lost, so is
// what this instance leads by it.
func (g *Group) ended(i, term int, cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.slots[i]
	if s.term != term || s.release == nil || !errors.Is(cause, ErrLost) {
		return
	}
	s.lost, s.under = true, g.lead
	if g.lead != nil {
		g.lead.end(cause)
	} else {
		signal(g.wake)
	}
}

// handOver gives back the closed leases that nobody is in any more, and those
// that were lost while nothing was led by them.
func (g *Group) handOver(ctx context.Context) error {
	err := g.giveBack(ctx, func(s *slot) bool { return s.inside == 0 && (s.closing && !s.lost || s.lost && s.under == nil) })
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lead != nil && !slices.ContainsFunc(g.slots, func(s slot) bool { return s.release != nil }) {
		g.lead.end(g.allHeld())
	}
	return err
}

// giveBack gives back the leases that are asked for.
func (g *Group) giveBack(ctx context.Context, which func(*slot) bool) error {
	var errs []error
	for i := range g.slots {
		g.mu.Lock()
		s, release := &g.slots[i], g.slots[i].release
		if release == nil || !which(s) {
			g.mu.Unlock()
			continue
		}
		s.closing = true // nobody may enter meanwhile
		g.mu.Unlock()
		errs = append(errs, release(ctx))
		g.mu.Lock()
		s.release, s.lost, s.under, s.closing = nil, false, nil, false
		g.mu.Unlock()
	}
	return errors.Join(errs...)
}
