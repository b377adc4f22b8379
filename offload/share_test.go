package offload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"korvet-offload/segment"
)

// Which shard is a partition's is part of the contract: instances of different
// versions have to agree.
func TestShardOf(t *testing.T) {
	for _, tt := range []struct {
		p    segment.Partition
		of   int
		want int
	}{
		{segment.Partition{Topic: "orders"}, 4, 3},
		{segment.Partition{Topic: "orders", Number: 1}, 4, 0},
		{segment.Partition{Topic: "orders", Number: 15}, 4, 3},
		{segment.Partition{Topic: "orders", Number: 15}, 7, 1},
		{segment.Partition{Topic: "events", Plain: true}, 4, 0},
		{segment.Partition{Topic: "events"}, 1, 0},
	} {
		if got := ShardOf(tt.p, tt.of); got != tt.want {
			t.Errorf("%s plain %t: shard %d of %d, want %d", tt.p, tt.p.Plain, got, tt.of, tt.want)
		}
	}
	if got := TopicShard("orders", 4); got != 0 {
		t.Errorf("topic orders: shard %d", got)
	}
	for _, shards := range []int{2, 3, 8, 13} {
		n := make([]int, shards)
		for topic := range 40 {
			for p := range 25 {
				n[ShardOf(segment.Partition{Topic: fmt.Sprint("topic-", topic), Number: p}, shards)]++
			}
		}
		if least, most := slices.Min(n), slices.Max(n); least*3 < 2*(1000/shards) || most*2 > 3*(1000/shards) {
			t.Errorf("1000 partitions over %d shards: %v", shards, n)
		}
	}
}

func parts(outcomes []Outcome) (of []int) {
	for _, o := range outcomes {
		of = append(of, o.Partition.Number)
	}
	slices.Sort(of)
	return of
}

// Each instance does what is of its shards, what it gains it reads once, and
// what it has lost it forgets.
func TestInstancesWorkOnTheirShards(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 8)
	for p := range 8 {
		w.sealed(segment.Partition{Topic: "orders", Number: p}, 0, 3)
	}
	s := newShards("a", "b", "a", "b")
	a, b := w.sharing(s, "a"), w.sharing(s, "b")
	var want [2][]int
	for p := range 8 {
		owner := ShardOf(segment.Partition{Topic: "orders", Number: p}, 4) % 2
		want[owner] = append(want[owner], p)
	}
	for i, worker := range []*Worker{a, b} {
		r := runOnce(t, worker)
		if got := parts(r.Outcomes); !slices.Equal(got, want[i]) || r.Plan.Counts.Partitions != len(want[i]) || len(r.Problems) != 0 || r.Left != 0 {
			t.Errorf("instance %d: partitions %v, want %v; %+v", i, got, want[i], r.Problems)
		}
	}
	reads := func() int { return w.made("manifest orders:") }
	if n := reads(); n != 8 {
		t.Errorf("%d manifests were read whole, want each once", n)
	}
	s.give(0, "b")
	runOnce(t, a)
	runOnce(t, b)
	if n := reads(); n != 10 || len(a.memory.indexes) != 2 || len(b.memory.indexes) != 6 {
		t.Errorf("%d read whole after a shard has moved, want 2 more; remembered: %d and %d", n-8, len(a.memory.indexes), len(b.memory.indexes))
	}
	s.give(0, "a") // and back, between two passes of b
	s.give(0, "b")
	runOnce(t, b)
	if n := reads(); n != 12 {
		t.Errorf("%d read whole of a shard that was away", n-10)
	}
	if scan, err := b.Scan(t.Context()); err != nil || len(scan.Partitions) != 8 {
		t.Errorf("a scan for showing has %d partitions, %v", len(scan.Partitions), err)
	}
}

// A shard that is given away in the middle of a pass: what is under way is
// finished, and nothing of it begins any more.
func TestAShardGoesDuringAPass(t *testing.T) {
	w := ordersWorld(t, 3) // two partitions, of shards 3 and 0
	s := newShards("a", "a", "a", "a")
	a, b := w.sharing(s, "a", oneAtATime), w.sharing(s, "b")
	w.hook = func(call string) error {
		if call == "before put "+path0 {
			s.give(3, "b")
		}
		return nil
	}
	r := runOnce(t, a)
	if got := parts(r.Outcomes); !slices.Equal(got, []int{0, 1, 1, 1}) || r.Left != 2 || len(r.Problems) != 0 {
		t.Errorf("partitions %v, %d left, %v", got, r.Left, r.Problems)
	}
	if got := parts(runOnce(t, b).Outcomes); !slices.Equal(got, []int{0, 0}) {
		t.Errorf("the other one: %v", got)
	}
	for shard, n := range s.inside {
		if n != 0 {
			t.Errorf("%d have not left shard %d", n, shard)
		}
	}
}

func oneAtATime(c *Config) { c.Concurrency = 1 }

// closedGate lets nobody in.
type closedGate struct{}

