package s3sink

import "context"

// turn is a lock that one can stop waiting for.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the lock, or for the end of the context.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) give() { <-t }
