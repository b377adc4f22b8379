package offload

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"korvet-offload/segment"
)

// Ports are what a worker works with.
type Ports struct {
	Registry  Registry
	Known     Known
	Manifests Manifests
	Streams   Streams
	Removals  Removals
	Clock     Clock
	Encoding  Encoding
	Store     Store
	Gate      Gate   // nil = always open
	Pauses    Pauses // nil = nothing is ever paused
	Share     Share  // nil = all partitions are this instance's
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

// ScanObserver is an Observer that also wants to see what a pass has found.
type ScanObserver interface {
	// Scanned: a pass has read what there is, and nothing is done yet. The scan
	// may be read until the method returns, and no longer.
	Scanned(s *Scan)
}

// Worker does passes. Between passes it remembers the back-off of parked
// segments and where in the manifests there is something to do; nothing is
// ever changed by what it remembers alone. One pass at a time.
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
	jitter func() float64
	piece  int64 // entries of a plain stream that are trimmed in one script
	atOnce int   // short jobs at once

	news *news

	mu     sync.Mutex // guards memory while a pass works
	memory *memory
}

// New makes a worker. The configuration has been validated.
func New(cfg Config, layout segment.Layout, ports Ports, o Observer) *Worker {
	return &Worker{
		cfg: cfg, layout: layout, ports: ports, observer: o,
		now: time.Now, token: randomToken,
		news:   newNews(),
		spools: newSpools(cfg.SpoolDir, cfg.SpoolMemory),
		parked: newParking(cfg.TickInterval, time.Now, mathrand.Float64),
		jitter: mathrand.Float64, piece: pieceEntries, atOnce: eachAtOnce, memory: newMemory(),
	}
}

// Reset forgets what is remembered of the manifests: somebody else may have
// led meanwhile. The streams that were dropped are still watched: that the lead
// was lost may mean that Redis has failed over, and has some of them again. It
// may also mean that Redis' clock was set, by which the lease has expired, so
// what the clocks said before is kept too; or that Redis is empty, so the topics
// that it remembered are. No pass is running.
func (w *Worker) Reset() {
	was := w.memory
	w.memory = newMemory()
	w.memory.dropped, w.memory.clocks, w.memory.recalled = was.dropped, was.clocks, was.recalled
}

// lookAtClock reads the clocks while somebody else leads, so that this instance
// knows it too when a clock that is set makes it the leader.
func (w *Worker) lookAtClock(ctx context.Context) {
	here := w.now()
	if now, err := w.ports.Clock.Now(ctx); err == nil {
		_ = w.memory.clocks.read(now, here) // it is for the passes to come
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
	Phases   []PhaseTime // in the order in which they were gone through
}

// PhaseTime is how long a part of a pass took.
type PhaseTime struct {
	Phase    PassPhase
	Duration time.Duration
}

// PassPhase is a part of a pass.
type PassPhase string

// The phases of a pass, in their order.
const (
	PhaseScan     PassPhase = "scan"     // the registry, the manifests, sizes of streams
	PhaseRoll     PassPhase = "roll"     // create, roll, return
	PhaseExpire   PassPhase = "expire"   // hide, delete
	PhaseTransfer PassPhase = "transfer" // drop, copy
)

// PassPhases lists the phases of a pass, in their order.
func PassPhases() []PassPhase {
	return []PassPhase{PhaseScan, PhaseRoll, PhaseExpire, PhaseTransfer}
}

// Plan is a scan and what a pass would do about it, with the entries of all
// segments that it concerns. It changes nothing.
func (w *Worker) Plan(ctx context.Context) (Plan, error) {
	s, err := w.Scan(ctx)
	if err != nil {
		return Plan{}, err
	}
	p := &pass{worker: w, report: Report{Plan: MakePlan(s, w.cfg)}}
	return p.report.Plan, p.resolveAll(ctx)
}

// RunOnce is one pass: rolling first, then deletions, then all segments that
// are to be dropped or copied, the oldest of a partition first, and as many
// partitions at once as the configuration says. What is parked is left out.
// What is wrong with one segment is in the report; an error means that the
// pass could not be made, or was given up because Redis or the store can't be
// used, or the context ended. The report then holds what was done before.
func (w *Worker) RunOnce(ctx context.Context) (Report, error) {
	w.adopt()
	start := w.now()
	scan, err := w.scan(ctx, w.ports.Share)
	took := w.now().Sub(start)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) { // why it was stopped counts
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return Report{Duration: took, Phases: []PhaseTime{{PhaseScan, took}}}, err
	}
	plan := MakePlan(scan, w.cfg)
	if o, ok := w.observer.(ScanObserver); ok {
		o.Scanned(&scan)
	}
	w.observer.Planned(plan)
	p := &pass{worker: w, report: Report{Plan: plan, Problems: plan.Problems, Phases: []PhaseTime{{PhaseScan, took}}}}
	p.leftovers(ctx, scan.strays)
	err = p.all(ctx, scan.notes)
	if slices.ContainsFunc(p.report.Outcomes, func(o Outcome) bool { return o.Result.UsedStore() }) {
		w.parked.outageOver()
	}
	p.report.Duration = w.now().Sub(start)
	return p.report, err
}

// guarded turns a panic into an error of that one segment: a fault in a
// library's encoder must not take the other segments down with it.
func guarded(ctx context.Context, j Job, do func(context.Context, Job) (Outcome, error)) (out Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s segment %s/%s: internal fault: %v", j.Action, j.Partition, j.Stored.Number, r)
		}
	}()
	return do(ctx, j)
}

// do does one job.
func (w *Worker) do(ctx context.Context, j Job) (Outcome, error) {
	switch j.Action {
	case Create:
		return w.create(ctx, j)
	case Roll:
		return w.roll(ctx, j)
	case Drop:
		return w.drop(ctx, j)
	case Hide:
		return w.hide(ctx, j)
	case Return:
		return w.bringBack(ctx, j)
	}
	return w.copySegment(ctx, j)
}
