package offload

import (
	"testing"
	"time"

	"korvet-offload/segment"
)

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
