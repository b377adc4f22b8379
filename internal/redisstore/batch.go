package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

const (
	// batchSize is how many keys are asked for in one go: enough that the round
	// trip does not count, and few enough that one such batch, of two short
	// commands per key, holds up other commands for a millisecond or two.
	batchSize = 250
	// batchesAtOnce are under way together: one is on the wire while another is
	// decoded.
	batchesAtOnce = 4
)

// batches calls work for the numbers from 0 to n, cut into batches, a few at a
// time, and waits for all. The first error ends the others.
func batches(ctx context.Context, n int, work func(ctx context.Context, lo, hi int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(batchesAtOnce, (n+batchSize-1)/batchSize) {
		wg.Go(func() {
			for ctx.Err() == nil {
				lo := int(next.Add(batchSize)) - batchSize
				if lo >= n {
					return
				}
				if err := work(ctx, lo, min(lo+batchSize, n)); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// outage says whether an error is more than the fault of one key: then the
// other keys of a batch have no answer either.
func outage(err error) bool {
	var e *Error
	if err == nil || !errors.As(err, &e) {
		return err != nil
	}
	switch e.Class {
	case WrongType, Permission, Protocol, Other:
		return false
	}
	return true
}
