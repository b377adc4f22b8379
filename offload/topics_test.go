package offload

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// topicsWorld has topic orders in all states that a segment can have, and
// topic other, so that the registry is never empty.
func topicsWorld(t *testing.T, change func(*segment.TopicSettings)) *world {
	w := newWorld(t)
	w.topic("orders", 1)
	w.set("orders", change)
	w.topic("other", 1)
	w.gone(orders0, 0, 3, w.now.Add(-4*time.Hour))
	w.remote(orders0, 1, 3, w.now.Add(-3*time.Hour))
	w.local(orders0, 2, 3, w.now)
	w.open(orders0, 3, 3)
	return w
}

// unregister takes a topic out of the registry.
func (w *world) unregister(name string) segment.Topic {
	for i, t := range w.topics {
		if t.Name == name {
			w.topics = append(w.topics[:i:i], w.topics[i+1:]...)
			return t
		}
	}
	w.t.Fatalf("no topic %s", name)
	return segment.Topic{}
}

// record is what is remembered of a topic.
func (w *world) record(name string) record {
	w.t.Helper()
	r, err := parseRecord(name, w.known[name])
	if err != nil {
		w.t.Errorf("record of %s: %v", name, err)
	}
	return r
}

func deletesTopics(c *Config) { c.DeleteRemovedTopics = true }

// What becomes of a topic that leaves the registry, step by step, whether the
// process is always the same or a new one at each step.
func TestARemovedTopic(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		for _, restarts := range []bool{false, true} {
			w := topicsWorld(t, func(s *segment.TopicSettings) { s.LocalRetentionMs = 6 * hourMs })
			make := func() *Worker { return w.worker(func(c *Config) { c.DeleteRemovedTopics = deletes }) }
			worker := make()
			next := func(after time.Duration) Report {
				if restarts {
					worker = make()
				}
				return w.later(worker, after)
			}
			mustDo(t, next(0), "", "")
			w.unregister("orders")
			r := next(time.Minute)
			mustDo(t, r, "orders:0/2 copied", "") // by the settings it had last
			if len(r.Plan.Removed) != 1 || r.Plan.Removed[0].Phase != Removed || w.record("orders").RemovedAt != w.now.UnixMilli() {
				t.Errorf("%+v, %q", r.Plan.Removed, w.known["orders"])
			}
			mustDo(t, next(4*time.Hour), "orders:0/1 dropped", "")
			mustDo(t, next(20*time.Hour-time.Millisecond), "orders:0/2 dropped", "")
			w.mustBe(orders0, "0:GONE 1:GONE 2:GONE 3:OPEN")
			w.calls = nil
			r = next(time.Millisecond)
			if !deletes {
				mustDo(t, r, "", "")
				if r.Plan.Removed[0].Phase != Abandoned || w.made("swap orders") != 0 || w.made("manifest orders") != 0 {
					t.Errorf("%+v, calls %q", r.Plan.Removed, w.calls)
				}
				mustDo(t, next(10_000*time.Hour), "", "")
				w.mustBe(orders0, "0:GONE 1:GONE 2:GONE 3:OPEN")
				w.mustKeep(0)
				continue
			}
			mustDo(t, r, "orders:0/0 hidden, orders:0/1 hidden, orders:0/2 hidden, orders:0/3 hidden", "")
			mustDo(t, next(5*time.Minute-time.Millisecond), "", "")
			if len(w.objects) != 3 || w.known["orders"] == "" || len(w.streams) != 1 {
				t.Errorf("within the grace: objects %v, streams %v, known %v", sortedKeys(w.objects), sortedKeys(w.streams), w.known)
			}
			mustDo(t, next(time.Millisecond), "orders:0/0 expired, orders:0/1 expired, orders:0/2 expired, orders:0/3 expired_unuploaded", "")
			mustDo(t, next(time.Minute), "", "")
			if len(w.objects) != 0 || len(w.streams) != 0 || len(w.manifests[orders0]) != 0 || w.known["orders"] != "" {
				t.Errorf("left: objects %v, streams %v, manifest %s, known %v", sortedKeys(w.objects), sortedKeys(w.streams), w.life(orders0), w.known)
			}
			if r = next(time.Minute); len(r.Plan.Removed) != 0 || w.known["other"] == "" {
				t.Errorf("%+v, %v", r.Plan.Removed, w.known)
			}
		}
	}
}

