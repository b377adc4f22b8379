package offload

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func nothing() {}

// Another configuration holds from the next pass on, as a whole, together with
// what is to change at the same time.
func TestConfigure(t *testing.T) {
	w := ordersWorld(t, 1)
	worker := w.worker(func(c *Config) { c.SealGrace = 24 * time.Hour })
	mustDo(t, runOnce(t, worker), "", "")
	before := worker.Config()
	next := before
	next.SealGrace, next.Concurrency, next.TickInterval, next.SpoolDir, next.SpoolMemory = 0, 7, time.Hour, "elsewhere", 1
	worker.Configure(before, func() { t.Error("what was replaced is applied") })
	together := 0
	worker.Configure(next, func() { together++ })
	if got := worker.Config(); got != before || together != 0 {
		t.Errorf("at once: %+v", got)
	}
	mustDo(t, runOnce(t, worker), "orders:0/0 copied, orders:1/0 copied", "")
	next.SpoolDir, next.SpoolMemory = before.SpoolDir, before.SpoolMemory
	if got := worker.Config(); got != next || together != 1 || worker.parked.base != time.Hour {
		t.Errorf("then: %+v, want %+v; %d times; parked for %s", got, next, together, worker.parked.base)
	}
	runOnce(t, worker)
	if together != 1 {
		t.Errorf("applied %d times", together)
	}
}

// A pass that is under way is not disturbed.
func TestConfigureDuringAPass(t *testing.T) {
	w := ordersWorld(t, 1)
	worker := w.worker()
	before, next := worker.Config(), worker.Config()
	next.TickInterval = time.Hour
	together := false
	w.hook = at("before put "+path0, func() {
		worker.Configure(next, func() { together = true })
		if worker.Config() != before || together {
			t.Error("it changes in the middle")
		}
	})
	runOnce(t, worker)
	if worker.Config() != before {
		t.Error("it has changed in the middle")
	}
	runOnce(t, worker)
	if worker.Config() != next || !together {
		t.Error("it has not changed")
	}
}

// A Loop need not wait for the old tick, whoever leads.
func TestLoopWithAnotherTick(t *testing.T) {
	w := ordersWorld(t, 0)
	for name, err := range map[string]error{"passed 0 <nil>": nil, "follows": ErrFollower} {
		synctest.Test(t, func(t *testing.T) {
			d := &diary{start: time.Now()}
			ctx, stop := context.WithCancel(t.Context())
			worker := w.worker(func(c *Config) { c.TickInterval = time.Hour })
			next := worker.Config()
			next.TickInterval = time.Minute
			worker.Configure(worker.Config(), nothing) // before it begins: no pass more
			var loop sync.WaitGroup
			loop.Go(func() { Loop(ctx, worker, &seat{diary: d, err: err}, d) })
			time.Sleep(10 * time.Second)
			worker.Configure(next, nothing)
			time.Sleep(2*time.Minute + time.Second)
			stop()
			loop.Wait()
			want := []string{"0s " + name, "10s " + name, "1m10s " + name, "2m10s " + name}
			if err == nil {
				want = append(append([]string{"0s leads"}, want...), "2m11s released, <nil>")
			}
			if !reflect.DeepEqual(d.lines, want) {
				t.Errorf("got  %q\nwant %q", d.lines, want)
			}
		})
	}
}
