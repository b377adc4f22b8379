package offload

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"korvet-offload/segment"
)

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

// all does the whole plan.
func (p *pass) all(ctx context.Context, notes []note) error {
	plan := p.report.Plan
	if err := p.resolveAll(ctx); err != nil {
		p.skip(plan.jobs())
		return err
	}
	p.worker.parked.keepOnly(append([][]Job{plan.Setup, plan.Expiry}, plan.Jobs...))
	p.remember(ctx, notes)
	p.timed(PhaseRoll, func() { p.each(ctx, p.due(plan.Setup), p.one) })
	p.timed(PhaseExpire, func() { p.expiry(ctx, p.due(plan.Expiry)) })
	var due [][]Job
	for _, jobs := range plan.Jobs {
		if jobs = p.due(jobs); len(jobs) > 0 {
			due = append(due, jobs)
		}
	}
	var err error
	p.timed(PhaseTransfer, func() { err = p.run(ctx, due) })
	p.forget(ctx, p.worker.lastingly(plan.Forget))
	return err
}

// timed does a phase and notes how long it took.
func (p *pass) timed(phase PassPhase, do func()) {
	start := p.worker.now()
	do()
	p.report.Phases = append(p.report.Phases, PhaseTime{phase, p.worker.now().Sub(start)})
}

// remember writes down which topics there are before anything is done with
// them.
func (p *pass) remember(ctx context.Context, notes []note) {
	for _, n := range notes {
		if !p.goesOn(ctx) {
			return
		}
		if err := p.worker.remember(ctx, n); err != nil {
			p.fault(Problem{Topic: n.topic, Partition: -1, Reason: ReasonOf(err), Err: err})
		}
	}
}

// fault notes a problem that is not that of a segment.
func (p *pass) fault(f Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worker.observer.Failed(f)
	p.report.Problems = append(p.report.Problems, f)
}

// expiry hides what is past total retention, and deletes what was hidden long
// enough.
func (p *pass) expiry(ctx context.Context, jobs []Job) {
	var hide, remove []Job
	for _, j := range jobs {
		if j.Action == Hide {
			hide = append(hide, j)
		} else {
			remove = append(remove, j)
		}
	}
	p.each(ctx, hide, p.one)
	p.expire(ctx, remove)
}

// resolveAll reads the entries of settled segments, of which a plan knows only
// the numbers. One that is not what was remembered has no bytes then, and is
// left to the next pass.
func (p *pass) resolveAll(ctx context.Context) error {
	var at []*Job
	var jobs []Job
	for _, list := range append([][]Job{p.report.Plan.Expiry}, p.report.Plan.Jobs...) {
		for i, j := range list {
			if j.Stored.Raw == "" {
				at, jobs = append(at, &list[i]), append(jobs, j)
			}
		}
	}
	raw, err := p.worker.entries(ctx, jobs)
	if err != nil {
		return err
	}
	for i, j := range at {
		p.settle(j, raw[i])
	}
	return nil
}

// settle completes a job with its entry.
func (p *pass) settle(j *Job, raw string) {
	e, err := segment.ParseEntry([]byte(raw))
	as := err == nil && e.State == segment.Sealed && e.Tier == segment.Remote
	x := p.worker.memory.indexes[j.Partition]
	if at, _ := e.LastAppend(p.report.Plan.At.UnixMilli()); x == nil || !as || !x.remembers(j.Stored.Number, at) {
		if x != nil {
			x.stale()
		}
		return
	}
	j.Stored.Raw, j.Stored.Entry = raw, e
}

// due leaves out the jobs whose back-off has not run out, those that could not
// be resolved, and, of a plain stream, the drops behind one that waits.
func (p *pass) due(jobs []Job) []Job {
	var now []Job
	blocked := false
	for _, j := range jobs {
		if j.Stored.Raw == "" && j.Action != Create || blocked && j.Action == Drop {
			p.report.Left++
		} else if problem, parked := p.worker.parked.holds(j); parked {
			p.report.Problems = append(p.report.Problems, problem)
		} else {
			now = append(now, j)
			continue
		}
		blocked = blocked || j.Partition.Plain && j.Action == Drop
	}
	return now
}

