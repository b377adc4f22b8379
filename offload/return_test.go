package offload

import (
	"testing"
	"time"

	"korvet-offload/segment"
)

// hiddenWorld has the topic of topicsWorld hidden because it left the registry.
func hiddenWorld(t *testing.T) (*world, *Worker, segment.Topic) {
	w := topicsWorld(t, func(*segment.TopicSettings) {})
	worker := w.worker(deletesTopics)
	runOnce(t, worker)
	w.later(worker, time.Minute) // the second one is past its grace by then
	w.mustBe(orders0, "0:GONE 1:REMOTE 2:REMOTE 3:OPEN")
	was := w.unregister("orders")
	w.later(worker, time.Minute)
	mustDo(t, w.later(worker, 24*time.Hour), "orders:0/0 hidden, orders:0/1 hidden, orders:0/2 hidden, orders:0/3 hidden", "")
	return w, worker, was
}

// A topic that is registered again before its data is deleted gets all of it
// back, and goes on where it was.
func TestATopicThatComesBackWhileItIsHidden(t *testing.T) {
	w, worker, was := hiddenWorld(t)
	before := len(w.objects)
	w.topics = append(w.topics, was)
	mustDo(t, w.later(worker, time.Hour), "orders:0/0 returned, orders:0/1 returned, orders:0/2 returned, orders:0/3 returned", "")
	w.mustBe(orders0, "0:GONE 1:REMOTE 2:REMOTE 3:OPEN")
	mustDo(t, w.later(worker, time.Hour), "", "")
	if e := w.entry(orders0, 3); e.Count != segment.NoCount || !e.LastID.IsZero() || e.Source != nil || e.DeletingAt != 0 || e.WithTopic != "" {
		t.Errorf("%s", e.Encode())
	}
	if len(w.objects) != before {
		t.Errorf("%d objects, %d before", len(w.objects), before)
	}
	w.mustKeep(0)
}

// What was deleted already is not brought back as a segment without data.
func TestATopicThatComesBackTooLate(t *testing.T) {
	w, worker, was := hiddenWorld(t)
	delete(w.objects, path0)                             // an object went, its entry did not
	delete(w.streams, "korvet:storage:local:orders:0:3") // a stream went, its entry did not
	w.topics = append(w.topics, was)
	mustDo(t, w.later(worker, time.Hour), "orders:0/1 returned, orders:0/2 returned, orders:0/3 returned", "")
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 expired", "")
	w.mustBe(orders0, "1:REMOTE 2:REMOTE 3:OPEN")
}

// A topic that is not offloaded any more comes back as well; its segments then
// live out their retention.
func TestATopicThatComesBackDisabled(t *testing.T) {
	w, worker, was := hiddenWorld(t)
	was.Settings.RemoteStorage = false
	w.topics = append(w.topics, was)
	w.later(worker, time.Hour)
	w.mustBe(orders0, "0:GONE 1:REMOTE 2:REMOTE 3:OPEN")
}

// An OPEN segment that is written to while it is hidden is OPEN again.
func TestAHiddenOpenSegmentThatIsWrittenTo(t *testing.T) {
	w, worker, _ := hiddenWorld(t)
	w.produce("korvet:storage:local:orders:0:3", 1)
	w.later(worker, 10*time.Minute)
	if e := w.entry(orders0, 3); e.State != segment.Open || e.Count != segment.NoCount {
		t.Errorf("%s", e.Encode())
	}
}

// What is past total retention goes, whatever the topic does.
func TestRetentionIsNotTakenBack(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) { s.RetentionMs = hourMs })
	worker := w.worker(deletesTopics)
	mustDo(t, runOnce(t, worker), "orders:0/0 hidden, orders:0/1 dropped", "")
	was := w.unregister("orders")
	w.later(worker, time.Second)
	w.topics = append(w.topics, was)
	w.later(worker, time.Second)
	if e := w.entry(orders0, 0); e.State != segment.Deleting || e.WithTopic != "" {
		t.Errorf("%s", e.Encode())
	}
}

// A topic that is made anew while its name was remembered as removed, without an
// id and with as many entries, is looked at as a new one.
//
//fault:topics | A topic is removed and made anew under the same name, without an id, with as many entries in its manifest | In memory, a new segment in the place of an old one | The new segment is copied at the next pass, not at the next whole reading
func TestATopicMadeAnewWithAsManyEntries(t *testing.T) {
	w := topicsWorld(t, func(*segment.TopicSettings) {})
	worker := w.worker()
	runOnce(t, worker)
	w.later(worker, time.Minute)
	w.mustBe(orders0, "0:GONE 1:REMOTE 2:REMOTE 3:OPEN")
	was := w.unregister("orders")
	w.later(worker, time.Minute)
	w.del("korvet:storage:local:orders:0:1")
	made := w.local(orders0, 1, 3, w.now)
	w.topics = append(w.topics, was)
	w.later(worker, time.Minute)
	w.mustBe(orders0, "0:GONE 1+1:REMOTE 2:REMOTE 3:OPEN") // the old one's object lies at the first path
	if e := w.entry(orders0, 1); e.Count != made.Count || e.FirstID != made.FirstID {
		t.Errorf("the new segment was not copied: %s", e.Encode())
	}
}
