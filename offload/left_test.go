package offload

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"korvet-offload/segment"
)

// Wherever a pass is stopped that knows what it is to do, what is not done is
// counted as left; and so is what may have been done, and Redis did not say.
func TestWhatAStoppedPassLeaves(t *testing.T) {
	clean := ordersWorld(t, 2)
	clean.remote(orders0, 2, 3, clean.now.Add(-3*time.Hour)) // to be dropped
	clean.set("orders", func(s *segment.TopicSettings) { s.LocalRetentionMs = 0 })
	runOnce(t, clean.worker())
	stops := 0
	for at := range 2 * len(clean.calls) {
		w := ordersWorld(t, 2)
		w.remote(orders0, 2, 3, w.now.Add(-3*time.Hour))
		w.set("orders", func(s *segment.TopicSettings) { s.LocalRetentionMs = 0 })
		ctx, stop := context.WithCancelCause(t.Context())
		told, step := errors.New("told to stop"), 0
		w.hook = func(string) error {
			if step++; step == at+1 {
				stop(told)
			}
			return nil
		}
		r, err := w.worker(func(c *Config) { c.Concurrency = 1 }).RunOnce(ctx)
		if r.Plan.At.IsZero() || err == nil {
			continue
		}
		stops++
		if n := r.Plan.jobs() - len(r.Outcomes) - r.Left; n != 0 {
			t.Errorf("step %d: %d to do, %d done, %d left; %v", at, r.Plan.jobs(), len(r.Outcomes), r.Left, err)
		}
	}
	if stops < len(clean.calls) {
		t.Errorf("%d of %d calls stopped a pass that knew what to do", stops, 2*len(clean.calls))
	}
}

// A loop that is told to stop in the middle of a pass, when the next tick is due
// already, begins no other pass: that one would know of nothing that is left.
func TestNoPassAfterTheEnd(t *testing.T) {
	for range 20 { // which of the two is seen first is random
		w := ordersWorld(t, 1)
		synctest.Test(t, func(t *testing.T) {
			d := &diary{start: time.Now()}
			ctx, stop := context.WithCancel(t.Context())
			w.hook = func(call string) error {
				if call == "before put "+path0 {
					time.Sleep(90 * time.Second)
					stop()
				}
				return nil
			}
			Loop(ctx, w.worker(func(c *Config) { c.TickInterval, c.Concurrency = time.Minute, 1 }), &seat{diary: d}, d)
			want := []string{"0s leads", "1m30s passed 0 context canceled", "1m30s released, <nil>"}
			if !reflect.DeepEqual(d.lines, want) {
				t.Errorf("got  %q\nwant %q", d.lines, want)
			}
		})
	}
}
