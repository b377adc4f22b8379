package offload

import (
	"testing"
	"time"

	"korvet-offload/segment"
)

// retainWorld has four REMOTE segments of ten entries, 4, 3, 2 and 1 hours
// old, and an OPEN one of five.
func retainWorld(t *testing.T, change func(*segment.TopicSettings)) *world {
	w := lifeWorld(t, change)
	for n := range 4 {
		w.remote(orders0, segment.Number(n), 10, w.now.Add(-time.Duration(4-n)*time.Hour))
	}
	w.open(orders0, 4, 5)
	return w
}

// allGone removes the local copies of a retainWorld.
func (w *world) allGone() *world {
	for n := range segment.Number(4) {
		w.change(orders0, n, func(e *segment.Entry) { e.Local = segment.Gone })
		delete(w.streams, segment.DefaultLayout().SegmentKey(orders0, n))
	}
	return w
}

const hourMs = 3_600_000

func TestLocalRetention(t *testing.T) {
	for name, c := range map[string]struct {
		settings func(*segment.TopicSettings)
		life     string
		why      segment.Due // of the first
	}{
		"for ever":              {func(*segment.TopicSettings) {}, "0:REMOTE 1:REMOTE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{}},
		"by ms":                 {func(s *segment.TopicSettings) { s.LocalRetentionMs = 2.5 * hourMs }, "0:GONE 1:GONE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{Limit: "local.retention.ms", Over: 1.5 * hourMs}},
		"by ms, exactly":        {func(s *segment.TopicSettings) { s.LocalRetentionMs = 2 * hourMs }, "0:GONE 1:GONE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{Limit: "local.retention.ms", Over: 2 * hourMs}},
		"at once":               {func(s *segment.TopicSettings) { s.LocalRetentionMs = 0 }, "0:GONE 1:GONE 2:GONE 3:GONE 4:OPEN", segment.Due{Limit: "local.retention.ms", Over: 4 * hourMs}},
		"by bytes":              {func(s *segment.TopicSettings) { s.LocalRetentionBytes = 2500 }, "0:GONE 1:GONE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{Limit: "local.retention.bytes", Over: 2000}},
		"by bytes, only wholes": {func(s *segment.TopicSettings) { s.LocalRetentionBytes = 2501 }, "0:GONE 1:REMOTE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{Limit: "local.retention.bytes", Over: 1999}},
		"no bytes":              {func(s *segment.TopicSettings) { s.LocalRetentionBytes = 0 }, "0:GONE 1:GONE 2:GONE 3:GONE 4:OPEN", segment.Due{Limit: "local.retention.bytes", Over: 4500}},
		"by average": {func(s *segment.TopicSettings) { s.LocalRetentionBytes, s.AverageMessageBytes = 250, 10 },
			"0:GONE 1:GONE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{Limit: "local.retention.bytes", Over: 200}},
		"by ms, then by bytes": {func(s *segment.TopicSettings) { s.LocalRetentionMs, s.LocalRetentionBytes = 3.5*hourMs, 2500 },
			"0:GONE 1:GONE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{Limit: "local.retention.ms", Over: hourMs / 2}},
		"as the total":          {func(s *segment.TopicSettings) { s.RetentionMs = 2.5 * hourMs }, "0:GONE 1:GONE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{Limit: "retention.ms", Over: 1.5 * hourMs}},
		"as the total, bytes":   {func(s *segment.TopicSettings) { s.RetentionBytes, s.AverageMessageBytes = 250, 10 }, "0:GONE 1:GONE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{Limit: "retention.bytes", Over: 200}},
		"for ever, said so":     {func(s *segment.TopicSettings) { s.LocalRetentionMs, s.LocalRetentionBytes = -1, -1 }, "0:REMOTE 1:REMOTE 2:REMOTE 3:REMOTE 4:OPEN", segment.Due{}},
		"bytes without a limit": {func(s *segment.TopicSettings) { s.LocalRetentionMs, s.LocalRetentionBytes = hourMs, -1 }, "0:GONE 1:GONE 2:GONE 3:REMOTE 4:OPEN", segment.Due{Limit: "local.retention.ms", Over: 3 * hourMs}},
	} {
		w := retainWorld(t, c.settings)
		r := runOnce(t, w.worker())
		if got := w.life(orders0); got != c.life || len(r.Problems) != 0 {
			t.Errorf("%s: %s, want %s; %v", name, got, c.life, r.Problems)
		}
		for i, o := range r.Outcomes {
			if o.Segment != segment.Number(i) || o.Action != Drop || i == 0 && o.Why != c.why {
				t.Errorf("%s: %d: segment %s, %s because of %+v, want %+v", name, i, o.Segment, o.Action, o.Why, c.why)
			}
		}
		w.mustKeep(0)
	}
}

// What is not on the store stays, however old; what comes behind it goes.
//
//fault:store | Local retention is due and the store has failed | In memory | Only what is REMOTE is removed
func TestOnlyRemoteSegmentsAreDropped(t *testing.T) {
	for name, settings := range map[string]func(*segment.TopicSettings){
		"by ms":    func(s *segment.TopicSettings) { s.LocalRetentionMs = 2.5 * hourMs },
		"by bytes": func(s *segment.TopicSettings) { s.LocalRetentionBytes = 1500 },
	} {
		w := retainWorld(t, settings)
		w.change(orders0, 0, func(e *segment.Entry) {
			e.Tier, e.Local, e.Object, e.Source, e.SealedAt = segment.Local, "", nil, nil, w.now.UnixMilli()
		})
		w.put(orders0, "1", "not JSON")
		r := runOnce(t, w.worker(func(c *Config) { c.SealGrace = time.Hour }))
		want := "0:LOCAL 1:illegal 2:REMOTE 3:REMOTE 4:OPEN" // what can't go counts as if it did
		if name == "by bytes" {
			want = "0:LOCAL 1:illegal 2:GONE 3:REMOTE 4:OPEN"
		}
		if w.life(orders0) != want || complaints(r) != "segment orders:0/1: illegal_entry" {
			t.Errorf("%s: %s, %v", name, w.life(orders0), r.Problems)
		}
	}
}

func TestTotalRetention(t *testing.T) {
	both := "0:GONE 1:GONE 2:GONE 3:GONE 4:OPEN"
	for name, c := range map[string]struct {
		settings func(*segment.TopicSettings)
		hidden   string
	}{
		"for ever":     {func(*segment.TopicSettings) {}, both},
		"by ms":        {func(s *segment.TopicSettings) { s.RetentionMs = 2.5 * hourMs }, "0:DELETING 1:DELETING 2:GONE 3:GONE 4:OPEN"},
		"by average":   {func(s *segment.TopicSettings) { s.RetentionBytes, s.AverageMessageBytes = 250, 10 }, "0:DELETING 1:DELETING 2:GONE 3:GONE 4:OPEN"},
		"only wholes":  {func(s *segment.TopicSettings) { s.RetentionBytes, s.AverageMessageBytes = 251, 10 }, "0:DELETING 1:GONE 2:GONE 3:GONE 4:OPEN"},
		"local is not": {func(s *segment.TopicSettings) { s.LocalRetentionMs = 0 }, both},
	} {
		w := retainWorld(t, c.settings).allGone()
		worker := w.worker()
		runOnce(t, worker)
		if got := w.life(orders0); got != c.hidden {
			t.Errorf("%s: %s, want %s", name, got, c.hidden)
		}
		if c.hidden == both {
			continue
		}
		w.later(worker, 5*time.Minute-time.Millisecond)
		if len(w.objects) != 4 || w.life(orders0) != c.hidden {
			t.Errorf("%s: within the grace: %s, %d objects", name, w.life(orders0), len(w.objects))
		}
		w.later(worker, time.Millisecond)
		if w.objects[path0].body != nil || w.manifests[orders0]["0"] != "" || w.made("delete") != 1 {
			t.Errorf("%s: after the grace: %s, objects %v, %d calls of delete", name, w.life(orders0), sortedKeys(w.objects), w.made("delete"))
		}
		if len(w.objects) != len(w.manifests[orders0])-1 {
			t.Errorf("%s: %d objects, manifest %s", name, len(w.objects), w.life(orders0))
		}
	}
}

// A segment that is in both tiers counts once, as its object.
func TestTotalSizeCountsEachSegmentOnce(t *testing.T) {
	for _, less := range []int64{0, 1} {
		var sum int64
		w := retainWorld(t, func(s *segment.TopicSettings) { s.LocalRetentionBytes = 1 << 40 })
		for _, o := range w.objects {
			sum += int64(len(o.body))
		}
		// What is only in Redis has an estimated size, by which nothing is deleted for good.
		w.set("orders", func(s *segment.TopicSettings) { s.RetentionBytes = sum - int64(len(w.objects[path0].body)) + 1 - less })
		w.change(orders0, 1, func(e *segment.Entry) { e.Local = segment.Dropping })
		w.inStep = false // so nothing gets further than that
		runOnce(t, w.worker())
		want := "0:REMOTE 1:DROPPING 2:REMOTE 3:REMOTE 4:OPEN"
		if less == 1 {
			want = "0:DROPPING 1:DROPPING 2:REMOTE 3:REMOTE 4:OPEN"
		}
		w.mustBe(orders0, want)
	}
}

// A segment goes from Redis before it goes from the store, and its reader has
// the grace.
func TestALifeUntilTheEnd(t *testing.T) {
	w := retainWorld(t, func(s *segment.TopicSettings) { s.RetentionMs = 3.5 * hourMs })
	worker := w.worker()
	for _, step := range []struct {
		after time.Duration
		done  string
	}{
		{0, "orders:0/0 dropped"},
		{time.Minute, "orders:0/0 hidden"},
		{4 * time.Minute, ""},
		{time.Minute, "orders:0/0 expired"},
		{30 * time.Minute, "orders:0/1 dropped"},
		{time.Minute, "orders:0/1 hidden"},
		{5 * time.Minute, "orders:0/1 expired"},
	} {
		mustDo(t, w.later(worker, step.after), step.done, "")
		w.mustKeep(3*time.Hour + 30*time.Minute)
	}
	w.mustBe(orders0, "2:REMOTE 3:REMOTE 4:OPEN")
}

// While the local copy can't go, nothing goes.
func TestOnlyWhatIsGoneFromRedisExpires(t *testing.T) {
	w := retainWorld(t, func(s *segment.TopicSettings) { s.RetentionMs = 3.5 * hourMs })
	w.xtrim(key0, 3)
	w.produce(key0, 1)
	worker := w.worker()
	for range 4 {
		if r := w.later(worker, 5*time.Minute); complaints(r) != "segment orders:0/0: stream_changed" || did(r) != "" {
			t.Errorf("%s; %s", did(r), complaints(r))
		}
	}
	w.mustBe(orders0, "0:REMOTE 1:REMOTE 2:REMOTE 3:REMOTE 4:OPEN")
	out, err := worker.hide(t.Context(), Job{Action: Hide, Partition: orders0, Stored: segment.Stored{Number: 1, Raw: w.manifests[orders0]["1"], Entry: w.entry(orders0, 1)}})
	if err == nil {
		t.Errorf("a segment with a local copy was hidden: %+v", out)
	}
}

//fault:time | Ids of the future, and ids that are no times | In memory | Such a segment ages from its seal
func TestAgesOfIdsFromTheFuture(t *testing.T) {
	for name, sealed := range map[string]time.Duration{"sealed long ago": -5 * time.Hour, "sealed just now": 0} {
		w := lifeWorld(t, func(s *segment.TopicSettings) { s.RetentionMs = 4 * hourMs })
		w.remote(orders0, 0, 3, w.now.Add(10_000*time.Hour))
		w.change(orders0, 0, func(e *segment.Entry) { e.OpenedAt, e.SealedAt = 0, w.now.Add(sealed).UnixMilli() })
		want := "0:GONE"
		if sealed == 0 {
			want = "0:REMOTE"
		}
		if runOnce(t, w.worker()); w.life(orders0) != want {
			t.Errorf("%s: %s, want %s", name, w.life(orders0), want)
		}
	}
}

// A clock that was set wrongly for a while is believed again when it is right;
// what was hidden before anybody could know is brought back.
//
//fault:time | Redis' clock is set back | In memory | What was hidden by the wrong clock is brought back
func TestAClockThatJumpsBack(t *testing.T) {
	w := retainWorld(t, func(s *segment.TopicSettings) { s.RetentionMs, s.LocalRetentionMs = 100*hourMs, -2 })
	w.gone(orders0, 6, 5, w.now.Add(-time.Hour))
	here, right := w.now, w.now
	worker := w.worker()
	worker.now = func() time.Time { return here }
	runOnce(t, worker)
	move := func(by time.Duration) {
		here, right = here.Add(time.Minute), right.Add(time.Minute)
		w.now = right.Add(by)
	}
	for range 3 {
		move(8760 * time.Hour)
		mustDo(t, runOnce(t, worker), "", "clock: clock_jump")
	}
	move(0)
	mustDo(t, runOnce(t, worker), "", "")

	move(8760 * time.Hour)
	fresh := w.worker() // knows no other clock
	fresh.now = worker.now
	if r := runOnce(t, fresh); w.entry(orders0, 6).State != segment.Deleting || !w.entry(orders0, 6).Aged {
		t.Fatalf("%s: %s", did(r), w.manifests[orders0]["6"])
	}
	move(0)
	runOnce(t, w.worker())
	if e := w.entry(orders0, 6); e.State != segment.Sealed || e.Local != segment.Gone || e.DeletingAt != 0 || e.Aged {
		t.Errorf("%s", e.Encode())
	}
}

// A retention that was too short for a moment: what it has hidden, and the
// grace has kept, is brought back.
//
//fault:topics | A retention is too short for a moment | In memory | What the grace has kept is brought back
func TestARetentionThatIsRaisedInTime(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.LocalRetentionMs = -2 })
	w.gone(orders0, 6, 5, w.now.Add(-time.Hour))
	w.open(orders0, 7, 5)
	worker := w.worker()
	runOnce(t, worker)
	w.set("orders", func(s *segment.TopicSettings) { s.RetentionMs = 1 })
	w.later(worker, time.Minute)
	if w.entry(orders0, 6).State != segment.Deleting {
		t.Fatal(w.life(orders0))
	}
	w.set("orders", func(s *segment.TopicSettings) { s.RetentionMs = -1 })
	w.later(worker, time.Minute)
	if e := w.entry(orders0, 6); e.State != segment.Sealed || e.DeletingAt != 0 {
		t.Errorf("%s", e.Encode())
	}
	w.mustKeep(0)
}

// Where the two clocks run apart, ages mean nothing until they have gone on
// together for a while.
//
//fault:time | Redis' clock jumps by hours, forwards or back | In memory | Nothing is deleted until it has been steady for an hour
func TestAClockJump(t *testing.T) {
	for _, jump := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		w := retainWorld(t, func(s *segment.TopicSettings) { s.RetentionMs, s.LocalRetentionMs = 10*hourMs, 10*hourMs })
		w.gone(orders1, 0, 5, w.now.Add(-time.Hour))
		w.gone(orders1, 1, 5, w.now.Add(-time.Hour))
		w.change(orders1, 1, func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, w.now.UnixMilli() })
		w.set("orders", func(s *segment.TopicSettings) { s.Partitions = 2 })
		worker := w.worker()
		here := w.now
		worker.now = func() time.Time { return here }
		mustDo(t, runOnce(t, worker), "", "")
		w.set("orders", func(s *segment.TopicSettings) { s.RetentionMs, s.LocalRetentionMs = 0, 0 })
		w.now, here = w.now.Add(jump), here.Add(10*time.Minute)
		w.local(orders0, 5, 3, w.now.Add(-time.Minute))
		mustDo(t, runOnce(t, worker), "orders:0/5 copied", "clock: clock_jump")
		for range 5 {
			w.now, here = w.now.Add(10*time.Minute), here.Add(10*time.Minute)
			mustDo(t, runOnce(t, worker), "", "clock: clock_jump")
		}
		w.now, here = w.now.Add(10*time.Minute), here.Add(10*time.Minute)
		r := runOnce(t, worker)
		if complaints(r) != "" || jump > 0 && did(r) != "orders:0/0 dropped, orders:0/1 dropped, orders:0/2 dropped, orders:0/3 dropped, orders:0/5 dropped, orders:1/0 hidden, orders:1/1 expired" {
			t.Errorf("after a jump by %s: %s; %s", jump, did(r), complaints(r))
		}
	}
}

// A clock that is set ahead makes the lease expire, too. Whoever leads next, the
// same instance or one that has followed, knows what the clocks said before.
//
//fault:time | Redis' clock is set ahead, by which the lease expires | In memory: a leader that has lost its lease, and a follower, make the next pass | Nothing is deleted
func TestAClockThatEndsTheLease(t *testing.T) {
	for _, led := range []bool{true, false} {
		w := retainWorld(t, func(s *segment.TopicSettings) { s.RetentionMs, s.LocalRetentionMs = 100*hourMs, -2 })
		w.gone(orders0, 6, 5, w.now.Add(-time.Hour))
		worker := w.worker()
		here := w.now
		worker.now = func() time.Time { return here }
		if led {
			mustDo(t, runOnce(t, worker), "", "")
		} else {
			worker.lookAtClock(t.Context())
		}
		w.now, here = w.now.Add(8760*time.Hour), here.Add(time.Minute)
		worker.Reset()
		mustDo(t, runOnce(t, worker), "", "clock: clock_jump")
	}
}
