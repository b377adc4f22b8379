package command

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"korvet-offload/internal/metrics"
	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// background is a background verify with a log, and what a scrub of a test finds.
type background struct {
	*backgroundVerify
	log *observer.ObservedLogs
}

func newBackground() background {
	core, log := observer.New(zap.DebugLevel)
	return background{&backgroundVerify{log: zap.New(core), metrics: metrics.New(metrics.Options{}), look: time.Millisecond}, log}
}

func (b background) messages() (all []string) {
	for _, e := range b.log.TakeAll() {
		all = append(all, e.Message)
	}
	return all
}

// scrubbed is one verify that finds damage in some partitions, but for those that
// are passed over.
func (b background) scrubbed(t *testing.T, paused []segment.Partition, damaged ...segment.Partition) {
	t.Helper()
	o := scrub.Options{PassOver: func(p segment.Partition) bool { return slices.Contains(paused, p) }}
	done, err := b.verify(t.Context(), func() bool { return true }, o, func(_ context.Context, o scrub.Options, found func(scrub.Finding)) (scrub.Report, error) {
		r := scrub.Report{Findings: map[scrub.Kind]int64{}}
		for n := range 3 {
			p := segment.Partition{Topic: "orders", Number: n}
			if o.PassOver(p) {
				r.Skipped++
			} else if slices.Contains(damaged, p) {
				r.Findings[scrub.MissingObject]++
				found(scrub.Finding{Kind: scrub.MissingObject, Partition: p, HasSegment: true})
			}
		}
		return r, nil
	})
	if !done || err != nil {
		t.Fatal(done, err)
	}
}

// What could not be looked at is not said to be whole.
func TestBackgroundVerifyPassesOverWhatIsPaused(t *testing.T) {
	b := newBackground()
	one, two := segment.Partition{Topic: "orders", Number: 1}, segment.Partition{Topic: "orders", Number: 2}
	for i, step := range []struct {
		paused, damaged []segment.Partition
		want            []string
	}{
		{nil, []segment.Partition{one, two}, []string{"verify has found something", "verify has found something", "verified: something is wrong"}},
		{[]segment.Partition{one, two}, []segment.Partition{one, two}, []string{"verified: something is wrong"}},
		{[]segment.Partition{one}, nil, []string{"verified: something is wrong"}},
		{nil, []segment.Partition{one}, []string{"verified: something is wrong"}},
		{nil, nil, []string{"verified: nothing is wrong"}},
	} {
		b.scrubbed(t, step.paused, step.damaged...)
		if got := b.messages(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q", i, got)
		}
	}
}

// One that loses its lead passes over everything, and may come to its end before it
// notices: that says nothing.
func TestBackgroundVerifyThatMayNotWorkAnyMoreSaysNothing(t *testing.T) {
	for name, run := range map[string]func(ctx context.Context, stop func()) error{
		"ended at once":    func(_ context.Context, stop func()) error { stop(); return nil },
		"ended by itself":  func(ctx context.Context, stop func()) error { stop(); <-ctx.Done(); return context.Cause(ctx) },
		"ended with fault": func(_ context.Context, stop func()) error { stop(); return errors.New("lost") },
	} {
		b := newBackground()
		if name == "ended at once" {
			b.look = time.Hour
		}
		var not atomic.Bool
		done, err := b.verify(t.Context(), func() bool { return !not.Load() }, scrub.Options{}, func(ctx context.Context, _ scrub.Options, _ func(scrub.Finding)) (scrub.Report, error) {
			return scrub.Report{Skipped: 3}, run(ctx, func() { not.Store(true) })
		})
		if done || err != nil || b.log.Len() > 0 {
			t.Errorf("%s: %t %v %q", name, done, err, b.messages())
		}
	}
}
