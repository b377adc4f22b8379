package lease

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// event is something that happens to one of the instances.
type event struct {
	what, who, lease int
	job, pause       time.Duration
}

// Instances come, leave and are killed at any time and in any order, and have
// jobs under way; others borrow all leases for a while, or are killed. Asserted: no
// lease is ever open at two of them, or at one while it is lent, and when all is calm, all leases are held, in fair shares, and none moves.
func TestGroupsSettle(t *testing.T) {
	//fault:leaders | Many instances come, leave, are killed, or have long jobs, at any time | Random schedules over a fake Redis, under a simulated clock | No lease is open at two of them, and when all is calm each has its fair share and nothing moves
	rapid.Check(t, func(rt *rapid.T) {
		shards := rapid.IntRange(2, 9).Draw(rt, "leases")
		events := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) event {
			return event{rapid.IntRange(0, 5).Draw(rt, "what"), rapid.IntRange(0, 99).Draw(rt, "who"), rapid.IntRange(0, shards-1).Draw(rt, "lease"),
				time.Duration(rapid.IntRange(1, 100).Draw(rt, "job")) * time.Second, time.Duration(rapid.IntRange(0, 90_000).Draw(rt, "pause")) * time.Millisecond}
		}), 0, 15).Draw(rt, "events")
		var wrong string
		synctest.Test(t, func(t *testing.T) { wrong = play(t, shards, events) }) // draws must not happen in there
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// play says what is wrong; "" if nothing is.
func play(t *testing.T, shards int, events []event) (wrong string) {
	s := newFakeServer()
	all := []*instance{start(t, s, "m0", shards)}
	var loans []*loan
	defer func() {
		for _, l := range loans {
			<-l.over
		}
		for _, i := range all {
			i.end()
		}
		pass(2 * time.Hour) // what is left lapses
	}()
	for n, e := range events {
		i := e.who % len(all)
		switch {
		case e.what == 0 && len(all) < shards+2:
			all = append(all, start(t, s, fmt.Sprint("m", n+1), shards))
		case e.what == 1 && len(all) > 1:
			all[i].end()
			all = slices.Delete(all, i, i+1)
		case e.what == 2 && len(all) > 1:
			all[i].kill()
			all = slices.Delete(all, i, i+1)
		case e.what == 3:
			if leave, ok := all[i].Enter(e.lease); ok {
				time.AfterFunc(e.job, leave)
			}
		case e.what == 5:
			loans = append(loans, borrowFor(t, s, fmt.Sprint("b", n), 1+e.who%shards, e.job, e.who%2 == 0))
		}
		pass(e.pause)
		if wrong := overlap(all, loans); wrong != "" {
			return wrong
		}
	}
	for _, l := range loans {
		<-l.over
	}
	pass(2*duration + 100*time.Second)
	before := shares(all...)
	if wrong := unfair(all, shards); wrong != "" {
		return wrong
	}
	pass(10 * time.Minute)
	if after := shares(all...); after != before {
		return fmt.Sprintf("%s, and later %s", before, after)
	}
	return ""
}

// borrowFor borrows all leases for a time; then it gives them back, or is killed.
func borrowFor(t *testing.T, s *fakeServer, who string, shards int, d time.Duration, killed bool) *loan {
	ctx, cancel := context.WithCancel(t.Context())
	l := borrow(ctx, s, who, shards)
	time.AfterFunc(d, func() {
		defer close(l.over)
		l.link.cut.Store(killed)
		cancel()
		if <-l.done; l.err == nil {
			_ = l.back(t.Context()) // cut off, if it was killed
		}
	})
	return l
}

func overlap(all []*instance, loans []*loan) string {
	whose := map[int]string{}
	for _, l := range loans {
		for n := range 10 {
			if l.isDone() && l.err == nil && l.lead.Err() == nil {
				whose[n] = "a borrower"
			}
		}
	}
	for _, i := range all {
		for n, term := range i.Terms() {
			if other := whose[n]; term > 0 && other != "" {
				return fmt.Sprintf("lease %d is open at %s and %s", n, other, i.book.self.ID)
			} else if term > 0 {
				whose[n] = i.book.self.ID
			}
		}
	}
	return ""
}

func unfair(all []*instance, shards int) string {
	least, most, sum := shards, 0, 0
	for _, i := range all {
		n := len(i.Held())
		least, most, sum = min(least, n), max(most, n), sum+n
	}
	if sum != shards || most-least > 1 {
		return fmt.Sprintf("%d leases: %s", shards, shares(all...))
	}
	return ""
}
