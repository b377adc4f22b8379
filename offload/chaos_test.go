package offload

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"korvet-offload/segment"
)

// How long things take in a life of minutes.
const (
	lifeTick      = 20 * time.Second
	lifeRetention = 10 * time.Minute
)

func lifeSettings(s *segment.TopicSettings) {
	s.SegmentMs, s.LocalRetentionMs, s.RetentionMs = 60_000, 90_000, lifeRetention.Milliseconds()
}

// wholeLife is a world in which everything happens within minutes: a topic
// with partitions, whose producers and a plain stream's do not stop.
func wholeLife(t *testing.T, partitions int) *world {
	w := lifeWorld(t, lifeSettings)
	w.pageLen = 20
	w.set("orders", func(s *segment.TopicSettings) { s.Partitions = partitions })
	w.plain(clicks, func(s *segment.TopicSettings) {
		lifeSettings(s)
		s.SegmentEntries = 8
	})
	return w
}

func (w *world) liveWorker() *Worker {
	return w.worker(rolls, func(c *Config) { c.TickInterval, c.DeleteGrace, c.Concurrency = lifeTick, time.Minute, 2 })
}

// openKey is the stream to which producers of a partition append.
func (w *world) openKey(p segment.Partition) string {
	for n := segment.Number(len(w.manifests[p]) + 1000); ; n-- {
		if raw := w.manifests[p][n.String()]; raw != "" {
			e, err := segment.ParseEntry([]byte(raw))
			if err == nil && e.State == segment.Open {
				return w.keyOf(p, n, e)
			}
		}
		if n == 0 {
			return segment.DefaultLayout().SegmentKey(p, 0)
		}
	}
}

// producer appends to a partition, and hears of a roll only now and then.
type producer struct {
	world *world
	part  segment.Partition
	key   string
	stale int // one in so many appends looks where to append
}

func (p *producer) append(r *rand.Rand) {
	if p.key == "" || r.IntN(p.stale) == 0 {
		p.key = p.world.openKey(p.part)
	}
	p.world.produce(p.key, 1)
}

// Ended before or after any call of a whole life, with an append at that very
// moment or without: the next process goes on, and nothing is lost.
//
//fault:crash | The process ends before or after any call of a whole life, with an append at that moment or without | Every call in turn, in memory | The next process goes on, and nothing is lost
func TestACrashAtAnyCallOfAWholeLife(t *testing.T) {
	steps := 0
	for _, late := range []string{"", "open", "first"} {
		clean := wholeLife(t, 1)
		total := clean.steps(func() { clean.liveOnce(t, func() {}) })
		steps += total
		for step := range total {
			if late != "" && step%2 == 0 { // the step before is as good a moment for an append
				continue
			}
			w := wholeLife(t, 1)
			w.atStep(step, func() error {
				switch late {
				case "open":
					w.produce(w.openKey(orders0), 1)
					w.produce(clicks, 1)
				case "first":
					w.produce(key0, 1)
				}
				return errKilled
			})
			w.liveOnce(t, func() { w.mustKeep(lifeRetention) })
			if w.mustEnd(late == "first"); t.Failed() {
				t.Fatalf("killed at step %d of %d, late append to %q: %s; %s", step, total, late, w.life(orders0), w.life(segment.Partition{Topic: clicks, Plain: true}))
			}
		}
	}
	if steps < 500 {
		t.Errorf("only %d steps: this is no whole life", steps)
	}
}

// lifeSteps is when passes have something to do: create, roll, copy, drop,
// hide, delete.
func lifeSteps() []time.Duration {
	return []time.Duration{0, 61 * time.Second, 10 * time.Second, 100 * time.Second, lifeRetention, time.Minute, lifeTick}
}

// liveOnce is a life of one segment from its first entry to its end, with a
// new process after each crash.
func (w *world) liveOnce(t *testing.T, check func()) {
	worker := w.liveWorker()
	w.produce(key0, 4)
	w.produce(clicks, 9)
	for _, after := range lifeSteps() {
		w.now = w.now.Add(after)
		if _, err := worker.RunOnce(t.Context()); errors.Is(err, errKilled) || w.dead() {
			w.quiet()
			check()
			worker = w.liveWorker()
			runOnce(t, worker)
		}
		check()
	}
}

// dead says whether the process was killed in a call whose error is not that
// of the pass.
func (w *world) dead() bool { return errors.Is(w.hook(""), errKilled) }

