package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"korvet-offload/lease"
)

// borrow takes the lease, or all leases of several shards, for the work of one
// verb, and asks whoever leads to hand it over for that long: jobs under way
// are finished first, and what is waited for is told to s.waits. who is the verb;
// the others are told it with who has called it, and where.
//
// lead ends with ctx, and when the lease is lost. giveBack must be called when
// the work under it is done; then whoever led goes on. Under lead the session's
// worker makes its passes over everything. When nobody hands it over in time the
// error says who has it, and what to do.
//
// It is for order alone, never for safety: whoever works under it has to be
// right with a leader at work beside it.
func (s *session) borrow(ctx context.Context, who string) (lead context.Context, giveBack func(context.Context) error, err error) {
	tell := s.waits
	if tell == nil {
		tell = func(string) {}
	}
	if by := caller(); !strings.Contains(who, by) {
		who += " by " + by
	}
	lead, release, err := s.turns.Borrow(ctx, who, tell)
	if errors.Is(err, lease.ErrHeld) {
		return nil, nil, err // it says itself what to do
	}
	if err != nil {
		return nil, nil, fmt.Errorf("borrow the lease: %w", leaseError(err))
	}
	return lead, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Redis.Timeout)
		defer cancel()
		if err := release(ctx); err != nil {
			return fmt.Errorf("give the lease back: %w; it lapses by itself", leaseError(err))
		}
		return nil
	}, nil
}
