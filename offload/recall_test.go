package offload

import (
	"errors"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// flush is a Redis that has lost all that it had, and its topics with it.
func (w *world) flush() (topics []segment.Topic, known map[string]string) {
	topics, known = w.topics, w.known
	w.topics, w.known = nil, map[string]string{}
	clear(w.manifests)
	clear(w.streams)
	w.log = map[string][]segment.ID{}
	return topics, known
}

// doubts says whether a pass reports that Redis has lost its data.
func doubts(r Report) bool {
	return complaints(r) == "registry: registry_doubt" && errors.Is(r.Problems[0].Err, ErrDataLost) && errors.Is(r.Plan.Doubt, ErrDataLost)
}

// A Redis that is emptied has lost the lease, too. Whoever leads next, the same
// instance or one that has followed, says so for as long as it lasts.
//
//fault:topics | Redis is emptied, or restarts without what it held | In memory: a leader that has lost its lease, a follower, and one that is in the middle of its time make passes | It is reported at every pass until a topic is there again, and nothing is deleted
func TestARedisThatWasEmptied(t *testing.T) {
	for _, next := range []string{"the leader again", "the leader, before it notices", "a follower"} {
		w := topicsWorld(t, func(*segment.TopicSettings) {})
		worker := w.worker(deletesTopics)
		if next == "a follower" {
			runOnce(t, w.worker(deletesTopics))
			worker.lookAround(t.Context())
		} else {
			runOnce(t, worker)
		}
		topics, known := w.flush()
		if next != "the leader, before it notices" {
			worker.Reset()
		}
		for i := range 3 {
			if r := w.later(worker, time.Hour); !doubts(r) || did(r) != "" {
				t.Errorf("%s, pass %d: %s; %s", next, i, did(r), complaints(r))
			}
			worker.Reset()
			worker.lookAround(t.Context())
		}
		other := topics[1]
		other.Name = "new"
		w.topics = []segment.Topic{other} // nothing that it had
		if r := w.later(worker, time.Hour); !doubts(r) {
			t.Errorf("%s, with a new topic: %s", next, complaints(r))
		}
		if next == "a follower" { // it was restored
			w.known = known
		} else {
			w.topics = topics[1:]
		}
		if r := w.later(worker, time.Hour); strings.Contains(complaints(r), "registry_doubt") {
			t.Errorf("%s, when it is back: %s", next, complaints(r))
		}
	}
}

// A topic that the settings name is no sign that Redis has its data, and what
// this program writes down itself neither.
func TestAnEmptiedRedisOfDeclaredTopics(t *testing.T) {
	w := topicsWorld(t, func(*segment.TopicSettings) {})
	for i := range w.topics {
		w.topics[i].Declared = true
	}
	worker := w.worker()
	runOnce(t, worker)
	topics, _ := w.flush()
	w.topics = topics
	for i := range 3 {
		worker.Reset()
		if r := w.later(worker, time.Hour); !doubts(r) || len(w.known) > 0 {
			t.Errorf("pass %d: %s; known %v", i, complaints(r), w.known)
		}
	}
}

// Topics that are forgotten in a legal way are no loss, whoever forgets the last
// of them, and whoever leads then.
func TestTheLastTopicIsForgotten(t *testing.T) {
	for _, way := range []string{"removed", "switched off", "switched off, and then not looked at"} {
		for _, shared := range []bool{false, true} {
			w := newWorld(t)
			w.topic("orders", 1)
			w.gone(orders0, 0, 3, w.now.Add(-4*time.Hour))
			leader, follower := w.worker(deletesTopics), w.worker(deletesTopics)
			if shared {
				leader = w.sharing(newShards("a"), "a", deletesTopics)
			}
			runOnce(t, follower) // it has led before
			if way == "removed" {
				w.unregister("orders")
			} else {
				w.set("orders", func(s *segment.TopicSettings) { s.RemoteStorage, s.RetentionMs = false, 1 })
			}
			for i := range 12 {
				if i < 2 || !strings.HasSuffix(way, "not looked at") {
					follower.lookAround(t.Context())
				}
				if r := w.later(leader, 25*time.Hour); complaints(r) != "" && complaints(r) != "registry: registry_doubt" {
					t.Errorf("%s: %s", way, complaints(r))
				}
			}
			if !strings.HasSuffix(way, "not looked at") {
				follower.lookAround(t.Context())
			}
			if w.topics = nil; len(w.known) > 0 {
				t.Fatalf("%s, shared %t: it is still known: %v", way, shared, w.known)
			}
			for _, worker := range []*Worker{leader, follower} {
				worker.Reset()
				if r := w.later(worker, time.Hour); errors.Is(r.Plan.Doubt, ErrDataLost) {
					t.Errorf("%s, shared %t: %s", way, shared, complaints(r))
				}
			}
		}
	}
}
