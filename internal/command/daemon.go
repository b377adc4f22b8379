package command

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/config"
	"korvet-offload/lease"
	"korvet-offload/offload"
)

// daemon is a worker that runs until it is told to stop.
type daemon struct {
	cfg     config.Config
	log     *zap.Logger
	journal *journal
	lease   atomic.Pointer[lease.Lease] // nil until Redis has answered
}

// alive is what the liveness probe asks: a restart helps only against an
// instance that believes it leads and can't renew.
func (d *daemon) alive() error {
	if l := d.lease.Load(); l != nil && !l.Healthy(time.Now()) {
		return errors.New("this instance believes that it leads, and can't renew its lease")
	}
	return nil
}

// checkOwner refuses a place that belongs to another namespace. A store that
// can't be asked is no reason not to start: the first upload asks again.
func (d *daemon) checkOwner(ctx context.Context, s *session) error {
	err := checkOwner(ctx, s.store)
	if err == nil || ctx.Err() != nil || errors.As(err, new(usageError)) {
		return err
	}
	d.journal.fails(partOwner, "the store does not say whom it belongs to; going on", err)
	return nil
}

// watchInterval is how often Redis is asked whether it is there, and the
// store while it has not said whom it belongs to: a tick may be far away.
const watchInterval = 10 * time.Second

// watch keeps the readiness true between two ticks.
func (d *daemon) watch(ctx context.Context, s *session) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.look(ctx, s)
		}
	}
}

func (d *daemon) look(ctx context.Context, s *session) {
	limited, cancel := context.WithTimeout(ctx, watchInterval/2)
	defer cancel()
	switch _, err := s.redis.Now(limited); {
	case ctx.Err() != nil:
		return
	case err != nil:
		d.journal.fails(partRedis, "redis does not answer", err)
	default:
		d.journal.works(partRedis)
	}
	if d.journal.isDown(partOwner) && checkOwner(ctx, s.store) == nil {
		d.journal.works(partOwner)
	}
}

// work connects and loops until ctx ends.
func (d *daemon) work(ctx context.Context) error {
	if !d.cfg.Worker.Enabled {
		d.log.Warn("offload is switched off by korvet.storage.offload.enabled; doing nothing until stopped")
		d.journal.health.Ready()
		<-ctx.Done()
		return nil
	}
	s, err := connectWaiting(ctx, d.cfg, d.journal)
	if ctx.Err() != nil && !errors.As(err, new(usageError)) {
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
	d.lease.Store(s.lease)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { d.watch(ctx, s) })
	offload.Loop(ctx, s.worker, leader{s.lease}, loopJournal{d.journal, func() bool { return ctx.Err() != nil }})
	return nil
}
