package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateLetsOnlySoManyIn(t *testing.T) {
	for _, limit := range []int{1, 3} {
		var g gate
		var inside, most atomic.Int32
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 200 {
					if err := g.enter(t.Context(), limit); err != nil {
						t.Error(err)
					}
					now := inside.Add(1)
					for {
						old := most.Load()
						if now <= old || most.CompareAndSwap(old, now) {
							break
						}
					}
					inside.Add(-1)
					g.leave()
				}
			})
		}
		all.Wait()
		if int(most.Load()) > limit || g.inside != 0 || len(g.queue) != 0 {
			t.Errorf("limit %d: %d at once, %d left inside, %d in the queue", limit, most.Load(), g.inside, len(g.queue))
		}
	}
}

func TestGateIsFairAndLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		if err := g.enter(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		var order []int
		var all sync.WaitGroup
		impatient, leave := context.WithCancel(t.Context())
		for i := range 4 {
			ctx := t.Context()
			if i == 1 {
				ctx = impatient
			}
			all.Go(func() {
				if err := g.enter(ctx, 1); err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				order = append(order, i) // one at a time is inside
				g.leave()
			})
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		g.leave()
		all.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 2 || order[2] != 3 {
			t.Errorf("order %v", order)
		}
	})
}

func TestSlots(t *testing.T) {
	for rtt, want := range map[time.Duration]int{0: 1, 50 * time.Microsecond: 1, time.Millisecond: 2, 5 * time.Millisecond: 6} {
		if got := slots(rtt); got != want {
			t.Errorf("round trip %s: %d, want %d", rtt, got, want)
		}
	}
}
