package command

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"korvet-offload/internal/redisstore"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// pauseGate lets nothing in that was paused when Redis was asked last, by a
// pass or in between. Safe for concurrent use.
type pauseGate struct {
	redis offload.Pauses
	now   atomic.Pointer[segment.Pauses] // nil until Redis was asked

	mu   sync.Mutex // one reading at a time, so that an older one takes no later one's place
	tell func(segment.Pauses)
}

func newPauseGate(redis offload.Pauses) *pauseGate {
	return &pauseGate{redis: redis, tell: func(segment.Pauses) {}}
}

// Enter implements offload.Gate.
func (g *pauseGate) Enter(p segment.Partition) (leave func(), ok bool) {
	if now := g.now.Load(); now != nil && now.Covers(p) {
		return nil, false
	}
	return func() {}, true
}

// Paused implements offload.Pauses. If Redis does not answer, what was paused
// stays paused.
func (g *pauseGate) Paused(ctx context.Context) (segment.Pauses, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all, err := offload.ReadPauses(ctx, g.redis)
	if err != nil {
		return all, err
	}
	g.now.Store(&all)
	g.tell(all)
	return all, nil
}

// telling has what is paused told to somebody each time it is read, from now on.
func (g *pauseGate) telling(tell func(segment.Pauses)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell = tell
}

// pauser pauses and resumes for the API. This instance hears of it at once.
type pauser struct {
	*redisstore.Store
	gate *pauseGate
}

// Paused implements page.Pauser.
func (p pauser) Paused(ctx context.Context) (segment.Pauses, error) { return p.gate.Paused(ctx) }

// following asks Redis now and then until stop is called, which returns when it
// has ended.
func (g *pauseGate) following(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() { g.follow(ctx) })
	return func() {
		cancel()
		asking.Wait()
	}
}

// follow asks Redis, while a pass works or none does, until ctx ends.
func (g *pauseGate) follow(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			limited, cancel := context.WithTimeout(ctx, watchInterval/2)
			_, _ = g.Paused(limited) // the watch says when Redis does not answer
			cancel()
		}
	}
}
