package broker

import (
	"context"
	"sync"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// world is a Redis with one partition, whose first segment is open.
type world struct {
	t         *testing.T
	server    *redisserver.Server
	broker    *Broker
	ledger    *Ledger
	partition segment.Partition
	layout    segment.Layout
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, server: redisserver.Start(t), ledger: NewLedger(), partition: segment.Partition{Topic: "orders"}, layout: segment.DefaultLayout()}
	var err error
	if w.broker, err = Connect(w.server.Addr, w.layout); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.broker.Close)
	return w
}

// open makes a segment the open one, and seals the one before.
func (w *world) open(n segment.Number) {
	if n > 0 {
		w.server.Exec("HSET", w.layout.ManifestKey(w.partition), (n - 1).String(), `{"v":1,"state":"SEALED","tier":"LOCAL"}`)
	}
	w.server.Exec("HSET", w.layout.ManifestKey(w.partition), n.String(), `{"v":1,"state":"OPEN","tier":"LOCAL"}`)
}

// run runs a producer until the test, or the function that it returns, ends it.
func (w *world) run(p Producer) (end func()) {
	p.Broker, p.Ledger, p.Seed, p.Batch, p.Pace = w.broker, w.ledger, 1, 2, time.Millisecond
	ctx, stop := context.WithCancel(context.Background())
	var going sync.WaitGroup
	going.Go(func() {
		if err := p.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	end = func() {
		stop()
		going.Wait()
	}
	w.t.Cleanup(end)
	return end
}

// await polls until a stream has messages in the ledger.
func (w *world) await(s Source) {
	w.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for len(w.ledger.Acks(s)) == 0 {
		if time.Now().After(deadline) {
			w.t.Fatalf("nothing comes to %s", s.Key)
		}
		<-time.After(time.Millisecond)
	}
}

// mustMatch checks that a stream holds just what the ledger says.
func (w *world) mustMatch(s Source) {
	w.t.Helper()
	found, err := w.broker.Range(w.t.Context(), s.Key, segment.ID{}, segment.MaxID())
	acks := w.ledger.Acks(s)
	if err != nil || len(found) != len(acks) || len(acks) == 0 {
		w.t.Errorf("%s has %d messages, the ledger %d: %v", s.Key, len(found), len(acks), err)
	}
	for id, a := range acks {
		if found[id] != a.Sum {
			w.t.Errorf("%s: message %s differs", s.Key, id)
		}
	}
}

func (w *world) source(n segment.Number) Source {
	return Source{Partition: w.partition, Number: n, Key: w.layout.SegmentKey(w.partition, n)}
}

func TestProducerFollowsTheManifest(t *testing.T) {
	w := newWorld(t)
	base := Source{Partition: w.partition, Key: w.layout.StreamKey(w.partition)}
	end := w.run(Producer{Partition: w.partition, Base: true})
	w.await(base)
	w.open(0)
	w.await(w.source(0))
	w.open(1)
	w.await(w.source(1))
	end()
	for _, s := range []Source{base, w.source(0), w.source(1)} {
		w.mustMatch(s)
	}
	if got := len(w.ledger.Sources()); got != 3 {
		t.Errorf("%d streams", got)
	}
}

func TestProducerHoldsOn(t *testing.T) {
	for name, silent := range map[string]bool{"writing": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.open(0)
			end := w.run(Producer{Partition: w.partition, HoldsOn: 300 * time.Millisecond, Silent: silent})
			w.await(w.source(0))
			w.open(1)
			w.await(w.source(1))
			end()
			w.mustMatch(w.source(0))
			w.mustMatch(w.source(1))
		})
	}
}

func TestConsumerReadsEachMessageOnce(t *testing.T) {
	w := newWorld(t)
	p := segment.Partition{Topic: "events", Plain: true}
	s := Source{Partition: p, Key: "events"}
	c := Consumer{Broker: w.broker, Key: "events", Group: "g", Pause: time.Millisecond}
	if err := c.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	read := make(chan map[segment.ID]Sum)
	go func() {
		all, err := c.Run(ctx)
		if err != nil {
			t.Error(err)
		}
		read <- all
	}()
	end := w.run(Producer{Partition: p})
	w.await(s)
	end()
	stop()
	got, acks := <-read, w.ledger.Acks(s)
	for id, a := range acks {
		if got[id] != a.Sum {
			t.Errorf("message %s was not read", id)
		}
	}
	if len(got) != len(acks) || w.ledger.Len() != len(acks) {
		t.Errorf("%d read, %d written", len(got), len(acks))
	}
	if pending := w.server.Exec("XPENDING", "events", "g"); pending[:1] != "0" {
		t.Errorf("pending: %s", pending)
	}
}

func TestLedgerNotesDeletions(t *testing.T) {
	l, s := NewLedger(), Source{Key: "s"}
	l.add(s, segment.ID{Ms: 1}, SumOf("a", "b"))
	if l.Deleted(s, segment.ID{Ms: 2}) || !l.Deleted(s, segment.ID{Ms: 1}) || !l.Acks(s)[segment.ID{Ms: 1}].Deleted {
		t.Errorf("%+v", l.Acks(s))
	}
	if SumOf("a", "bc") == SumOf("ab", "c") || SumOf("a") != SumOf([]byte("a")) {
		t.Error("sums")
	}
}

func TestRangeOfALongStream(t *testing.T) {
	w := newWorld(t)
	var cmds []byte
	const n = 2*readPage + 1
	for range n {
		cmds = redisserver.AppendCommand(cmds, "XADD", "s", "*", "f", "v", "f", "w")
	}
	w.server.Pipe(cmds)
	for from, want := range map[segment.ID]int{{}: n, segment.MaxID(): 0} {
		if got, err := w.broker.Range(t.Context(), "s", from, segment.MaxID()); err != nil || len(got) != want {
			t.Errorf("%d entries, %v", len(got), err)
		}
	}
	w.server.Exec("HSET", w.layout.ManifestKey(w.partition), "x", "y")
	if _, err := w.broker.Entries(t.Context(), w.partition); err == nil {
		t.Error("a field that is no segment's")
	}
}
