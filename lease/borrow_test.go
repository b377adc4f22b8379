package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// daemon is a process with a single lease, which shows itself.
type daemon struct {
	*Lease
	link *link
	stop context.CancelFunc
	ran  sync.WaitGroup
}

func daemonOf(t *testing.T, s *fakeServer, id string, change ...func(*Lease)) *daemon {
	t.Helper()
	l := &link{fakeServer: s}
	ctx, stop := context.WithCancel(t.Context())
	d := &daemon{Lease: newLease(l, Config{Key: "k", Duration: duration}), link: l, stop: stop}
	d.lends, d.roster = true, l
	for _, c := range change {
		c(d.Lease)
	}
	d.ran.Go(func() { newPresence(l, d.Lease, Member{ID: id, Version: "1.2"}).Run(ctx, func(View) {}) })
	return d
}

func (d *daemon) end() {
	d.stop()
	d.ran.Wait()
}

// loan is what came of a request.
type loan struct {
	link *link
	lead context.Context
	back func(context.Context) error
	err  error
	told []string
	took time.Duration
	done chan struct{} // it was given, or refused
	over chan struct{} // of borrowFor: it was given back
}

// borrow asks for the leases of so many shards, in a goroutine of its own.
func borrow(ctx context.Context, s *fakeServer, who string, shards int) *loan {
	l := &loan{link: &link{fakeServer: s}, done: make(chan struct{}), over: make(chan struct{})}
	tell := func(text string) { l.told = append(l.told, text) }
	begun := time.Now()
	go func() {
		defer close(l.done)
		c := Config{Key: "k", Duration: duration, Shards: shards}
		if shards > 1 {
			l.lead, l.back, l.err = newGroup(l.link, l.link, c, Member{}).Borrow(ctx, who, tell)
		} else {
			one := newLease(l.link, c)
			one.roster = l.link
			l.lead, l.back, l.err = one.Borrow(ctx, who, tell)
		}
		l.took = time.Since(begun)
	}()
	return l
}

func (l *loan) isDone() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// must waits for the loan, which must be given.
func (l *loan) must(t *testing.T, within time.Duration) {
	t.Helper()
	select {
	case <-l.done:
	case <-time.After(within):
	}
	if !l.isDone() || l.err != nil || l.lead.Err() != nil {
		t.Fatalf("after %s: done %t, %v; told %q", within, l.isDone(), l.err, l.told)
	}
}

func TestALeaderLendsWhenItsJobsAreDone(t *testing.T) {
	//fault:leaders | Somebody needs the lease for a while, in the middle of a long job of the leader | A single lease over a fake Redis, under a simulated clock; the job ends minutes later | No new job begins, the lease is kept and renewed until the job is over, the borrower has it a moment later, and nobody takes it before it is given back
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a, follower := daemonOf(t, s, "a"), daemonOf(t, s, "f")
		lead, release := take(t, a.Lease)
		leave, ok := a.Enter()
		if !ok {
			t.Fatal("a job may not begin")
		}
		l := borrow(t.Context(), s, "gc by me", 1)
		pass(soon)
		if _, ok := a.Enter(); ok || a.Lends() != "gc by me" || l.isDone() || lead.Err() != nil {
			t.Errorf("another job began: %t; lends to %q; lent: %t; the leadership: %v", ok, a.Lends(), l.isDone(), lead.Err())
		}
		pass(5 * duration)
		if l.isDone() || lead.Err() != nil || s.key("k").free() {
			t.Fatalf("with a job under way: lent: %t, %v, told %q", l.isDone(), l.err, l.told)
		}
		leave()
		l.must(t, 2*time.Second)
		if cause := context.Cause(lead); !errors.Is(cause, ErrHeld) || errors.Is(cause, ErrLost) || !strings.Contains(cause.Error(), "gc by me") {
			t.Errorf("the leadership: %v", cause)
		}
		if a.Held() || a.Lends() != "" {
			t.Error("it still holds what it has given away")
		}
		if !strings.Contains(fmt.Sprint(l.told), `"a" (1.2), which finishes what it is at`) {
			t.Errorf("told %q", l.told)
		}
		pass(3 * duration) // the loan lasts
		if err := release(t.Context()); err != nil || l.lead.Err() != nil || !a.Healthy(time.Now()) {
			t.Errorf("release of what was lent: %v; the loan: %v; healthy %t", err, context.Cause(l.lead), a.Healthy(time.Now()))
		}
		for _, d := range []*daemon{a, follower} {
			if _, _, err := d.Acquire(t.Context()); !errors.As(err, new(*LentError)) {
				t.Errorf("acquire of what is lent: %v", err)
			}
		}
		if err := errors.Join(l.back(t.Context()), l.back(t.Context())); err != nil || l.lead.Err() == nil || !s.key("k").free() || !s.key("k:wanted").free() {
			t.Errorf("give back: %v; %v", err, l.lead.Err())
		}
		_, release = take(t, a.Lease)
		if leave, ok := a.Enter(); !ok {
			t.Error("no job may begin in the next leadership")
		} else {
			leave()
		}
		_ = release(t.Context())
		a.end()
		follower.end()
	})
}

