package test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/checker/loader"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// topology is a rig whose Redis is more than one server. Its worker is the
// documented smallest user.
type topology struct {
	*rig
	parts []segment.Partition
	books *broker.Ledger // of the producers: only what a replica has

	node func() *redisserver.Server           // one that can be asked for the manifests
	of   func(key string) *redisserver.Server // the primary that has a key
}

// goesOn waits until producers have had so many messages counted since.
func (x *topology) goesOn(since int) {
	x.t.Helper()
	await(x.t, "messages are counted again", 60*time.Second, func() bool { return x.books.Len() > since+50 })
}

// topologyUsers are the users of every server of a topology.
func topologyUsers(line string) redisserver.Option { return redisserver.Users(aclDefault, line) }

func newTopology(t *testing.T, env ...string) *topology {
	x := &topology{books: broker.NewLedger(), rig: &rig{t: t, layout: segment.DefaultLayout(), ledger: map[string]written{}, files: t.TempDir()}}
	x.env = append([]string{
		"KORVET_REDIS_TIMEOUT=2s",
		"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=250ms",
		"KORVET_STORAGE_OFFLOAD_LEASE_DURATION=1500ms",
		"KORVET_STORAGE_OFFLOAD_SEAL_GRACE=1s",
		"KORVET_STORAGE_OFFLOAD_CONCURRENCY=1", // so that there is a middle
	}, env...)
	for n := range 4 {
		x.parts = append(x.parts, segment.Partition{Topic: "orders", Number: n})
	}
	return x
}

// load makes topic orders with so many sealed segments a partition, and an open
// one each.
func (x *topology) load(segments segment.Number, messages int, settings ...string) {
	x.t.Helper()
	pipes, places := map[*redisserver.Server][]byte{}, map[string]*redisserver.Server{}
	add := func(key string, command ...string) {
		if places[key] == nil {
			places[key] = x.of(key)
		}
		at := places[key]
		pipes[at] = redisserver.AppendCommand(pipes[at], append([]string{command[0], key}, command[1:]...)...)
	}
	for _, p := range x.parts {
		manifest := []string{"HSET"}
		for n := range segments {
			manifest = append(manifest, n.String(), x.fill(add, p, n, messages))
		}
		add(x.layout.ManifestKey(p), append(manifest, segments.String(), `{"v":1,"state":"OPEN","tier":"LOCAL"}`)...)
	}
	add(x.layout.TopicKey("orders"), append([]string{"HSET", "remote.storage.enable", "true", "partitions", fmt.Sprint(len(x.parts)), "retention.ms", "-1"}, settings...)...)
	add(x.layout.TopicsKey(), "SADD", "orders")
	for at, cmds := range pipes {
		at.Pipe(cmds)
	}
}

// fill adds the messages of a segment, and returns its entry.
func (x *topology) fill(add func(key string, command ...string), p segment.Partition, n segment.Number, count int) string {
	w := written{p, n, uint64(len(x.ledger) + 1), count}
	key, messages := x.layout.SegmentKey(p, n), dataset.New(w.seed, 100)
	var first, last segment.ID
	for i := range count {
		m := messages.Next()
		if i == 0 {
			first = m.ID
		}
		last = m.ID
		args := []string{"XADD", m.ID.String()}
		for _, f := range m.Fields() {
			args = append(args, string(f))
		}
		add(key, args...)
	}
	x.ledger[key] = w
	return fmt.Sprintf(`{"v":1,"state":"SEALED","tier":"LOCAL","firstId":"%s","lastId":"%s","count":%d,"openedAt":%d,"sealedAt":%d}`,
		first, last, count, dataset.FirstMs, time.Now().Add(-time.Hour).UnixMilli())
}

// ranks counts the entries by how far they are in their lives; an error is a
// failover under way. Keys that are half moved are found.
func (x *topology) ranks() (all map[string]int, err error) {
	all = map[string]int{}
	for _, p := range x.parts {
		text, err := x.node().TryFollow("HVALS", x.layout.ManifestKey(p))
		if err != nil {
			return nil, err
		}
		for raw := range strings.Lines(text) {
			e, err := segment.ParseEntry([]byte(strings.TrimSpace(raw)))
			if err != nil {
				return nil, fmt.Errorf("entry of %s: %w: %s", p, err, raw)
			}
			all[rank(e)]++
		}
	}
	return all, nil
}

// reaches waits until so many entries are of a rank.
func (x *topology) reaches(worker *process, what string, n int) map[string]int {
	x.t.Helper()
	var all map[string]int
	deadline := time.Now().Add(60 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		var err error
		if all, err = x.ranks(); err == nil && all[what] >= n {
			tick.Stop()
			return all
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("not %d entries %q within a minute, but %v, %v\n%s", n, what, all, err, worker.log())
		}
	}
}

// settles waits until every sealed segment is as far as it gets.
func (x *topology) settles(worker *process, last string) {
	x.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		all, err := x.ranks()
		if err == nil && all["0 open"]+all[last] == sumOf(all) && all[last] >= len(x.ledger) {
			tick.Stop()
			return
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("not every segment is %q within a minute: %v, %v\n%s", last, all, err, worker.log())
		}
	}
}

func sumOf(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// produce appends to every partition until the function that it returns is
// called, through failovers: after an error it goes on at the server that at
// names.
func (x *topology) produce(at func() string) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var going sync.WaitGroup
	for i, p := range x.parts {
		going.Go(func() {
			for seed := uint64(i); ctx.Err() == nil; seed += 100 {
				x.produceOnce(ctx, at(), p, seed)
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	end = sync.OnceFunc(func() {
		cancel()
		going.Wait()
	})
	x.t.Cleanup(end)
	return end
}

// produceOnce appends until something goes wrong.
func (x *topology) produceOnce(ctx context.Context, addr string, p segment.Partition, seed uint64) {
	b, err := broker.Connect(addr, x.layout)
	if err != nil {
		return
	}
	defer b.Close()
	_ = (&broker.Producer{Broker: b, Ledger: x.books, Partition: p, Seed: seed, Batch: 3, Pace: 25 * time.Millisecond, Reread: 2, Replicas: 1}).Run(ctx)
}

// ends ends the worker, which must not have crashed.
func (x *topology) ends(worker *process) {
	x.t.Helper()
	worker.signal(syscall.SIGTERM)
	if code := worker.wait(x.t, 30*time.Second); code != 0 || strings.Contains(worker.log(), "goroutine ") {
		x.t.Errorf("exit %d\n%s", code, worker.log())
	}
}

// mustHaveAll checks that everything that a replica had, or that was loaded, is
// where a reader looks. What a producer has sent besides may be there.
func (x *topology) mustHaveAll(dropped bool) checker.Report {
	x.t.Helper()
	x.redis = x.node()
	acks, _ := x.loaded()
	produced, _ := loader.Acks(x.books)
	return x.examine(x.parts, append(acks, produced...), checker.Rules{
		Sent: func(string, string, string) bool { return true }, Settled: dropped, OrphanAge: time.Hour,
	})
}
