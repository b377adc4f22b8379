package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Group is one process's claim to its share of Config.Shards leases of one
// Redis. Each of them is what a Lease is. How many are a process's share
// follows from who else is there, which all write down in one Hash; nobody
// assigns anything. Its methods may be called from any goroutine.
//
// A lease that is more than the share is closed first: Enter lets nobody in any
// more. When whoever is in has left, it is given back, and an instance with less
// than its share takes it.
type Group struct {
	cfg     Config
	redis   commands
	working func() error

	turn    sync.Mutex // of whoever takes leases or gives them back; guards book and refused
	book    book
	refused bool // a lease could not be asked for: others must not count on this instance

	wake   chan struct{} // nobody is in a lease any more that is closed
	gained chan struct{} // there are leases that Terms has not told of

	mu     sync.Mutex // never held while Redis is asked
	slots  []slot
	closed bool // everything was given back, and nothing is taken
	lead   *leadership
	asker  string // for whom the leases are given away; "" = for nobody
}

// slot is one lease of a group.
type slot struct {
	lease   *Lease
	release func(context.Context) error // nil = this process does not hold it
	lost    bool                        // against its will
	under   *leadership                 // when it was lost: what went on under it may not be over yet
	closing bool                        // nobody may enter any more
	inside  int                         // how many have entered and not left
	term    int                         // how often it was taken
}

// open says whether what belongs to a lease may be worked on.
func (s *slot) open() bool { return s.release != nil && !s.lost && !s.closing }

// leadership is what Acquire has given away.
type leadership struct{ end context.CancelCauseFunc }

// NewGroup makes a group of c.Shards leases for an instance. What self says of
// leases and times is filled in.
func NewGroup(client rueidis.Client, c Config, self Member) *Group {
	s := newScripts(client)
	return newGroup(s, s, c, self)
}

func newGroup(redis commands, r roster, c Config, self Member) *Group {
	g := &Group{cfg: c, redis: redis, working: func() error { return nil }, book: book{cfg: c, redis: r, self: self},
		wake: make(chan struct{}, 1), gained: make(chan struct{}, 1)}
	for i := range c.Shards {
		one := c
		one.Key = c.ShardKey(i)
		g.slots = append(g.slots, slot{lease: newLease(redis, one)})
	}
	return g
}

// RenewWhile is Lease.RenewWhile for all leases. An instance whose work hangs
// no longer counts among the members either.
func (g *Group) RenewWhile(working func() error) {
	g.working = working
	for i := range g.slots {
		g.slots[i].lease.RenewWhile(working)
	}
}

// Run takes and gives back leases as instances come and go, and keeps this
// one's record among them, until ctx ends; then it removes the record, and gives
// back the leases under which nothing is led: those of a leadership go with it.
// told is called after every look, by this goroutine.
func (g *Group) Run(ctx context.Context, told func(View)) {
	tick := time.NewTicker(g.cfg.lookEvery())
	defer tick.Stop()
	for {
		members, err := g.round(ctx)
		if ctx.Err() == nil {
			told(View{Self: g.book.self.ID, Members: members, Held: g.Held(), Err: err})
		}
		select {
		case <-ctx.Done():
			g.goodbye(ctx)
			return
		case <-tick.C:
		case <-g.wake:
		}
	}
}

// goodbye leaves the others, after ctx has ended.
func (g *Group) goodbye(ctx context.Context) {
	g.turn.Lock()
	defer g.turn.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	g.mu.Lock()
	idle := g.lead == nil
	g.closed = g.closed || idle
	g.mu.Unlock()
	if idle {
		_ = g.giveBack(ctx, func(*slot) bool { return true }) // they lapse otherwise
	}
	_ = g.book.leave(ctx)
}

// Acquire begins a leadership over the leases that this instance holds; if it
// holds none, it tries to take its share first. The leases may change while it
// lasts: Terms and Enter tell. The context ends with ctx, with release, with the
// cause ErrLost when one of the leases is lost, and with the cause ErrHeld when
// the last one was given back because it is more than the share, or was asked for
// by Borrow (*LentError). Those that are
// still held after a loss are kept for the next Acquire.
//
// release must be called when the work under the leadership is done. At the end
// of ctx, or where the leadership has not ended yet, it gives back all leases,
// and Run takes none until the next Acquire.
//
// When there is no lease for this instance the error is ErrHeld.
func (g *Group) Acquire(ctx context.Context) (leadership context.Context, release func(context.Context) error, err error) {
	g.reopen()
	if len(g.Held()) == 0 {
		_, err = g.round(ctx)
	}
	return g.begin(ctx, err, func(ended error) bool {
		return ctx.Err() == nil && (errors.Is(ended, ErrLost) || errors.Is(ended, ErrHeld))
	})
}