func (closedGate) Enter(segment.Partition) (func(), bool) { return nil, false }

func TestAShardIsLeftWhereTheGateIsClosed(t *testing.T) {
	w := ordersWorld(t, 1)
	s := newShards("a", "a", "a", "a")
	a := w.sharing(s, "a")
	a.ports.Gate = closedGate{}
	if r := runOnce(t, a); len(r.Outcomes) != 0 || s.inside[0] != 0 || s.inside[3] != 0 {
		t.Errorf("%d done, inside: %v", len(r.Outcomes), s.inside)
	}
}

// A copy that goes on after its partition has become another instance's, as
// after a lost lease, is finished or loses its compare-and-set.
//
//fault:leaders | An instance goes on with a copy although its shard is another instance's by now, which copies the same segment | Every call of the copy in turn, in memory | One of the two has done it, the other one has lost the race or found it done, and nothing is lost or twice
func TestACopyGoesOnAfterTheShardHasGone(t *testing.T) {
	results := map[Result]int{}
	for calls := 5; ; calls++ {
		w := ordersWorld(t, 1)
		s := newShards("a", "a", "a", "a")
		a, b := w.sharing(s, "a", oneAtATime), w.sharing(s, "b", oneAtATime)
		g := newGate(calls)
		var report Report
		done := make(chan struct{})
		var pass sync.WaitGroup
		pass.Go(func() {
			defer close(done)
			report, _ = a.RunOnce(context.WithValue(t.Context(), gateKey{}, g)) // it may find anything
		})
		slept := false
		select {
		case <-g.stuck:
			slept = true
		case <-done:
		}
		for shard := range 4 {
			s.give(shard, "b")
		}
		runOnce(t, b)
		close(g.open)
		pass.Wait()
		for _, p := range []segment.Partition{orders0, orders1} {
			if e := w.entry(p, 0); e.Tier != segment.Remote || e.Object == nil {
				t.Fatalf("before call %d: %s is %+v", calls, p, e)
			}
		}
		if w.mustKeep(lifeRetention); len(w.objects) != 2 || t.Failed() {
			t.Fatalf("before call %d: %d objects", calls, len(w.objects))
		}
		for _, o := range report.Outcomes {
			results[o.Result]++
		}
		if !slept {
			break
		}
	}
	if results[LostRace] == 0 || results[Copied] == 0 {
		t.Errorf("results %v: want both ways", results)
	}
}

// Whole lives while shards change hands between any two passes, with two
// instances that take turns.
//
//fault:leaders | Shards change hands between passes through whole lives of segments | Every shard to either of two instances in turn, in memory | Nothing is lost after any pass, and in the end nothing is left over
func TestWholeLivesWithShards(t *testing.T) {
	for seed := range 16 {
		w := wholeLife(t, 2)
		s := newShards("a", "b", "a")
		both := []*Worker{w.liveWorker(), w.liveWorker()}
		both[0].ports.Share, both[1].ports.Share = seatAt{s, "a"}, seatAt{s, "b"}
		w.produce(key0, 4)
		w.produce(clicks, 9)
		for i, after := range lifeSteps() {
			w.now = w.now.Add(after)
			for k := range both {
				runOnce(t, both[(k+i+seed)%2])
				w.mustKeep(lifeRetention)
				s.give((i+seed)%3, []string{"a", "b"}[(seed>>(i%4))&1])
			}
		}
		if w.mustEnd(false); t.Failed() {
			t.Fatalf("seed %d: %s", seed, w.life(orders0))
		}
	}
}

// What is to be said of a topic is said by one instance alone, and one alone
// forgets it, whichever works on its partitions.
func TestOneInstanceSpeaksForATopic(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 8)
	for p := range 8 {
		w.sealed(segment.Partition{Topic: "orders", Number: p}, 0, 3)
	}
	w.topic("other", 1)
	w.topics = append(w.topics, segment.Topic{Name: "broken", Err: segment.ErrTopicSetting})
	s := newShards("a", "b", "b", "b") // TopicShard("orders") is 0
	a, b := w.sharing(s, "a", deletesTopics), w.sharing(s, "b", deletesTopics)
	both := func() (r [2]Report) { return [2]Report{runOnce(t, a), runOnce(t, b)} }
	r := both()
	if n := len(r[0].Problems) + len(r[1].Problems); n != 1 || r[0].Plan.Counts.Topics != 2 || r[1].Plan.Counts.Topics != 2 {
		t.Errorf("the broken topic is reported %d times; topics: %d and %d", n, r[0].Plan.Counts.Topics, r[1].Plan.Counts.Topics)
	}
	w.unregister("orders")
	r = both()
	if len(r[0].Plan.Removed) != 1 || len(r[1].Plan.Removed) != 0 || r[0].Plan.Counts.Partitions < 8 || w.record("orders").RemovedAt == 0 {
		t.Errorf("after it was removed: %+v and %+v", r[0].Plan.Removed, r[1].Plan.Removed)
	}
	for range 3 { // the one that has none of it sees nothing of it, for days
		w.now = w.now.Add(25 * time.Hour)
		runOnce(t, b)
	}
	if w.known["orders"] == "" {
		t.Fatal("it is forgotten by one that has none of it")
	}
	for range 6 {
		w.now = w.now.Add(25 * time.Hour)
		both()
	}
	if raw, known := w.known["orders"]; known || len(w.objects) != 0 {
		t.Errorf("left: %s, %d objects", raw, len(w.objects))
	}
}