// What was asked for and is not any more stays with the leader.
func TestARequestThatIsWithdrawn(t *testing.T) {
	//fault:leaders | Whoever asks for the lease gives up, or is killed, before it has it | A single lease over a fake Redis, under a simulated clock, a job under way | The leader goes on within seconds, or when the request has lapsed after 30 s, in the same leadership
	for name, killed := range map[string]bool{"gives up": false, "is killed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeServer()
				a := daemonOf(t, s, "a")
				lead, release := take(t, a.Lease)
				leave, _ := a.Enter()
				ctx, cancel := context.WithCancel(t.Context())
				l := borrow(ctx, s, "gc", 1)
				pass(duration)
				l.link.cut.Store(killed)
				cancel()
				<-l.done
				if !errors.Is(l.err, context.Canceled) {
					t.Errorf("borrow: %v", l.err)
				}
				within := soon
				if killed {
					within = wantedFor + soon
				}
				pass(within)
				again, ok := a.Enter()
				if !ok || lead.Err() != nil || a.Lends() != "" {
					t.Fatalf("after %s: may begin %t, the leadership %v, lends to %q", within, ok, lead.Err(), a.Lends())
				}
				again()
				leave()
				pass(duration)
				if lead.Err() != nil {
					t.Errorf("the leadership: %v", context.Cause(lead))
				}
				_ = release(t.Context())
				a.end()
			})
		})
	}
}

// A right that is taken away in the middle keeps nobody from the work.
func TestARequestThatCantBeReadAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a := daemonOf(t, s, "a")
		lead, release := take(t, a.Lease)
		leave, _ := a.Enter()
		ctx, cancel := context.WithCancel(t.Context())
		l := borrow(ctx, s, "gc", 1)
		pass(soon)
		if _, ok := a.Enter(); ok {
			t.Error("a job begins although the lease is asked for")
		}
		a.link.blind.Store(true)
		pass(soon)
		again, ok := a.Enter()
		if !ok || lead.Err() != nil || a.Lends() != "" {
			t.Fatalf("may begin %t, the leadership %v, lends to %q", ok, lead.Err(), a.Lends())
		}
		again()
		leave()
		cancel()
		<-l.done
		_ = release(t.Context())
		a.end()
	})
}

func TestABorrowerIsKilled(t *testing.T) {
	//fault:leaders | Whoever has borrowed the lease is killed | A single lease over a fake Redis, under a simulated clock | Others lead again when what it held has lapsed, and the killed one's own work is told that the lease is lost
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		l := borrow(t.Context(), s, "gc", 1)
		l.must(t, soon)
		l.link.cut.Store(true)
		a := daemonOf(t, s, "a")
		begun := time.Now()
		for {
			_, release, err := a.Acquire(t.Context())
			if err == nil {
				_ = release(t.Context())
				break
			}
			if time.Since(begun) > duration {
				t.Fatalf("acquire: %v", err)
			}
			pass(time.Second)
		}
		if l.lead.Err() == nil {
			pass(duration)
		}
		if !errors.Is(context.Cause(l.lead), ErrLost) {
			t.Errorf("the loan: %v", context.Cause(l.lead))
		}
		_ = l.back(t.Context())
		a.end()
	})
}

