package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate keeps the pages of several streams from piling up in front of one
// server. Redis answers one command after the other, so more pages at once
// than keep it busy read no faster, and everybody else's commands wait behind
// all of them. Safe for concurrent use; the zero gate is open.
type gate struct {
	mu     sync.Mutex
	inside int
	queue  []chan struct{} // who waits, in the order in which they came
}

// slots is how many pages keep a server busy: one, and where the round trip
// is long as many more as fit into it.
func slots(rtt time.Duration) int { return 1 + int(2*rtt/maxBlock) }

// enter waits until fewer than limit pages are inside. The caller calls leave
// when the server has begun to answer, or won't.
func (g *gate) enter(ctx context.Context, limit int) error {
	g.mu.Lock()
	if g.inside < limit && len(g.queue) == 0 {
		g.inside++
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	g.queue = append(g.queue, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		g.abandon(turn)
		return ctx.Err()
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.inside--
		return
	}
	close(g.queue[0]) // whose place is taken over
	g.queue = slices.Delete(g.queue, 0, 1)
}

// abandon takes a waiting page out of the queue, or gives back the turn that
// it was given in the same moment.
func (g *gate) abandon(turn chan struct{}) {
	g.mu.Lock()
	i := slices.Index(g.queue, turn)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	g.mu.Unlock()
	if i < 0 {
		g.leave()
	}
}