// A topic that is to be deleted with streams in all states, one of which is
// still written to.
//
//fault:topics | A removed topic is still written to when it is to be deleted | In memory | What is new stays, and is reported
func TestADoomedTopicThatIsStillWrittenTo(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) {})
	worker := w.worker(deletesTopics)
	runOnce(t, worker)
	w.unregister("orders")
	w.later(worker, time.Minute)
	w.now = w.now.Add(24 * time.Hour)
	open := "korvet:storage:local:orders:0:3"
	for range 10 {
		w.produce(open, 1)
		w.later(worker, 3*time.Minute)
	}
	if life := w.life(orders0); life != "3:DELETING" && life != "3:LOCAL" || len(w.streams) != 1 {
		t.Errorf("%s, streams %v", life, sortedKeys(w.streams))
	}
	if n := len(w.streams[open].all()); n != 13 {
		t.Errorf("%d entries are left", n)
	}
	for range 5 { // now they have stopped
		w.later(worker, 3*time.Minute)
	}
	if len(w.streams) != 0 || len(w.manifests[orders0]) != 0 || w.known["orders"] != "" {
		t.Errorf("left: %s, streams %v", w.life(orders0), sortedKeys(w.streams))
	}
}

// A copy that somebody has added to is not removed with its topic.
func TestADoomedCopyThatHasGrown(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) {})
	worker := w.worker(deletesTopics)
	runOnce(t, worker)
	w.unregister("orders")
	w.later(worker, time.Minute)
	w.later(worker, 24*time.Hour)
	w.produce(key1, 1)
	w.put(orders0, "9", "not JSON")
	w.later(worker, 10*time.Minute)
	for range 3 {
		if r := w.later(worker, time.Hour); complaints(r) != "segment orders:0/1: stream_changed, segment orders:0/9: illegal_entry" {
			t.Errorf("%s; %s", did(r), complaints(r))
		}
	}
	w.mustBe(orders0, "1:DELETING 9:illegal")
	if len(w.streams[key1].all()) != 4 || len(w.objects) != 1 || w.known["orders"] == "" {
		t.Errorf("%d entries, objects %v, known %v", len(w.streams[key1].all()), sortedKeys(w.objects), w.known)
	}
}

func TestATopicThatComesBack(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) {})
	worker := w.worker(deletesTopics)
	runOnce(t, worker)
	was := w.unregister("orders")
	w.later(worker, time.Minute)
	w.topics = append(w.topics, was)
	w.later(worker, 23*time.Hour)
	if at := w.record("orders").RemovedAt; at != 0 {
		t.Errorf("removed at %d", at)
	}
	w.unregister("orders") // the grace begins anew
	w.later(worker, time.Minute)
	r := w.later(worker, 23*time.Hour)
	if r.Plan.Removed[0].Phase != Removed || strings.Contains(did(r), "hidden") {
		t.Errorf("%+v, %s", r.Plan.Removed, did(r))
	}
	w.topics = append(w.topics, was) // in the last moment
	r = w.later(worker, 2*time.Hour)
	if len(r.Plan.Removed) != 0 || strings.Contains(did(r), "hidden") {
		t.Errorf("%+v, %s", r.Plan.Removed, did(r))
	}
	w.mustKeep(0)
}

// Made anew under the same name: its first segment has the number, and so the
// path, of one of the old topic.
//
//fault:topics | A topic is made anew with another id | In memory | Its segments are its own
func TestATopicThatIsMadeAnew(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) { s.ID = "first" })
	worker := w.worker()
	runOnce(t, worker)
	old := w.objects[path0]
	w.manifests[orders0], w.log = nil, map[string][]segment.ID{}
	clear(w.streams)
	for n := range segment.Number(3) {
		w.local(orders0, n, 3, w.now)
	}
	w.open(orders0, 3, 1) // as many entries as there were
	w.set("orders", func(s *segment.TopicSettings) { s.ID = "second" })
	w.calls = nil
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 copied, orders:0/1 copied, orders:0/2 copied", "")
	if w.made("manifest orders:0") != 1 {
		t.Errorf("what was remembered of the old one was used: %q", w.calls)
	}
	if e := w.entry(orders0, 0); e.Object.Path == path0 || string(w.objects[path0].body) != string(old.body) {
		t.Errorf("%+v", e.Object)
	}
	if w.record("orders").Settings.ID != "second" {
		t.Errorf("known: %q", w.known["orders"])
	}
	w.mustKeep(0)
}

