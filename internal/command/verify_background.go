package command

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/config"
	"korvet-offload/internal/metrics"
	"korvet-offload/internal/scrub"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

const (
	// verifyLook is how often the background verify looks whether it may work.
	verifyLook = time.Second
	// verifyRetry is after what time it begins again when it could not read all.
	verifyRetry = 10 * time.Minute
	// maxToldFindings is how many new findings of one verify the log has.
	maxToldFindings = 100
)

// backgroundVerify scrubs what this instance works on while it leads, at a rate,
// one object at a time. It ends at once when the lead is lost, or everything is
// paused. As an observer of the loop it learns when it may begin: after the first
// pass of a leader.
type backgroundVerify struct {
	cfg     config.Config
	log     *zap.Logger
	metrics *metrics.Registry
	look    time.Duration // verifyLook; shorter in tests

	leads atomic.Bool // and has made a pass

	known map[string]scrub.Finding // of the last verify that came to its end
	fault string                   // of the last one; "" = none
}

func newBackgroundVerify(d *daemon) *backgroundVerify {
	return &backgroundVerify{cfg: d.cfg, log: d.log, metrics: d.metrics, look: verifyLook}
}

// Leads implements offload.LoopObserver.
func (*backgroundVerify) Leads() {}

// Follows implements offload.LoopObserver.
func (b *backgroundVerify) Follows() { b.leads.Store(false) }

// Lost implements offload.LoopObserver.
func (b *backgroundVerify) Lost(error) { b.leads.Store(false) }

// Failed implements offload.LoopObserver.
func (*backgroundVerify) Failed(error) {}

// Passed implements offload.LoopObserver.
func (b *backgroundVerify) Passed(_ offload.Report, err error) {
	if err == nil {
		b.leads.Store(true)
	}
}

// follow verifies until ctx ends, if the settings want it.
func (b *backgroundVerify) follow(ctx context.Context, s *session) {
	if b.cfg.Scrub.Interval <= 0 {
		return
	}
	tick := time.NewTicker(b.look)
	defer tick.Stop()
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !b.may(s) || time.Now().Before(next) {
			continue
		}
		wait := b.cfg.Scrub.Interval
		switch done, err := b.once(ctx, s); {
		case err != nil:
			wait = min(wait, verifyRetry)
		case !done: // it goes on as soon as it may
			wait = 0
		}
		next = time.Now().Add(wait)
	}
}

// may says whether it may work now.
func (b *backgroundVerify) may(s *session) bool {
	paused := s.pauses.now.Load()
	return b.leads.Load() && (paused == nil || !slices.ContainsFunc(paused.List, func(p segment.Pause) bool { return p.Scope.All() }))
}

// once makes one verify. done is false if it was ended because it may not work
// any more.
func (b *backgroundVerify) once(ctx context.Context, s *session) (done bool, err error) {
	had := held(s)
	may := func() bool {
		return b.may(s) && !slices.ContainsFunc(had, func(shard int) bool { return !slices.Contains(held(s), shard) })
	}
	return b.verify(ctx, may, b.options(s), func(ctx context.Context, o scrub.Options, found func(scrub.Finding)) (scrub.Report, error) {
		return s.scrubber(o).Run(ctx, found)
	})
}

// held are the shards that this instance works on; none where it works on all.
func held(s *session) []int {
	if g, ok := s.turns.(shared); ok {
		return g.Held()
	}
	return nil
}

