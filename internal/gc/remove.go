package gc

import (
	"context"
	"fmt"
	"slices"
)

// batch is how many objects are looked at, and then deleted, together.
const batch = 100

// Remove carries a plan out, batch by batch, each after everything that it rests
// on was looked at again, and tells what came of each. ctx is the leadership: when
// it ends, no batch is begun any more. The error is why it stopped before the end;
// failures of single objects are outcomes.
func (c *Collector) Remove(ctx context.Context, plan Plan, told func(Outcome)) error {
	for some := range slices.Chunk(plan.Objects, batch) {
		if err := c.removeSome(ctx, some, told); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(plan.Uploads, batch) {
		if err := c.abortSome(ctx, some, told); err != nil {
			return err
		}
	}
	return nil
}

// removeSome looks at some objects again and deletes those that may still go.
func (c *Collector) removeSome(ctx context.Context, some []Candidate, told func(Outcome)) error {
	if err := c.owned(ctx); err != nil {
		return err
	}
	stays, err := c.standing(ctx, some)
	if err != nil {
		return err
	}
	var going []*Candidate
	for i := range some {
		if stays[i] == "" {
			going = append(going, &some[i])
		}
	}
	why, err := c.recheck(ctx, going)
	if err != nil {
		return err
	}
	for i := range some {
		if stays[i] != "" {
			told(Outcome{Object: &some[i], Result: Skipped, Why: stays[i]})
		}
	}
	var keys []string
	var last []*Candidate
	for i, one := range going {
		if why[i] != "" {
			told(Outcome{Object: one, Result: Skipped, Why: why[i]})
			continue
		}
		keys, last = append(keys, one.Object.Info.Key), append(last, one)
	}
	if len(keys) == 0 {
		return nil
	}
	if ctx.Err() != nil { // the lease, last
		return context.Cause(ctx)
	}
	return tell(c.ports.Store.Delete(ctx, keys), last, told)
}

// tell passes the answers to a deletion on, and returns the first that is the
// store's rather than an object's.
func tell(errs []error, of []*Candidate, told func(Outcome)) (stop error) {
	for i, err := range errs {
		o := Outcome{Object: of[i], Result: Deleted}
		if err != nil {
			o.Result, o.Err = Failed, err
		}
		told(o)
		if stop == nil && isOutage(err) {
			stop = fmt.Errorf("delete objects: %w", err)
		}
	}
	return stop
}

// standing says of each object why it stays by what holds for whole partitions.
func (c *Collector) standing(ctx context.Context, some []Candidate) ([]string, error) {
	stays := make([]string, len(some))
	paused, err := c.ports.Registry.Paused(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is paused: %w", err)
	}
	var now *topics
	if slices.ContainsFunc(some, func(one Candidate) bool { return one.Class == Removed }) {
		t, err := readTopics(ctx, c.ports.Registry)
		if err != nil {
			return nil, err
		}
		if !t.any() {
			return nil, ErrNoTopics
		}
		now = &t
	}
	for i, one := range some {
		switch {
		case paused.Covers(one.Partition):
			stays[i] = errPaused.Error()
		case one.Class == Removed:
			if err := now.isThere(one.Partition); err != nil {
				stays[i] = err.Error()
			}
		}
	}
	return stays, nil
}

// abortSome gives some uploads up.
func (c *Collector) abortSome(ctx context.Context, some []Upload, told func(Outcome)) error {
	if err := c.owned(ctx); err != nil {
		return err
	}
	for i := range some {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o := Outcome{Upload: &some[i], Result: Deleted}
		if o.Err = c.ports.Uploads.AbortUpload(ctx, some[i].Unfinished); o.Err != nil {
			o.Result = Failed
		}
		told(o)
		if isOutage(o.Err) {
			return fmt.Errorf("give up uploads: %w", o.Err)
		}
	}
	return nil
}
