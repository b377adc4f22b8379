package restore

import (
	"testing"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// An entry counts as there only if it tells of just this file.
func TestAnEntryThatNamesAFile(t *testing.T) {
	c := segment.Contents{FirstID: segment.ID{Ms: 1}, LastID: segment.ID{Ms: 9}, Count: 5}
	f := Found{Number: 3, Object: &segment.Object{Path: "p", Bytes: 7, SHA256: "s", ETag: "e"}, Contents: c}
	if e := (segment.Stored{Number: 3, Entry: entryOf(orders, f)}); !names(e, f) {
		t.Fatalf("%+v does not name it", e)
	}
	for name, change := range map[string]func(*segment.Stored){
		"illegal":         func(e *segment.Stored) { e.Err = segment.ErrIllegalEntry },
		"hidden":          func(e *segment.Stored) { e.Entry.State = segment.Deleting },
		"LOCAL":           func(e *segment.Stored) { e.Entry.Tier = segment.Local },
		"no object":       func(e *segment.Stored) { e.Entry.Object = nil },
		"another path":    func(e *segment.Stored) { e.Entry.Object.Path = "q" },
		"another size":    func(e *segment.Stored) { e.Entry.Object.Bytes++ },
		"another SHA-256": func(e *segment.Stored) { e.Entry.Object.SHA256 = "t" },
		"another count":   func(e *segment.Stored) { e.Entry.Count++ },
		"another first":   func(e *segment.Stored) { e.Entry.FirstID.Seq++ },
		"another last":    func(e *segment.Stored) { e.Entry.LastID.Seq++ },
	} {
		e := segment.Stored{Number: 3, Entry: entryOf(orders, f)}
		o := *e.Entry.Object
		e.Entry.Object = &o
		if change(&e); names(e, f) {
			t.Errorf("%s: it names the file", name)
		}
	}
}

// What is as it may be is no reason to refuse, and not worth a word.
func TestRebuildOfWhatIsAsItMayBe(t *testing.T) {
	forever := segment.DefaultTopicSettings()
	forever.RetentionMs = -1
	for name, c := range map[string]struct {
		p    segment.Partition
		make func(w *world)
		opt  Options
		open segment.Number
		says int // notes
	}{
		"retention that keeps all":       {orders, func(*world) {}, Options{}, 3, 0},
		"a segment without messages":     {orders, func(w *world) { w.put(orders, 3, 0, "", nil); w.put(orders, 4, 0, "", messages(400, 3)) }, Options{}, 5, 0},
		"a text under the topic's key":   {orders, func(w *world) { w.texts["korvet:storage:local:orders:0"] = true }, Options{}, 3, 0},
		"ranges that overlap, allowed":   {plain, func(w *world) { w.put(plain, 3, 0, "", messages(221, 4)) }, Options{Disorder: true}, 4, 1},
		"an OPEN 0, and an empty stream": {plain, func(w *world) { w.write(plain, 0, segment.NewOpen("", 1)) }, Options{}, 3, 0},
	} {
		w, _ := lost(t, c.p)
		c.make(w)
		b, err := w.rebuild(c.p, &forever, c.opt, false)
		if err != nil || len(b.Notes) != c.says {
			t.Errorf("%s: %v, %q", name, err, b.Notes)
		}
		if e := w.entryOf(c.p, c.open); e.State != segment.Open {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// A manifest in use that has all that the store has may have more than that.
func TestAManifestInUseIsLeft(t *testing.T) {
	w := newWorld(t)
	w.three(orders)
	w.write(orders, 3, w.put(orders, 3, 0, "", messages(400, 3)))
	w.store.Lose(fileOf(3))
	w.write(orders, 4, segment.NewOpen("", 7))
	if b, err := w.rebuild(orders, nil, Options{}, false); err != nil || b.Does() || b.There != 3 {
		t.Errorf("%v: %+v", err, b)
	}
}

// Redis loses a part of what was put, or of what was there before, and has as many
// entries as it should have.
func TestRedisLosesSomeEntriesMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		make, lose func(w *world)
	}{
		"one that was put, and there is another": {func(*world) {}, func(w *world) {
			delete(w.manifests[orders], "1")
			w.manifests[orders]["9"] = w.manifests[orders]["0"]
		}},
		"one that was there before": {func(w *world) { w.write(orders, 0, w.rebuilt(0)) }, func(w *world) { delete(w.manifests[orders], "0") }},
		"all, and none was put": {func(w *world) {
			w.store.Lose(fileOf(1))
			w.store.Lose(fileOf(2))
			w.write(orders, 0, segment.NewOpen("", 7))
		}, func(w *world) { delete(w.manifests, orders) }},
	} {
		w, _ := lost(t, orders)
		c.make(w)
		looks := 0
		w.before = func(what string) {
			if what == "each" {
				if looks++; looks == 2 {
					c.lose(w)
				}
			}
		}
		_, err := w.rebuild(orders, nil, Options{}, false)
		mustFail(t, name, err, "redis has lost some meanwhile")
		for n, raw := range w.manifests[orders] {
			if e, err := segment.ParseEntry([]byte(raw)); err == nil && e.State == segment.Open {
				t.Errorf("%s: entry %s is OPEN", name, n)
			}
		}
	}
}

// rebuilt is the entry that a rebuild makes of a segment.
func (w *world) rebuilt(n segment.Number) segment.Entry {
	w.t.Helper()
	s, err := w.restorer().Survey(w.t.Context(), w.group(orders), false)
	if err != nil {
		w.t.Fatal(err)
	}
	return entryOf(orders, s.Segments[n])
}

// What the OPEN range of a plain stream counts from is what came before it.
func TestTheOpenRangeCountsFrom(t *testing.T) {
	for name, c := range map[string]struct {
		make func(s *stream)
		want int64
	}{
		"added before": {func(s *stream) { s.added = 100 }, 96},
		"not told":     {func(s *stream) { s.added = -1 }, -1},
	} {
		w, all := lost(t, plain)
		w.add("events", messages(900, 4)...)
		c.make(w.streams["events"])
		if _, err := w.rebuild(plain, nil, Options{}, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		e := w.entryOf(plain, 3)
		if e.Source == nil || e.Source.Added != c.want || e.Source.LastID != all[len(all)-1].ID {
			t.Errorf("%s: %+v, want %d", name, e.Source, c.want)
		}
	}
	w, _ := lost(t, plain)
	w.put(plain, 3, 0, "", []dataset.Entry{{ID: segment.MaxID(), Fields: []dataset.Field{{Name: []byte("a"), Value: []byte("b")}}}})
	_, err := w.rebuild(plain, nil, Options{}, false)
	mustFail(t, "no id left", err, "ends with the largest id there is")
}

// What is refused is not done.
func TestWhatARebuildDoes(t *testing.T) {
	b := Rebuild{OpenEntry: segment.NewOpen("", 1)}
	if !b.Does() {
		t.Error("it does nothing")
	}
	if b.refuse("no"); b.Does() {
		t.Error("it is refused, and does something")
	}
}
