package offload

import (
	"errors"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// doomedWorld has n segments that are DELETING, with their grace over.
func doomedWorld(t *testing.T, n int) *world {
	w := lifeWorld(t, func(*segment.TopicSettings) {})
	for i := range segment.Number(n) {
		w.gone(orders0, i, 3, w.now.Add(-time.Hour))
		w.change(orders0, i, func(e *segment.Entry) {
			e.State, e.DeletingAt = segment.Deleting, w.now.Add(-time.Hour).UnixMilli()
		})
	}
	return w
}

func TestDeletionsAreOneCall(t *testing.T) {
	w := doomedWorld(t, 3)
	w.gone(orders0, 3, 3, w.now.Add(-time.Hour))
	w.change(orders0, 3, func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, w.now.UnixMilli() })
	mustDo(t, runOnce(t, w.worker()), "orders:0/0 expired, orders:0/1 expired, orders:0/2 expired", "")
	if w.made("delete 3") != 1 || w.made("delete") != 1 || len(w.objects) != 1 {
		t.Errorf("objects %v, calls %q", sortedKeys(w.objects), w.calls)
	}
	for _, call := range []string{"swap orders:0/0", "swap orders:0/1"} {
		if w.firstCall(call) < w.firstCall("delete 3") {
			t.Errorf("%s came before the object was gone", call)
		}
	}
}

func TestAnObjectThatIsGoneAlready(t *testing.T) {
	w := doomedWorld(t, 1)
	delete(w.objects, path0)
	mustDo(t, runOnce(t, w.worker()), "orders:0/0 expired", "")
}

//fault:store | Some of a batch of deletions fail, or the store keeps an object | In memory | The entry of each object that is left stays
func TestDeletionsThatFail(t *testing.T) {
	w := doomedWorld(t, 3)
	w.locked["korvet:storage:local:orders:0/1.parquet"] = true
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 expired, orders:0/2 expired", "segment orders:0/1: delete_denied")
	w.mustBe(orders0, "1:DELETING")
	calls := w.made("delete")
	for range 10 { // parked: no hot loop, and one problem
		mustDo(t, w.later(worker, 2*time.Second), "", "segment orders:0/1: delete_denied")
	}
	if w.made("delete") != calls {
		t.Errorf("tried again at once: %q", w.calls)
	}
	w.locked = map[string]bool{}
	mustDo(t, w.later(worker, time.Hour), "orders:0/1 expired", "")

	w = doomedWorld(t, 2)
	w.hook = failOnce("before delete 2", errors.New("503"))
	worker = w.worker()
	mustDo(t, runOnce(t, worker), "", "segment orders:0/0: other, segment orders:0/1: other")
	w.mustBe(orders0, "0:DELETING 1:DELETING")
	mustDo(t, w.later(worker, time.Hour), "orders:0/0 expired, orders:0/1 expired", "")
}

// Only what this program can have put there for this very segment is deleted.
//
//fault:input | An entry names an object that is not its own | In memory | It is not deleted
func TestAnObjectOfAnotherSegmentIsNotDeleted(t *testing.T) {
	for _, path := range []string{
		"korvet:storage:local:orders:0/1.parquet",
		"korvet:storage:local:orders:1/0.parquet",
		"korvet:storage:local:orders:0/../orders:0/0.parquet",
		"korvet:storage:local:orders:0/0.parquet/",
		"reports/2024.csv", "", "_korvet-offload",
	} {
		w := doomedWorld(t, 1)
		w.objects[path] = w.objects[path0]
		w.change(orders0, 0, func(e *segment.Entry) { e.Object.Path = path })
		mustDo(t, runOnce(t, w.worker()), "", "segment orders:0/0: foreign_object")
		if w.made("delete") != 0 || w.life(orders0) != "0:DELETING" {
			t.Errorf("%q: %s, calls %q", path, w.life(orders0), w.calls)
		}
	}
	w := doomedWorld(t, 1)
	again := "korvet:storage:local:orders:0/0-3.abcdef.parquet"
	w.objects[again] = w.objects[path0]
	w.change(orders0, 0, func(e *segment.Entry) { e.Object.Path = again })
	mustDo(t, runOnce(t, w.worker()), "orders:0/0 expired", "")
	if w.objects[path0].body == nil || w.objects[again].body != nil {
		t.Errorf("objects %v", sortedKeys(w.objects))
	}
}

// Somebody else has hidden it, at a time that nobody knows.
func TestDeletingWithoutATime(t *testing.T) {
	w := doomedWorld(t, 1)
	w.change(orders0, 0, func(e *segment.Entry) { e.DeletingAt = 0 })
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "orders:0/0 hidden", "")
	mustDo(t, w.later(worker, 4*time.Minute), "", "")
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 expired", "")
}

