package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// soon is how long instances may take to see that one has come or gone: two
// looks.
const soon = 5 * time.Second

func TestInstancesShareWhatThereIs(t *testing.T) {
	//fault:leaders | Instances come and go while several share the work | Groups of leases over a fake Redis, under a simulated clock: one starts, another joins, a third, one leaves, one is killed | Each has its fair share within seconds, and what the killed one held once its leases have lapsed
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		want := func(what, share string, all ...*instance) {
			t.Helper()
			pass(soon)
			if got := counts(all...); got != share {
				t.Errorf("%s: %s, want %s", what, got, share)
			}
		}
		a := start(t, s, "a", 4)
		want("alone", "[4]", a)
		b := start(t, s, "b", 4)
		want("two", "[2 2]", a, b)
		c := start(t, s, "c", 4)
		want("three", "[2 1 1]", a, b, c)
		held := shares(a, b, c)
		pass(time.Hour)
		if now := shares(a, b, c); now != held {
			t.Errorf("they have moved without need: %s, then %s", held, now)
		}
		a.end()
		want("one has left", "[2 2]", b, c)
		c.kill()
		pass(duration)
		want("one was killed", "[4]", b)
		b.end()
		if len(s.members) != 0 {
			t.Errorf("left behind: %v", s.members)
		}
	})
}

// More instances than leases: the others wait for one.
func TestMoreInstancesThanLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a, b := start(t, s, "a", 2), start(t, s, "b", 2)
		pass(soon)
		c := start(t, s, "c", 2)
		pass(soon)
		if got := counts(a, b, c); got != "[1 1 0]" {
			t.Errorf("shares: %s", got)
		}
		if _, _, err := c.Acquire(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("acquire: %v", err)
		}
		a.end()
		pass(soon)
		if got := counts(b, c); got != "[1 1]" {
			t.Errorf("shares: %s", got)
		}
		b.end()
		c.end()
	})
}

// A lease that is more than the share is closed, and given away when whoever is
// in has left.
func TestHandOverWaitsForWhoeverIsIn(t *testing.T) {
	//fault:leaders | An instance joins while the others are in the middle of long jobs | A fake Redis under a simulated clock; jobs that end minutes later | No new job of the surplus begins, the lease is kept and renewed until the last one is over, and the joiner has it seconds later
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a := start(t, s, "a", 2)
		pass(soon)
		lead, release, err := a.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var leave [2]func()
		for i := range leave {
			leave[i], _ = a.Enter(i)
		}
		first := a.Terms()
		b := start(t, s, "b", 2)
		pass(10 * duration)
		if got := counts(a, b); got != "[2 0]" {
			t.Errorf("shares with jobs under way: %s", got)
		}
		closed := slices.Index(a.Terms(), 0)
		if _, ok := a.Enter(closed); ok || closed < 0 || slices.Max(a.Terms()) == 0 {
			t.Fatalf("terms %v: want one closed", a.Terms())
		}
		leave[closed]()
		pass(soon)
		if got := counts(a, b); got != "[1 1]" || lead.Err() != nil {
			t.Errorf("shares: %s; the leadership: %v", got, context.Cause(lead))
		}
		select {
		case <-b.Gained():
		default:
			t.Error("the joiner was not told")
		}
		b.end()
		pass(soon)
		if again := a.Terms(); again[closed] == first[closed] || again[1-closed] != first[1-closed] {
			t.Errorf("terms %v, and before the one was away %v", again, first)
		}
		leave[1-closed]()
		if err := release(t.Context()); err != nil || len(a.Held()) != 0 {
			t.Errorf("release: %v, held: %v", err, a.Held())
		}
		pass(soon)
		if len(a.Held()) != 0 {
			t.Error("it has taken leases after it had given them back")
		}
		a.end()
	})
}

