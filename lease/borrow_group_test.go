package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestBorrowingAllShards(t *testing.T) {
	//fault:leaders | Somebody needs all leases for a while, and several instances have jobs under way | Groups over a fake Redis, under a simulated clock, and one with another number of shards | All are handed over when the jobs are done, none is taken meanwhile, and then each has its fair share again
	for name, shards := range map[string]int{"as many": 4, "a single one in the borrower's settings": 1, "another number": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeServer()
				a, b := start(t, s, "a", 4), start(t, s, "b", 4)
				pass(soon)
				lead, release, err := a.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				leave, _ := a.Enter(a.Held()[0])
				l := borrow(t.Context(), s, "gc", shards)
				pass(soon)
				if got := counts(a, b); got != "[1 0]" || l.isDone() {
					t.Errorf("with a job under way: %s, lent: %t", got, l.isDone())
				}
				c := start(t, s, "c", 4) // joins meanwhile
				pass(3 * duration)
				leave()
				l.must(t, soon)
				if !errors.As(context.Cause(lead), new(*LentError)) {
					t.Errorf("the leadership: %v", context.Cause(lead))
				}
				_ = release(t.Context())
				pass(duration)
				_, _, err = a.Acquire(t.Context())
				if got := counts(a, b, c); got != "[0 0 0]" || !errors.As(err, new(*LentError)) || slices.Max(a.Terms()) != 0 {
					t.Errorf("while it is lent: %s, %v, terms %v", got, err, a.Terms())
				}
				for i := range 4 {
					if s.key(fmt.Sprintf("k:%d/4", i)).free() {
						t.Errorf("shard %d was not borrowed", i)
					}
				}
				if err := l.back(t.Context()); err != nil {
					t.Error(err)
				}
				pass(soon)
				if got := counts(a, b, c); got != "[2 1 1]" && got != "[1 2 1]" && got != "[1 1 2]" {
					t.Errorf("afterwards: %s", got)
				}
				for _, i := range []*instance{a, b, c} {
					i.end()
				}
			})
		})
	}
}

// A single pass outside of any share lends, too, and begins nothing when all is
// lent.
func TestASinglePassLends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		k := &link{fakeServer: s}
		g := newGroup(k, k, Config{Key: "k", Duration: duration, Shards: 3}, Member{ID: "once"})
		lead, release, err := g.AcquireFree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave, _ := g.Enter(1)
		ctx, cancel := context.WithCancel(t.Context())
		given := borrow(ctx, s, "repair", 3)
		pass(soon)
		cancel()
		<-given.done
		pass(wantedFor + soon)
		if leave, ok := g.Enter(1); !ok || lead.Err() != nil {
			t.Fatalf("after a request that was given up: %t, %v", ok, context.Cause(lead))
		} else {
			leave()
		}
		l := borrow(t.Context(), s, "gc", 3)
		pass(soon)
		if _, ok := g.Enter(1); ok || l.isDone() || lead.Err() != nil {
			t.Errorf("a job began: %t; lent: %t; %v", ok, l.isDone(), lead.Err())
		}
		leave()
		l.must(t, soon)
		if !errors.As(context.Cause(lead), new(*LentError)) {
			t.Errorf("the leadership: %v", context.Cause(lead))
		}
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
		if _, _, err := g.AcquireFree(t.Context()); !errors.As(err, new(*LentError)) {
			t.Errorf("acquire what is lent: %v", err)
		}
		_ = l.back(t.Context())
	})
}

// A server that answers nothing is asked one question, and not two in turn.
func TestWhoAsksIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		s.key("k:wanted").set(func() { s.keys["k:wanted"].delay = time.Hour })
		k := &link{fakeServer: s}
		c := Config{Key: "k", Duration: duration, Shards: 2}
		l, g := newLease(k, c), newGroup(k, k, c, Member{ID: "a"})
		l.lends = true
		for name, acquire := range map[string]func() error{
			"a lease":     func() error { _, _, err := l.Acquire(t.Context()); return err },
			"a group":     func() error { _, _, err := g.Acquire(t.Context()); return err },
			"all of them": func() error { _, _, err := g.AcquireFree(t.Context()); return err },
		} {
			begun := time.Now()
			if err := acquire(); !errors.Is(err, errNoAnswer) || time.Since(begun) != c.callTimeout() {
				t.Errorf("%s: after %s: %v", name, time.Since(begun), err)
			}
		}
	})
}
