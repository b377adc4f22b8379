package gc

import (
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

func TestWhatGoesByDefault(t *testing.T) {
	w := newWorld(t)
	p := part("orders")
	w.put(w.path(p, 2, 0), "past retention")
	w.put(w.path(p, 2, 1), "past retention, its second copy")
	w.remote(p, 3, 2)
	w.remote(p, 5, 0)
	w.put(w.path(p, 4, 0), "in a gap")
	w.put(w.path(p, 9, 0), "above the last entry")
	w.remote(p, 7, 0)
	w.put(w.path(p, 7, 1), "later than the one that the entry names")
	w.local(p, 8, 1)
	for c := range int64(3) {
		w.put(w.path(p, 8, c), "of a segment that is LOCAL")
	}
	w.put("korvet:storage:local:gone:0/0.parquet", "of a topic that was removed")
	w.put("reports/summary.csv", "somebody's")
	w.put("korvet:storage:local:orders:0/notes.txt", "somebody's")
	plan := w.must("by default", "orders:0/2.parquet", "orders:0/2-1.parquet", "orders:0/3.parquet", "orders:0/3-1.parquet")
	if got := names(plan.Left); !slices.Equal(got, []string{"gone:0/0.parquet", "orders:0/4.parquet", "orders:0/9.parquet"}) {
		t.Errorf("left: %q", got)
	}
	if plan.Named.Objects != 6 || plan.Newer.Objects != 1 || plan.Alien.Objects != 2 || plan.Seen.Objects != 16 {
		t.Errorf("%+v", plan)
	}
	w.opt.Gaps = true
	w.must("with gaps", "orders:0/2.parquet", "orders:0/2-1.parquet", "orders:0/3.parquet", "orders:0/3-1.parquet", "orders:0/4.parquet", "orders:0/9.parquet")
	w.opt.Gaps, w.opt.Removed = false, true
	w.must("of removed topics", "gone:0/0.parquet", "orders:0/2.parquet", "orders:0/2-1.parquet", "orders:0/3.parquet", "orders:0/3-1.parquet")
	w.opt.Scope = segment.Scope{Topic: "gone"}
	w.must("of one topic", "gone:0/0.parquet")
	deleted, why, err := w.collect(t.Context(), func() {})
	if want := []string{"gone:0/0.parquet"}; err != nil || why != "" || !slices.Equal(deleted, want) {
		t.Errorf("deleted %q, %s, %v", deleted, why, err)
	}
}

func TestWhatIsYoungStays(t *testing.T) {
	w := newWorld(t)
	w.remote(part("orders"), 3, 1)
	w.age = MinAge - time.Minute
	if plan := w.must("young"); plan.Young.Objects != 1 {
		t.Errorf("%+v", plan)
	}
	w.age = -time.Hour // the clock was set back
	w.must("from the future")
	w.age = MinAge + time.Minute
	w.must("old enough", "orders:0/3.parquet")
	if err := (Options{OlderThan: MinAge - 1}).Validate(); err == nil {
		t.Error("a lower floor is taken")
	}
	w.extra = []s3sink.Info{{Key: "korvet:storage:local:orders:0/3-0.parquet"}, {Key: "korvet:storage:local:orders:0/2.parquet"}} // without a time
	if plan := w.must("without a time", "orders:0/3.parquet"); plan.Young.Objects != 1 {
		t.Errorf("%+v", plan)
	}
}

// An entry that may still name one of its copies keeps them all.
func TestWhatMayBeNamedYetStays(t *testing.T) {
	p := part("orders")
	for name, entry := range map[string]segment.Entry{
		"open":               {State: segment.Open, Tier: segment.Local, Count: segment.NoCount},
		"local":              {State: segment.Sealed, Tier: segment.Local, Copy: 1, Count: 1},
		"remote, no object":  {State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Copy: 2, Count: 1},
		"deleting":           {State: segment.Deleting, Tier: segment.Remote, Local: segment.Gone, Copy: 2, Count: 1, DeletingAt: 1, Object: &segment.Object{Path: "korvet:storage:local:orders:0/3-2.parquet", Bytes: 6}},
		"names another":      {State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Copy: 2, Count: 1, Object: &segment.Object{Path: "archive/3-5.parquet", Bytes: 1}},
		"names another's":    {State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Copy: 2, Count: 1, Object: &segment.Object{Path: "korvet:storage:local:orders:0/9-5.parquet", Bytes: 1}},
		"first of two names": {State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Copy: 2, Count: 1, Object: &segment.Object{Path: "korvet:storage:local:orders:0/3.parquet"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.remote(p, 1, 0)
			w.set(p, 3, entry)
			for c := range int64(3) {
				w.put(w.path(p, 3, c), "a copy")
			}
			w.put(w.path(p, 9, 5), "x")
			w.put("archive/3-5.parquet", "x")
			w.opt.Gaps = true
			var want []string
			if name != "names another's" {
				want = []string{"orders:0/9-5.parquet"}
			}
			w.must(name, want...)
		})
	}
}

// Where the path is not that of the entry's copy, older means older than both.
func TestEntriesThatNameAnotherCopy(t *testing.T) {
	p := part("orders")
	for _, c := range []struct {
		copied, named int64
		want          []string
	}{
		{3, 1, []string{"orders:0/3.parquet"}},
		{1, 3, []string{"orders:0/3.parquet"}},
		{0, 2, nil},
	} {
		w := newWorld(t)
		for n := range int64(5) {
			o := w.put(w.path(p, 3, n), "a copy")
			if n == c.named {
				w.set(p, 3, segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Copy: c.copied, Count: 1, Object: o})
			}
		}
		w.must("", c.want...)
	}
}

