package command

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/redisstore"
)

const (
	// evictionLook is the longest time between two looks at what the server
	// may evict; a shorter tick-interval makes it shorter.
	evictionLook = time.Minute
	// evictionReminder is how often a danger that lasts is written down again.
	evictionReminder = time.Hour
)

// evictor is a Redis that says what it may evict.
type evictor interface {
	Eviction(ctx context.Context) (redisstore.Eviction, error)
}

// evictionWatch follows what Redis may evict when its memory is full, and
// writes down when that can cost data, again and again while it lasts, and
// when it is over.
type evictionWatch struct {
	log *zap.Logger
	now func() time.Time

	mu   sync.Mutex
	last redisstore.Eviction
	said time.Time // when the danger that lasts was written down last; zero = there is none
	dumb bool      // it was said that the server does not say
}

func newEvictionWatch(log *zap.Logger) *evictionWatch {
	return &evictionWatch{log: log, now: time.Now}
}

// Last is the last answer; its risk is unknown before there is one. It may be
// called from any goroutine.
func (w *evictionWatch) Last() redisstore.Eviction {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// begin looks for the first time. With strict, a server that may evict streams
// is refused, and so is one that does not say: both with a cmdline.UsageError.
func (w *evictionWatch) begin(ctx context.Context, redis evictor, strict bool) error {
	e, err := redis.Eviction(ctx)
	switch class := redisstore.ClassOf(err); {
	case !strict:
		w.take(e, err)
		return nil
	case ctx.Err() != nil, class == redisstore.Unavailable:
		return err
	}
	w.take(e, err)
	return refuseEviction(e, err)
}

// beginWaiting is begin for a daemon: it goes on trying while Redis is
// unavailable.
func (w *evictionWatch) beginWaiting(ctx context.Context, redis evictor, strict bool, j *journal) error {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := w.begin(ctx, redis, strict)
		if redisstore.ClassOf(err) != redisstore.Unavailable {
			return err
		}
		j.waitsForRedis(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// refuseEviction is why a server is refused by strict-redis; nil if it is not.
func refuseEviction(e redisstore.Eviction, err error) error {
	const setting = "korvet.storage.offload.strict-redis"
	switch {
	case err != nil:
		return cmdline.UsageError{Err: fmt.Errorf("%s: it can't be told what redis evicts when its memory is full: %w; set it to false to start all the same", setting, err)}
	case e.Risk() == redisstore.EvictionUnknown:
		return cmdline.UsageError{Err: fmt.Errorf("%s: %s; set it to false to start all the same", setting, e)}
	case e.Risk() == redisstore.EvictsStreams:
		return cmdline.UsageError{Err: fmt.Errorf("%s: %s; %s", setting, e, e.Advice())}
	}
	return nil
}

// follow looks again and again until ctx ends; how often may change.
func (w *evictionWatch) follow(ctx context.Context, redis evictor, every func() time.Duration) {
	next := time.NewTimer(min(every(), evictionLook))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(min(every(), evictionLook))
			if e, err := redis.Eviction(ctx); ctx.Err() == nil {
				w.take(e, err)
			}
		}
	}
}

// take notes an answer. A Redis that is away says nothing about what it
// evicts: what was known stays.
func (w *evictionWatch) take(e redisstore.Eviction, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if redisstore.ClassOf(err) == redisstore.Unavailable {
		return
	}
	before := w.last
	w.last = e
	danger := e.Risk() == redisstore.EvictsStreams
	switch {
	case err != nil || e.Risk() == redisstore.EvictionUnknown:
		w.sayUnknown(e, err)
	case danger && (e != before || w.now().Sub(w.said) >= evictionReminder):
		w.said = w.now()
		w.log.Warn("redis may evict streams", zap.Stringer("policy", e), zap.String("advice", e.Advice()))
	case !danger && !w.said.IsZero():
		w.said = time.Time{}
		w.log.Info("redis evicts no streams any more", zap.Stringer("policy", e))
	}
}

func (w *evictionWatch) sayUnknown(e redisstore.Eviction, err error) {
	if !w.dumb {
		w.dumb = true
		w.log.Debug("it can't be told what redis may evict", zap.Stringer("policy", e), zap.Error(err))
	}
}
