package restore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// Whatever call fails, and be it the only one, the restore says so.
func TestNoErrorIsPassedOver(t *testing.T) {
	for name, do := range map[string]func(w *world) error{
		"one stream": func(w *world) error { _, _, err := w.run(toKey()); return err },
		"goes on":    func(w *world) error { w.add("k", messages(0, 9)...); _, _, err := w.run(toKey()); return err },
		"original":   func(w *world) error { _, _, err := w.run(original()); return err },
		"manifest": func(w *world) error {
			w.manifests[orders] = map[string]string{"0": string(segment.NewOpen("", 7).Encode())}
			_, err := w.rebuild(orders, nil, Options{}, true)
			return err
		},
		"plain manifest": func(w *world) error {
			delete(w.manifests, orders)
			w.three(plain)
			delete(w.manifests, plain)
			w.add("events", messages(900, 4)...)
			_, err := w.rebuild(plain, nil, Options{}, false)
			return err
		},
	} {
		whole := newWorld(t)
		whole.three(orders)
		if err := do(whole); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for at := 1; at <= whole.calls; at++ {
			w, what := newWorld(t), ""
			w.three(orders)
			w.dies, w.once = at, true
			w.before = func(call string) {
				if w.calls+1 == at {
					what = call
				}
			}
			if err := do(w); !errors.Is(err, errKill) {
				t.Errorf("%s: call %d, %s, has failed: %v", name, at, what, err)
			}
		}
	}
}

// What the plan knows already is refused before a file is read.
func TestThePlanRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		q    Query
		make func(w *world, all []dataset.Entry)
	}{
		"evicts":          {toKey(), func(w *world, _ []dataset.Entry) { w.evicts = "it evicts" }},
		"newer":           {toKey(), func(w *world, _ []dataset.Entry) { w.add("k", messages(5000, 1)...) }},
		"newer, original": {Query{Partition: orders, Original: true, Segments: only(0, 0)}, func(w *world, _ []dataset.Entry) { w.add(w.layout.SegmentKey(orders, 0), messages(50, 1)...) }},
		"newer than all":  {Query{Partition: orders, Key: "k", Between: parquetfile.Between{To: segment.MaxID()}}, func(w *world, _ []dataset.Entry) { w.add("k", messages(5000, 1)...) }},
		"emptied":         {toKey(), func(w *world, all []dataset.Entry) { w.add("k", all[0]); w.streams["k"].entries = nil }},
		"a text":          {toKey(), func(w *world, _ []dataset.Entry) { w.texts["k"] = true }},
		"no object":       {toKey(), func(w *world, _ []dataset.Entry) { w.change(1, func(e *segment.Entry) { e.Object = nil }) }},
		"no count":        {toKey(), func(w *world, _ []dataset.Entry) { w.change(1, func(e *segment.Entry) { e.Count = segment.NoCount }) }},
		"illegal":         {toKey(), func(w *world, _ []dataset.Entry) { w.manifests[orders]["1"] = "{}" }},
		"illegal, behind": {Query{Partition: orders, Key: "k", Between: parquetfile.Between{From: messages(100, 1)[0].ID}}, func(w *world, _ []dataset.Entry) { w.manifests[orders]["1"] = "{}" }},
		"no count, behind": {Query{Partition: orders, Key: "k", Between: parquetfile.Between{From: messages(201, 1)[0].ID}}, func(w *world, _ []dataset.Entry) {
			w.change(1, func(e *segment.Entry) { e.Count, e.FirstID, e.LastID = segment.NoCount, segment.ID{}, segment.ID{} })
		}},
		"newer than its end": {Query{Partition: orders, Key: "k", Between: parquetfile.Between{To: messages(105, 1)[0].ID}}, func(w *world, all []dataset.Entry) { w.add("k", all[:30]...) }},
		"gone":               {toKey(), func(w *world, _ []dataset.Entry) { w.store.Lose(fileOf(1)) }},
		"another segment's": {toKey(), func(w *world, _ []dataset.Entry) {
			w.store.Lose(fileOf(1))
			w.putAs(orders, 9, fileOf(1), 0, messages(100, 21))
		}},
	} {
		w := newWorld(t)
		c.make(w, w.three(orders))
		r := w.restorer()
		p, err := r.Plan(t.Context(), c.q, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		faults := 0
		for _, s := range p.Steps {
			if s.Fault != nil {
				faults++
			}
		}
		if len(p.Refused)+faults != 1 {
			t.Errorf("%s: refused %v, %d faults", name, p.Refused, faults)
		}
		w.before = func(what string) {
			if what == "open" || what == "append" {
				t.Errorf("%s: %s", name, what)
			}
		}
		if err := r.Run(t.Context(), p, func(Done) {}); err == nil {
			t.Errorf("%s: it is done", name)
		}
	}
}

// change rewrites an entry of orders.
func (w *world) change(n segment.Number, how func(*segment.Entry)) {
	e := w.entryOf(orders, n)
	how(&e)
	w.write(orders, n, e)
}

