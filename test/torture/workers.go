package torture

import (
	"fmt"
	"syscall"
	"time"

	"korvet-offload/internal/points"
	"korvet-offload/internal/testkit/stage"
)

// worker is one place for a worker process.
type worker struct {
	process *stage.Process // nil: none was started
	killed  bool           // it is dead, as it should be
	mortal  bool           // it may kill itself
	freezes time.Duration  // it will stop itself, and go on after this time; 0 = it won't
	wakes   time.Time      // when it is to go on; zero = it does not stand still
}

// fault is what a worker does at the n-th point that it passes.
func fault(verb string, n int64) string {
	side := points.Before
	if n%2 == 0 {
		side = points.After
	}
	return fmt.Sprintf("%s=%s:%s:*#%d", points.Fault, verb, side, n)
}

func (p *play) doWorker(s Step) {
	i := int(s.Numbers[0]) % workers
	w := &p.workers[i]
	switch s.Kind {
	case Start:
		p.start(i)
	case Kill:
		p.end(w)
	case Die:
		p.alone()
		p.start(i, fault("kill", s.Numbers[1]))
		w.mortal = true
	case Freeze:
		p.alone()
		p.start(i, fault("stop", s.Numbers[1]))
		w.freezes = time.Duration(s.Numbers[2]) * time.Millisecond
	case Catch:
		p.catch(i, Catches()[int(s.Numbers[1])%len(Catches())], time.Duration(s.Numbers[2])*time.Millisecond)
	case Pause:
		if w.runs() && w.wakes.IsZero() {
			w.process.Signal(syscall.SIGSTOP)
			w.wakes = time.Now().Add(time.Duration(s.Numbers[1]) * time.Millisecond)
		}
	}
}

// alone makes room for a worker that is to lead at once.
func (p *play) alone() {
	for i := range p.workers {
		p.end(&p.workers[i])
	}
	p.FreeLease()
	keys := []string{"DEL", p.Layout.MembersKey()} // what dead ones have written holds others up for half a minute
	for i := range p.shards {
		keys = append(keys, fmt.Sprintf("%s:%d/%d", p.Layout.LeaseKey(), i, p.shards))
	}
	p.Do(keys...)
}

// catchTime is how long a worker that is to be caught may take to get there.
const catchTime = 3 * time.Second

// catch has one worker do everything, and waits until it stands still.
func (p *play) catch(i int, point string, d time.Duration) {
	p.alone()
	for _, part := range parts() {
		p.produce(part, 2)
	}
	p.start(i, fmt.Sprintf("%s=stop:%s:%s", points.Fault, points.Before, point))
	w := &p.workers[i]
	w.freezes = d
	if p.await(catchTime, func() bool { return !w.wakes.IsZero() }) {
		p.tally.Add(PointCatch, 1)
	}
}

func (w *worker) runs() bool { return w.process != nil && !w.process.Ended() }

// start starts a worker where none runs.
func (p *play) start(i int, env ...string) {
	w := &p.workers[i]
	p.look(w)
	if !w.runs() {
		*w = worker{process: p.Start(env, "run")}
	}
}

// end kills a worker.
func (p *play) end(w *worker) {
	p.look(w)
	if w.runs() {
		w.killed = true
		w.process.Kill()
	}
}

// tend does what is due with the workers.
func (p *play) tend() {
	for i := range p.workers {
		w := &p.workers[i]
		p.look(w)
		if w.freezes > 0 && w.runs() && w.process.Stopped() && w.wakes.IsZero() {
			p.tally.Add(PointStop, 1)
			w.wakes, w.freezes = time.Now().Add(w.freezes), 0
		}
		if !w.wakes.IsZero() && !time.Now().Before(w.wakes) {
			w.wakes = time.Time{}
			w.process.Signal(syscall.SIGCONT)
		}
	}
}

// look notes how a worker has ended.
func (p *play) look(w *worker) {
	if w.process == nil || w.runs() || w.killed {
		return
	}
	w.killed = true
	if w.mortal && w.process.Killed() {
		p.tally.Add(PointKill, 1)
		return
	}
	p.fail("a worker has ended by itself with %d: %s", w.process.Code(), tail(w.process.Log()))
}

// tail is the end of a log.
func tail(log string) string { return log[max(0, len(log)-2000):] }