// overdue makes everything of orders overdue.
func (w *world) overdue() { w.set("orders", func(s *segment.TopicSettings) { s.RetentionMs = 1 }) }

//fault:topics | The registry is empty all at once | In memory | Nothing of a topic is deleted
func TestARegistryThatReadsAsEmpty(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := topicsWorld(t, func(s *segment.TopicSettings) {})
		w.plain(clicks, func(*segment.TopicSettings) {}) // comes from the configuration, and says nothing of the registry
		worker := w.worker(deletesTopics)
		runOnce(t, worker)
		w.overdue()
		runOnce(t, worker) // so the record has these settings
		before, known := w.life(orders0), fmt.Sprint(w.known)
		there := w.topics
		if w.topics = w.topics[2:]; restart {
			worker = w.worker(deletesTopics)
		}
		r := w.later(worker, time.Hour)
		if complaints(r) != "registry: registry_doubt" || strings.Contains(did(r), "dropped") || strings.Contains(did(r), "hidden") ||
			fmt.Sprint(w.known) != known {
			t.Errorf("restart %t: %s; %s; known %v", restart, did(r), complaints(r), w.known)
		}
		if w.life(orders0) != strings.Replace(before, "2:LOCAL", "2:REMOTE", 1) {
			t.Errorf("restart %t: %s, before %s", restart, w.life(orders0), before)
		}
		w.topics = there
		if r = w.later(worker, time.Minute); complaints(r) != "" || w.record("orders").RemovedAt != 0 {
			t.Errorf("restart %t: when it is back: %s, %q", restart, complaints(r), w.known["orders"])
		}
		w.topics = w.topics[2:]
		w.later(worker, time.Minute)
		if w.later(worker, time.Minute); w.record("orders").RemovedAt == 0 { // it stays empty: so be it
			t.Errorf("restart %t: %q", restart, w.known["orders"])
		}
		if r = w.later(w.worker(deletesTopics), time.Minute); complaints(r) != "" { // nor is that news to a new process
			t.Errorf("restart %t: %s", restart, complaints(r))
		}
	}
}

//fault:topics | The registry can't be read | In memory | Nothing is done
func TestARegistryThatCantBeRead(t *testing.T) {
	for _, call := range []string{"before topics", "before known"} {
		w := topicsWorld(t, func(s *segment.TopicSettings) {})
		w.overdue()
		w.hook = func(c string) error {
			if c == call {
				return errors.New("no answer")
			}
			return nil
		}
		worker := w.worker()
		if _, err := worker.RunOnce(t.Context()); err == nil || len(w.known) != 0 || w.life(orders0) != "0:GONE 1:REMOTE 2:LOCAL 3:OPEN" {
			t.Errorf("%s: %v, known %v, %s", call, err, w.known, w.life(orders0))
		}
		w.quiet()
		if mustDo(t, w.later(worker, time.Second), "orders:0/0 hidden, orders:0/1 dropped", ""); w.known["orders"] == "" {
			t.Errorf("%s: known %v", call, w.known)
		}
	}
}

// A topic in the registry of which no setting is left, as after a Hash was
// lost: the defaults would delete after a week.
//
//fault:topics | A topic's settings vanish | In memory | It goes on by the last ones and deletes nothing
func TestATopicWhoseSettingsVanish(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) {})
	worker := w.worker()
	runOnce(t, worker)
	for i := range w.topics {
		if w.topics[i].Name == "orders" {
			bare := segment.DefaultTopicSettings()
			bare.RetentionMs = 1
			w.topics[i].Settings, w.topics[i].Bare = bare, true
		}
	}
	known := w.known["orders"]
	mustDo(t, w.later(worker, time.Hour), "orders:0/2 copied", `topic "orders": topic_setting`)
	mustDo(t, w.later(w.worker(), 24*time.Hour), "", `topic "orders": topic_setting`)
	if w.known["orders"] != known || w.life(orders0) != "0:GONE 1:REMOTE 2:REMOTE 3:OPEN" {
		t.Errorf("known %q, %s", w.known["orders"], w.life(orders0))
	}
	w.set("orders", func(s *segment.TopicSettings) { s.RemoteStorage = true })
	for i := range w.topics {
		w.topics[i].Bare = false // somebody has said so again
	}
	mustDo(t, w.later(worker, time.Hour), "orders:0/0 hidden, orders:0/1 dropped, orders:0/2 dropped", "")
}

