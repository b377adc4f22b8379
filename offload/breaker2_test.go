package offload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// A hidden segment whose object was lost, and whose stream is whole, comes
// back with its topic and is copied again.
func TestAHiddenSegmentWhoseObjectIsLost(t *testing.T) {
	w, worker, was := hiddenWorld(t)
	path := w.entry(orders0, 1).Object.Path
	delete(w.objects, path)
	w.topics = append(w.topics, was)
	w.later(worker, time.Hour)
	w.mustBe(orders0, "0:GONE 1:REMOTE 2:REMOTE 3:OPEN")
	w.set("orders", func(s *segment.TopicSettings) { s.LocalRetentionMs = 1 })
	for range 4 {
		w.later(worker, time.Minute)
	}
	w.mustBe(orders0, "0:GONE 1+1:GONE 2:GONE 3:OPEN")
	w.mustKeep(0)
}

// An object that is damaged is neither brought back as if it were right, nor
// deleted.
func TestAHiddenSegmentWhoseObjectIsDamaged(t *testing.T) {
	w, worker, was := hiddenWorld(t)
	o := w.objects[path0]
	o.body = o.body[:len(o.body)-1]
	w.objects[path0] = o
	w.topics = append(w.topics, was)
	r := w.later(worker, time.Hour)
	if complaints(r) != "segment orders:0/0: object_damaged" || w.entry(orders0, 0).State != segment.Deleting || len(w.objects[path0].body) == 0 {
		t.Errorf("%s; %s", did(r), complaints(r))
	}
}

// A loss does not become an empty segment by being hidden.
//
//fault:redis | A stream is lost before its segment expires without a copy | The stream is deleted, in memory | It is reported, and does not look as if it had expired
func TestALostSegmentIsNotHidden(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.RetentionMs = hourMs })
	w.local(orders0, 0, 10, w.now.Add(-2*time.Hour))
	delete(w.streams, key0)
	worker := w.worker(func(c *Config) { c.ExpireUnuploaded = Expire })
	for range 3 {
		mustDo(t, w.later(worker, 2*time.Hour), "", "segment orders:0/0: source_missing")
	}

	w, worker, was := hiddenWorld(t)
	w.now = w.now.Add(-time.Minute)
	w.local(orders0, 4, 10, w.now)
	delete(w.streams, "korvet:storage:local:orders:0:4")
	w.later(worker, time.Minute) // hidden with its topic
	w.topics = append(w.topics, was)
	w.later(worker, time.Minute)
	w.later(worker, time.Minute)
	if e := w.entry(orders0, 4); e.State != segment.Sealed || e.Tier != segment.Local || e.Count != 10 {
		t.Errorf("%s", e.Encode())
	}
}

// Fewer entries than were copied, in a stream that has had more since, and
// from which none was ever deleted: it is another one.
//
//fault:redis | A plain stream is deleted and made anew, and its counters have caught up | In memory | Its entries are not taken for those that were copied
func TestARangeMadeAnewThatHasOvertakenTheCounters(t *testing.T) {
	w, p, worker := plainDropWorld(t, false)
	s := w.streams[clicks]
	s.entries = append([]fakeEntry{}, s.entries[4:]...)
	for i := range 5 {
		s.entries[i].Fields[0][1] = fmt.Sprintf("another %d", i)
	}
	s.entries[4].ID.Seq++ // so it does not end where the range did
	s.added += 1000
	w.entryMustStay(t, p, worker)
}

func (w *world) entryMustStay(t *testing.T, p segment.Partition, worker *Worker) {
	t.Helper()
	w.localHours(0)
	n := len(w.streams[clicks].all())
	r := w.later(worker, time.Second)
	if !strings.Contains(complaints(r), "clicks/0: stream_changed") || len(w.streams[clicks].all()) != n {
		t.Errorf("%s; %s; %s", did(r), complaints(r), w.life(p))
	}
}

