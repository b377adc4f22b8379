package offload

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"korvet-offload/segment"
)

const clicks = "clicks"

// plainWorld has one plain stream with its settings, and nothing in it.
func plainWorld(t *testing.T, change func(*segment.TopicSettings)) (*world, segment.Partition) {
	w := newWorld(t)
	return w, w.plain(clicks, change)
}

func TestTheFirstRange(t *testing.T) {
	w, p := plainWorld(t, func(*segment.TopicSettings) {})
	worker := w.worker()
	mustDo(t, runOnce(t, worker), "", "")
	w.produce(clicks, 6)
	w.xdel(clicks, 2)
	opened := w.now.UnixMilli()
	mustDo(t, w.later(worker, time.Hour), "clicks/0 created", "")
	e := w.entry(p, 0)
	if e.State != segment.Open || e.Key != clicks || e.From != (segment.ID{Seq: 1}) || !e.To.IsZero() || e.OpenedAt != opened ||
		e.Source == nil || e.Source.Added != 1 {
		t.Errorf("%+v, %+v", e, e.Source)
	}
	mustDo(t, w.later(worker, time.Minute), "", "")
	w.xtrim(clicks, 5)
	r := w.later(worker, 100*time.Hour) // an empty one never rolls
	if mustDo(t, r, "", ""); len(r.Plan.Setup) != 0 {
		t.Errorf("planned %+v", r.Plan.Setup)
	}
	w.mustBe(p, "0:OPEN")

	w, p = plainWorld(t, func(*segment.TopicSettings) {})
	w.old = true
	w.produce(clicks, 1)
	w.hook = at("before swap clicks/0", func() { w.del(clicks) })
	if runOnce(t, w.worker()); w.entry(p, 0).Source.Added != -1 {
		t.Errorf("%+v", w.entry(p, 0).Source)
	}
}

func TestWhereAPlainStreamIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		settings func(*segment.TopicSettings)
		entries  int
		counts   []int64 // of the sealed ranges after one pass, and after two
		then     []int64
	}{
		"by age":                        {func(s *segment.TopicSettings) { s.SegmentMs = 60_000 }, 35, []int64{35}, []int64{35}},
		"by entries":                    {func(s *segment.TopicSettings) { s.SegmentEntries = 10 }, 10, []int64{10}, []int64{10}},
		"by entries, not yet":           {func(s *segment.TopicSettings) { s.SegmentEntries = 10 }, 9, nil, nil},
		"by entries, several":           {func(s *segment.TopicSettings) { s.SegmentEntries = 10 }, 35, []int64{10, 10, 10}, []int64{10, 10, 10}},
		"by entries, not at a page":     {func(s *segment.TopicSettings) { s.SegmentEntries = 7 }, 17, []int64{7, 7}, []int64{7, 7}},
		"by average":                    {func(s *segment.TopicSettings) { s.SegmentBytes, s.AverageMessageBytes = 85, 10 }, 20, []int64{9, 9}, []int64{9, 9}},
		"by bytes, as measured":         {func(s *segment.TopicSettings) { s.SegmentBytes = 1000 }, 10, []int64{10}, []int64{10}},
		"by bytes, as measured not yet": {func(s *segment.TopicSettings) { s.SegmentBytes = 1000 }, 9, nil, nil},
		"by bytes, as read":             {func(s *segment.TopicSettings) { s.SegmentBytes = 250 }, 14, []int64{12}, []int64{12}},
		"a backlog": {func(s *segment.TopicSettings) { s.SegmentEntries = 1 }, 9,
			[]int64{1, 1, 1, 1, 1, 1, 1}, []int64{1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"a backlog, by age": {func(s *segment.TopicSettings) { s.SegmentEntries, s.SegmentMs = 10, 60_000 }, 25, []int64{10, 10}, []int64{10, 10}},
	} {
		for _, old := range []bool{false, true} {
			w, p := plainWorld(t, c.settings)
			w.old = old
			w.produce(clicks, c.entries)
			worker := w.worker(func(cfg *Config) { cfg.SealGrace = time.Hour })
			runOnce(t, worker)
			for i, want := range [][]int64{c.counts, c.then} {
				after := time.Duration(0)
				if i == 0 {
					after = time.Minute
				}
				if w.later(worker, after); !slices.Equal(w.counts(p), want) {
					t.Errorf("%s, old %t, pass %d: %v, want %v", name, old, i, w.counts(p), want)
				}
				w.mustBeCut(p)
			}
		}
	}
}

// What is left of a backlog counts for the next range.
func TestWhatIsLeftOfABacklogCounts(t *testing.T) {
	w, p := plainWorld(t, func(s *segment.TopicSettings) { s.SegmentEntries = 10 })
	w.produce(clicks, 15)
	worker := w.worker()
	runOnce(t, worker)
	runOnce(t, worker)
	w.produce(clicks, 5)
	if runOnce(t, worker); !slices.Equal(w.counts(p), []int64{10, 10}) {
		t.Errorf("%v", w.counts(p))
	}
	w.set(clicks, func(s *segment.TopicSettings) { s.SegmentMs = 1 })
	if r := w.later(worker, time.Minute); len(r.Plan.Setup) != 0 {
		t.Errorf("nothing has come since, and planned is %+v", r.Plan.Setup)
	}
}

// counts is what the sealed ranges of a plain stream say that they hold.
func (w *world) counts(p segment.Partition) (counts []int64) {
	for n := range segment.Number(len(w.manifests[p])) {
		if e := w.entry(p, n); e.State == segment.Sealed {
			counts = append(counts, e.Count)
		}
	}
	return counts
}

// mustBeCut checks that every id falls into exactly one range, and that the
// ranges hold what they say unless something was deleted.
func (w *world) mustBeCut(p segment.Partition) {
	w.t.Helper()
	next := segment.ID{Seq: 1}
	last := segment.Number(len(w.manifests[p]) - 1)
	for n := range last + 1 {
		e := w.entry(p, n)
		if e.From != next || (e.State == segment.Open) != (n == last) || e.State == segment.Open != e.To.IsZero() {
			w.t.Fatalf("range %s: %s from %s to %s, and the one before ends before %s", n, e.State, e.From, e.To, next)
		}
		if e.State == segment.Open {
			break
		}
		if e.To != e.LastID && e.Tier == segment.Local || e.To.Compare(e.LastID) < 0 || e.FirstID.Compare(e.From) < 0 {
			w.t.Errorf("range %s from %s to %s holds %s to %s", n, e.From, e.To, e.FirstID, e.LastID)
		}
		var held int64
		for _, id := range w.log[p.Topic] {
			if id.Compare(e.From) >= 0 && id.Compare(e.To) <= 0 && !w.forgiven[p.Topic+" "+id.String()] {
				held++
			}
		}
		if held > e.Count {
			w.t.Errorf("range %s says %d entries, and %d were acknowledged", n, e.Count, held)
		}
		next, _ = e.To.Next()
	}
}

// Whatever is appended and deleted between and during the passes: no entry is
// in two ranges, none in no range, and none is lost.
func TestNoEntryIsInTwoRangesOrNone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, p := plainWorld(t, func(s *segment.TopicSettings) {
			s.SegmentEntries = int64(rapid.IntRange(1, 12).Draw(rt, "entries"))
			s.SegmentMs = int64(rapid.SampledFrom([]int{1000, 30_000, 86_400_000}).Draw(rt, "ms"))
			s.LocalRetentionMs = int64(rapid.SampledFrom([]int{-1, 0, 60_000}).Draw(rt, "local"))
		})
		w.t = rt
		w.old = rapid.Bool().Draw(rt, "old")
		w.pageLen = rapid.IntRange(1, 5).Draw(rt, "page")
		worker := w.worker()
		busy := rapid.IntRange(0, 7).Draw(rt, "busy")
		calls := 0
		w.hook = func(call string) error {
			if calls++; busy > 0 && calls%busy == 0 && calls < 400 && strings.HasPrefix(call, "before") {
				w.produce(clicks, 1)
			}
			return nil
		}
		for range rapid.IntRange(1, 12).Draw(rt, "passes") {
			w.produce(clicks, rapid.IntRange(0, 20).Draw(rt, "burst"))
			if s := w.streams[clicks]; !w.old && s != nil && len(s.entries) > 0 && rapid.Bool().Draw(rt, "xdel") {
				w.xdel(clicks, rapid.IntRange(0, len(s.entries)-1).Draw(rt, "which"))
			}
			r := w.later(worker, time.Duration(rapid.IntRange(0, 40).Draw(rt, "seconds"))*time.Second)
			if len(w.manifests[p]) > 0 {
				w.mustBeCut(p)
			}
			w.mustKeep(0)
			for _, problem := range r.Problems {
				if problem.Reason != ReasonSourceMissing { // all of a range deleted before its copy
					rt.Errorf("%v", problem)
				}
			}
		}
	})
}

func TestARangeIsCopiedWhileTheStreamGrows(t *testing.T) {
	w, p := plainWorld(t, func(s *segment.TopicSettings) { s.SegmentEntries = 10 })
	w.produce(clicks, 12)
	worker := w.worker()
	runOnce(t, worker)
	runOnce(t, worker)
	w.mustBe(p, "0:LOCAL 1:OPEN")
	w.hook = func(call string) error {
		if strings.HasPrefix(call, "before") && w.made("") < 200 {
			w.produce(clicks, 1)
		}
		return nil
	}
	r := w.later(worker, 10*time.Second)
	var missing int64
	for _, o := range r.Outcomes {
		missing += o.Missing
	}
	if complaints(r) != "" || w.entry(p, 0).Tier != segment.Remote || missing != 0 {
		t.Errorf("%s, %s", did(r), complaints(r))
	}
	if e := w.entry(p, 0); e.Count != 10 || e.Object.Path != "clicks/0.parquet" {
		t.Errorf("%+v", e)
	}
	w.mustKeep(0)
}

