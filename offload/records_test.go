package offload

import (
	"errors"
	"testing"
	"time"

	"korvet-offload/segment"
)

func TestRecordsThatCantBeWrittenOrRead(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) {})
	w.hook = failOnce("before swapknown orders", errors.New("no"))
	worker := w.worker(deletesTopics)
	if r := runOnce(t, worker); complaints(r) != `topic "orders": other` || w.known["orders"] != "" {
		t.Errorf("%s, known %v", complaints(r), w.known)
	}
	w.hook = at("before swapknown orders", func() { w.known["orders"] = "theirs" })
	mustDo(t, w.later(worker, time.Second), "", "")
	if w.known["orders"] != "theirs" {
		t.Errorf("their record was overwritten: %q", w.known["orders"])
	}
	w.later(worker, 2*time.Second) // now it has read it
	if w.record("orders").Settings.Partitions != 1 {
		t.Errorf("known %v", w.known)
	}
	w.known["lost"] = "not JSON"
	w.known["later"] = `{"v":2,"settings":{"partitions":1}}`
	w.known["a/b"] = w.known["orders"]
	worker = w.worker(deletesTopics)
	w.later(worker, time.Second)
	for range 2 {
		if r := w.later(worker, 100*time.Hour); complaints(r) != `topic "a/b": topic_name, topic "later": topic_setting, topic "lost": topic_setting` {
			t.Errorf("%s", complaints(r))
		}
	}
	if w.known["lost"] != "not JSON" || len(w.known) != 5 {
		t.Errorf("known %v", w.known)
	}
}

// A topic that is first missed when the clock has jumped is not removed yet.
func TestATopicThatIsMissedInDoubt(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) {})
	worker := w.worker(deletesTopics)
	here := w.now
	worker.now = func() time.Time { return here }
	runOnce(t, worker)
	w.unregister("orders")
	if w.later(worker, 1000*time.Hour); w.record("orders").RemovedAt != 0 {
		t.Errorf("%q", w.known["orders"])
	}
	here = here.Add(clockSettles)
	if w.later(worker, clockSettles); w.record("orders").RemovedAt != w.now.UnixMilli() {
		t.Errorf("%q", w.known["orders"])
	}
}