// each does several jobs at once that do not wait for one another.
func (p *pass) each(ctx context.Context, jobs []Job, do func(context.Context, Job, int) (Outcome, error)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(p.worker.atOnce, len(jobs)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				if !p.goesOn(ctx) {
					p.skip(1)
					continue
				}
				p.attempt(ctx, jobs[i], func(ctx context.Context, j Job) (Outcome, error) { return do(ctx, j, i) })
			}
		})
	}
	workers.Wait()
}

// eachAtOnce is how many short jobs run at once: they mostly wait for Redis.
const eachAtOnce = 8

// one does a job by its action.
func (p *pass) one(ctx context.Context, j Job, _ int) (Outcome, error) { return p.worker.do(ctx, j) }

func (p *pass) skip(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Left += n
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
			ok := p.attempt(ctx, jobs[0], p.worker.do)
			if jobs = jobs[1:]; !ok && len(jobs) > 0 && jobs[0].Partition.Plain {
				jobs = p.withoutDrops(jobs)
			}
			if len(jobs) > 0 {
				queue <- jobs
			}
		default:
			return
		}
	}
}

// withoutDrops leaves out what may not overtake.
func (p *pass) withoutDrops(jobs []Job) []Job {
	var rest []Job
	for _, j := range jobs {
		if j.Action != Drop {
			rest = append(rest, j)
		}
	}
	p.skip(len(jobs) - len(rest))
	return rest
}

func (p *pass) goesOn(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil && ctx.Err() != nil {
		p.stopped = context.Cause(ctx)
	}
	return p.stopped == nil
}

// attempt tries one job and writes down what became of it. False means that
// the segment is not where it should be now.
func (p *pass) attempt(ctx context.Context, j Job, do func(context.Context, Job) (Outcome, error)) bool {
	leave, open := p.worker.enter(j.Partition)
	if !open {
		p.skip(1)
		return false
	}
	defer leave()
	start := p.worker.now()
	out, err := guarded(ctx, j, do)
	out.Action, out.Partition, out.Segment, out.Why = j.Action, j.Partition, j.Stored.Number, j.Why
	out.Duration = p.worker.now().Sub(start)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(j, out, err)
	switch {
	case err == nil && out.Result == "": // not done yet: another step follows
		return true
	case err == nil:
		p.done(j, out)
		return out.Result != Held && out.Result != LostRace && out.Result != Reopened
	case ctx.Err() != nil: // says nothing about the segment
		p.report.Left++
	default:
		p.failed(j, out, err)
	}
	return false
}

// note keeps the index in step with a manifest that was, or may have been,
// changed.
func (p *pass) note(j Job, out Outcome, err error) {
	p.worker.mu.Lock()
	defer p.worker.mu.Unlock()
	x := p.worker.memory.indexes[j.Partition]
	switch {
	case x == nil || j.Action == Create || out.Result == Held:
	case out.Result == LostRace:
		x.stale()
	case err == nil || isOutage(err) || out.raw != "" && out.raw != j.Stored.Raw:
		x.changed(j.Stored)
	}
}

func (p *pass) done(j Job, out Outcome) {
	p.outages = 0
	p.worker.parked.freed(j)
	if out.Result == Nothing {
		return
	}
	p.worker.observer.Finished(out)
	p.report.Outcomes = append(p.report.Outcomes, out)
}

func (p *pass) failed(j Job, out Outcome, err error) {
	raw := cmp.Or(out.raw, j.Stored.Raw)
	problem := problemOf(j.Partition, j.Stored.Number.String(), err)
	problem.Action, problem.Took = j.Action, out.Duration
	p.worker.parked.failed(j, raw, problem)
	p.worker.observer.Failed(problem)
	p.report.Problems = append(p.report.Problems, problem)
	if !isOutage(err) || j.Action == Delete { // deletions that fail say nothing about copies
		return
	}
	if p.outages++; p.outages >= maxOutages && p.stopped == nil {
		p.stopped = err
	}
}