// A stream that is there has to be the beginning, entry for entry; before it is
// compared nothing is added to it.
func TestWhatIsThereIsCompared(t *testing.T) {
	with := func(e dataset.Entry, fields ...string) dataset.Entry {
		e.Fields = nil
		for i := 0; i < len(fields); i += 2 {
			e.Fields = append(e.Fields, dataset.Field{Name: []byte(fields[i]), Value: []byte(fields[i+1])})
		}
		return e
	}
	all := messages(0, 20)
	for name, second := range map[string]dataset.Entry{ // instead of 2: f0=\x001, f1=\x001
		"another value": with(all[1], "f0", "\x001", "f1", "\x002"), "another name": with(all[1], "f0", "\x001", "f2", "\x001"),
		"fewer fields": with(all[1], "f0", "\x001"), "more fields": with(all[1], "f0", "\x001", "f1", "\x001", "f2", "x"),
		"another id": with(between(all[1]), "f0", "\x001", "f1", "\x001"),
	} {
		w := newWorld(t)
		w.three(orders)
		w.add("k", all[0], second)
		w.before = func(what string) {
			if what == "append" {
				t.Errorf("%s: it is added to", name)
			}
		}
		_, _, err := w.run(toKey())
		mustFail(t, name, err, "it is not the beginning of what is to be restored")
	}
}

// What is written is written in steps that hold the server for a short time only,
// and in no more of them than that takes.
func TestBatches(t *testing.T) {
	for name, c := range map[string]struct{ entries, bytes, steps int }{"many": {1500, 10, 3}, "large": {10, 100 << 10, 4}} {
		w, n := newWorld(t), 0
		var all []dataset.Entry
		for i := range c.entries {
			all = append(all, dataset.Entry{ID: segment.ID{Ms: uint64(1000 + i)}, Fields: []dataset.Field{{Name: []byte("f"), Value: []byte(strings.Repeat("x", c.bytes))}}})
		}
		w.write(orders, 0, w.put(orders, 0, 0, "", all))
		w.before = func(what string) {
			if what == "append" {
				n++
			}
		}
		if _, _, err := w.run(toKey()); err != nil || n != c.steps {
			t.Errorf("%s: %d steps, want %d: %v", name, n, c.steps, err)
		}
		w.mustHold("k", all)
	}
}

// Whatever becomes of the stream between the last step and the last look is seen.
func TestTheStreamChangesWhileItIsReadBack(t *testing.T) {
	late := messages(5000, 1)
	for name, c := range map[string]struct {
		at string // the last of these calls
		do func(s *stream)
	}{
		"another value of an entry": {"page", func(s *stream) { s.entries[3] = other(s.entries[3]) }},
		"an entry is deleted":       {"info", func(s *stream) { s.entries = s.entries[1:] }},
		"one comes and goes":        {"info", func(s *stream) { s.last = late[0].ID }},
		"one comes":                 {"info", func(s *stream) { s.entries, s.last = append(s.entries, late...), late[0].ID }},
	} {
		w := newWorld(t)
		w.three(orders)
		written, calls := false, map[string]int{}
		w.before = func(what string) {
			written = written || what == "append" && len(w.streams["k"].entriesOf()) > 45
			if written {
				if calls[what]++; what == c.at && calls[what] == 1 {
					c.do(w.streams["k"])
				}
			}
		}
		_, _, err := w.run(Query{Partition: orders, Key: "k"})
		mustFail(t, name, err, "that were to be there are not just those")
	}
}

func (s *stream) entriesOf() []dataset.Entry {
	if s == nil {
		return nil
	}
	return s.entries
}

// A segment that is left alone has nothing to do with what lies under its key, and
// one with its local copy can be restored to another key.
func TestASegmentWithItsLocalCopy(t *testing.T) {
	w := newWorld(t)
	all := w.three(orders)
	w.change(1, func(e *segment.Entry) { e.Local = segment.Present })
	key := w.layout.SegmentKey(orders, 1)
	w.add(key, all[20:41]...)
	w.add(key, messages(5000, 1)...) // late
	if _, done, err := w.run(original()); err != nil || len(done) != 2 {
		t.Errorf("%v, %d done", err, len(done))
	}
	if _, done, err := w.run(toKey()); err != nil || len(done) != 3 {
		t.Errorf("%v, %d done", err, len(done))
	}
	w.mustHold("k", all)
	if _, done, err := w.run(Query{Partition: orders, Key: "l", Segments: func(n segment.Number) bool { return n == 3 }}); err == nil {
		t.Errorf("there is no such segment: %+v", done)
	}
	w.write(orders, 3, segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: 5})
	if _, done, err := w.run(Query{Partition: orders, Key: "l", Segments: func(n segment.Number) bool { return n == 3 }}); err != nil || len(done) > 0 {
		t.Errorf("it is in Redis: %v %+v", err, done)
	}
	w.used, w.most = 1001, 1000
	if p, done, err := w.run(original()); err != nil || len(done) > 0 {
		t.Errorf("nothing is to be done, and memory is full: %v %+v", err, p)
	}
}