func TestARangeThatIsNotWholeAnyMore(t *testing.T) {
	for name, c := range map[string]struct {
		do      func(*world)
		reason  Reason // "" = copied
		missing int64
	}{
		"whole":                {func(*world) {}, "", 0},
		"trimmed into":         {func(w *world) { w.xtrim(clicks, 4) }, "", 4},
		"deleted from":         {func(w *world) { w.xdel(clicks, 9); w.xdel(clicks, 1) }, "", 2},
		"trimmed away":         {func(w *world) { w.xtrim(clicks, 10) }, ReasonSourceMissing, 0},
		"trimmed further":      {func(w *world) { w.xtrim(clicks, 12) }, ReasonSourceMissing, 0},
		"stream gone":          {func(w *world) { w.del(clicks) }, ReasonSourceMissing, 0},
		"stream made anew":     {func(w *world) { w.del(clicks); w.now = w.now.Add(time.Second); w.produce(clicks, 20) }, ReasonSourceMissing, 0},
		"came less far":        {func(w *world) { w.del(clicks); w.xadd(clicks, segment.ID{Ms: 5}) }, ReasonShortStream, 0},
		"made anew, with more": {func(w *world) { w.anew(12) }, ReasonChanged, 0},
		"trimmed while it is read": {func(w *world) {
			n := 0
			w.hook = func(call string) error {
				if n++; call == "after page "+clicks && len(w.streams[clicks].entries) == 12 {
					w.xtrim(clicks, 6)
				}
				return nil
			}
		}, "", 3},
		"trimmed away before it is read": {func(w *world) { w.hook = at("before page "+clicks, func() { w.xtrim(clicks, 10) }) }, ReasonSourceMissing, 0},
	} {
		w, p := plainWorld(t, func(s *segment.TopicSettings) { s.SegmentEntries = 10 })
		w.produce(clicks, 12)
		worker := w.worker()
		runOnce(t, worker)
		runOnce(t, worker)
		c.do(w)
		r := w.later(worker, 10*time.Second)
		if c.reason != "" {
			if complaints(r) != "segment clicks/0: "+string(c.reason) || !strings.HasPrefix(w.life(p), "0:LOCAL 1:") || len(w.objects) != 0 {
				t.Errorf("%s: %s, %s, objects %v", name, complaints(r), w.life(p), sortedKeys(w.objects))
			}
			continue
		}
		if len(r.Outcomes) != 1 || r.Outcomes[0].Result != Copied || r.Outcomes[0].Missing != c.missing || w.entry(p, 0).Count != 10-c.missing {
			t.Errorf("%s: %+v, %s", name, r.Outcomes, complaints(r))
		}
		if name != "trimmed while it is read" { // what was read before the trim is more than what is left
			w.mustKeep(0)
		}
	}
}

// anew makes the stream anew, with n entries up to the last id that it had.
func (w *world) anew(n int) {
	last := w.streams[clicks].last
	w.del(clicks)
	for i := range n {
		w.xadd(clicks, segment.ID{Ms: last.Ms - uint64(n-1-i)})
	}
	w.xadd(clicks, segment.ID{Ms: last.Ms, Seq: last.Seq + 1})
}

// The estimate of what is in the open range is never so wrong that it is cut
// into crumbs: not when entries are deleted by id, as consumers do.
func TestDeletedEntriesDoNotMakeSmallRanges(t *testing.T) {
	for _, old := range []bool{false, true} {
		w, p := plainWorld(t, func(s *segment.TopicSettings) { s.SegmentEntries = 10 })
		w.old = old
		w.produce(clicks, 1)
		worker := w.worker()
		runOnce(t, worker)
		for range 60 {
			w.produce(clicks, 20)
			for range 16 {
				w.xdel(clicks, len(w.streams[clicks].entries)-2) // all but the last few were done at once
			}
			if r := w.later(worker, 10*time.Second); complaints(r) != "" || strings.Contains(did(r), "lost_race") {
				t.Fatal(did(r), complaints(r))
			}
		}
		for _, n := range w.counts(p) {
			if n < 10 {
				t.Errorf("old %t: ranges of %v entries", old, w.counts(p))
				break
			}
		}
		if len(w.counts(p)) < 10 {
			t.Errorf("old %t: only ranges of %v entries", old, w.counts(p))
		}
	}
}

func TestAPlainStreamThatIsSwitchedOff(t *testing.T) {
	w, p := plainWorld(t, func(s *segment.TopicSettings) { s.SegmentEntries = 10 })
	w.produce(clicks, 12)
	worker := w.worker()
	runOnce(t, worker)
	runOnce(t, worker)
	w.later(worker, 10*time.Second)
	w.mustBe(p, "0:REMOTE 1:OPEN")
	w.set(clicks, func(s *segment.TopicSettings) { s.RemoteStorage, s.LocalRetentionBytes = false, 500 })
	w.produce(clicks, 20)
	mustDo(t, w.later(worker, time.Hour), "clicks/0 dropped", "")
	mustDo(t, w.later(worker, 100*time.Hour), "", "")
	w.mustBe(p, "0:GONE 1:OPEN")
	w.mustKeep(0)
}
