package offload

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/segment"
)

// Pauses says what people have paused.
type Pauses interface {
	// Paused returns all that is paused now. ErrRedisDown means that nothing
	// else could be asked either.
	Paused(ctx context.Context) (segment.Pauses, error)
}

// ReadPauses reads what is paused; nil is a port behind which nothing ever is.
// Where Redis answers, and what it says can't be understood, everything is
// paused: whoever has paused something must not find it changed. An error means
// that Redis did not answer, or that the context has ended.
func ReadPauses(ctx context.Context, port Pauses) (segment.Pauses, error) {
	if port == nil {
		return segment.Pauses{}, nil
	}
	all, err := port.Paused(ctx)
	if err == nil {
		return all, nil
	}
	err = fmt.Errorf("read what is paused: %w", err)
	if ctx.Err() != nil || errors.Is(err, ErrRedisDown) {
		return segment.Pauses{}, err
	}
	return segment.Pauses{List: []segment.Pause{{Err: fmt.Errorf("%w: %w; everything is paused until that can be read", segment.ErrPause, err)}}}, nil
}

// look counts what is in a partition that is paused, and makes no jobs.
func (p *planner) look(s *PartitionScan) {
	setup, expiry, waiting, jobs, returns := p.Setup, p.Expiry, p.waiting, p.Jobs, p.returns
	p.Expiry = nil // what is in it must not push out what others have there
	p.partition(s)
	p.Setup, p.Expiry, p.waiting, p.Jobs, p.returns = setup, expiry, waiting, jobs, returns
	p.remains[s.Partition.Topic] = true // its topic is not forgotten
}

// pauses notes what is paused, and what of that can't be read.
func (p *planner) pauses(all segment.Pauses) {
	p.Paused = all
	for _, one := range all.List {
		if one.Err != nil {
			p.Problems = append(p.Problems, Problem{Topic: one.Scope.Topic + one.Scope.Stream, Plain: one.Scope.Stream != "", Partition: -1,
				Reason: ReasonOf(one.Err), Err: one.Err})
		}
	}
	for _, err := range all.Errs {
		p.Problems = append(p.Problems, Problem{Partition: -1, Reason: ReasonOf(err), Err: err})
	}
}