// AcquireFree is Acquire for one piece of work outside of any share: it takes
// every lease that is free, without this instance being a member, and release
// gives all of them back. They are given earlier to whoever asks for them.
func (g *Group) AcquireFree(ctx context.Context) (leadership context.Context, release func(context.Context) error, err error) {
	g.reopen()
	g.turn.Lock()
	if err = g.lend(ctx); err == nil && g.Lends() == "" {
		err = g.take(ctx, g.cfg.Shards, make([]bool, g.cfg.Shards))
	}
	g.turn.Unlock()
	lead, end, err := g.begin(ctx, err, func(error) bool { return false })
	if err != nil {
		return nil, nil, err
	}
	lender := background(lead, g.lendAll)
	return lead, func(ctx context.Context) error { return errors.Join(lender.stop(ctx), end(ctx)) }, nil
}

func (g *Group) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// begin begins a leadership, or says why there is none: err, or that all leases
// are others'. goesOn says, when the leadership is released, whether the leases
// that are held then are kept, by what it ended with.
func (g *Group) begin(ctx context.Context, err error, goesOn func(ended error) bool) (context.Context, func(context.Context) error, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.ContainsFunc(g.slots, func(s slot) bool { return s.open() }) {
		return nil, nil, cmp.Or(err, g.allHeld())
	}
	lead, end := context.WithCancelCause(ctx)
	g.lead = &leadership{end}
	var once sync.Once
	var failed error
	return lead, func(ctx context.Context) error {
		once.Do(func() { failed = g.release(ctx, end, goesOn(context.Cause(lead))) })
		return failed
	}, nil
}

// allHeld says that there is no lease for this instance. It is called with mu
// locked.
func (g *Group) allHeld() error {
	if g.asker != "" {
		return &LentError{g.cfg.Key, g.asker}
	}
	return fmt.Errorf("%w: each of the %d shards", ErrHeld, g.cfg.Shards)
}

// release ends a leadership and gives back what is not kept.
func (g *Group) release(ctx context.Context, end context.CancelCauseFunc, keep bool) error {
	g.mu.Lock()
	g.lead = nil
	g.closed = g.closed || !keep
	g.mu.Unlock()
	end(nil)
	g.turn.Lock()
	defer g.turn.Unlock()
	return g.giveBack(ctx, func(s *slot) bool { return s.lost || !keep })
}

// Held returns the leases that this instance holds and has not given back, in
// their order.
func (g *Group) Held() (held []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.slots {
		if s := &g.slots[i]; s.release != nil && !s.lost {
			held = append(held, i)
		}
	}
	return held
}

// Terms returns for each lease a number above 0 if what belongs to it may be
// worked on by this instance, and 0 if not. The number is another one when the
// lease was away in between.
func (g *Group) Terms() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.gained: // these are told of now
	default:
	}
	terms := make([]int, len(g.slots))
	for i := range g.slots {
		if s := &g.slots[i]; s.open() {
			terms[i] = s.term
		}
	}
	return terms
}

// Gained gives a value when leases were taken of which Terms has not told.
func (g *Group) Gained() <-chan struct{} { return g.gained }

// Enter says whether something that belongs to a lease may begin. If so, leave
// is called once when it is over, and the lease is not given away before.
func (g *Group) Enter(i int) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.slots[i]
	if !s.open() {
		return nil, false
	}
	s.inside++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if s.inside--; s.inside == 0 && s.closing {
			signal(g.wake)
		}
	}, true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is not taken note of yet
	}
}

// Healthy is Lease.Healthy of all leases.
func (g *Group) Healthy(now time.Time) bool {
	for i := range g.slots {
		if !g.slots[i].lease.Healthy(now) {
			return false
		}
	}
	return true
}
