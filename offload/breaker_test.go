package offload

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// A plain stream that was made anew with the very ids of a range that was
// copied, as many of them and with other fields, is not trimmed.
//
//fault:redis | A plain stream is made anew with the same ids and other content | In memory | It is not trimmed
func TestARangeMadeAnewWithTheSameIDs(t *testing.T) {
	for _, old := range []bool{false, true} {
		w, p, worker := plainDropWorld(t, old)
		s := w.streams[clicks]
		for i := range 9 {
			s.entries[i].Fields[0][1] = fmt.Sprintf("another %d", i)
		}
		w.localHours(0)
		r := w.later(worker, time.Second)
		if complaints(r) != "stream clicks: stream_changed" && !strings.Contains(complaints(r), "clicks/0: stream_changed") {
			t.Errorf("old %t: %s; %s", old, did(r), complaints(r))
		}
		if n := len(s.all()); n != 36 || w.entry(p, 0).Local != segment.Present {
			t.Errorf("old %t: %d entries are left, %s", old, n, w.life(p))
		}
	}
}

// Counters that have gone back tell that it is another stream, even where a
// crash has left the range DROPPING.
func TestADroppingRangeMadeAnew(t *testing.T) {
	w, p, worker := plainDropWorld(t, false)
	w.change(p, 0, func(e *segment.Entry) { e.Local = segment.Dropping })
	w.streams[clicks].entries = w.streams[clicks].entries[1:]
	w.streams[clicks].added = 3
	w.localHours(0)
	if r := w.later(worker, time.Second); !strings.Contains(complaints(r), "clicks/0: stream_changed") || len(w.streams[clicks].all()) != 35 {
		t.Errorf("%s; %s", did(r), complaints(r))
	}
}

// Two records are to be written, and somebody else was faster with the first.
//
//fault:leaders | Two workers remember a topic at the same time | In memory | One wins, and the other reads it again
func TestRecordsThatLoseTheRace(t *testing.T) {
	w := newWorld(t)
	w.topic("a", 1)
	w.topic("b", 1)
	worker := w.worker()
	runOnce(t, worker)
	for _, name := range []string{"a", "b"} {
		w.set(name, func(s *segment.TopicSettings) { s.SegmentMs = 7 })
	}
	w.known["a"] = strings.Replace(w.known["a"], "86400000", "8", 1)
	mustDo(t, w.later(worker, time.Minute), "", "")
	mustDo(t, w.later(worker, time.Minute), "", "")
	if w.record("a").Settings.SegmentMs != 7 || w.record("b").Settings.SegmentMs != 7 {
		t.Errorf("known %v", w.known)
	}
}

// A store that deletes nothing still stores.
//
//fault:store | Deletions fail again and again | In memory | Copies go on
func TestDeletionsThatFailDontStopTheCopies(t *testing.T) {
	w := doomedWorld(t, 20)
	w.local(orders0, 20, 3, w.now.Add(-time.Hour))
	w.hook = func(call string) error {
		if strings.HasPrefix(call, "before delete") {
			return fmt.Errorf("%w: slow down", ErrStoreDown)
		}
		return nil
	}
	r, err := w.worker().RunOnce(t.Context())
	if err != nil || did(r) != "orders:0/20 copied" {
		t.Errorf("%v; %s", err, did(r))
	}
}

// What may not be deleted does not use up what a pass can delete.
func TestParkedDeletionsKeepNothingWaiting(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	p := manyDue(0, 0, 0, now)
	for i := range segment.Number(maxExpiry + 5) {
		p.Active = append(p.Active, segment.Stored{Number: i, Raw: "x", Entry: segment.Entry{
			State: segment.Deleting, Tier: segment.Remote, Local: segment.Gone, DeletingAt: now.Add(-10*time.Minute).UnixMilli() + int64(i),
		}})
	}
	s := Scan{At: now, Partitions: []PartitionScan{p}, parked: func(j Job) bool { return j.Stored.Number < maxExpiry }}
	plan := MakePlan(s, DefaultConfig())
	if len(plan.Expiry) != maxExpiry+5 || plan.Expiry[0].Stored.Number != maxExpiry {
		t.Errorf("%d jobs, the first %s", len(plan.Expiry), plan.Expiry[0].Stored.Number)
	}
}

// Somebody has written another segment into the place of a settled one: it is
// not judged by the age of the old one.
func TestAnEntryThatIsNotTheOneRemembered(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.RetentionMs = 10 * hourMs })
	w.gone(orders0, 0, 3, w.now.Add(-10*time.Hour+time.Second))
	w.gone(orders0, 1, 3, w.now.Add(-4*time.Hour))
	worker := w.worker()
	runOnce(t, worker)
	w.now = w.now.Add(time.Minute) // before the manifest is read whole again
	w.gone(orders0, 0, 3, w.now.Add(-time.Minute))
	mustDo(t, runOnce(t, worker), "", "")
	w.mustBe(orders0, "0:GONE 1:GONE")
}

