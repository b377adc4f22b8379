package offload

import (
	"context"
	"sync"
	"testing"

	"korvet-offload/segment"
)

// gate holds up a process before one of its calls, for as long as it likes.
type gate struct {
	mu    sync.Mutex
	calls int // that may still be made
	stuck chan struct{}
	open  chan struct{}
}

type gateKey struct{}

func newGate(calls int) *gate {
	return &gate{calls: calls, stuck: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) pass() {
	g.mu.Lock()
	g.calls--
	if g.calls == -1 {
		close(g.stuck)
	}
	wait := g.calls < 0
	g.mu.Unlock()
	if wait {
		<-g.open
	}
}

// A process that sleeps in the middle of a pass, and goes on when others have
// long done its work and more, harms nothing: not at any call of any pass, and
// not when somebody appends while it sleeps.
//
//fault:leaders | A second process sleeps before any call of any pass and goes on when others have done its work and more | Every call in turn, in memory | It harms nothing
func TestAProcessThatSleepsInTheMiddle(t *testing.T) {
	late := map[string]func(*world){
		"nothing":              func(*world) {},
		"appends to the first": func(w *world) { w.produce(key0, 1) },
		"deletes from the first": func(w *world) {
			if len(w.streams[key0].all()) > 1 {
				w.xdel(key0, 0)
			}
		},
	}
	runs := 0
	for name, do := range late {
		for phase := 1; phase < len(lifeSteps()); phase++ {
			for _, asleep := range []int{0, 1, len(lifeSteps())} { // passes that the other makes meanwhile
				for calls := 3; ; calls++ {
					w := wholeLife(t, 1)
					slept := w.sleeper(t, phase, asleep, calls, do)
					if w.mustEnd(true); t.Failed() {
						t.Fatalf("asleep before call %d of pass %d for %d passes, somebody %s: %s; %s", calls, phase, asleep, name,
							w.life(orders0), w.life(segment.Partition{Topic: clicks, Plain: true}))
					}
					if runs++; !slept {
						break
					}
				}
			}
		}
	}
	if runs < 300 {
		t.Errorf("only %d runs", runs)
	}
}

// sleeper is liveOnce with a second process, which falls asleep before a call
// of one pass. False means that this pass has fewer calls.
func (w *world) sleeper(t *testing.T, phase, asleep, calls int, meanwhile func(*world)) bool {
	g := newGate(calls)
	worker, sleepy := w.liveWorker(), w.liveWorker()
	w.produce(key0, 4)
	w.produce(clicks, 9)
	var asleepOrDone sync.WaitGroup
	slept := false
	for i, after := range lifeSteps() {
		w.holding(func(w *world) { w.now = w.now.Add(after) })
		if i == phase {
			done := make(chan struct{})
			asleepOrDone.Go(func() {
				defer close(done)
				_, _ = sleepy.RunOnce(context.WithValue(t.Context(), gateKey{}, g)) // it may find anything
			})
			select {
			case <-g.stuck:
				slept = true
			case <-done:
			}
			w.holding(meanwhile)
		}
		if i >= phase && i < phase+asleep || i < phase {
			_, _ = worker.RunOnce(t.Context())
		}
		if i == min(phase+asleep, len(lifeSteps())-1) {
			close(g.open)
			asleepOrDone.Wait()
			w.mustKeep(lifeRetention)
		}
		if i >= phase+asleep {
			_, _ = worker.RunOnce(t.Context())
			w.mustKeep(lifeRetention)
		}
	}
	return slept
}

// holding does something as one of the calls does it.
func (w *world) holding(do func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do(w)
}