// A scope is kept where the folders of a topic have no beginning in common that
// others lack.
func TestScopesInOtherLayouts(t *testing.T) {
	w := newWorld(t)
	w.layout.Stream, w.layout.SegmentStream = "{ns}:{partition}:{topic}", "{ns}:{partition}:{topic}:{segment}"
	w.topic("audit", 2)
	for _, p := range []segment.Partition{part("orders"), part("audit"), {Topic: "audit", Number: 1}} {
		w.remote(p, 3, 1)
	}
	for scope, want := range map[segment.Scope][]string{
		{Topic: "orders"}: {"korvet:0:orders/3.parquet"}, {Topic: "audit"}: {"korvet:0:audit/3.parquet", "korvet:1:audit/3.parquet"},
		{Stream: "events"}: nil,
	} {
		w.opt.Scope = scope
		w.must(scope.String(), want...)
	}
}

// Of what is not meant nothing goes, and nothing is said.
func TestPartitionsAndSegments(t *testing.T) {
	w := newWorld(t)
	w.topic("audit", 2)
	p, q := part("orders"), segment.Partition{Topic: "audit", Number: 1}
	for _, n := range []segment.Number{3, 4, 5} {
		w.remote(p, n, 1)
		w.remote(q, n, 1)
	}
	w.remote(part("audit"), 3, 1)
	w.put("reports/summary.csv", "somebody's")
	w.opt.Only = func(o segment.Partition) bool { return o == p || o == q }
	if plan := w.must("partitions", "audit:1/3.parquet", "audit:1/4.parquet", "audit:1/5.parquet", "orders:0/3.parquet", "orders:0/4.parquet", "orders:0/5.parquet"); plan.Alien.Objects != 0 {
		t.Errorf("%+v", plan)
	}
	w.opt.Segments = func(o segment.Partition, n segment.Number) bool { return o == q || n == 4 }
	w.must("segments", "audit:1/3.parquet", "audit:1/4.parquet", "audit:1/5.parquet", "orders:0/4.parquet")
	w.opt.Scope = segment.Scope{Topic: "orders"}
	deleted, why, err := w.collect(t.Context(), func() {})
	if want := []string{"orders:0/4.parquet"}; err != nil || why != "" || !slices.Equal(deleted, want) {
		t.Errorf("deleted %q, %s, %v", deleted, why, err)
	}
}

func TestPlainStreams(t *testing.T) {
	w := newWorld(t)
	events, gone := segment.Partition{Topic: "events:1", Plain: true}, segment.Partition{Topic: "a b", Plain: true}
	w.topics = append(w.topics, segment.Topic{Name: events.Topic, Plain: true, Settings: segment.DefaultStreamSettings()},
		segment.Topic{Name: "new", Plain: true, Settings: segment.DefaultStreamSettings()})
	w.remote(events, 3, 1)
	w.put(w.path(gone, 0, 0), "x")
	w.put("new/0.parquet", "x")
	w.opt.Removed = true
	plan := w.must("all", "a%20b/0.parquet", "events:1/3.parquet")
	if len(plan.Protected) != 1 || plan.Protected[0].Partition.Topic != "new" {
		t.Errorf("%+v", plan.Protected)
	}
	w.opt.Scope = segment.Scope{Stream: "a b"}
	w.must("one", "a%20b/0.parquet")
}

// While the local copy is there, a segment may be copied again; when it is gone,
// the paths of other attempts at the same copy are leftovers.
func TestAttemptsOnStoresWithoutConditions(t *testing.T) {
	p := part("orders")
	for local, want := range map[segment.LocalCopy][]string{segment.Present: nil, segment.Dropping: nil, segment.Gone: {"orders:0/3.bbb.parquet"}} {
		w := newWorld(t)
		o := w.put("korvet:storage:local:orders:0/3.aaa.parquet", "x")
		w.put("korvet:storage:local:orders:0/3.bbb.parquet", "y")
		w.set(p, 3, segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: local, Count: 1, Object: o})
		w.must(string(local), want...)
	}
}

// A path that any entry names stays, in whatever partition the entry is.
func TestNamedFromElsewhere(t *testing.T) {
	w := newWorld(t)
	w.topic("audit", 3)
	w.remote(part("orders"), 3, 1)
	third := segment.Partition{Topic: "audit", Number: 2} // which has no folder
	w.set(third, 0, segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Count: 1,
		Object: &segment.Object{Path: "korvet:storage:local:orders:0/3.parquet", Bytes: 1}})
	if plan := w.must("named by another topic's entry"); plan.Named.Objects != 2 {
		t.Errorf("%+v", plan)
	}
}