// A process that is stopped between the look at the object and the removal of
// the stream looks again.
//
//fault:leaders | The process is stopped between its look at the object and the removal | A clock that moves on, in memory | It looks again
func TestALookThatIsTooOld(t *testing.T) {
	w := dropWorld(t, false)
	w.hook = func(call string) error {
		if strings.HasPrefix(call, "after swap orders:0/0") && w.entry(orders0, 0).Local == segment.Dropping {
			w.now = w.now.Add(lookAge)
			delete(w.objects, path0)
		}
		return nil
	}
	r := runOnce(t, w.worker())
	if complaints(r) != "segment orders:0/0: object_damaged" || len(w.streams[key0].all()) != 10 {
		t.Errorf("%s; %s", did(r), complaints(r))
	}
	w.quiet()
	w.settle(w.worker())
	w.mustKeep(0)
}

// A stream that was lost, and to which as many entries came late as it had, is
// not copied as if it were whole.
//
//fault:redis | A stream is lost before its copy, and producers have made it anew | In memory | It is refused as short, and never takes the place of what was lost
func TestAStreamLostAndMadeAnewBeforeItsCopy(t *testing.T) {
	for _, old := range []bool{false, true} {
		w := lifeWorld(t, func(*segment.TopicSettings) {})
		w.old = old
		w.local(orders0, 0, 3, w.now.Add(-time.Hour))
		w.del(key0)
		w.produce(key0, 5)
		mustDo(t, runOnce(t, w.worker()), "", "segment orders:0/0: short_stream")
		w.mustBe(orders0, "0:LOCAL")
	}
}

// An estimate of the server's deletes nothing for good.
func TestWhatIsOnlyEstimatedDeletesNoObject(t *testing.T) {
	w := retainWorld(t, func(s *segment.TopicSettings) {
		s.RetentionBytes, s.LocalRetentionBytes = 100_000, -2
	})
	w.produce("korvet:storage:local:orders:0:4", 10_000) // 1 MB, as the server sees it
	worker := w.worker()
	for range 3 {
		w.later(worker, time.Minute)
	}
	for n := range segment.Number(4) {
		if e := w.entry(orders0, n); e.State != segment.Sealed {
			t.Errorf("segment %s is %s", n, e.State)
		}
	}
}

// A broken Set of the streams, or a topic without settings, is a matter of its
// own.
func TestATopicThatIsKeptDeletesNothing(t *testing.T) {
	w := topicsWorld(t, func(s *segment.TopicSettings) {})
	worker := w.worker()
	w.set("orders", func(s *segment.TopicSettings) { s.RetentionMs = 100 * hourMs })
	runOnce(t, worker)
	w.now = w.now.Add(200 * time.Hour)
	for i := range w.topics {
		if w.topics[i].Name == "orders" {
			w.topics[i].Bare = true
			w.topics[i].Settings = segment.DefaultTopicSettings()
		}
	}
	r := runOnce(t, worker)
	if strings.Contains(did(r), "hidden") || strings.Contains(did(r), "dropped") || !errors.Is(r.Problems[0].Err, segment.ErrTopicSetting) {
		t.Errorf("%s; %s", did(r), complaints(r))
	}
}

// An empty registry says nothing of plain streams.
func TestAnEmptyRegistryKeepsNoPlainStream(t *testing.T) {
	w, p, worker := plainDropWorld(t, false)
	w.topic("orders", 1)
	w.later(worker, time.Second)
	w.topics = w.topics[:1]
	w.localHours(0)
	if r := w.later(worker, time.Second); complaints(r) != "registry: registry_doubt" || w.entry(p, 0).Local != segment.Gone {
		t.Errorf("%s; %s", did(r), complaints(r))
	}
}

// What somebody else has hidden, by a clock that was wrong or without saying
// what the stream was, gets the grace from now on.
func TestWhatSomebodyElseHasHidden(t *testing.T) {
	w := doomedWorld(t, 2)
	w.change(orders0, 0, func(e *segment.Entry) { e.DeletingAt = w.now.Add(1000 * time.Hour).UnixMilli() })
	w.local(orders0, 2, 3, w.now.Add(-time.Hour))
	w.change(orders0, 2, func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, 1 })
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 hidden, orders:0/1 expired, orders:0/2 hidden", "")
	for _, n := range []segment.Number{0, 2} {
		if e := w.entry(orders0, n); e.DeletingAt != w.now.UnixMilli() {
			t.Errorf("segment %s: deletingAt %d", n, e.DeletingAt)
		}
	}
	mustDo(t, w.later(worker, 10*time.Minute), "orders:0/0 expired, orders:0/2 expired_unuploaded", "")
}
