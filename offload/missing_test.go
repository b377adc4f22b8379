package offload

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// complaintsOf is what a plan can't do.
func complaintsOf(p Plan) string { return complaints(Report{Problems: p.Problems}) }

// Who only looks sees what has no stream any more, and that it would not be
// copied. One without entries needs no stream.
func TestAPlanSeesWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	at := w.now.Add(-time.Hour)
	for n := range segment.Number(4) {
		w.local(orders0, n, 3, at)
	}
	w.local(orders0, 4, 0, at)
	w.change(orders0, 2, func(e *segment.Entry) { e.Count, e.FirstID, e.LastID = segment.NoCount, segment.ID{}, segment.ID{} })
	w.change(orders0, 3, func(e *segment.Entry) { e.Key = "elsewhere" })
	layout := segment.DefaultLayout()
	for _, n := range []segment.Number{1, 2, 4} {
		w.del(layout.SegmentKey(orders0, n))
	}
	w.calls = nil
	plan, err := w.worker().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := complaintsOf(plan); got != "segment orders:0/1: source_missing, segment orders:0/2: source_missing, segment orders:0/3: source_missing" {
		t.Error(got)
	}
	var copies []segment.Number
	for _, j := range plan.Jobs[0] {
		copies = append(copies, j.Stored.Number)
	}
	if !slices.Equal(copies, []segment.Number{0, 4}) || plan.Counts.Sealed != 5 || plan.Lag.Segments != 5 {
		t.Errorf("to copy %v, %+v, %+v", copies, plan.Counts, plan.Lag)
	}
	if text := plan.Problems[2].Err.Error(); !strings.Contains(text, "stream elsewhere has no entries") {
		t.Error(text)
	}
}

func TestMissingSources(t *testing.T) {
	ranged := segment.Entry{Count: 3, From: segment.ID{Ms: 5}, To: segment.ID{Ms: 7}}
	for _, c := range []struct {
		name  string
		entry segment.Entry
		size  segment.StreamSize
		want  error
	}{
		{"it is there", segment.Entry{Count: 3}, segment.StreamSize{Length: 1}, nil},
		{"it is not", segment.Entry{Count: 3}, segment.StreamSize{}, segment.ErrSourceMissing},
		{"a range of nothing", ranged, segment.StreamSize{}, segment.ErrSourceMissing},
		{"another type", segment.Entry{Count: 3}, segment.StreamSize{Err: segment.ErrWrongType}, segment.ErrWrongType},
	} {
		if err := missing(c.entry, "key", c.size); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What is not looked for is said, and what was sealed first is looked for first;
// a topic that is not offloaded any more is not looked at.
func TestSourcesAreLookedForFromTheOldest(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.topic("off", 1)
	w.set("off", func(s *segment.TopicSettings) { s.RemoteStorage = false })
	w.known["off"] = record{Settings: w.topics[1].Settings}.encode()
	e := segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: 3}
	w.put(segment.Partition{Topic: "off"}, "0", string(e.Encode()))
	const more = 3
	for n := range segment.Number(maxSources + more) { // the last is the oldest
		e.SealedAt = w.now.UnixMilli() - int64(n)
		w.put(orders0, n.String(), string(e.Encode()))
	}
	scan, err := w.worker().Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan := MakePlan(scan, DefaultConfig())
	if scan.unlooked != more || len(plan.Problems) != maxSources || plan.Problems[0].Segment != "3" || plan.Problems[0].Topic != "orders" {
		t.Errorf("%d not looked for, %d problems, the first %v", scan.unlooked, len(plan.Problems), plan.Problems[0])
	}
	if !slices.Contains(plan.Warnings, "it was looked for the streams of the 10000 segments that were sealed first, and not for those of 3 others") {
		t.Errorf("%q", plan.Warnings)
	}
}

// A pass of the daemon does not look: a copy finds out by itself.
func TestAPassLooksForNoSources(t *testing.T) {
	w := ordersWorld(t, 2)
	w.set("orders", func(s *segment.TopicSettings) { s.AverageMessageBytes = 100 }) // nothing to be measured
	made := func() int { defer func() { w.calls = nil }(); return w.made("sizes") }
	if _, err := w.worker().Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	looked := made()
	if runOnce(t, w.worker()); looked == 0 || made() >= looked {
		t.Errorf("a look asked for sizes %d times, and a pass no less", looked)
	}
}

// A topic that can't be worked on is counted.
func TestFaultyTopicsAreCounted(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.topics[0].Err = segment.ErrTopicSetting
	if plan, err := w.worker().Plan(t.Context()); err != nil || plan.Counts != (Counts{Faulty: 1}) {
		t.Errorf("%v, %+v", err, plan.Counts)
	}
}