// unuploadedWorld has one segment past total retention that could never be
// copied, and is not: the store is down.
func unuploadedWorld(t *testing.T) *world {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.RetentionMs = hourMs })
	w.local(orders0, 0, 10, w.now.Add(-90*time.Minute))
	w.down()
	return w
}

// down lets every look at an object fail, and nothing else.
func (w *world) down() {
	w.hook = func(call string) error {
		if strings.HasPrefix(call, "before stat") {
			return errors.New("no answer")
		}
		return nil
	}
}

func expires(c *Config) { c.ExpireUnuploaded = Expire }

//fault:store | The store is down past total retention | In memory | What was never copied stays, and is reported
func TestUnuploadedIsHeld(t *testing.T) {
	w := unuploadedWorld(t)
	worker := w.worker()
	for range 3 {
		r := w.later(worker, time.Hour)
		if r.Plan.Counts.Unuploaded != 1 || did(r) != "" || len(w.streams[key0].all()) != 10 {
			t.Errorf("%+v, %s", r.Plan.Counts, did(r))
		}
	}
	w.quiet()
	mustDo(t, w.later(worker, time.Hour), "orders:0/0 copied", "")
}

func TestUnuploadedExpires(t *testing.T) {
	w := unuploadedWorld(t)
	worker := w.worker(expires)
	mustDo(t, runOnce(t, worker), "orders:0/0 hidden", "")
	mustDo(t, w.later(worker, 4*time.Minute), "", "")
	if len(w.streams[key0].all()) != 10 {
		t.Error("the stream is gone before its grace is over")
	}
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 expired_unuploaded", "")
	if w.streams[key0] != nil || len(w.manifests[orders0]) != 0 {
		t.Errorf("%s, streams %v", w.life(orders0), sortedKeys(w.streams))
	}
	w.mustKeep(time.Hour)
}

// What is appended late is younger than what is to go, and stays, whenever it
// comes: until it is itself past the retention.
//
//fault:late-data | An append to a segment that is to be deleted without a copy, at any moment | In memory | The deletion is taken back
func TestALateAppendUndoesTheExpiry(t *testing.T) {
	for name, late := range map[string]func(*world) func(string) error{
		"before the look":    func(w *world) func(string) error { return at("before info "+key0, func() { w.produce(key0, 1) }) },
		"after the look":     func(w *world) func(string) error { return at("after info "+key0, func() { w.produce(key0, 1) }) },
		"after it is hidden": func(w *world) func(string) error { return at("after swap orders:0/0", func() { w.produce(key0, 1) }) },
		"as it is removed":   func(w *world) func(string) error { return at("before remove "+key0, func() { w.produce(key0, 1) }) },
		"before the plan":    func(w *world) func(string) error { w.produce(key0, 1); return nil },
	} {
		for _, old := range []bool{false, true} {
			w := unuploadedWorld(t)
			w.old = old
			down, hook := w.hook, late(w)
			w.hook = func(call string) error {
				if hook != nil {
					_ = hook(call)
				}
				return down(call)
			}
			worker := w.worker(expires)
			for range 9 {
				w.now = w.now.Add(5 * time.Minute)
				r, _ := worker.RunOnce(t.Context())
				w.mustKeep(time.Hour)
				hidden := strings.Contains(did(r), "hidden") && name == "before the look" // it was seen in time
				if hidden || strings.Contains(did(r), "lost_race") {
					t.Errorf("%s, old %t: %s", name, old, did(r))
				}
			}
			if life := w.life(orders0); life != "0:LOCAL" {
				t.Errorf("%s, old %t: %s", name, old, life)
			}
			if n := len(w.streams[key0].all()); n != 11 {
				t.Errorf("%s, old %t: %d entries", name, old, n)
			}
			for range 9 {
				w.now = w.now.Add(10 * time.Minute)
				_, _ = worker.RunOnce(t.Context())
			}
			if w.life(orders0) != "" || w.streams[key0] != nil {
				t.Errorf("%s, old %t: in the end %s", name, old, w.life(orders0))
			}
		}
	}
}

// Whatever is said of it, and however large it is.
func TestAnOpenSegmentNeverExpires(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.RetentionMs, s.RetentionBytes = 1, 0 })
	w.local(orders0, 0, 10, w.now.Add(-time.Hour))
	w.change(orders0, 0, func(e *segment.Entry) { e.State = segment.Open })
	raw := w.manifests[orders0]["0"]
	worker := w.worker(expires)
	for range 3 {
		mustDo(t, w.later(worker, time.Hour), "", "")
	}
	if w.manifests[orders0]["0"] != raw || len(w.streams[key0].all()) != 10 {
		t.Errorf("%s", w.manifests[orders0]["0"])
	}
}