// A stream that was replayed onto another server has other counters, and the
// same entries.
func TestARangeThatWasReplayed(t *testing.T) {
	w, p, worker := plainDropWorld(t, false)
	w.streams[clicks].added = 3
	w.localHours(0)
	if r := w.later(worker, time.Second); complaints(r) != "" || !strings.HasPrefix(w.life(p), "0:GONE 1:GONE 2:GONE") {
		t.Errorf("%s; %s; %s", did(r), complaints(r), w.life(p))
	}
}

// A failover has lost the newest of the copied entries; more came, and one was
// deleted. A new copy would lose those that only the object has.
//
//fault:redis | A failover loses copied entries, and others come | In memory | The segment is not copied again over a better copy
func TestALateAppendAfterAFailover(t *testing.T) {
	w := dropWorld(t, false)
	s := w.streams[key0]
	s.entries = s.entries[:7]
	s.last, s.added = s.entries[6].ID, 7
	w.produce(key0, 4)
	w.xdel(key0, 3)
	r := runOnce(t, w.worker())
	if complaints(r) != "segment orders:0/0: stream_changed" || w.entry(orders0, 0).Tier != segment.Remote {
		t.Errorf("%s; %s", did(r), complaints(r))
	}
}

// Local copies that can't be dropped do not keep the others.
func TestParkedDropsKeepNothingWaiting(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	p := PartitionScan{Partition: orders0, index: &index{any: true, high: 3 * maxDrops}}
	p.Topic.Phase, p.Topic.Topic.Settings = Live, segment.DefaultTopicSettings()
	p.Topic.Topic.Settings.LocalRetentionMs = 1
	for i := range 2 * maxDrops {
		p.index.present.put(settled{number: segment.Number(i), at: now.Add(-time.Hour).UnixMilli(), count: 1, bytes: 1, local: -1})
	}
	s := Scan{At: now, Partitions: []PartitionScan{p}, parked: func(j Job) bool { return j.Stored.Number < maxDrops }}
	if jobs := MakePlan(s, DefaultConfig()).Jobs[0]; len(jobs) != 2*maxDrops {
		t.Errorf("%d jobs", len(jobs))
	}
}

// All that a segment had was deleted by id, and more came late: that is no
// loss.
func TestAStreamWithOnlyLateEntries(t *testing.T) {
	w := lifeWorld(t, func(*segment.TopicSettings) {})
	w.local(orders0, 0, 3, w.now.Add(-time.Hour))
	w.produce(key0, 3)
	for range 3 {
		w.xdel(key0, 0)
	}
	mustDo(t, runOnce(t, w.worker()), "orders:0/0 copied", "")
	w.mustKeep(0)
}

// A failover that forgets a flip, and not the removal behind it, looks like a
// stream that was lost. The report must not have anybody throw the rest away.
//
//fault:redis | A failover forgets a flip whose stream was removed already | The entry is put back as it was before, in memory | Nothing is done, and the report names the object that holds the segment
func TestAFlipThatAFailoverForgot(t *testing.T) {
	w := dropWorld(t, false)
	before := w.entry(orders0, 0)
	before.Tier, before.Local, before.Object, before.Source = segment.Local, "", nil, nil
	mustDo(t, runOnce(t, w.worker()), "orders:0/0 dropped", "")
	for _, there := range []bool{true, false} {
		w.put(orders0, "0", string(before.Encode()))
		if !there {
			delete(w.objects, path0)
		}
		r := w.later(w.worker(), time.Minute)
		mustDo(t, r, "", "segment orders:0/0: source_missing")
		if names := strings.Contains(r.Problems[0].Error(), "object "+path0+" is on the store"); names != there {
			t.Errorf("there %t: %v", there, r.Problems[0])
		}
		if w.entry(orders0, 0).Tier != segment.Local {
			t.Error("the entry was changed")
		}
	}
}