// verify lets run look at everything, as long as it may. What it may not look at
// it passes over, which says nothing of what is wrong there: one that was not
// allowed to come to its end counts for nothing, and what was known of a paused
// partition is still known.
func (b *backgroundVerify) verify(ctx context.Context, may func() bool, o scrub.Options,
	run func(context.Context, scrub.Options, func(scrub.Finding)) (scrub.Report, error),
) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	over := make(chan struct{})
	defer close(over)
	watching.Go(func() {
		tick := time.NewTicker(b.look)
		defer tick.Stop()
		for may() {
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
		cancel()
	})
	passed := map[segment.Partition]bool{}
	if skip := o.PassOver; skip != nil {
		o.PassOver = func(p segment.Partition) bool {
			passed[p] = passed[p] || skip(p)
			return passed[p]
		}
	}
	var found []scrub.Finding
	report, err := run(ctx, o, func(f scrub.Finding) {
		if !f.Note {
			found = append(found, f)
		}
	})
	if ctx.Err() != nil || !may() { // it may have ended before that was seen
		return false, nil
	}
	all := b.tell(found, func(p segment.Partition) bool { return passed[p] }, report, err)
	if err == nil {
		b.metrics.Verified(all)
	}
	return true, err
}

func (b *backgroundVerify) options(s *session) scrub.Options {
	o := scrub.Options{Deep: b.cfg.Scrub.Deep, Rate: b.cfg.Scrub.Rate, DeleteGrace: b.cfg.Worker.DeleteGrace, SpoolDir: b.cfg.Worker.SpoolDir,
		PassOver: func(p segment.Partition) bool {
			paused := s.pauses.now.Load()
			return paused != nil && paused.Covers(p)
		},
	}
	var told scrub.Progress
	o.Progress = func(p scrub.Progress) {
		b.metrics.VerifyRead(p.Objects-told.Objects, p.Read-told.Read)
		told = p
	}
	if g, ok := s.turns.(shared); ok {
		o.Only = func(p segment.Partition) bool { return slices.Contains(g.Held(), offload.ShardOf(p, g.shards)) }
	}
	return o
}

// tell writes down what is new, and what is gone, and returns how many findings of
// each kind there are: with those of before in partitions that were passed over.
func (b *backgroundVerify) tell(found []scrub.Finding, passed func(segment.Partition) bool, r scrub.Report, err error) map[scrub.Kind]int64 {
	now, fresh, all := map[string]scrub.Finding{}, 0, maps.Clone(r.Findings)
	for _, f := range found {
		at := findingKey(f)
		now[at] = f
		if _, was := b.known[at]; was {
			continue
		}
		if fresh++; fresh <= maxToldFindings {
			b.log.Warn("verify has found something", zap.String("kind", string(f.Kind)), zap.String("where", findingPlace(f)),
				zap.String("object", f.Path), zap.String("detail", f.Detail))
		}
	}
	if fresh > maxToldFindings {
		b.log.Warn("verify has found more", zap.Int("findings", fresh-maxToldFindings))
	}
	gone := 0
	for at, f := range b.known {
		switch _, still := now[at]; {
		case still:
		case err != nil || passed(f.Partition): // what was not looked at is still known
			if now[at] = f; all != nil {
				all[f.Kind]++
			}
		default:
			gone++
		}
	}
	b.known = now
	looked := []zap.Field{zap.Int64("partitions", r.Partitions), zap.Int64("segments", r.Segments), zap.Int64("objects", r.Objects),
		zap.Int64("read", r.Read), zap.Int64("read_bytes", r.Bytes), zap.Duration("took", r.Duration)}
	if r.Skipped > 0 {
		looked = append(looked, zap.Int64("passed_over", r.Skipped))
	}
	if err != nil {
		if b.fault != err.Error() {
			b.log.Warn("verify could not look at everything; it tries again", append(looked, zap.Error(err))...)
		}
		b.fault = err.Error()
		return all
	}
	b.fault = ""
	if len(now) == 0 {
		b.log.Info("verified: nothing is wrong", append(looked, zap.Int("gone", gone))...)
		return all
	}
	b.log.Info("verified: something is wrong", append(looked, zap.Int("findings", len(now)), zap.Int("new", fresh), zap.Int("gone", gone))...)
	return all
}

// findingKey tells findings apart from one verify to the next.
func findingKey(f scrub.Finding) string {
	return string(f.Kind) + " " + findingPlace(f) + " " + f.Path
}
