package test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// The settings of a life: half an hour of a quick topic, sixty times faster.
const (
	lifeTick      = 250 * time.Millisecond
	lifeSegment   = time.Second
	lifeLocal     = 2 * time.Second
	lifeRetention = 8 * time.Second
	lifeSealGrace = 300 * time.Millisecond
	lifeDelGrace  = time.Second
)

func ms(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// life is a rig with producers that write for as long as they are told, to
// topic orders and to plain stream events, and with their ledger.
type life struct {
	*rig
	broker *broker.Broker
	books  *broker.Ledger
	parts  []segment.Partition // the last one is the plain stream
	watch  *watch

	write context.Context // of the producers
	stop  context.CancelFunc
	going sync.WaitGroup
	rest  func() // ends the watch
}

func newLife(t *testing.T, r *rig, env ...string) *life {
	t.Helper()
	b, err := broker.Connect(r.redis.Addr, r.layout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	l := &life{rig: r, broker: b, books: broker.NewLedger()}
	l.topic("orders", 3, "retention.ms", ms(lifeRetention), "local.retention.ms", ms(lifeLocal), "segment.ms", ms(lifeSegment))
	l.env = append([]string{
		"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=" + lifeTick.String(),
		"KORVET_STORAGE_OFFLOAD_LEASE_DURATION=1500ms",
		"KORVET_STORAGE_OFFLOAD_SEAL_GRACE=" + lifeSealGrace.String(),
		"KORVET_STORAGE_OFFLOAD_DELETE_GRACE=" + lifeDelGrace.String(),
		"KORVET_STREAMS_0_KEY=events",
		"KORVET_STREAMS_0_SEGMENT_TIME=" + lifeSegment.String(),
		"KORVET_STREAMS_0_LOCAL_RETENTION_TIME=" + lifeLocal.String(),
		"KORVET_STREAMS_0_RETENTION_TIME=" + lifeRetention.String(),
	}, env...)
	for n := range 3 {
		l.parts = append(l.parts, segment.Partition{Topic: "orders", Number: n})
	}
	l.parts = append(l.parts, segment.Partition{Topic: "events", Plain: true})
	l.watch = newWatch(l)
	return l
}

// begin starts producers, each with the number of its partition, and the watch.
func (l *life) begin(producers ...*broker.Producer) {
	l.write, l.stop = context.WithCancel(context.Background())
	l.t.Cleanup(l.end)
	l.more(producers...)
	watching, unwatch := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { l.watch.run(watching) })
	l.rest = func() {
		unwatch()
		watch.Wait()
	}
	l.t.Cleanup(l.rest)
}

// more starts producers beside those that are going.
func (l *life) more(producers ...*broker.Producer) {
	for _, p := range producers {
		p.Broker, p.Ledger = l.broker, l.books
		l.going.Go(func() {
			if err := p.Run(l.write); err != nil {
				l.t.Error(err)
			}
		})
	}
}

// end stops the producers.
func (l *life) end() {
	l.stop()
	l.going.Wait()
}

// everywhere makes a producer for each partition and the plain stream.
func (l *life) everywhere() (all []*broker.Producer) {
	for i, p := range l.parts {
		all = append(all, &broker.Producer{Partition: p, Seed: uint64(i + 1), Batch: 3, Pace: 10 * time.Millisecond, Reread: 5})
	}
	return all
}

// where names a segment.
type where struct {
	partition segment.Partition
	number    segment.Number
}

func (w where) String() string { return w.partition.String() + "/" + w.number.String() }

// watch looks at the manifests again and again while a life goes on. How
// entries change is the history's matter; the watch counts what it sees, and
// looks at how old segments are when they go.
type watch struct {
	life      *life
	retention time.Duration // 0 = nothing may be hidden for its age

	mu      sync.Mutex
	history *checker.History
	last    map[where]segment.Entry // as they were seen last
	hidden  map[where]segment.Entry // DELETING, or gone after that
	steps   map[string]int          // what was seen
}

func newWatch(l *life) *watch {
	return &watch{life: l, retention: lifeRetention, history: checker.NewHistory(),
		last: map[where]segment.Entry{}, hidden: map[where]segment.Entry{}, steps: map[string]int{}}
}

func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.look()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// look reads all manifests once.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	there := map[where]bool{}
	for _, p := range w.life.parts {
		entries, err := w.life.broker.Entries(context.Background(), p)
		if err != nil {
			w.life.t.Error(err)
			return
		}
		manifest := map[string]string{}
		for _, s := range entries {
			manifest[s.Number.String()] = s.Raw
			there[where{p, s.Number}] = true
			w.step(where{p, s.Number}, s.Entry)
		}
		for _, f := range w.history.See(p.String(), manifest) {
			w.life.t.Error(f)
		}
	}
	for at := range w.last {
		if !there[at] {
			w.steps["erased"]++
			delete(w.last, at)
		}
	}
}

// watched is how often a step was seen so far.
func (l *life) watched(step string) int {
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	return l.watch.steps[step]
}

// rank is how far an entry is in its life.
func rank(e segment.Entry) string {
	switch {
	case e.State == segment.Open:
		return "0 open"
	case e.State == segment.Deleting:
		return "5 deleting"
	case e.Tier == segment.Local:
		return "1 local"
	case e.Local == segment.Present:
		return "2 present"
	case e.Local == segment.Dropping:
		return "3 dropping"
	}
	return "4 gone"
}

// step judges when an entry has become what it is.
func (w *watch) step(at where, e segment.Entry) {
	before, known := w.last[at]
	w.last[at] = e
	if known && rank(before) == rank(e) {
		return
	}
	w.steps[rank(e)]++
	t, now := w.life.t, time.Now().UnixMilli()
	age := now - int64(e.LastID.Ms)
	switch rank(e) {
	case "3 dropping", "4 gone":
		if age <= lifeLocal.Milliseconds() {
			t.Errorf("%s was dropped %d ms after its last message: %s", at, age, e.Encode())
		}
	case "5 deleting":
		w.hidden[at] = e
		if w.retention != 0 && e.DeletingAt-int64(e.LastID.Ms) <= w.retention.Milliseconds() || e.DeletingAt > now {
			t.Errorf("%s was hidden too early: %s", at, e.Encode())
		}
	}
}

// expired says whether a message may be gone: its segment was hidden when the
// message was past total retention.
func (w *watch) expired(at where, id segment.ID) bool {
	e, hidden := w.hidden[at]
	return hidden && w.retention != 0 && e.DeletingAt-int64(id.Ms) > w.retention.Milliseconds()
}

// hiddenRange is the segment of the plain stream that an id was in, and that
// was hidden.
func (w *watch) hiddenRange(p segment.Partition, id segment.ID) (where, bool) {
	for at, e := range w.hidden {
		if at.partition == p && e.From.Compare(id) <= 0 && id.Compare(e.To) <= 0 {
			return at, true
		}
	}
	return where{}, false
}

// quiet says whether every sealed segment has been copied.
func (l *life) quiet() bool {
	for _, p := range l.parts {
		entries, err := l.broker.Entries(context.Background(), p)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, s := range entries {
			if rank(s.Entry) == "1 local" {
				return false
			}
		}
	}
	return true
}

// forbidden picks the lines of a monitor that need a reason.
func forbidden(line string) bool {
	for _, command := range []string{`"KEYS"`, `"SCAN"`, `"DEL"`, `"UNLINK"`, `"XTRIM"`, `"XDEL"`, `"FLUSHALL"`, `"FLUSHDB"`, `"RENAME"`} {
		if strings.Contains(strings.ToUpper(line), "] "+command) {
			return true
		}
	}
	return false
}
