package offload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// pauses are what is paused, or why that can't be read.
type pauses struct {
	fields map[string]string
	err    error
}

func (p *pauses) Paused(context.Context) (segment.Pauses, error) {
	return segment.ParsePauses(p.fields), p.err
}

// pause pauses a scope by a value.
func pause(field, value string) *pauses { return &pauses{fields: map[string]string{field: value}} }

func allPaused() *pauses { return pause("*", segment.Pause{}.Encode()) }

// busyWorld has topic orders with something of each kind to do: a segment to
// delete, one to hide, one that was never copied and is past total retention,
// one to drop, one to copy, one to roll; and a partition to create.
func busyWorld(t *testing.T) *world {
	w := newWorld(t)
	w.topic("orders", 2)
	w.set("orders", func(s *segment.TopicSettings) { s.RetentionMs, s.LocalRetentionMs = 36_000_000, 3_600_000 })
	ago := func(hours int) time.Time { return w.now.Add(time.Duration(-hours) * time.Hour) }
	w.gone(orders0, 0, 3, ago(20))
	w.change(orders0, 0, func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, ago(1).UnixMilli() })
	w.gone(orders0, 1, 3, ago(12))
	w.local(orders0, 2, 3, ago(11))
	w.remote(orders0, 3, 3, ago(2))
	w.local(orders0, 4, 3, ago(1))
	w.xadd(segment.DefaultLayout().SegmentKey(orders0, 5), segment.ID{Ms: uint64(ago(30).UnixMilli())})
	w.put(orders0, "5", string(segment.NewOpen("", ago(30).UnixMilli()).Encode()))
	return w
}

const (
	busyLife = "0:DELETING 1:GONE 2:LOCAL 3:REMOTE 4:LOCAL 5:OPEN"
	busyWork = "orders:0/0 expired, orders:0/1 hidden, orders:0/2 hidden, orders:0/3 dropped, orders:0/4 copied, orders:0/5 rolled, orders:1/0 created"
)

// takesAll makes a worker take all that it may.
func takesAll(c *Config) { c.Roll, c.ExpireUnuploaded = true, Expire }

// stuff is all that a pass could change, but the records of topics.
func (w *world) stuff() string {
	var text strings.Builder
	fmt.Fprintln(&text, w.manifests) // in the order of the keys
	for _, key := range sortedKeys(w.streams) {
		fmt.Fprintf(&text, "%s %+v\n", key, *w.streams[key])
	}
	fmt.Fprintln(&text, sortedKeys(w.objects))
	return text.String()
}

// What is paused is read and counted, and nothing of it is changed, although
// everything is due. Afterwards it goes on as if nothing had been.
//
//fault:operator | Everything is due, data that was never copied as well, and it is paused; or the record of that can't be read | In memory | It is counted and shown; nothing is created, sealed, copied, dropped, hidden or deleted until it is resumed
func TestNothingIsDoneWithWhatIsPaused(t *testing.T) {
	w := busyWorld(t)
	mustDo(t, runOnce(t, w.worker(takesAll)), busyWork, "") // there is something to do
	open, err := busyWorld(t).worker(takesAll).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		paused   *pauses
		problems string
	}{
		"everything":          {allPaused(), ""},
		"the topic":           {pause("topic:orders", segment.Pause{}.Encode()), ""},
		"everything, garbled": {pause("*", "?"), "pause: pause_unreadable"},
		"the topic, garbled":  {pause("topic:orders", "?"), `topic "orders": pause_unreadable`},
		"unreadable":          {&pauses{err: errors.New("WRONGTYPE")}, "pause: pause_unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			w := busyWorld(t)
			worker := w.worker(takesAll)
			worker.ports.Pauses = tt.paused
			before := w.stuff()
			r := runOnce(t, worker)
			mustDo(t, r, "", tt.problems)
			if after := w.stuff(); after != before || w.made("delete")+w.made("swap orders")+w.made("put")+w.made("remove") > 0 {
				t.Errorf("it is\n%s\nwas\n%s\ncalls %q", after, before, w.calls)
			}
			w.mustBe(orders0, busyLife)
			if !reflect.DeepEqual(r.Plan.Counts, open.Counts) || !reflect.DeepEqual(r.Plan.Lag, open.Lag) {
				t.Errorf("counted %+v %+v, want %+v %+v", r.Plan.Counts, r.Plan.Lag, open.Counts, open.Lag)
			}
			if len(r.Plan.Paused.List) != 1 || r.Left != 0 {
				t.Errorf("paused: %+v, left %d", r.Plan.Paused, r.Left)
			}
			*tt.paused = pauses{}
			mustDo(t, runOnce(t, worker), busyWork, "")
		})
	}
}