func TestProtectedPartitions(t *testing.T) {
	p := part("orders")
	for name, c := range map[string]struct {
		spoil func(w *world)
		want  string
	}{
		"no entry":        {func(w *world) { w.manifests[p]["7"] = "{" }, "segment 7"},
		"a later version": {func(w *world) { w.manifests[p]["7"] = `{"v":2}` }, "segment 7"},
		"no segment":      {func(w *world) { w.manifests[p]["seven"] = `{"state":"OPEN","tier":"LOCAL"}` }, "seven"},
		"incomplete":      {func(w *world) { w.short[p] = 1 }, "whole"},
		"another type":    {func(w *world) { w.broken[p] = errInjected }, "injected"},
		"paused":          {func(w *world) { w.pause(segment.Scope{Topic: "orders"}) }, "paused"},
		"all is paused":   {func(w *world) { w.pause(segment.Scope{}) }, "paused"},
	} {
		w := newWorld(t)
		w.topic("audit", 1)
		w.remote(p, 3, 1)
		w.put(w.path(p, 0, 0), "past retention")
		w.opt.Gaps = true
		c.spoil(w)
		plan := w.must(name)
		if len(plan.Protected) != 1 || !strings.Contains(plan.Protected[0].Err.Error(), c.want) || plan.Guarded.Objects != 3 {
			t.Errorf("%s: %+v", name, plan)
		}
	}
}

// Without a retention by time the age of what is left says nothing.
func TestBelowTheFirstEntryWithoutRetention(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*segment.Topic)
		want   []string
	}{
		"by time":         {func(*segment.Topic) {}, []string{"orders:0/0.parquet"}},
		"by size":         {func(o *segment.Topic) { o.Settings.RetentionMs, o.Settings.RetentionBytes = -1, 1 }, nil},
		"none":            {func(o *segment.Topic) { o.Settings.RetentionMs = -1 }, nil},
		"not known":       {func(o *segment.Topic) { o.Name = "other" }, nil},
		"can't be read":   {func(o *segment.Topic) { o.Err = segment.ErrTopicSetting }, nil},
		"settings lost":   {func(o *segment.Topic) { o.Bare = true }, nil},
		"only by pattern": {func(o *segment.Topic) { o.Bare, o.Declared = true, true }, []string{"orders:0/0.parquet"}},
	} {
		w := newWorld(t)
		w.remote(part("orders"), 3, 0)
		w.put(w.path(part("orders"), 0, 0), "below the first")
		c.change(&w.topics[0])
		plan := w.must(name, c.want...)
		if len(c.want) == 0 && (len(plan.Left) != 1 || plan.Left[0].Class != Gap) {
			t.Errorf("%s: %+v", name, plan.Left)
		}
	}
}

// What lies before the first entry went by retention only if all of it is old
// enough for that, and it is a file at all.
func TestWhatRetentionCannotHaveTakenStays(t *testing.T) {
	day := 24 * time.Hour.Milliseconds()
	for name, c := range map[string]struct {
		change func(w *world, s *segment.TopicSettings, at int64)
		why    string // "" = it goes
	}{
		"past it":          {func(w *world, s *segment.TopicSettings, at int64) { w.newest.Ms = uint64(at - s.RetentionMs - day) }, ""},
		"not past it":      {func(w *world, s *segment.TopicSettings, at int64) { w.newest.Ms = uint64(at - s.RetentionMs + day) }, "not past retention.ms"},
		"in the future":    {func(w *world, _ *segment.TopicSettings, at int64) { w.newest.Ms = uint64(at + 100*day) }, "not past retention.ms"},
		"a counter":        {func(w *world, _ *segment.TopicSettings, _ int64) { w.newest.Ms = 17 }, ""},
		"a late counter":   {func(w *world, s *segment.TopicSettings, _ int64) { w.newest.Ms, s.RetentionMs = 17, 1000*day }, "not past retention.ms"},
		"older than time":  {func(w *world, s *segment.TopicSettings, at int64) { w.newest.Ms, s.RetentionMs = uint64(at-day), 1<<62 }, "not past retention.ms"},
		"by size, perhaps": {func(w *world, s *segment.TopicSettings, at int64) { w.newest.Ms, s.RetentionBytes = uint64(at-day), 1 }, "not past retention.ms"},
		"no file":          {func(w *world, _ *segment.TopicSettings, _ int64) { w.foreign[w.path(part("orders"), 0, 0)] = true }, "no file of this segment that can be read"},
	} {
		w := newWorld(t)
		w.remote(part("orders"), 3, 0)
		w.put(w.path(part("orders"), 0, 0), "below the first")
		now, err := w.now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.change(w, &w.topics[0].Settings, now.UnixMilli())
		var want []string
		if c.why == "" {
			want = []string{"orders:0/0.parquet"}
		}
		plan := w.must(name, want...)
		if c.why != "" && (len(plan.Left) != 1 || !strings.Contains(plan.Left[0].Stays, c.why)) {
			t.Errorf("%s: %+v", name, plan.Left)
		}
	}
}