// An instance that leaves before the hand-over is done is not waited for.
func TestAClosedLeaseOpensAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a := start(t, s, "a", 2)
		pass(soon)
		for i := range 2 {
			leave, _ := a.Enter(i)
			defer leave()
		}
		before := a.Terms()
		b := start(t, s, "b", 2)
		pass(soon)
		if !slices.Contains(a.Terms(), 0) {
			t.Error("nothing was closed")
		}
		b.end()
		pass(soon)
		if got := a.Terms(); !slices.Equal(got, before) {
			t.Errorf("terms %v, want %v", got, before)
		}
		a.end()
	})
}

// The loss of one lease ends what is led by all, and the next leadership goes on
// with those that are held.
func TestALostLeaseEndsTheLeadership(t *testing.T) {
	//fault:leaders | One of several leases of an instance is lost | A key of a fake Redis becomes somebody else's, under a simulated clock | The whole leadership ends within one renewal interval, the other leases are kept, and the next leadership goes on with them
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a := start(t, s, "a", 3)
		pass(soon)
		lead, release, err := a.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.key("k:1/3").set(func() { s.keys["k:1/3"].token, s.keys["k:1/3"].until = "another", time.Now().Add(time.Hour) })
		if took := lostAfter(lead, t); took > duration/3 {
			t.Errorf("the leadership ended after %s", took)
		}
		if _, ok := a.Enter(1); ok {
			t.Error("what belongs to a lost lease may begin")
		}
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
		lead, release, err = a.Acquire(t.Context())
		if err != nil || fmt.Sprint(a.Held()) != "[0 2]" || !a.Healthy(time.Now().Add(time.Second)) {
			t.Errorf("the next leadership: %v, held %v", err, a.Held())
		}
		pass(soon)
		if lead.Err() != nil {
			t.Error("it did not last")
		}
		_ = release(t.Context())
		a.end()
	})
}

// A lease that is lost while nothing is led is let go of, and taken again.
func TestALeaseIsLostWhileNothingIsLed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a := start(t, s, "a", 2)
		pass(soon)
		s.key("k:0/2").set(func() { s.keys["k:0/2"].token = "another" })
		pass(2 * duration) // the other's lapses
		if got := a.Terms(); got[0] != 2 || got[1] != 1 || !a.Healthy(time.Now()) {
			t.Errorf("terms %v", got)
		}
		a.end()
		if !s.key("k:0/2").free() || !s.key("k:1/2").free() {
			t.Error("leases that nothing was led by were not given back at the end")
		}
	})
}

func TestAnInstanceThatCantBeCountedOn(t *testing.T) {
	//fault:leaders | One of several instances hangs, or may not take leases | A fake Redis under a simulated clock | It no longer counts among the members, and the others take its share
	for name, spoil := range map[string]func(*instance){
		"its work hangs":      func(i *instance) { i.RenewWhile(func() error { return errors.New("no progress") }) },
		"it gets no leases":   func(i *instance) { i.link.denied.Store(true) },
		"it can't reach them": func(i *instance) { i.link.cut.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeServer()
				l := &link{fakeServer: s}
				bad := &instance{Group: newGroup(l, l, Config{Key: "k", Duration: duration, Shards: 4}, Member{ID: "a"}), link: l}
				spoil(bad)
				ctx, stop := context.WithCancel(t.Context())
				bad.stop = stop
				bad.ran.Go(func() { bad.Run(ctx, func(v View) { bad.seen.Store(&v) }) })
				b := start(t, s, "b", 4)
				pass(duration + soon)
				if got := counts(bad, b); got != "[0 4]" {
					t.Errorf("shares: %s", got)
				}
				if bad.seen.Load().Err == nil {
					t.Error("nobody was told")
				}
				bad.end()
				b.end()
			})
		})
	}
}

// The share may shrink to nothing.
func TestTheLastLeaseIsGivenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		b := start(t, s, "b", 2)
		pass(soon)
		a := start(t, s, "a", 2)
		pass(soon)
		lead, release, err := b.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		for i := range 2 { // two that say that they have one each
			s.members[fmt.Sprint("A", i)] = fmt.Sprintf(`{"v":1,"shards":[%d],"of":2,"startedAt":1,"seenAt":%d}`, i, time.Now().UnixMilli())
		}
		s.mu.Unlock()
		pass(soon)
		if cause := context.Cause(lead); !errors.Is(cause, ErrHeld) || errors.Is(cause, ErrLost) {
			t.Errorf("cause %v", cause)
		}
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
		pass(duration + soon) // they are gone again
		if got := counts(a, b); got != "[1 1]" {
			t.Errorf("shares: %s", got)
		}
		a.end()
		b.end()
	})
}

func TestAcquireFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		s.key("k:2/4").set(func() { s.keys["k:2/4"].token, s.keys["k:2/4"].until = "another", time.Now().Add(time.Hour) })
		l := &link{fakeServer: s}
		g := newGroup(l, l, Config{Key: "k", Duration: duration, Shards: 4}, Member{ID: "once"})
		lead, release, err := g.AcquireFree(t.Context())
		if err != nil || lead.Err() != nil || fmt.Sprint(g.Held()) != "[0 1 3]" || len(s.members) != 0 {
			t.Fatalf("%v, held %v, members %v", err, g.Held(), s.members)
		}
		h := newGroup(l, l, Config{Key: "k", Duration: duration, Shards: 4}, Member{ID: "other"})
		if _, _, err := h.AcquireFree(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("when none is free: %v", err)
		}
		if err := errors.Join(release(t.Context()), release(t.Context())); err != nil || !s.key("k:3/4").free() {
			t.Errorf("release: %v", err)
		}
		s.key("k:2/4").set(func() { s.keys["k:2/4"].until = time.Now().Add(-1) })
		l.denied.Store(true)
		if _, _, err := g.AcquireFree(t.Context()); !errors.Is(err, errRefused) {
			t.Errorf("when leases are refused: %v", err)
		}
	})
}

// A key that never lapses keeps nobody from the other leases, and is told of.
func TestALeaseThatNeverLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		l := &link{fakeServer: s}
		a := &instance{Group: newGroup(foreverHeld{l, "k:1/2"}, l, Config{Key: "k", Duration: duration, Shards: 2}, Member{ID: "a"}), link: l}
		ctx, stop := context.WithCancel(t.Context())
		a.stop = stop
		a.ran.Go(func() { a.Run(ctx, func(v View) { a.seen.Store(&v) }) })
		pass(soon)
		if v := a.seen.Load(); shares(a) != "[0]" || v.Err == nil || !strings.Contains(v.Err.Error(), "k:1/2") || len(v.Members) != 1 {
			t.Errorf("held %s, told %+v", shares(a), v)
		}
		a.end()
	})
}

type foreverHeld struct {
	*link
	which string
}

func (f foreverHeld) acquire(ctx context.Context, key, token string, d time.Duration) (bool, time.Duration, error) {
	if key == f.which {
		return false, -1, nil
	}
	return f.link.acquire(ctx, key, token, d)
}

// Instances with other numbers of leases are at work on leases of their own, and
// are seen.
func TestInstancesThatDisagreeOnTheNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a, b := start(t, s, "a", 4), start(t, s, "b", 2)
		pass(soon)
		if got := counts(a, b); got != "[4 2]" {
			t.Errorf("shares: %s", got)
		}
		if v := a.seen.Load(); len(v.Members) != 2 || v.Members[1].Of != 2 {
			t.Errorf("members %+v", v.Members)
		}
		a.end()
		b.end()
	})
}

// Whoever goes on although a lease is lost, and does not give it back, is not
// healthy; any lease will do.
func TestAGroupThatHoldsOnIsNotHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a := start(t, s, "a", 3)
		pass(soon)
		_, release, err := a.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.key("k:2/3").set(func() { s.keys["k:2/3"].token = "another" })
		pass(duration)
		if !a.Healthy(time.Now()) {
			t.Error("not healthy although the lease may not have expired")
		}
		pass(duration)
		if a.Healthy(time.Now()) {
			t.Error("healthy, although the work under a lost lease goes on")
		}
		if err := release(t.Context()); err != nil || !a.Healthy(time.Now()) {
			t.Errorf("release: %v; healthy: %t", err, a.Healthy(time.Now()))
		}
		a.end()
	})
}
