package command

import (
	"context"
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

	known map[string]bool // findings of the last verify that came to its end
	fault string          // of the last one; "" = none
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	over := make(chan struct{})
	defer close(over)
	watching.Go(func() {
		tick := time.NewTicker(b.look)
		defer tick.Stop()
		for b.may(s) {
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
		cancel()
	})
	var found []scrub.Finding
	report, err := s.scrubber(b.options(s)).Run(ctx, func(f scrub.Finding) {
		if !f.Note {
			found = append(found, f)
		}
	})
	if ctx.Err() != nil {
		return false, nil //nolint:nilerr // the error is that it was ended
	}
	b.tell(found, report, err)
	if err == nil {
		b.metrics.Verified(report.Findings)
	}
	return true, err
}

func (b *backgroundVerify) options(s *session) scrub.Options {
	o := scrub.Options{Deep: b.cfg.Scrub.Deep, Rate: b.cfg.Scrub.Rate, DeleteGrace: b.cfg.Worker.DeleteGrace, SpoolDir: b.cfg.Worker.SpoolDir,
		Skip: func(p segment.Partition) bool {
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

// tell writes down what is new, and what is gone.
func (b *backgroundVerify) tell(found []scrub.Finding, r scrub.Report, err error) {
	now, fresh := map[string]bool{}, 0
	for _, f := range found {
		at := findingKey(f)
		if now[at] = true; b.known[at] {
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
	looked := []zap.Field{zap.Int64("partitions", r.Partitions), zap.Int64("segments", r.Segments), zap.Int64("objects", r.Objects),
		zap.Int64("read", r.Read), zap.Int64("read_bytes", r.Bytes), zap.Duration("took", r.Duration)}
	if err != nil {
		if b.fault != err.Error() {
			b.log.Warn("verify could not look at everything; it tries again", append(looked, zap.Error(err))...)
		}
		b.fault = err.Error()
		for at := range b.known { // what was not looked at is still known
			now[at] = true
		}
		b.known = now
		return
	}
	gone := 0
	for at := range b.known {
		if !now[at] {
			gone++
		}
	}
	b.fault, b.known = "", now
	if len(now) == 0 {
		b.log.Info("verified: nothing is wrong", append(looked, zap.Int("gone", gone))...)
		return
	}
	b.log.Info("verified: something is wrong", append(looked, zap.Int("findings", len(now)), zap.Int("new", fresh), zap.Int("gone", gone))...)
}

// findingKey tells findings apart from one verify to the next.
func findingKey(f scrub.Finding) string {
	return string(f.Kind) + " " + findingPlace(f) + " " + f.Path
}
