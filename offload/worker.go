package offload

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"korvet-offload/segment"
)

// Ports are what a worker works with.
type Ports struct {
	Registry  Registry
	Manifests Manifests
	Streams   Streams
	Clock     Clock
	Encoding  Encoding
	Store     Store
}

// Observer is told what happens, for logs, metrics and progress. Its methods
// are called from several goroutines, must be quick and must not call back.
type Observer interface {
	// Planned: a pass knows what it will do.
	Planned(Plan)
	// Advanced: so many entries and bytes have been read from Redis.
	Advanced(entries, bytes int)
	// Finished: a segment was worked on and did not fail.
	Finished(Outcome)
	// Failed: a segment was tried and is parked.
	Failed(Problem)
}

// Worker does passes. It keeps nothing between passes but the back-off of
// parked segments; all else is read anew from Redis. One pass at a time.
type Worker struct {
	cfg      Config
	layout   segment.Layout
	ports    Ports
	observer Observer

	now    func() time.Time // for durations and back-off only, never for ages
	token  func() string    // makes a path unique
	spools *spools
	pages  pageSets
	parked *parking
	turn   int // which partition a pass begins with
}

// New makes a worker. The configuration has been validated.
func New(cfg Config, layout segment.Layout, ports Ports, o Observer) *Worker {
	return &Worker{
		cfg: cfg, layout: layout, ports: ports, observer: o,
		now: time.Now, token: randomToken,
		spools: newSpools(cfg.SpoolDir, cfg.SpoolMemory),
		parked: newParking(cfg.TickInterval, time.Now, mathrand.Float64),
	}
}

func randomToken() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails: the program would end first
	return hex.EncodeToString(b)
}

// Report is what one pass found and did.
type Report struct {
	Plan     Plan
	Outcomes []Outcome
	Problems []Problem // of the plan and of the work
	Left     int       // due segments that were not tried, because the pass was stopped
	Duration time.Duration
}

// Plan is a scan and what a pass would do about it. It changes nothing.
func (w *Worker) Plan(ctx context.Context) (Plan, error) {
	s, err := w.Scan(ctx)
	if err != nil {
		return Plan{}, err
	}
	return MakePlan(s, w.cfg.SealGrace), nil
}

// RunOnce is one pass: it tries every due segment that is not parked, the
// oldest of a partition first, and as many partitions at once as the
// configuration says. What is wrong with one segment is in the report; an
// error means that the pass could not be made, or was given up because Redis
// or the store can't be used, or the context ended. The report then holds what
// was done before.
func (w *Worker) RunOnce(ctx context.Context) (Report, error) {
	start := w.now()
	plan, err := w.Plan(ctx)
	if err != nil {
		return Report{Duration: w.now().Sub(start)}, err
	}
	w.observer.Planned(plan)
	w.parked.keepOnly(plan.Jobs)
	p := &pass{worker: w, report: Report{Plan: plan, Problems: plan.Problems}}
	err = p.run(ctx, p.waiting(plan.Jobs))
	if len(p.report.Outcomes) > 0 {
		w.parked.outageOver()
	}
	p.report.Duration = w.now().Sub(start)
	return p.report, err
}

// maxOutages is after how many segments in a row that failed because of the
// store or Redis a pass is given up: one may have a fault of its own, such as
// being too large for a slow line, and must not hold up the others.
const maxOutages = 3

// pass is the work of one RunOnce.
type pass struct {
	worker *Worker

	mu      sync.Mutex
	report  Report
	outages int   // in a row
	stopped error // why no further segment is tried
}

// waiting leaves out the jobs whose back-off has not run out.
func (p *pass) waiting(all [][]Job) [][]Job {
	var due [][]Job
	for _, jobs := range all {
		var now []Job
		for _, j := range jobs {
			if problem, parked := p.worker.parked.holds(j); parked {
				p.report.Problems = append(p.report.Problems, problem)
			} else {
				now = append(now, j)
			}
		}
		if len(now) > 0 {
			due = append(due, now)
		}
	}
	return due
}

// run works on the partitions in turn, one segment at a time of each, so that
// a partition with a long row of segments does not keep the others waiting
// and no partition's segments overtake one another.
func (p *pass) run(ctx context.Context, due [][]Job) error {
	queue := make(chan []Job, len(due))
	for i := range due { // not always the same first: they may be those that fail
		queue <- due[(i+p.worker.turn)%len(due)]
	}
	p.worker.turn++
	var workers sync.WaitGroup
	for range min(p.worker.cfg.Concurrency, len(due)) {
		workers.Go(func() { p.work(ctx, queue) })
	}
	workers.Wait()
	close(queue)
	for jobs := range queue {
		p.report.Left += len(jobs)
	}
	return p.stopped
}

// work takes partitions from the queue until there are none. A partition that
// another goroutine holds is not in the queue, and is finished by that one.
func (p *pass) work(ctx context.Context, queue chan []Job) {
	for p.goesOn(ctx) {
		select {
		case jobs := <-queue:
			p.attempt(ctx, jobs[0])
			if len(jobs) > 1 {
				queue <- jobs[1:]
			}
		default:
			return
		}
	}
}

func (p *pass) goesOn(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil && ctx.Err() != nil {
		p.stopped = context.Cause(ctx)
	}
	return p.stopped == nil
}

// attempt tries one segment and writes down what became of it.
func (p *pass) attempt(ctx context.Context, j Job) {
	out, err := p.worker.guarded(ctx, j)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.done(j, out)
	case ctx.Err() != nil: // says nothing about the segment
		p.report.Left++
	default:
		p.failed(j, out.raw, err)
	}
}

func (p *pass) done(j Job, out Outcome) {
	p.outages = 0
	p.worker.parked.freed(j)
	p.worker.observer.Finished(out)
	p.report.Outcomes = append(p.report.Outcomes, out)
}

func (p *pass) failed(j Job, raw string, err error) {
	problem := Problem{Topic: j.Partition.Topic, Partition: j.Partition.Number,
		Segment: j.Stored.Number.String(), Reason: ReasonOf(err), Err: err}
	p.worker.parked.failed(j, raw, problem)
	p.worker.observer.Failed(problem)
	p.report.Problems = append(p.report.Problems, problem)
	if !isOutage(err) {
		return
	}
	if p.outages++; p.outages >= maxOutages && p.stopped == nil {
		p.stopped = err
	}
}

// guarded turns a panic into an error of that one segment: a fault in a
// library's encoder must not take the other segments down with it.
func (w *Worker) guarded(ctx context.Context, j Job) (out Outcome, err error) {
	out.raw = j.Stored.Raw
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("copy segment %s/%s: internal fault: %v", j.Partition, j.Stored.Number, r)
		}
	}()
	return w.copySegment(ctx, j)
}