// mustEnd goes on with nothing new, until there must be nothing left but the
// open segments, and what came late where nobody looks.
func (w *world) mustEnd(strays bool) {
	w.t.Helper()
	w.quiet()
	worker := w.liveWorker()
	for range 8 {
		w.later(worker, 5*time.Minute)
		w.mustKeep(lifeRetention)
	}
	for l := range w.entries() {
		if s := w.streams[l.key]; l.entry.State != segment.Open && (!strays || s == nil) {
			w.t.Errorf("%s: %s %s %s, is left", l, l.entry.State, l.entry.Tier, l.entry.Local)
		}
	}
}

// Everything at once: producers that hold on to old streams, calls that fail,
// processes that are killed, and a second one that believes that it leads.
//
//fault:leaders | Late producers, failing calls, killed processes and a second leader, all at once | Nine kinds of random lives, in memory | Nothing is lost after any pass, and in the end nothing is left over
func TestWholeLives(t *testing.T) {
	for _, c := range []struct {
		name    string
		workers int
		fails   int // one in so many calls; 0 = none
		kills   int // one in so many passes; 0 = none
		stale   int // one in so many appends looks where to append
		old     bool
	}{
		{"steady", 1, 0, 0, 1, false},
		{"late appends", 1, 0, 0, 30, false},
		{"late appends, before 7.0", 1, 0, 0, 30, true},
		{"calls fail", 1, 40, 0, 4, false},
		{"killed", 1, 0, 3, 4, false},
		{"killed, and calls fail, before 7.0", 1, 60, 3, 4, true},
		{"two workers", 2, 0, 0, 4, false},
		{"two workers, before 7.0", 2, 0, 0, 4, true},
		{"two workers, killed, and calls fail", 2, 60, 4, 4, false},
	} {
		for range 2 {
			seed := rand.Uint64()
			w := wholeLife(t, 2)
			w.old = c.old
			l := &life{world: w, rand: rand.New(rand.NewPCG(seed, 0)), fails: c.fails, results: map[Result]int{}}
			for _, p := range []segment.Partition{orders0, orders1} {
				l.producers = append(l.producers, &producer{world: w, part: p, stale: c.stale})
			}
			l.run(t, c.workers, c.kills)
			w.mustEnd(true)
			l.mustHaveSeen(t)
			if t.Failed() {
				t.Fatalf("%s, seed %d", c.name, seed)
			}
		}
	}
}

// life is one run of a whole life; its fields are used with the world's mutex
// held.
type life struct {
	world     *world
	rand      *rand.Rand
	producers []*producer
	fails     int
	results   map[Result]int
}

// run makes passes for twenty minutes; after each of them everything must hold.
func (l *life) run(t *testing.T, workers, kills int) {
	var running []*Worker
	for range workers {
		running = append(running, l.world.liveWorker())
	}
	for range 60 {
		l.world.now = l.world.now.Add(lifeTick)
		l.world.hook = l.during
		left := -1
		if kills > 0 && l.rand.IntN(kills) == 0 {
			left = l.rand.IntN(120)
		}
		l.passes(t, running, left)
		l.world.quiet()
		if left >= 0 {
			for i := range running {
				running[i] = l.world.liveWorker()
			}
		}
		l.world.mustKeep(lifeRetention)
		if t.Failed() {
			return
		}
	}
}

// passes makes one pass of each worker at the same time. All are killed after
// so many steps; -1 = never.
func (l *life) passes(t *testing.T, workers []*Worker, steps int) {
	if steps >= 0 {
		during := l.world.hook
		l.world.hook = func(call string) error {
			if steps--; steps < 0 {
				return errKilled
			}
			return during(call)
		}
	}
	var reports sync.Mutex
	var all sync.WaitGroup
	for _, worker := range workers {
		all.Go(func() {
			r, _ := worker.RunOnce(t.Context()) // what fails is tried again
			reports.Lock()
			defer reports.Unlock()
			for _, o := range r.Outcomes {
				l.results[o.Result]++
			}
		})
	}
	all.Wait()
}

// during is what happens before and after each call.
func (l *life) during(call string) error {
	if l.rand.IntN(12) == 0 {
		l.producers[l.rand.IntN(len(l.producers))].append(l.rand)
	}
	if l.rand.IntN(24) == 0 {
		l.world.produce(clicks, 1)
	}
	if l.rand.IntN(3) == 0 {
		runtime.Gosched()
	}
	if l.fails > 0 && l.rand.IntN(l.fails) == 0 && !strings.HasPrefix(call, "encode") {
		return errors.New("no answer")
	}
	return nil
}

// mustHaveSeen checks that the life was a whole one.
func (l *life) mustHaveSeen(t *testing.T) {
	for _, r := range []Result{Created, Rolled, Copied, Dropped, Hidden, Expired} {
		if l.results[r] == 0 {
			t.Errorf("nothing was %s: %v", r, l.results)
		}
	}
}
