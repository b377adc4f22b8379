package command

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/redisstore"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

// session is the parts of a worker, connected.
type session struct {
	cfg    config.Config
	redis  *redisstore.Store
	store  s3sink.Store
	worker *offload.Worker
	turns  turns
	dog    *watchdog // of the worker's passes
	pauses *pauseGate
	limit  *uploadRate
	owner  *cluster         // this Redis as the owner of the root
	waits  func(why string) // told what borrow waits for; nil = nobody is
}

// connect opens a session. Redis has answered when it returns; the store is
// not asked for anything yet. Without a remote path there is no store, and the
// session is good for looking only.
func connect(ctx context.Context, cfg config.Config, o offload.Observer, onStore func(s3sink.Event)) (*session, error) {
	return connectCounted(ctx, cfg, o, s3sink.Options{OnEvent: onStore}, func(p offload.Ports) offload.Ports { return p })
}

// connectCounted is connect where somebody wants to see what goes through the
// ports, and the requests to the store.
func connectCounted(ctx context.Context, cfg config.Config, o offload.Observer, tell s3sink.Options, counted func(offload.Ports) offload.Ports) (*session, error) {
	dog := newWatchdog(cfg.Ops.StallTimeout)
	limit := newUploadRate(cfg.Worker.UploadRate, dog.hears)
	var store s3sink.Store
	owner := &cluster{}
	if cfg.Store.URL != "" {
		var err error
		tell.Owner.Cluster = owner
		tell.OnEvent, tell.Pace = dog.hearing(tell.OnEvent), limit.wait
		if store, err = openStore(cfg, tell); err != nil {
			return nil, cmdline.UsageError{Err: err}
		}
	}
	redis, err := redisstore.Open(ctx, cfg.Redis, cfg.Topics, cfg.Streams)
	if err != nil {
		closeStore(store)
		return nil, err
	}
	owner.redis = redis
	owner.objects = whereObjects{redis, store, cfg.Redis.Layout}.check
	r := redisStore{redis}
	pauses := newPauseGate(r)
	ports := offload.Ports{
		Registry: ownRegistry{r, owner}, Known: ownKnown{r, owner}, Manifests: r, Streams: r, Removals: r, Clock: redis, Encoding: encoding{}, Store: objectStore{store},
		Pauses: pauses,
	}
	turns := newTurns(redis, cfg, dog.stalled)
	ports.Share, ports.Gate = turns.Share(), gateOf(turns, pauses)
	return &session{
		cfg: cfg, redis: redis, store: store, turns: turns, dog: dog, pauses: pauses, limit: limit, owner: owner,
		worker: offload.New(cfg.Worker, cfg.Redis.Layout, withFaults(dog.watch(counted(ports))), o),
	}, nil
}

// openStore opens the store of a configuration, which tells what it does as the
// options say. Without Owner.Cluster in them the namespace alone decides whose it
// is.
func openStore(cfg config.Config, o s3sink.Options) (s3sink.Store, error) {
	o.Owner.Namespace = cfg.Redis.Layout.Namespace
	o.UserAgent = "korvet-offload/" + version().Version
	return s3sink.Open(cfg.Store, o)
}

func closeStore(s s3sink.Store) {
	if s != nil {
		s.Close()
	}
}

func (s *session) close() {
	s.redis.Close()
	closeStore(s.store)
}

// runLed makes one pass under the lease; led is false when there was none.
func (s *session) runLed(ctx context.Context, log *zap.Logger) (r offload.Report, led bool, err error) {
	lead, release, others, err := s.turns.AcquireOnce(ctx)
	if err != nil {
		return r, false, err
	}
	if len(others) > 0 {
		log.Info("other instances hold some of the shards, and their partitions are left to them", zap.Ints("shards", others), zap.Int("of", s.cfg.Lease.Shards))
	}
	r, err = s.worker.RunOnce(lead)
	s.dog.rest()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Redis.Timeout)
	defer cancel()
	if rerr := release(ctx); rerr != nil {
		log.Warn("the lease was not given back and will lapse by itself", zap.Error(rerr))
	}
	return r, true, err
}

// The waits between attempts to reach Redis at the start.
const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

// connectWaiting connects a daemon, which may be up before Redis: it goes on
// trying while Redis is unavailable.
func connectWaiting(ctx context.Context, j *journal, connect func() (*session, error)) (*session, error) {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		s, err := connect()
		if err == nil || ctx.Err() != nil || redisstore.ClassOf(err) != redisstore.Unavailable {
			return s, err
		}
		j.waitsForRedis(err)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for redis: %w", context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// storeEvent writes down what the store makes the worker wait for.
func (j *journal) storeEvent(e s3sink.Event) {
	if e.Op == "limit" {
		j.storeLimit(e.Limit)
		return
	}
	j.log.Debug("store asked again", zap.String("operation", e.Op), zap.String("object", e.Key), zap.Int("attempt", e.Attempt),
		zap.String("class", string(e.Class)), zap.Duration("wait", e.Wait), zap.Error(e.Err))
}

// storeLimit writes down that the store has asked for fewer requests at once,
// and that it gets all again.
func (j *journal) storeLimit(limit int) {
	j.mu.Lock()
	begins := limit > 0 && !j.throttled
	j.throttled = limit > 0
	j.mu.Unlock()
	switch {
	case begins:
		j.log.Info("the store asks for fewer requests; it gets fewer at once until it is calm", zap.Int("at_once", limit))
	case limit == 0:
		j.log.Info("the store gets all requests again")
	default:
		j.log.Debug("requests to the store at once", zap.Int("at_once", limit))
	}
}