// Messages behind the end of the range may have come since the plan was made.
func TestNewerThanTheRangeMeanwhile(t *testing.T) {
	w := newWorld(t)
	all := w.three(orders)
	r := w.restorer()
	p, err := r.Plan(t.Context(), Query{Partition: orders, Key: "k", Between: parquetfile.Between{To: all[25].ID}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.add("k", all[30])
	mustFail(t, "newer", r.Run(t.Context(), p, func(Done) { t.Error("a file was read") }), "stream k has newer messages than would be restored")
	p, err = r.Plan(t.Context(), Query{Partition: orders, Key: "l", Between: parquetfile.Between{To: segment.MaxID()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.add("l", messages(5000, 1)...)
	mustFail(t, "newer than all", r.Run(t.Context(), p, func(Done) { t.Error("a file was read") }), "stream l has newer messages than would be restored")
}

// Where there is enough memory, a limit is no matter.
func TestThereIsEnoughMemory(t *testing.T) {
	w := newWorld(t)
	w.three(orders)
	w.used, w.most = 1000, 1<<30
	if p, _, err := w.run(toKey()); err != nil || len(p.Notes) > 0 || p.Memory.Needs <= 0 {
		t.Errorf("%v: %q, %+v", err, p.Notes, p.Memory)
	}
}

// Segments out of the range are not read.
func TestSegmentsOutOfTheRange(t *testing.T) {
	w := newWorld(t)
	all := w.three(orders)
	w.store.Lose(fileOf(0))
	w.store.Lose(fileOf(2))
	if _, done, err := w.run(Query{Partition: orders, Key: "k", Between: parquetfile.Between{From: all[25].ID, To: all[30].ID}}); err != nil || len(done) != 1 {
		t.Errorf("%v, %d done", err, len(done))
	}
	w.mustHold("k", all[25:31])
	w.change(1, func(e *segment.Entry) { e.Tier, e.Local, e.Object = segment.Local, "", nil })
	p, err := w.restorer().Plan(t.Context(), Query{Partition: orders, Key: "l", Between: parquetfile.Between{From: all[50].ID}}, nil)
	if err != nil || len(p.Steps) != 2 || p.Steps[0].Number != 1 { // a LOCAL one may have grown
		t.Errorf("%v: %+v", err, p.Steps)
	}
}

// What of a manifest did not come may be what matters.
func TestAManifestThatDidNotComeWhole(t *testing.T) {
	w := newWorld(t)
	w.three(orders)
	w.lacks = 1
	_, _, err := w.run(toKey())
	mustFail(t, "plan", err, "3 of its 4 fields came")
	_, err = w.rebuild(orders, nil, Options{}, false)
	mustFail(t, "rebuild", err, "3 of its 4 fields came")
}

// An entry that has changed since the plan was made is nobody's to write a stream for.
func TestNothingIsWrittenForAnEntryThatHasChanged(t *testing.T) {
	w := newWorld(t)
	w.three(orders)
	r := w.restorer()
	p, err := r.Plan(t.Context(), original(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.change(1, func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, 5 })
	var done []Done
	mustFail(t, "changed", r.Run(t.Context(), p, func(d Done) { done = append(done, d) }), "segment orders:0/1: refused: its entry has changed")
	if len(done) != 3 || done[1].Err == nil || w.streams[w.layout.SegmentKey(orders, 1)] != nil {
		t.Errorf("%+v", done)
	}
}

// What can't be restored is told of, and what needs nothing is not; a lease that is
// lost ends it all.
func TestWhatIsTold(t *testing.T) {
	w := newWorld(t)
	w.three(orders)
	w.change(0, func(e *segment.Entry) { e.Local = segment.Present })
	w.store.Lose(fileOf(1))
	_, done, err := w.run(original())
	if err == nil || len(done) != 2 || done[0].Number != 1 || done[0].Err == nil || done[1].Number != 2 || done[1].Err != nil {
		t.Errorf("%v: %+v", err, done)
	}
	w = newWorld(t)
	w.three(orders)
	r := w.restorer()
	p, err := r.Plan(t.Context(), original(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, lost := context.WithCancel(t.Context())
	told := 0
	_ = r.Run(ctx, p, func(Done) { told++; lost() })
	if told != 1 {
		t.Errorf("%d segments after the lease was lost", told)
	}
}

// Where a store does not tell what it was given, a file is read whole.
func TestAStoreThatTellsLittle(t *testing.T) {
	for name, hides := range map[string]func(*Object){
		"no SHA-256": func(o *Object) { o.SHA256 = "" },
		"no ETag":    func(o *Object) { o.ETag = "" },
	} {
		w, _ := lost(t, orders)
		w.hides = hides
		reads := 0
		w.before = func(what string) {
			if what == "open" {
				reads++
			}
		}
		if _, err := w.rebuild(orders, nil, Options{}, false); err != nil || reads != 3 || w.entryOf(orders, 1).Object.SHA256 == "" {
			t.Errorf("%s: %v, %d files were read", name, err, reads)
		}
	}
}