// A leader that is gone is waited for until its key has lapsed.
func TestBorrowingFromALeaderThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		a := daemonOf(t, s, "a")
		lead, release := take(t, a.Lease)
		pass(soon)
		a.link.cut.Store(true)
		l := borrow(t.Context(), s, "gc", 1)
		l.must(t, duration+soon)
		<-lead.Done()
		_ = release(t.Context())
		_ = l.back(t.Context())
		a.end()
	})
}

func TestALeaderThatDoesNotLend(t *testing.T) {
	//fault:leaders | The leader is of a version that does not know how to lend, or does not show itself, or never finishes | A single lease over a fake Redis, under a simulated clock | The borrower gives up after a bounded time, says who holds the lease and what to do, takes its request back, and the leader was not disturbed
	for name, c := range map[string]struct {
		change func(*Lease)
		busy   bool
		hidden bool
		within time.Duration
		want   string
	}{
		"an older version":      {func(l *Lease) { l.lends = false }, false, false, listenFor + time.Minute, `"a" (1.2) does not hand it over: it may be of a version that does not know how; stop it`},
		"not shown":             {func(l *Lease) { l.lends = false }, false, true, duration + time.Minute, "whoever has it does not show itself in"},
		"a job that never ends": {func(*Lease) {}, true, false, finishFor + time.Minute, `"a" (1.2) hands it over, and has not finished what it is at for 15m`},
		"no right to read it":   {func(l *Lease) { l.redis.(*link).blind.Store(true) }, false, false, listenFor + time.Minute, "does not hand it over"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeServer()
				a := daemonOf(t, s, "a", c.change)
				lead, release := take(t, a.Lease)
				if c.hidden {
					a.end()
				}
				if c.busy {
					leave, _ := a.Enter()
					defer leave()
				}
				l := borrow(t.Context(), s, "gc", 1)
				<-l.done
				if !errors.Is(l.err, ErrHeld) || !strings.Contains(fmt.Sprint(l.err), c.want) || l.took > c.within {
					t.Errorf("after %s: %v", l.took, l.err)
				}
				if !s.key("k:wanted").free() || lead.Err() != nil {
					t.Errorf("the request was left behind, or the leader disturbed: %v", context.Cause(lead))
				}
				_ = release(t.Context())
				a.end()
			})
		})
	}
}

func TestTwoBorrowers(t *testing.T) {
	//fault:leaders | Several verbs borrow the lease at once | A fake Redis under a simulated clock | One works at a time, the next one when it has given the lease back; who waits too long says who has it
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		first := borrow(t.Context(), s, "gc", 1)
		first.must(t, soon)
		second := borrow(t.Context(), s, "repair", 1)
		third := borrow(t.Context(), s, "restore", 1)
		pass(soon)
		if second.isDone() || third.isDone() || !strings.Contains(fmt.Sprint(second.told), `"gc" has borrowed the lease`) {
			t.Fatalf("told %q", second.told)
		}
		if err := first.back(t.Context()); err != nil {
			t.Error(err)
		}
		pass(soon)
		if second.isDone() == third.isDone() {
			t.Fatalf("both or none: %t", second.isDone())
		}
		if third.isDone() {
			second, third = third, second
		}
		second.must(t, 0)
		<-third.done
		if !errors.Is(third.err, ErrHeld) || !strings.Contains(third.err.Error(), "has borrowed it") {
			t.Errorf("the third one: %v", third.err)
		}
		_ = second.back(t.Context())
	})
}

// A loan ends when the request for it, or one of the leases, is lost.
func TestALoanThatIsLost(t *testing.T) {
	for _, key := range []string{"k:wanted", "k:0/2", "k:1/2"} {
		synctest.Test(t, func(t *testing.T) {
			s := newFakeServer()
			l := borrow(t.Context(), s, "gc", 2)
			l.must(t, soon)
			s.key(key).set(func() { s.keys[key].token = "another" })
			if took := lostAfter(l.lead, t); took > duration/3 {
				t.Errorf("%s: the loan ended after %s", key, took)
			}
			_ = l.back(t.Context())
		})
	}
}