// TestWhatIsNotPausedGoesOn: a field that names nothing pauses nothing, and is
// reported.
func TestWhatIsNotPausedGoesOn(t *testing.T) {
	for field, problems := range map[string]string{
		"topic:other":   "",
		"stream:orders": "",
		"orders":        "pause: pause_unreadable",
	} {
		w := busyWorld(t)
		worker := w.worker(takesAll)
		worker.ports.Pauses = pause(field, segment.Pause{}.Encode())
		mustDo(t, runOnce(t, worker), busyWork, problems)
	}
}

// Redis that can't be asked ends the pass, as with any other question.
func TestNoPassWithoutKnowingWhatIsPaused(t *testing.T) {
	w := busyWorld(t)
	worker := w.worker(takesAll)
	worker.ports.Pauses = &pauses{err: fmt.Errorf("timeout: %w", ErrRedisDown)}
	if _, err := worker.RunOnce(t.Context()); !errors.Is(err, ErrRedisDown) || !strings.HasPrefix(err.Error(), "read what is paused: ") {
		t.Error(err)
	}
	w.mustBe(orders0, busyLife)
}

// A topic that left the registry is deleted with all that it has; not while it
// is paused, and it is not forgotten either.
func TestARemovedTopicThatIsPausedStays(t *testing.T) {
	w := busyWorld(t)
	deletes := func(c *Config) { takesAll(c); c.DeleteRemovedTopics = true }
	worker := w.worker(deletes)
	worker.ports.Pauses = allPaused()
	runOnce(t, worker)
	w.topics = nil
	worker.memory.registry = 0 // nobody doubts it
	w.later(worker, time.Minute)
	known := maps.Clone(w.known)
	for range 3 {
		mustDo(t, w.later(worker, 48*time.Hour), "", "")
	}
	w.mustBe(orders0, busyLife)
	if !maps.Equal(w.known, known) {
		t.Errorf("known: %v, was %v", w.known, known)
	}
	worker.ports.Pauses = nil
	if r := w.later(worker, time.Minute); len(r.Outcomes) == 0 {
		t.Error("it does not go on")
	}
}

// A stream that a failover brought back is not removed while it is paused.
func TestNoLeftoverOfWhatIsPausedIsRemoved(t *testing.T) {
	w := dropWorld(t, false)
	stream := *w.streams[key0]
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 dropped", "")
	w.streams[key0] = &stream
	worker.ports.Pauses = allPaused()
	mustDo(t, w.later(worker, time.Minute), "", "segment orders:0/0: stray_stream")
	worker.ports.Pauses, worker.ports.Gate = nil, barred{}
	mustDo(t, w.later(worker, time.Minute), "", "segment orders:0/0: stray_stream")
	if w.streams[key0] == nil {
		t.Error("it is removed")
	}
	worker.ports.Gate = nil
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 dropped", "")
}

// barred is a gate that is closed.
type barred struct{}

func (barred) Enter(segment.Partition) (func(), bool) { return nil, false }

// shutter is a gate that closes at some question, and counts who is inside.
type shutter struct{ open, inside int }

func (s *shutter) Enter(segment.Partition) (func(), bool) {
	if s.open--; s.open < 0 {
		return nil, false
	}
	s.inside++
	return func() { s.inside-- }, true
}

// TestAGateThatCloses lets a pass do so many steps and no more: objects that
// are to be deleted ask once more, and what was let in leaves.
func TestAGateThatCloses(t *testing.T) {
	for steps, want := range []string{
		"", // nothing is cleared
		"0:DELETING calls 0",
		"0:DELETING calls 1", // the object is gone, and the entry stays for the next pass
		" calls 1",
	} {
		w := doomedWorld(t, 1)
		worker := w.worker()
		gate := &shutter{open: steps}
		worker.ports.Gate = gate
		worker.atOnce = 1
		r := runOnce(t, worker)
		if got := fmt.Sprintf("%s calls %d", w.life(orders0), w.made("delete")); steps > 0 && got != want || gate.inside != 0 {
			t.Errorf("after %d steps: %s, want %s; inside %d", steps, got, want, gate.inside)
		}
		if wantLeft := min(1, 3-steps); r.Left != wantLeft {
			t.Errorf("after %d steps: %d left, want %d", steps, r.Left, wantLeft)
		}
		worker.ports.Gate = nil
		if steps < 3 {
			mustDo(t, w.later(worker, time.Minute), "orders:0/0 expired", "")
		}
	}
}
