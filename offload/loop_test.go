package offload

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// diary writes down, with the time since it was opened, what a loop does.
type diary struct {
	start time.Time

	mu    sync.Mutex
	lines []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("%s ", time.Since(d.start))+fmt.Sprintf(format, args...))
}

func (d *diary) Leads()                     { d.write("leads") }
func (d *diary) Follows()                   { d.write("follows") }
func (d *diary) Lost(cause error)           { d.write("lost: %v", cause) }
func (d *diary) Failed(err error)           { d.write("failed: %v", err) }
func (d *diary) Passed(r Report, err error) { d.write("passed %d %v", len(r.Outcomes), err) }

// seat is a lease without Redis.
type seat struct {
	diary *diary

	mu    sync.Mutex
	err   error // what Acquire says
	evict context.CancelCauseFunc
}

func (s *seat) Acquire(ctx context.Context) (context.Context, func(context.Context) error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, nil, s.err
	}
	lead, evict := context.WithCancelCause(ctx)
	s.evict = evict
	return lead, func(ctx context.Context) error {
		evict(nil)
		s.diary.write("released, %v", ctx.Err())
		return nil
	}, nil
}

func (s *seat) say(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func TestLoop(t *testing.T) {
	w := ordersWorld(t, 1)
	synctest.Test(t, func(t *testing.T) {
		d := &diary{start: time.Now()}
		s := &seat{diary: d, err: ErrFollower}
		ctx, stop := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		worker := w.worker(func(c *Config) { c.TickInterval = time.Minute })
		loop.Go(func() { Loop(ctx, worker, s, d) })
		at := func(after time.Duration, do func()) {
			time.Sleep(after - time.Since(d.start))
			synctest.Wait()
			do()
		}
		at(90*time.Second, func() { s.say(errors.New("no answer")) })
		at(150*time.Second, func() { s.say(nil) })
		at(270*time.Second, func() {
			s.say(ErrFollower)
			s.evict(errors.New("taken"))
		})
		at(330*time.Second, func() { s.say(nil) })
		at(400*time.Second, stop)
		loop.Wait()
		want := []string{"0s follows", "1m0s follows", "2m0s failed: no answer", "3m0s leads", "3m0s passed 2 <nil>",
			"4m0s passed 0 <nil>", "5m0s lost: taken", "5m0s released, <nil>", "5m0s follows", "6m0s leads", "6m0s passed 0 <nil>",
			"6m40s released, <nil>"}
		if !reflect.DeepEqual(d.lines, want) {
			t.Errorf("got  %q\nwant %q", d.lines, want)
		}
		if n := w.made("manifest orders:0"); n != 2 {
			t.Errorf("the manifest was read whole %d times: once for each time of leading", n)
		}
	})
}

// A pass that takes longer than a tick is followed at once by the next one,
// not by all those that were missed.
func TestLoopAfterALongPass(t *testing.T) {
	w := ordersWorld(t, 0)
	synctest.Test(t, func(t *testing.T) {
		d := &diary{start: time.Now()}
		long := true
		w.hook = func(call string) error {
			if call == "before topics" && long {
				long = false
				time.Sleep(150 * time.Second)
			}
			return nil
		}
		ctx, stop := context.WithTimeout(t.Context(), 190*time.Second)
		defer stop()
		Loop(ctx, w.worker(func(c *Config) { c.TickInterval = time.Minute }), &seat{diary: d}, d)
		want := []string{"0s leads", "2m30s passed 0 <nil>", "2m30s passed 0 <nil>", "3m0s passed 0 <nil>", "3m10s released, <nil>"}
		if !reflect.DeepEqual(d.lines, want) {
			t.Errorf("got  %q\nwant %q", d.lines, want)
		}
	})
}