// An instance whose pass began when a topic was live may still copy something of
// it, so that nobody forgets it at once.
func TestASharedTopicIsNotForgottenAtOnce(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 8)
	w.topic("other", 1)
	s := newShards("a", "b", "b", "b") // TopicShard("orders") is 0
	a, b := w.sharing(s, "a"), w.sharing(s, "b")
	runOnce(t, b)
	w.set("orders", func(s *segment.TopicSettings) { s.RemoteStorage = false })
	forgotten := func(after time.Duration) bool {
		w.now = w.now.Add(after)
		runOnce(t, a)
		_, known := w.known["orders"]
		return !known
	}
	if forgotten(0) || forgotten(59*time.Minute) {
		t.Fatal("it is forgotten, and another instance may be at work on it")
	}
	w.remote(orders0, 0, 3, w.now) // and was
	for range 3 {
		if forgotten(time.Hour) {
			t.Error("it is forgotten, and something of it is left")
		}
	}
	clear(w.manifests[orders0])
	for range 3 { // the manifest is read whole again within an hour
		forgotten(time.Hour)
	}
	if !forgotten(time.Hour) {
		t.Errorf("it is not forgotten: %v", w.known)
	}
}

// Whoever works on a partition has written down its topic before.
func TestTopicsAreRememberedByWhoeverWorksOnThem(t *testing.T) {
	w := ordersWorld(t, 1)
	s := newShards("nobody", "nobody", "nobody", "b") // orders:0
	runOnce(t, w.sharing(s, "b"))
	if w.known["orders"] == "" || w.firstCall("swapknown orders") > w.firstCall("put "+path0) || w.made("put ") != 1 {
		t.Errorf("known: %v; calls %q", w.known, w.calls)
	}
	s.give(3, "nobody")
	s.give(2, "b") // nothing of it
	clear(w.known)
	if r := runOnce(t, w.sharing(s, "b")); len(w.known) != 0 || len(r.Outcomes) != 0 {
		t.Errorf("known: %v, %d done", w.known, len(r.Outcomes))
	}
}

// What others have written of topics is seen at the next pass.
func TestRecordsOfOthersAreSeen(t *testing.T) {
	w := ordersWorld(t, 1)
	s := newShards("a", "a", "a", "a")
	a := w.sharing(s, "a")
	runOnce(t, a)
	w.known["ghost"] = record{Settings: segment.DefaultTopicSettings(), RemovedAt: w.now.UnixMilli()}.encode()
	if r := runOnce(t, a); len(r.Plan.Removed) != 1 {
		t.Errorf("removed: %+v", r.Plan.Removed)
	}
}

// A shard that is gained is worked on at once, by an instance that had others
// and by one that had none.
func TestLoopWakesForAShard(t *testing.T) {
	w := ordersWorld(t, 1)
	synctest.Test(t, func(t *testing.T) {
		d := &diary{start: time.Now()}
		s := newShards("a", "a", "a", "b")
		seat := &seat{diary: d, err: ErrFollower}
		ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
		defer stop()
		worker := w.sharing(s, "b", func(c *Config) { c.TickInterval = time.Minute })
		worker.ports.Share.Gained() // before the bubble's other goroutines ask
		var loop sync.WaitGroup
		loop.Go(func() { Loop(ctx, worker, seat, d) })
		time.Sleep(10 * time.Second)
		seat.say(nil)
		s.give(1, "b")
		time.Sleep(10 * time.Second)
		s.give(0, "b")
		loop.Wait()
		want := []string{"0s follows", "10s leads", "10s passed 1 <nil>", "20s passed 1 <nil>", "1m0s passed 0 <nil>", "1m30s released, <nil>"}
		if !slices.Equal(d.lines, want) {
			t.Errorf("got  %q\nwant %q", d.lines, want)
		}
	})
}

// A pass that is stopped while it scans says why: a lease that was lost is no
// fault of Redis.
func TestAScanThatIsStoppedSaysWhy(t *testing.T) {
	w := ordersWorld(t, 1)
	lost := errors.New("lease lost")
	lead, end := context.WithCancelCause(t.Context())
	w.hook = func(call string) error {
		if call == "before topics" {
			end(lost)
		}
		return nil
	}
	if _, err := w.worker().RunOnce(lead); !errors.Is(err, lost) || !errors.Is(err, context.Canceled) {
		t.Errorf("the pass ended with %v", err)
	}
}
