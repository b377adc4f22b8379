package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/config"
	"korvet-offload/internal/redisstore"
	"korvet-offload/lease"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// turns decides when this instance works, and on what, where there may be
// others.
type turns interface {
	offload.Leader
	// AcquireOnce is Acquire for a single pass. It also returns the shards that
	// other instances hold.
	AcquireOnce(ctx context.Context) (lead context.Context, release func(context.Context) error, others []int, err error)
	// Borrow is AcquireOnce for a verb that is not to wait until whoever leads has
	// stopped: it asks for everything, and gets it when the jobs under way are done.
	// tell is called with what is waited for, when that changes.
	Borrow(ctx context.Context, who string, tell func(string)) (lead context.Context, giveBack func(context.Context) error, err error)
	// Gate lets nothing begin while the lead is about to be lent; nil = Share does
	// not either.
	Gate() offload.Gate
	// Share is the part of the work that is this instance's; nil = all of it.
	Share() offload.Share
	// Run shows the others that this instance is there, and shares the work with
	// them, until ctx ends. told is called when it has looked at them.
	Run(ctx context.Context, told func(lease.View))
	// Healthy is false when this instance believes that it leads, and can't renew.
	Healthy(now time.Time) bool
}

// newTurns makes the turns of an instance whose work goes on for as long as
// stalled says nothing.
func newTurns(redis *redisstore.Store, cfg config.Config, stalled func() error) turns {
	client, host := redis.Client(), hostName()
	self := lease.Member{ID: lease.NewID(host), Host: host, Version: version().Version, Address: cfg.Ops.Address}
	if cfg.Lease.Shards > 1 {
		g := lease.NewGroup(client, cfg.Lease, self)
		g.RenewWhile(stalled)
		return shared{g, cfg.Lease.Shards}
	}
	l := lease.New(client, cfg.Lease)
	l.RenewWhile(stalled)
	return single{leader{l}, lease.NewPresence(client, l, self)}
}

// single is an instance that leads or follows.
type single struct {
	leader
	presence *lease.Presence
}

func (s single) AcquireOnce(ctx context.Context) (context.Context, func(context.Context) error, []int, error) {
	lead, release, err := s.Acquire(ctx)
	return lead, release, nil, err
}

func (s single) Borrow(ctx context.Context, who string, tell func(string)) (context.Context, func(context.Context) error, error) {
	return s.Lease.Borrow(ctx, who, tell)
}

func (s single) Gate() offload.Gate { return leaseGate{s.Lease} }

func (s single) Share() offload.Share { return nil }

func (s single) Run(ctx context.Context, told func(lease.View)) { s.presence.Run(ctx, told) }

// shared is an instance that does its share.
type shared struct {
	*lease.Group
	shards int
}

// Acquire implements offload.Leader.
func (s shared) Acquire(ctx context.Context) (context.Context, func(context.Context) error, error) {
	return led(s.Group.Acquire(ctx))
}

func (s shared) AcquireOnce(ctx context.Context) (context.Context, func(context.Context) error, []int, error) {
	lead, release, err := led(s.AcquireFree(ctx))
	var others []int
	held := s.Held()
	for i := range s.shards {
		if !slices.Contains(held, i) {
			others = append(others, i)
		}
	}
	return lead, release, others, err
}

func (s shared) Borrow(ctx context.Context, who string, tell func(string)) (context.Context, func(context.Context) error, error) {
	return s.Group.Borrow(ctx, who, tell)
}

func (s shared) Gate() offload.Gate { return nil }

func (s shared) Share() offload.Share { return s.Group }

// leaseGate lets nothing begin while a single lease is about to be lent.
type leaseGate struct{ *lease.Lease }

// Enter implements offload.Gate.
func (g leaseGate) Enter(segment.Partition) (leave func(), ok bool) { return g.Lease.Enter() }

// gates lets in what all of them let in.
type gates []offload.Gate

// Enter implements offload.Gate.
func (all gates) Enter(p segment.Partition) (leave func(), ok bool) {
	var leaves []func()
	leave = func() {
		for _, l := range slices.Backward(leaves) {
			l()
		}
	}
	for _, g := range all {
		one, ok := g.Enter(p)
		if !ok {
			leave()
			return nil, false
		}
		leaves = append(leaves, one)
	}
	return leave, true
}

// gateOf is the gate of a worker.
func gateOf(t turns, pauses offload.Gate) offload.Gate {
	if g := t.Gate(); g != nil {
		return gates{g, pauses}
	}
	return pauses
}

// instances writes down what changes among the instances that run.
type instances struct {
	log    *zap.Logger
	shards int

	mu    sync.Mutex
	held  []int
	other string // instances whose number of shards is another one
	cause string // why the others could not be looked at
}

// told takes what the instance has seen of the others.
func (i *instances) told(v lease.View) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failed(v.Err)
	if i.shards > 1 && !slices.Equal(i.held, v.Held) {
		i.held = slices.Clone(v.Held)
		i.log.Info("the shards of this instance", zap.Ints("shards", append([]int{}, v.Held...)), zap.Int("of", i.shards), zap.Int("instances", len(v.Members)))
	}
	if v.Err != nil {
		return
	}
	other := disagreement(v.Members, i.shards)
	if other != "" && other != i.other {
		i.log.Warn(other)
	}
	i.other = other
}

// failed writes down, once for each cause, that the others can't be seen.
func (i *instances) failed(err error) {
	cause := ""
	if err != nil {
		cause = sameCause(err)
	}
	was := i.cause
	i.cause = cause
	switch {
	case cause == was || cause == "":
	case i.shards > 1:
		i.log.Warn("the work can't be shared anew for now; this instance goes on with the shards that it holds", zap.Error(leaseError(err)))
	default:
		i.log.Warn("this instance can't show the others that it is there; the work goes on", zap.Error(leaseError(err)))
	}
}

// disagreement says which instances have another number of shards; "" if none
// has.
func disagreement(members []lease.Member, shards int) string {
	var others []string
	for _, m := range members {
		if m.Of != shards {
			others = append(others, fmt.Sprintf("%.100q has %d", m.ID, m.Of))
		}
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("instances disagree on korvet.storage.offload.shards: here it is %d, and %s; until they agree, they do each other's work twice (nothing is lost by it)",
		shards, strings.Join(others, ", "))
}

// errNoShards says it of a leadership that ended for want of a share, or because
// it was lent.
func errNoShards(err error) bool {
	return errors.Is(err, lease.ErrHeld) && !errors.Is(err, lease.ErrLost)
}

// lentTo is to whom a leadership was lent that has ended by that; "" if it has
// not.
func lentTo(err error) string {
	if lent := (*lease.LentError)(nil); errors.As(err, &lent) && !errors.Is(err, lease.ErrLost) {
		return lent.To
	}
	return ""
}

// willing is an observer to whom it is no loss that an instance has no share any
// more: then it follows.
type willing struct{ offload.LoopObserver }

// Lost implements offload.LoopObserver.
func (w willing) Lost(cause error) {
	if errNoShards(cause) {
		w.Follows()
		return
	}
	w.LoopObserver.Lost(cause)
}
