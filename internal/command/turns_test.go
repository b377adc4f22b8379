package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"korvet-offload/internal/config"
	"korvet-offload/internal/ops"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/lease"
	"korvet-offload/offload"
)

func written(logs *observer.ObservedLogs) (text []string) {
	for _, e := range logs.TakeAll() {
		text = append(text, e.Level.String()+" "+e.Message)
	}
	return text
}

// What is seen of the other instances is written down once.
func TestInstancesAreWrittenDownOnce(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	i := &instances{log: zap.New(core), shards: 4}
	mixed := lease.View{Held: []int{0, 1}, Members: []lease.Member{{ID: "a", Of: 4}, {ID: "b", Of: 2}}}
	broken := lease.View{Held: []int{0, 1}, Err: errors.New("look at the instances: refused")}
	for _, step := range []struct {
		view lease.View
		want string
	}{
		{mixed, `info the shards of this instance; warn instances disagree on korvet.storage.offload.shards: here it is 4, and "b" has 2; until they agree, they do each other's work twice (nothing is lost by it)`},
		{mixed, ""},
		{broken, "warn the work can't be shared anew for now; this instance goes on with the shards that it holds"},
		{broken, ""},
		{mixed, ""},
		{broken, "warn the work can't be shared anew for now; this instance goes on with the shards that it holds"},
		{lease.View{Members: []lease.Member{{ID: "a", Of: 4}}}, "info the shards of this instance"},
	} {
		i.told(step.view)
		if got := strings.Join(written(logs), "; "); got != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
	alone := &instances{log: zap.New(core), shards: 1}
	alone.told(broken)
	alone.told(lease.View{Held: []int{0}, Members: []lease.Member{{ID: "a", Of: 1}}})
	if got := written(logs); fmt.Sprint(got) != "[warn this instance can't show the others that it is there; the work goes on]" {
		t.Errorf("of a single lease: %q", got)
	}
}

// That there is no share left is no outage.
func TestALastShardThatIsGivenAwayIsNoOutage(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	health := ops.NewHealth(func() error { return nil })
	j := newJournal(zap.New(core), health)
	j.Lost(fmt.Errorf("%w: each of the 2 shards", lease.ErrHeld))
	j.Passed(offload.Report{}, fmt.Errorf("%w: each of the 2 shards", lease.ErrHeld))
	if got := written(logs); len(got) != 1 || got[0] != "info this instance has no shard any more; others do the work" || j.isDown(partRedis) || j.isDown(partLease) {
		t.Errorf("written down: %q", got)
	}
}

// The metrics count no leader change, and the board shows none, where an instance
// gives away its last share: only what is lost against its will is lost.
func TestGivingAwayTheLastShardIsNoLoss(t *testing.T) {
	for cause, want := range map[error]string{
		fmt.Errorf("all given away: %w", lease.ErrHeld):              "follows",
		fmt.Errorf("%w: %w", lease.ErrLost, lease.ErrHeld):           "lost",
		fmt.Errorf("%w: it can't be renewed in time", lease.ErrLost): "lost",
	} {
		var o overheard
		willing{&o}.Lost(cause)
		if o.said != want {
			t.Errorf("%v: %s, want %s", cause, o.said, want)
		}
	}
}

// overheard is what a loop has told last.
type overheard struct {
	offload.LoopObserver
	said string
}

func (o *overheard) Follows()   { o.said = "follows" }
func (o *overheard) Lost(error) { o.said = "lost" }

func TestMemberLines(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	got := memberLines([]memberView{
		{ID: "a-1", Version: "1.0", Shards: []int{0}, Of: 1, Address: "127.0.0.1:9477", SeenAt: at.Add(-12 * time.Second)},
		{ID: "b-2", Version: "1.0", Of: 1, SeenAt: at.Add(time.Second)}, // since the scan
		{ID: "c-3", Version: "1.1", Shards: []int{0, 2}, Of: 4, SeenAt: at.Add(-90*time.Second - time.Millisecond)},
	}, at)
	want := []string{`instance "a-1" (1.0): leads; http at "127.0.0.1:9477"; seen 12s ago`, `instance "b-2" (1.0): waits to take over; seen just now`,
		`instance "c-3" (1.1): works on 2 shards of 4: 0, 2; seen 1m30s ago`}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%q", got)
	}
}

// The turns of several shards speak the loop's language.
func TestTurnsOfShards(t *testing.T) {
	server := redisserver.Start(t)
	cfg := config.DefaultConfig()
	cfg.Redis.URI, cfg.Lease.Shards, cfg.Ops.Address = server.URI(), 2, "127.0.0.1:1"
	s, err := redisstore.Open(t.Context(), cfg.Redis, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	quiet := func() error { return nil }
	first, second := newTurns(s, cfg, quiet), newTurns(s, cfg, quiet)
	server.Exec("SET", cfg.Lease.ShardKey(1), "somebody", "PX", "60000")
	_, release, others, err := first.AcquireOnce(t.Context())
	if err != nil || fmt.Sprint(others) != "[1]" || first.Share() == nil {
		t.Fatalf("%v, others hold %v", err, others)
	}
	if _, _, err := second.Acquire(t.Context()); !errors.Is(err, offload.ErrFollower) {
		t.Errorf("acquire when none is free: %v", err)
	}
	if err := release(t.Context()); err != nil || !first.Healthy(time.Now()) {
		t.Error(err)
	}
	server.Exec("DEL", cfg.Lease.ShardKey(1))
	server.Exec("SET", cfg.Lease.ShardKey(0), "somebody")
	server.Exec("SET", cfg.Lease.ShardKey(1), "somebody")
	if _, _, err := second.Acquire(t.Context()); err == nil || errors.Is(err, offload.ErrFollower) {
		t.Errorf("acquire when none will ever be free: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	second.Run(ctx, func(v lease.View) {
		if m := v.Members; len(m) != 1 || v.Self != m[0].ID || m[0].Address != "127.0.0.1:1" || m[0].Version != version().Version || m[0].Host == "" || !strings.HasPrefix(m[0].ID, m[0].Host+"-") {
			t.Errorf("members %+v", m)
		}
		stop()
	})
	cfg.Lease.Shards = 1
	if newTurns(s, cfg, quiet).Share() != nil {
		t.Error("a single lease has a share")
	}
}