func TestDeletionsFromAnUnuploadedStreamDoNotHoldItUp(t *testing.T) {
	w := unuploadedWorld(t)
	worker := w.worker(expires)
	runOnce(t, worker)
	w.xdel(key0, 2)
	mustDo(t, w.later(worker, 5*time.Minute), "orders:0/0 expired_unuploaded", "")
}

// manyDue is a partition of which n segments are overdue, each by so much.
func manyDue(number, n int, over time.Duration, now time.Time) PartitionScan {
	p := PartitionScan{Partition: segment.Partition{Topic: "orders", Number: number}, index: &index{any: true, high: segment.Number(n)}}
	p.Topic.Phase, p.Topic.Topic.Settings = Live, segment.DefaultTopicSettings()
	for i := range n {
		p.index.gone.put(settled{number: segment.Number(i), at: now.Add(-7*24*time.Hour-over).UnixMilli() + int64(i%1000), count: 1, bytes: 1})
	}
	return p
}

func TestTheLongestOverdueGoFirst(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	s := Scan{At: now, Partitions: []PartitionScan{
		manyDue(0, 5*maxExpiry, time.Hour, now), manyDue(1, 3, 48*time.Hour, now), manyDue(2, maxExpiry, time.Hour+time.Minute, now),
	}}
	plan := MakePlan(s, DefaultConfig())
	if len(plan.Expiry) != maxExpiry {
		t.Fatalf("%d segments in one pass", len(plan.Expiry))
	}
	for i, j := range plan.Expiry {
		if want := min(1, max(0, 3-i)); (j.Partition.Number == 1) != (want == 1) || j.Partition.Number == 0 {
			t.Fatalf("place %d: %s/%s", i, j.Partition, j.Stored.Number)
		}
	}
}

// A backlog of segments to be hidden does not keep those from going that were
// hidden long ago.
func TestABacklogDoesNotHoldUpTheDeletions(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	p := manyDue(0, 2*maxExpiry, time.Hour, now)
	for i := range segment.Number(10) {
		p.Active = append(p.Active, segment.Stored{Number: 3*maxExpiry + i, Raw: "x", Entry: segment.Entry{
			State: segment.Deleting, Tier: segment.Remote, Local: segment.Gone, DeletingAt: now.Add(-10 * time.Minute).UnixMilli(),
		}})
	}
	plan := MakePlan(Scan{At: now, Partitions: []PartitionScan{p}}, DefaultConfig())
	deletes := 0
	for _, j := range plan.Expiry {
		if j.Action == Delete {
			deletes++
		}
	}
	if deletes != 10 {
		t.Errorf("%d of 10 deletions are planned, beside %d to be hidden", deletes, len(plan.Expiry)-deletes)
	}
}

// A local retention that was lowered does not keep the copies waiting.
func TestABacklogDoesNotHoldUpTheCopies(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	p := PartitionScan{Partition: orders0, index: &index{any: true, high: 3 * maxDrops}}
	p.Topic.Phase, p.Topic.Topic.Settings = Live, segment.DefaultTopicSettings()
	p.Topic.Topic.Settings.RemoteStorage, p.Topic.Topic.Settings.LocalRetentionMs = true, 1
	for i := range 2 * maxDrops {
		p.index.present.put(settled{number: segment.Number(i), at: now.Add(-time.Hour).UnixMilli(), count: 1, bytes: 1, local: -1})
	}
	p.Active = []segment.Stored{{Number: 3 * maxDrops, Raw: "x", Entry: segment.Entry{State: segment.Sealed, Tier: segment.Local}}}
	jobs := MakePlan(Scan{At: now, Partitions: []PartitionScan{p}}, DefaultConfig()).Jobs[0]
	if len(jobs) != maxDrops+1 || jobs[maxDrops].Action != Copy || jobs[maxDrops-1].Stored.Number != maxDrops-1 {
		t.Errorf("%d jobs, the last %s", len(jobs), jobs[len(jobs)-1].Action)
	}
}

// A leader that slept before the deletion finds the entry gone, deleted by
// another one, and something else at the path, which had become free.
//
//fault:leaders | A worker sleeps before a deletion, and the topic is made anew | In memory | Its entries are read again, and nothing is deleted
func TestASleeperDeletesNothing(t *testing.T) {
	w := doomedWorld(t, 2)
	w.hook = func(call string) error {
		if call == "after info "+key1 { // the last thing it did
			delete(w.manifests[orders0], "0")
			w.objects[path0] = fakeObject{body: []byte("of the topic made anew")}
		}
		return nil
	}
	r := runOnce(t, w.worker(func(c *Config) { c.Concurrency = 1 }))
	if string(w.objects[path0].body) != "of the topic made anew" || did(r) != "orders:0/1 expired" || r.Left != 1 {
		t.Errorf("%q; %s; left %d", w.objects[path0].body, did(r), r.Left)
	}
}
