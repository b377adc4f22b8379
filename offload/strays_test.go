package offload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

//fault:late-data | An append to a stream that was removed | In memory | It is kept and reported for as long as it is there, and keeps its segment from being deleted
func TestAStrayStream(t *testing.T) {
	w := dropWorld(t, false)
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 dropped", "")
	mustDo(t, w.later(worker, time.Minute), "", "")
	w.produce(key0, 1)
	for range 3 { // for as long as it is there, not only for strayTime
		mustDo(t, w.later(worker, strayTime), "", "segment orders:0/0: stray_stream")
	}
	w.set("orders", func(s *segment.TopicSettings) { s.RetentionMs = 7_200_000 })
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 hidden", "segment orders:0/0: stray_stream")
	r := w.later(w.worker(), time.Hour) // another process, which does not remember the drop
	mustDo(t, r, "", "segment orders:0/0: stray_stream")
	w.mustBe(orders0, "0:DELETING")
	if w.objects[path0].body == nil || len(w.streams[key0].all()) != 1 {
		t.Error("the stray stream, or the object, is gone")
	}
	w.del(key0) // somebody has moved it on
	mustDo(t, w.later(w.worker(), time.Minute), "orders:0/0 expired", "")
	w.calls = nil
	runOnce(t, worker)
	if w.later(worker, 2*strayTime); len(worker.memory.dropped) != 0 {
		t.Errorf("still watched: %v", worker.memory.dropped)
	}
}

// A stream that is there and empty holds nothing back.
func TestAnEmptyStrayStream(t *testing.T) {
	w := dropWorld(t, false)
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 dropped", "")
	w.streams[key0] = &fakeStream{} // XGROUP CREATE ... MKSTREAM
	w.set("orders", func(s *segment.TopicSettings) { s.RetentionMs = 7_200_000 })
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 hidden", "")
	mustDo(t, w.later(worker, 10*time.Minute), "orders:0/0 expired", "")
}

// Whoever dropped the stream was stopped before it could look again.
func TestAStrayStreamAfterARestart(t *testing.T) {
	w := dropWorld(t, false)
	mustDo(t, runOnce(t, w.worker()), "orders:0/0 dropped", "")
	w.produce(key0, 1)
	mustDo(t, w.later(w.worker(), time.Minute), "", "segment orders:0/0: stray_stream")
}

// A topic that was made anew, which only its manifest shows, has streams under
// the keys of the old one.
func TestNoStrayOfATopicMadeAnew(t *testing.T) {
	w := dropWorld(t, false)
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 dropped", "")
	w.manifests[orders0] = nil
	w.open(orders0, 0, 3)
	mustDo(t, w.later(worker, time.Minute), "", "")
	mustDo(t, w.later(worker, time.Minute), "", "")
}

// A failover loses the removal of a stream and keeps the GONE behind it: the
// stream is the very one that was copied, and goes again; but not if its object
// is not there.
//
//fault:redis | A failover brings a stream back whose entry is GONE | The stream is put back as it was, in memory | It is removed again after a look at its object, and expiry goes on
func TestAStreamThatAFailoverBroughtBack(t *testing.T) {
	w := dropWorld(t, false)
	stream := *w.streams[key0]
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 dropped", "")

	w.streams[key0] = &stream
	object := w.objects[path0]
	delete(w.objects, path0)
	mustDo(t, w.later(worker, time.Minute), "", "segment orders:0/0: object_damaged, segment orders:0/0: stray_stream")
	w.objects[path0] = object
	mustDo(t, w.later(w.worker(), time.Minute), "orders:0/0 dropped", "")
	if w.streams[key0] != nil {
		t.Error("the stream is still there")
	}

	w.set("orders", func(s *segment.TopicSettings) { s.RetentionMs = 7_200_000 })
	worker = w.worker()
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 hidden", "")
	w.streams[key0] = &stream
	mustDo(t, w.later(w.worker(), time.Hour), "orders:0/0 expired", "") // another process, which does not remember the drop
	if w.streams[key0] != nil || w.objects[path0].body != nil {
		t.Error("the stream, or the object, is still there")
	}
}

// One entry more than was copied makes a stream that came back a stray one.
func TestAStreamThatCameBackWithMore(t *testing.T) {
	w := dropWorld(t, false)
	stream := *w.streams[key0]
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 dropped", "")
	w.streams[key0] = &stream
	w.produce(key0, 1)
	mustDo(t, w.later(worker, time.Minute), "", "segment orders:0/0: stray_stream")
	if n := len(w.streams[key0].all()); n < 2 {
		t.Errorf("%d entries are left", n)
	}
}

// Who loses the lead and has it again goes on watching all that it has dropped.
func TestTheLeadIsLostAfterDrops(t *testing.T) {
	w := dropWorld(t, false)
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 dropped", "")
	for n := range segment.Number(5) { // the last ones, which are watched in any case
		w.gone(orders0, 100+n, 1, w.now)
	}
	w.produce(key0, 1)
	worker.Reset()
	mustDo(t, w.later(worker, time.Minute), "", "segment orders:0/0: stray_stream")
}

// A store that is down holds up the look at what came back, and nothing else.
func TestStreamsThatCameBackWhileTheStoreIsDown(t *testing.T) {
	w := lifeWorld(t, func(*segment.TopicSettings) {})
	for n := range segment.Number(2) {
		w.remote(orders0, n, 3, w.now.Add(-time.Hour))
		w.change(orders0, n, func(e *segment.Entry) { e.Local = segment.Gone })
	}
	looks := 0
	w.hook = func(call string) error {
		if strings.HasPrefix(call, "before stat") {
			looks++
			return fmt.Errorf("stat: %w", ErrStoreDown)
		}
		return nil
	}
	mustDo(t, runOnce(t, w.worker()), "", "segment orders:0/0: store, segment orders:0/0: stray_stream, segment orders:0/1: stray_stream")
	if looks != 1 {
		t.Errorf("%d looks", looks)
	}
	w.quiet()
	mustDo(t, w.later(w.worker(), time.Minute), "orders:0/0 dropped, orders:0/1 dropped", "")
}

// What comes after the removal and before GONE was written makes a stray stream
// as well.
//
//fault:late-data | An append right after the removal, and the worker dies | In memory | The drop is finished, and the stream is reported as a stray one
func TestAStrayStreamBeforeGone(t *testing.T) {
	w := dropWorld(t, false)
	dead := false
	w.hook = func(call string) error {
		if call == "after remove "+key0 {
			dead = true
			w.produce(key0, 1)
		}
		if dead {
			return errKilled
		}
		return nil
	}
	_, _ = w.worker().RunOnce(t.Context())
	w.quiet()
	w.mustBe(orders0, "0:DROPPING")
	worker := w.worker()
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 dropped", "")
	w.mustBe(orders0, "0:GONE")
	mustDo(t, w.later(worker, time.Minute), "", "segment orders:0/0: stray_stream")
	if n := len(w.streams[key0].all()); n != 1 {
		t.Errorf("%d entries are left", n)
	}
}
