package command

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/redisstore"
)

// says is a Redis that gives one answer.
type says struct {
	e   redisstore.Eviction
	err error
}

func (s says) Eviction(context.Context) (redisstore.Eviction, error) { return s.e, s.err }

func policy(name string) redisstore.Eviction {
	return redisstore.Eviction{Policy: name, MaxMemory: 1, Node: "a:1"}
}

//fault:redis | The eviction policy is changed while the daemon runs, and back | answers of INFO in turn, by a clock of the test's own | one warning per change and per hour, one line when it is over, and the last answer is kept
func TestADangerousPolicyIsSaidWhileItLasts(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	w := newEvictionWatch(zap.New(core))
	at := time.Now()
	w.now = func() time.Time { return at }
	away := &redisstore.Error{Op: "INFO", Class: redisstore.Unavailable, Err: errors.New("refused")}
	denied := &redisstore.Error{Op: "INFO", Class: redisstore.Permission, Err: errors.New("NOPERM")}
	const danger, over, dumb = "redis may evict streams", "redis evicts no streams any more", "it can't be told what redis may evict"
	for i, c := range []struct {
		e     redisstore.Eviction
		err   error
		after time.Duration
		want  []string
		risk  redisstore.EvictionRisk
	}{
		{policy("noeviction"), nil, 0, nil, redisstore.EvictsNothing},
		{policy("allkeys-lru"), nil, time.Minute, []string{danger}, redisstore.EvictsStreams},
		{policy("allkeys-lru"), nil, time.Minute, nil, redisstore.EvictsStreams},
		{redisstore.Eviction{}, away, time.Minute, nil, redisstore.EvictsStreams},
		{policy("allkeys-lfu"), nil, time.Minute, []string{danger}, redisstore.EvictsStreams},
		{policy("allkeys-lfu"), nil, 59 * time.Minute, nil, redisstore.EvictsStreams},
		{policy("allkeys-lfu"), nil, time.Minute, []string{danger}, redisstore.EvictsStreams},
		{policy("volatile-lru"), nil, time.Minute, []string{over}, redisstore.EvictsLease},
		{policy("volatile-lru"), nil, time.Minute, nil, redisstore.EvictsLease},
		{redisstore.Eviction{}, denied, time.Minute, []string{dumb}, redisstore.EvictionUnknown},
		{redisstore.Eviction{Node: "a:1"}, nil, time.Minute, nil, redisstore.EvictionUnknown},
		{policy("allkeys-lru"), nil, time.Minute, []string{danger}, redisstore.EvictsStreams},
	} {
		at = at.Add(c.after)
		w.take(c.e, c.err)
		var got []string
		for _, l := range logs.TakeAll() {
			got = append(got, l.Message)
		}
		if !slices.Equal(got, c.want) || w.Last().Risk() != c.risk {
			t.Errorf("%d: said %q, want %q; risk %s", i, got, c.want, w.Last().Risk())
		}
	}
}

//fault:redis | The server may evict streams, or does not say, where strict-redis is set | every kind of answer of INFO at the start | the start is refused as a wrong setting, and an outage is waited for
func TestStrictRedis(t *testing.T) {
	denied := &redisstore.Error{Op: "INFO", Class: redisstore.Permission, Err: errors.New("NOPERM")}
	away := &redisstore.Error{Op: "INFO", Class: redisstore.Unavailable, Err: errors.New("refused")}
	for name, c := range map[string]struct {
		says
		refused bool
	}{
		"evicts nothing":  {says{policy("noeviction"), nil}, false},
		"evicts a lease":  {says{policy("volatile-ttl"), nil}, false},
		"evicts streams":  {says{policy("allkeys-lru"), nil}, true},
		"does not say":    {says{redisstore.Eviction{Node: "a:1"}, nil}, true},
		"may not be said": {says{redisstore.Eviction{}, denied}, true},
	} {
		for _, strict := range []bool{true, false} {
			err := newEvictionWatch(zap.NewNop()).begin(t.Context(), c, strict)
			if refused := err != nil; refused != (strict && c.refused) || refused && !errors.As(err, new(cmdline.UsageError)) {
				t.Errorf("%s, strict %t: %v", name, strict, err)
			}
		}
	}
	if err := newEvictionWatch(zap.NewNop()).begin(t.Context(), says{err: away}, true); redisstore.ClassOf(err) != redisstore.Unavailable || errors.As(err, new(cmdline.UsageError)) {
		t.Errorf("of a redis that is away: %v", err)
	}
}

// asked counts how often it is asked.
type asked struct {
	says
	times *atomic.Int64
}

func (a asked) Eviction(ctx context.Context) (redisstore.Eviction, error) {
	a.times.Add(1)
	return a.says.Eviction(ctx)
}

// A tick that has changed holds from the next look on.
func TestEvictionIsLookedAtAsOftenAsTheTickSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times, every atomic.Int64
		every.Store(int64(10 * time.Second))
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		time.AfterFunc(15*time.Second, func() { every.Store(int64(time.Hour)) })
		newEvictionWatch(zap.NewNop()).follow(ctx, asked{says{policy("noeviction"), nil}, &times}, func() time.Duration { return time.Duration(every.Load()) })
		if times.Load() != 3 { // at 10, at 20, and a minute later
			t.Errorf("%d looks", times.Load())
		}
	})
}