func TestOffloadingIsSwitchedOff(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) { s.RetentionMs, s.LocalRetentionMs = 10*hourMs, 5*hourMs })
	worker := w.worker(expires)
	runOnce(t, worker)
	w.set("orders", func(s *segment.TopicSettings) { s.RemoteStorage = false })
	mustDo(t, w.later(worker, time.Minute), "", "")
	mustDo(t, w.later(worker, 4*time.Hour), "orders:0/1 dropped", "")
	mustDo(t, w.later(worker, 4*time.Hour), "orders:0/0 hidden, orders:0/1 hidden", "")
	mustDo(t, w.later(worker, 5*time.Minute), "orders:0/0 expired, orders:0/1 expired", "")
	if w.known["orders"] == "" {
		t.Error("forgotten before it is over")
	}
	w.later(worker, time.Minute)
	if w.known["orders"] != "" || w.life(orders0) != "2:LOCAL 3:OPEN" { // what is LOCAL is none of ours
		t.Errorf("known %v, %s", w.known, w.life(orders0))
	}
	w.calls = nil
	w.later(worker, 100*time.Hour)
	if w.made("swap") != 0 || w.life(orders0) != "2:LOCAL 3:OPEN" {
		t.Errorf("%s, %q", w.life(orders0), w.calls)
	}
	w.set("orders", func(s *segment.TopicSettings) { s.RemoteStorage, s.RetentionMs, s.LocalRetentionMs = true, -1, -1 })
	mustDo(t, w.later(worker, time.Minute), "orders:0/2 copied", "")
}

// Switched off first and removed then: still nothing is copied.
func TestOffloadingIsSwitchedOffAndTheTopicRemoved(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) { s.LocalRetentionMs, s.SegmentMs = 5*hourMs, 1 })
	worker := w.worker(rolls)
	w.set("orders", func(s *segment.TopicSettings) { s.SegmentMs = 1000 * hourMs })
	runOnce(t, worker)
	w.set("orders", func(s *segment.TopicSettings) { s.RemoteStorage, s.SegmentMs = false, 1 })
	w.later(worker, time.Second)
	w.unregister("orders")
	mustDo(t, w.later(worker, time.Minute), "", "")
	mustDo(t, w.later(worker, 4*time.Hour), "orders:0/1 dropped", "")
	w.mustBe(orders0, "0:GONE 1:GONE 2:LOCAL 3:OPEN")
}

func TestATopicThatWasNeverOffloaded(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) { s.RemoteStorage, s.RetentionMs = false, 1 })
	w.topics = append(w.topics, segment.Topic{Name: "bad", Err: segment.ErrTopicSetting, Settings: segment.DefaultTopicSettings()})
	runOnce(t, w.worker(rolls))
	if w.known["orders"] != "" || w.known["bad"] != "" || w.made("swap orders") != 0 || w.made("manifest orders") != 0 {
		t.Errorf("known %v, calls %q", w.known, w.calls)
	}
}

// One whose settings are wrong now is left as it is: guessing deletes data.
func TestAKnownTopicWhoseSettingsAreWrong(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) {})
	worker := w.worker(deletesTopics)
	runOnce(t, worker)
	known := w.known["orders"]
	w.overdue()
	w.topics[0].Err = segment.ErrTopicSetting
	w.calls = nil
	for range 3 {
		mustDo(t, w.later(worker, 100*time.Hour), "", `topic "orders": topic_setting`)
	}
	if w.known["orders"] != known || w.made("swap orders") != 0 {
		t.Errorf("known %v, calls %q", w.known, w.calls)
	}
}

func TestPartitionsComeAndGo(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) {})
	worker := w.worker(rolls)
	runOnce(t, worker)
	w.set("orders", func(s *segment.TopicSettings) { s.Partitions = 2 })
	r := w.later(worker, time.Minute)
	if w.life(orders1) != "0:OPEN" {
		t.Errorf("%s; %s", did(r), w.life(orders1))
	}
	w.local(orders1, 1, 3, w.now)
	w.set("orders", func(s *segment.TopicSettings) { s.Partitions = 1 })
	for _, next := range []*Worker{worker, w.worker()} {
		if r = w.later(next, time.Minute); r.Plan.Counts.Partitions != 3 || w.record("orders").Settings.Partitions != 2 {
			t.Errorf("%+v, %q", r.Plan.Counts, w.known["orders"])
		}
	}
	if !strings.HasSuffix(w.life(orders1), "1:REMOTE") {
		t.Error(w.life(orders1))
	}
}
