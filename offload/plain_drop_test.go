package offload

import (
	"errors"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// plainDropWorld has three REMOTE ranges of nine entries, one each hour, and an
// open one; none is due for removal yet.
func plainDropWorld(t *testing.T, old bool) (*world, segment.Partition, *Worker) {
	w, p := plainWorld(t, func(s *segment.TopicSettings) { s.SegmentEntries = 9 })
	w.old = old
	worker := w.worker()
	w.produce(clicks, 9)
	runOnce(t, worker)
	for range 3 {
		w.later(worker, time.Minute)
		w.later(worker, time.Minute)
		w.later(worker, 58*time.Minute)
		w.produce(clicks, 9)
	}
	w.mustBe(p, "0:REMOTE 1:REMOTE 2:REMOTE 3:OPEN")
	w.calls = nil
	return w, p, worker
}

// localHours sets how long ranges stay in Redis.
func (w *world) localHours(h float64) {
	w.set(clicks, func(s *segment.TopicSettings) { s.LocalRetentionMs = int64(h * hourMs) })
}

func TestRangesAreTrimmedFromTheFront(t *testing.T) {
	unknown := func(path string) func(*world) {
		return func(w *world) {
			w.hook = func(call string) error {
				if call == "before stat "+path {
					return ErrObjectUnknown
				}
				return nil
			}
		}
	}
	local := func(n segment.Number) func(*world) {
		return func(w *world) {
			w.change(segment.Partition{Topic: clicks, Plain: true}, n, func(e *segment.Entry) {
				e.Tier, e.Local, e.Object, e.Source, e.SealedAt = segment.Local, "", nil, nil, w.now.UnixMilli()
			})
		}
	}
	for name, c := range map[string]struct {
		do   func(*world)
		life string // of the first three
		left int    // entries in the stream
	}{
		"all":                          {func(*world) {}, "0:GONE 1:GONE 2:GONE", 9},
		"by time":                      {func(w *world) { w.localHours(1.5) }, "0:GONE 1:GONE 2:REMOTE", 18},
		"by bytes":                     {func(w *world) { w.sizeAlone(2700) }, "0:GONE 1:REMOTE 2:REMOTE", 27},
		"by bytes, all":                {func(w *world) { w.sizeAlone(0) }, "0:GONE 1:GONE 2:GONE", 9},
		"the first is LOCAL":           {local(0), "0:LOCAL 1:REMOTE 2:REMOTE", 36},
		"the second is LOCAL":          {local(1), "0:GONE 1:LOCAL 2:REMOTE", 27},
		"the first can't be verified":  {unknown("clicks/0.parquet"), "0:REMOTE 1:REMOTE 2:REMOTE", 36},
		"the second can't be verified": {unknown("clicks/1.parquet"), "0:GONE 1:REMOTE 2:REMOTE", 27},
		"the first is illegal": {func(w *world) { w.put(segment.Partition{Topic: clicks, Plain: true}, "0", "x") },
			"0:illegal 1:REMOTE 2:REMOTE", 36},
		"a consumer has read the first": {func(w *world) {
			w.groups[clicks] = []segment.Group{{LastDelivered: w.entry(segment.Partition{Topic: clicks, Plain: true}, 0).To}}
		}, "0:GONE 1:REMOTE 2:REMOTE", 27},
		"the first is to be deleted": {func(w *world) {
			p := segment.Partition{Topic: clicks, Plain: true}
			w.change(p, 0, func(e *segment.Entry) {
				e.State, e.Local, e.DeletingAt = segment.Deleting, segment.Gone, w.now.UnixMilli()
			})
			w.xtrim(clicks, 9)
		}, "0:DELETING 1:GONE 2:GONE", 9},
	} {
		w, p, _ := plainDropWorld(t, false)
		w.localHours(0)
		c.do(w)
		w.now = w.now.Add(time.Second)
		worker := w.worker(func(cfg *Config) { cfg.SealGrace, cfg.HoldPending = time.Hour, true })
		for pass := range 3 { // and it stays so
			r := runOnce(t, worker)
			if name == "a consumer has read the first" && pass == 1 && did(r) != "clicks/1 held" {
				t.Errorf("%s: %s", name, did(r))
			}
			if life := strings.TrimSuffix(w.life(p), " 3:OPEN"); !strings.HasPrefix(life, c.life) || len(w.streams[clicks].all()) != c.left {
				t.Errorf("%s: %s with %d entries, want %s with %d", name, life, len(w.streams[clicks].all()), c.life, c.left)
			}
			w.now = w.now.Add(10 * time.Second)
		}
		if n := w.made("trim"); n > (36-c.left)/3 {
			t.Errorf("%s: %d scripts for %d entries", name, n, 36-c.left)
		}
		if c.left == 9 && name != "the first is to be deleted" {
			w.mustKeep(0)
		}
	}
}

// sizeAlone limits what stays in Redis by size and not by time.
func (w *world) sizeAlone(bytes int64) {
	w.set(clicks, func(s *segment.TopicSettings) {
		s.LocalRetentionMs, s.LocalRetentionBytes, s.SegmentEntries = -1, bytes, 1000
	})
}

// Only what was copied, for certain, is trimmed.
//
//fault:redis | A range of a plain stream has more, fewer or other entries than were copied | In memory | It is trimmed only where that is certain to be right
func TestARangeIsCountedBeforeItIsTrimmed(t *testing.T) {
	for name, c := range map[string]struct {
		do       func(*world)
		gone     bool // the first range is
		goneOld  bool // on a server before 7.0
		problems Reason
	}{
		"as it was":               {func(*world) {}, true, true, ""},
		"deleted from":            {func(w *world) { w.xdel(clicks, 3); w.xdel(clicks, 0) }, true, false, ReasonChanged},
		"trimmed into":            {func(w *world) { w.xtrim(clicks, 5) }, true, false, ReasonChanged},
		"trimmed away":            {func(w *world) { w.xtrim(clicks, 9) }, true, true, ""},
		"stream gone":             {func(w *world) { w.del(clicks) }, true, true, ""},
		"made anew, fewer in it":  {func(w *world) { w.anewFrom(6) }, false, false, ReasonChanged},
		"made anew, more in it":   {func(w *world) { w.anewFrom(12) }, false, false, ReasonChanged},
		"made anew, then trimmed": {func(w *world) { w.anewFrom(12); w.forgetLast(); w.xtrim(clicks, 6) }, false, false, ReasonChanged},
		"object gone too":         {func(w *world) { w.xdel(clicks, 3); delete(w.objects, "clicks/0.parquet") }, false, false, ReasonObject},
		"object gone, range too":  {func(w *world) { w.xtrim(clicks, 9); delete(w.objects, "clicks/0.parquet") }, false, false, ReasonObject},
		"trimmed away meanwhile":  {func(w *world) { w.hook = at("before trim clicks", func() { w.xtrim(clicks, 9) }) }, false, false, ReasonChanged},
		"deleted from meanwhile":  {func(w *world) { w.hook = at("before trim clicks", func() { w.xdel(clicks, 1) }) }, false, false, ReasonChanged},
	} {
		for _, old := range []bool{false, true} {
			w, p, worker := plainDropWorld(t, old)
			w.localHours(2.5)
			c.do(w)
			left := len(w.streams[clicks].all())
			r := w.later(worker, time.Second)
			gone := c.gone
			if old {
				gone = c.goneOld
			}
			if e := w.entry(p, 0); (e.Local == segment.Gone) != gone || !gone && len(r.Problems) == 0 {
				t.Errorf("%s, old %t: %s; %s", name, old, w.life(p), complaints(r))
			}
			if !gone && complaints(r) != "segment clicks/0: "+string(c.problems) {
				t.Errorf("%s, old %t: %s", name, old, complaints(r))
			}
			if n := len(w.streams[clicks].all()); !gone && w.made("trim") == 0 && n != left {
				t.Errorf("%s, old %t: %d of %d entries are left", name, old, n, left)
			}
			if strings.HasSuffix(name, "meanwhile") { // half done, and finished by the next look
				w.quiet()
				if w.later(worker, time.Hour); w.entry(p, 0).Local != segment.Gone {
					t.Errorf("%s, old %t: then %s", name, old, w.life(p))
				}
			}
		}
	}
}

// anewFrom makes the stream anew with n entries in the first range, and the
// newest one that it had.
func (w *world) anewFrom(n int) {
	first := w.entry(segment.Partition{Topic: clicks, Plain: true}, 0)
	last := w.streams[clicks].last
	w.del(clicks)
	for i := range n {
		w.xadd(clicks, segment.ID{Ms: first.To.Ms - uint64(n-i)})
	}
	w.xadd(clicks, last)
}

// forgetLast makes the newest entry one that never was.
func (w *world) forgetLast() {
	s := w.streams[clicks]
	w.xdel(clicks, len(s.entries)-1)
	s.last, s.deleted = s.entries[len(s.entries)-1].ID, segment.ID{}
}

// An object that was lost after the flip is made again from the range.
func TestARangeWhoseObjectIsLost(t *testing.T) {
	w, p, worker := plainDropWorld(t, false)
	delete(w.objects, "clicks/0.parquet")
	w.localHours(0.5)
	mustDo(t, w.later(worker, time.Second), "clicks/0 reopened, clicks/3 rolled", "")
	w.mustBe(p, "0+1:LOCAL 1:REMOTE 2:REMOTE 3:LOCAL 4:OPEN")
	mustDo(t, w.later(worker, time.Second), "clicks/0 copied", "")
	mustDo(t, w.later(worker, time.Second), "clicks/0 dropped, clicks/1 dropped, clicks/2 dropped", "")
	w.mustKeep(0)
}

// Ended before or after any call, in mid-trim too, the removal is finished by
// the next process.
//
//fault:crash | The process ends between two pieces of a trim | In memory | The next one goes on where it was
func TestACrashWhileTrimming(t *testing.T) {
	for _, old := range []bool{false, true} {
		clean, _, worker := plainDropWorld(t, old)
		clean.localHours(0)
		clean.now = clean.now.Add(time.Second)
		steps := clean.steps(func() { runOnce(t, worker) })
		if clean.made("trim") != 9 {
			t.Fatalf("%d scripts for three ranges of three pages", clean.made("trim"))
		}
		for step := range steps {
			w, p, first := plainDropWorld(t, old)
			w.localHours(0)
			w.now = w.now.Add(time.Second)
			w.atStep(step, func() error { return errKilled })
			_, _ = first.RunOnce(t.Context())
			w.quiet()
			w.produce(clicks, 1)
			w.mustKeep(0)
			worker := w.worker()
			if r := runOnce(t, worker); complaints(r) != "" {
				t.Errorf("killed at step %d, old %t: %s", step, old, complaints(r))
			}
			w.later(worker, time.Minute)
			if !strings.HasPrefix(w.life(p), "0:GONE 1:GONE 2:GONE") {
				t.Errorf("killed at step %d, old %t: %s", step, old, w.life(p))
			}
			w.mustKeep(0)
		}
	}
}

// A removal that fails holds up those behind it, and nothing else.
func TestARangeThatFailsHoldsUpTheNext(t *testing.T) {
	w, p, worker := plainDropWorld(t, false)
	w.localHours(0)
	w.hook = failOnce("before trim clicks", errors.New("no"))
	r := w.later(worker, time.Second)
	if did(r) != "clicks/3 rolled" || complaints(r) != "segment clicks/0: other" || r.Left != 2 {
		t.Errorf("%s; %s; left %d", did(r), complaints(r), r.Left)
	}
	r = w.later(worker, 10*time.Second) // parked
	if did(r) != "clicks/3 copied" || complaints(r) != "segment clicks/0: other" || r.Left != 2 {
		t.Errorf("%s; %s; left %d", did(r), complaints(r), r.Left)
	}
	w.mustBe(p, "0:DROPPING 1:REMOTE 2:REMOTE 3:REMOTE 4:OPEN")
	mustDo(t, w.later(worker, time.Hour), "clicks/0 dropped, clicks/1 dropped, clicks/2 dropped, clicks/3 dropped", "")
}

// So does one whose entry is not what was remembered.
func TestARangeThatChangedHoldsUpTheNext(t *testing.T) {
	w, p, worker := plainDropWorld(t, false)
	runOnce(t, worker)
	w.localHours(0)
	w.change(p, 0, func(e *segment.Entry) { e.Tier, e.Local, e.Object, e.Source = segment.Local, "", nil, nil })
	w.hook = func(call string) error {
		if strings.HasPrefix(call, "before trim") {
			t.Errorf("%s, before the first range was copied", call)
		}
		return nil
	}
	runOnce(t, worker)
	w.mustKeep(0)
	if life := w.life(p); !strings.HasPrefix(life, "0:LOCAL 1:REMOTE 2:REMOTE") {
		t.Error(life)
	}
}

// A range of a plain stream is never deleted without a copy, and one that is
// gone from Redis expires like any other segment.
func TestTotalRetentionOfAPlainStream(t *testing.T) {
	w, p, _ := plainDropWorld(t, false)
	w.set(clicks, func(s *segment.TopicSettings) { s.RetentionMs = 1.5 * hourMs })
	w.change(p, 2, func(e *segment.Entry) { e.Tier, e.Local, e.Object, e.Source = segment.Local, "", nil, nil })
	delete(w.objects, "clicks/2.parquet")
	worker := w.worker(expires)
	w.hook = func(call string) error {
		if call == "before put clicks/2.parquet" {
			return errors.New("no")
		}
		return nil
	}
	w.now = w.now.Add(time.Hour)
	for range 4 {
		r := w.later(worker, 5*time.Minute)
		w.mustKeep(90 * time.Minute)
		if complaints(r) != "segment clicks/2: other" || r.Plan.Counts.Unuploaded != 1 {
			t.Errorf("%s, %+v", complaints(r), r.Plan.Counts)
		}
	}
	if life := w.life(p); !strings.HasPrefix(life, "2:LOCAL") || len(w.streams[clicks].all()) != 18 {
		t.Errorf("%s with %d entries", life, len(w.streams[clicks].all()))
	}
}

// Those who hide a range before it is out of Redis are not followed.
func TestARangeThatWasHiddenTooSoon(t *testing.T) {
	for _, since := range []int64{0, 1} {
		for _, tier := range []segment.Tier{segment.Local, segment.Remote} {
			w, p, worker := plainDropWorld(t, false)
			w.localHours(0)
			w.change(p, 0, func(e *segment.Entry) {
				if e.State, e.DeletingAt = segment.Deleting, since; tier == segment.Local {
					e.Tier, e.Local = segment.Local, ""
				}
			})
			w.set(clicks, func(s *segment.TopicSettings) { s.SegmentEntries = 1000 })
			for range 3 {
				if r := w.later(worker, time.Hour); complaints(r) != "segment clicks/0: illegal_entry" {
					t.Errorf("%s since %d: %s; %s", tier, since, did(r), complaints(r))
				}
			}
			if w.made("trim") != 0 || w.objects["clicks/0.parquet"].body == nil {
				t.Errorf("%s since %d: %d entries, objects %v", tier, since, len(w.streams[clicks].all()), sortedKeys(w.objects))
			}
		}
	}
}
