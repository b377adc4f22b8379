package command

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/board"
	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/metrics"
	"korvet-offload/internal/page"
	"korvet-offload/lease"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// daemon is a worker that runs until it is told to stop.
type daemon struct {
	cfg     config.Config
	log     *zap.Logger
	journal *journal
	session atomic.Pointer[session] // nil until Redis has answered

	eviction *evictionWatch
	manager  *manager
	metrics  *metrics.Registry
	board    *board.Board
	site     *page.Site
	settings *reloading
}

// alive is what the liveness probe asks: a restart helps only against an
// instance whose pass hangs, or that believes it leads and can't renew.
func (d *daemon) alive() error {
	s := d.session.Load()
	if s == nil {
		return nil
	}
	if err := s.dog.stalled(); err != nil {
		return fmt.Errorf("%w: a restart is needed, unless it goes on by itself", err)
	}
	if !s.turns.Healthy(time.Now()) {
		return errors.New("this instance believes that it leads, and can't renew its lease")
	}
	return nil
}

// checkOwner refuses a place that belongs to another namespace or cluster. A store that
// can't be asked is no reason not to start: the first upload asks again.
func (d *daemon) checkOwner(ctx context.Context, s *session) error {
	err := checkOwner(ctx, s.store)
	if err == nil {
		return s.checkRoot(ctx)
	}
	if ctx.Err() != nil || errors.As(err, new(cmdline.UsageError)) {
		return err
	}
	s.owner.settle(ctx)
	d.journal.fails(partOwner, "the store does not say whom it belongs to; going on", err)
	return nil
}

// watchInterval is how often Redis is asked whether it is there, and the
// store while it has not said whom it belongs to: a tick may be far away.
const watchInterval = 10 * time.Second

// watch keeps the readiness true between two ticks.
func (d *daemon) watch(ctx context.Context, s *session) {
	tick := time.NewTicker(d.manager.interval(watchInterval))
	defer tick.Stop()
	for {
		d.beat()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.look(ctx, s)
		}
	}
}

// beat tells the service manager how it goes.
func (d *daemon) beat() {
	standing, notReady := d.journal.standing()
	d.manager.beat(standing, notReady, d.alive())
}

func (d *daemon) look(ctx context.Context, s *session) {
	d.lookAtPass(s.dog)
	defer d.journal.reminds()
	limited, cancel := context.WithTimeout(ctx, watchInterval/2)
	defer cancel()
	switch _, err := s.redis.Now(limited); {
	case ctx.Err() != nil:
		return
	case limited.Err() != nil:
		d.journal.fails(partRedis, "redis does not answer", fmt.Errorf("redis has not answered within %s: %w", watchInterval/2, err))
	case err != nil:
		d.journal.fails(partRedis, "redis does not answer", err)
	default:
		d.journal.works(partRedis)
		d.measureMemory(limited, s.redis)
	}
	if d.journal.isDown(partOwner) {
		d.lookAtOwner(ctx, s)
	}
}

// lookAtOwner asks again whom the root belongs to. That it is somebody else's is
// another thing than a store that does not answer, and passes by no waiting.
func (d *daemon) lookAtOwner(ctx context.Context, s *session) {
	err := checkOwner(ctx, s.store)
	if err == nil {
		err = s.checkRoot(ctx)
	}
	switch {
	case err == nil:
		d.journal.works(partOwner)
	case errors.Is(err, s3sink.ErrAnotherRoot):
		d.journal.fails(partOwner, "the root is not the one with the objects; nothing is put there", err)
	case errors.As(err, new(cmdline.UsageError)):
		d.journal.fails(partOwner, "the root belongs to somebody else; nothing is put there", err)
	}
}

// lookAtPass says what a pass that is under way waits for: its report may be far
// away.
func (d *daemon) lookAtPass(dog *watchdog) {
	if err := dog.stalled(); err != nil {
		d.journal.fails(partPass, "the pass hangs; its lease is not renewed any more, and a restart is needed unless it goes on", err)
	} else if d.journal.isDown(partPass) {
		d.journal.works(partPass)
	}
	if err := dog.silent(); err != nil {
		d.journal.fails(partAnswer, "the store does not answer; it is asked again", err)
	} else if d.journal.isDown(partAnswer) {
		d.journal.works(partAnswer)
	}
}

// idle is what a daemon does that is switched off.
func (d *daemon) idle(ctx context.Context) {
	tick := time.NewTicker(d.manager.interval(watchInterval))
	defer tick.Stop()
	for ctx.Err() == nil {
		d.manager.beat("switched off by korvet.storage.offload.enabled", "", nil)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// work connects and loops until ctx ends.
func (d *daemon) work(ctx context.Context) error {
	if !d.cfg.Worker.Enabled {
		d.log.Warn("offload is switched off by korvet.storage.offload.enabled; doing nothing until stopped")
		d.journal.health.Ready()
		d.idle(ctx)
		return nil
	}
	s, err := connectWaiting(ctx, d.journal, func() (*session, error) {
		return connectCounted(ctx, d.cfg, d.observer(), d.tells(), d.ports)
	})
	if ctx.Err() != nil && !errors.As(err, new(cmdline.UsageError)) {
		if err == nil {
			s.close()
		}
		return nil // told to stop before there was anything to do
	}
	if err != nil {
		return err
	}
	defer s.close()
	if err := d.checkOwner(ctx, s); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if err := d.eviction.beginWaiting(ctx, s.redis, d.cfg.Redis.StrictEviction, d.journal); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	sayLacks(ctx, s.redis, d.log)
	askOfThePast := askForgotten(ctx, s, d.log)
	d.journal.works(partRedis) // and it is ready, if the store has answered, too
	d.session.Store(s)
	d.measureMemory(ctx, s.redis)
	var watching sync.WaitGroup
	defer watching.Wait()
	s.limit.telling(d.metrics.UploadWaited)
	d.settings.attach(s)
	log := &pauseLog{log: d.log}
	s.pauses.telling(func(now segment.Pauses) {
		log.paused(now)
		d.countPauses(now)
		d.board.SetPaused(now)
	})
	watching.Go(func() { s.pauses.follow(ctx) })
	watching.Go(func() { d.watch(ctx, s) })
	watching.Go(func() { d.preflight(ctx, s.redis) })
	watching.Go(func() { askOfThePast(ctx) })
	watching.Go(func() { d.eviction.follow(ctx, s.redis, d.site.Tick) })
	seen := &instances{log: d.log, shards: d.cfg.Lease.Shards}
	watching.Go(func() {
		s.turns.Run(ctx, func(v lease.View) {
			seen.told(v)
			d.countShards(v)
			d.showMembers(v)
		})
	})
	verifying := newBackgroundVerify(d)
	watching.Go(func() { verifying.follow(ctx, s) })
	offload.Loop(ctx, s.worker, s.turns, loopObservers{
		verifying,
		loopJournal{d.journal, s.dog.rest, func() bool { return ctx.Err() != nil }}, willing{d.metrics.LoopObserver()}, willing{boardLoop{d.board}},
	})
	return nil
}
