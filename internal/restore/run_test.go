package restore

import (
	"errors"
	"fmt"
	"testing"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// run plans and runs a query; what goes wrong with either is the error.
func (w *world) run(q Query) (Plan, []Done, error) {
	r := w.restorer()
	p, err := r.Plan(w.t.Context(), q, nil)
	if err != nil {
		return p, nil, err
	}
	var done []Done
	err = r.Run(w.t.Context(), p, func(d Done) { done = append(done, d) })
	return p, done, err
}

func toKey() Query    { return Query{Partition: orders, Key: "k"} }
func original() Query { return Query{Partition: orders, Original: true} }

func TestIntoOneStream(t *testing.T) {
	w := newWorld(t)
	all := w.three(orders)
	p, done, err := w.run(toKey())
	if err != nil || p.Messages != 63 || len(done) != 3 || done[1].Written != 21 || done[1].There != 0 {
		t.Fatalf("%v: %+v %+v", err, p, done)
	}
	w.mustHold("k", all)
	if w.pace == 0 {
		t.Error("nothing was paced")
	}
	if _, done, err = w.run(toKey()); err != nil || done[1].Written != 0 || done[1].There != 21 {
		t.Errorf("again: %v %+v", err, done)
	}
	w.mustHold("k", all)
	if e := w.entryOf(orders, 1); e.Local != segment.Gone {
		t.Errorf("the entry was changed: %+v", e)
	}
}

// Killed at any call, before or after its effect, the same call made again ends
// with what one call would have made.
//
//fault:crash | a restore is killed at any point | every call of Redis and of the store, in turn, fails before or after its effect; then the restore is made again | the stream is what it is without the kill, and so is the entry
func TestKilledAnywhere(t *testing.T) {
	for name, q := range map[string]Query{"one stream": toKey(), "original": original()} {
		t.Run(name, func(t *testing.T) {
			whole := newWorld(t)
			all := whole.three(orders)
			if _, _, err := whole.run(q); err != nil {
				t.Fatal(err)
			}
			for at := 1; at <= whole.calls; at++ {
				for _, done := range []bool{false, true} {
					w := newWorld(t)
					w.three(orders)
					w.dies, w.done = at, done
					if _, _, err := w.run(q); !errors.Is(err, errKill) {
						t.Fatalf("call %d: %v", at, err)
					}
					w.dies = 0
					if _, _, err := w.run(q); err != nil {
						t.Errorf("killed at call %d, done %t, and then: %v", at, done, err)
					}
					if q.Original {
						for n, part := range [][]dataset.Entry{all[:20], all[20:41], all[41:]} {
							w.mustHold(w.layout.SegmentKey(orders, segment.Number(n)), part)
							if got, want := w.manifests[orders][fmt.Sprint(n)], whole.manifests[orders][fmt.Sprint(n)]; got != want {
								t.Errorf("killed at call %d, done %t: entry %d = %s, want %s", at, done, n, got, want)
							}
						}
						continue
					}
					w.mustHold("k", all)
				}
			}
		})
	}
}

// Whoever writes at any moment is noticed: what he wrote stays, and nothing is
// claimed of the stream.
//
//fault:late-data | a producer writes to a stream while it is restored | one message, at every call of Redis in turn | the restore says so, the message stays, and the entry says nothing of the stream
func TestSomebodyWritesMeanwhile(t *testing.T) {
	for name, q := range map[string]Query{"one stream": toKey(), "original": original()} {
		t.Run(name, func(t *testing.T) {
			key := "k"
			if q.Original {
				key, q.Segments = newWorld(t).layout.SegmentKey(orders, 0), only(0, 0)
			}
			whole := newWorld(t)
			whole.three(orders)
			if _, _, err := whole.run(q); err != nil {
				t.Fatal(err)
			}
			late := dataset.Entry{ID: segment.ID{Ms: 1_799_000_000_000}, Fields: []dataset.Field{{Name: []byte("late"), Value: []byte("x")}}}
			for at := 1; at <= whole.calls; at++ {
				w := newWorld(t)
				w.three(orders)
				w.before = func(string) {
					if w.calls+1 == at {
						w.add(key, late)
					}
				}
				_, _, err := w.run(q)
				s := w.streams[key]
				if last := s.entries[len(s.entries)-1]; last.ID != late.ID {
					t.Errorf("call %d: the message is gone, or behind others", at)
				}
				if err == nil && q.Original && at < whole.calls || err == nil && !q.Original && at <= whole.calls-1 {
					// A message that comes behind the last look is a late one, as any.
					if e := w.entryOf(orders, 0); q.Original && e.Local == segment.Present && e.Source.Added == w.info(key).EntriesAdded {
						t.Errorf("call %d: nobody has noticed, and a drop would not either", at)
					}
					if !q.Original {
						t.Errorf("call %d of %d: nobody has noticed", at, whole.calls)
					}
				}
			}
		})
	}
}

// Each has a stream or an entry that it alone keeps from harm.
//
//fault:late-data | the place that is restored to holds something else | newer ids, other messages, a key of another type, a stream that was emptied, a key of the namespace | it is refused with what to do, and nothing is written
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		q    Query
		make func(w *world, all []dataset.Entry)
		want string
	}{
		"newer":             {toKey(), func(w *world, all []dataset.Entry) { w.add("k", messages(5000, 1)...) }, "has newer messages than would be restored"},
		"newer, original":   {original(), func(w *world, all []dataset.Entry) { w.add(w.layout.SegmentKey(orders, 0), messages(50, 1)...) }, "has newer messages than would be restored"},
		"others":            {toKey(), func(w *world, all []dataset.Entry) { w.add("k", messages(1, 1)...) }, "it is not the beginning of what is to be restored"},
		"another field":     {toKey(), func(w *world, all []dataset.Entry) { w.add("k", all[0], other(all[1])) }, "or one with other fields"},
		"one too many":      {toKey(), func(w *world, all []dataset.Entry) { w.add("k", all[0], between(all[0]), all[1]) }, "it is not the beginning"},
		"a hole":            {toKey(), func(w *world, all []dataset.Entry) { w.add("k", all[0], all[2]) }, "it is not the beginning"},
		"the last deleted":  {toKey(), func(w *world, all []dataset.Entry) { w.add("k", all[0], all[1]); w.streams["k"].entries = all[:1] }, "or has deleted some"},
		"emptied":           {toKey(), func(w *world, all []dataset.Entry) { w.add("k", all[0]); w.streams["k"].entries = nil }, "is empty and has had messages"},
		"a text":            {toKey(), func(w *world, all []dataset.Entry) { w.texts["k"] = true }, "key is not a stream"},
		"a key of ours":     {Query{Partition: orders, Key: "korvet:storage:local:orders:1"}, nil, "it is a key of the namespace"},
		"the cluster's id":  {Query{Partition: orders, Key: "korvet:storage:offload:cluster"}, nil, "it is a key of the namespace"},
		"evicts":            {toKey(), func(w *world, all []dataset.Entry) { w.evicts = "it evicts" }, "it evicts"},
		"too little memory": {toKey(), func(w *world, all []dataset.Entry) { w.used, w.most = 1000, 2000 }, "raise maxmemory, or restore fewer segments"},
		"segments that overlap": {toKey(), func(w *world, all []dataset.Entry) {
			w.write(orders, 3, w.put(orders, 3, 0, "", messages(221, 5)))
		}, "segments 2 (up to 1700000221000-0) and 3 (from 1700000221000-0) overlap"},
		"no manifest": {Query{Partition: segment.Partition{Topic: "other"}, Key: "k"}, nil, "restore --manifests comes first"},
		"a range of a shared stream": {original(), func(w *world, all []dataset.Entry) {
			e := w.entryOf(orders, 0)
			w.write(orders, 0, e.Between("shared", e.FirstID, e.LastID))
		}, "it shares with other segments"},
		"an illegal entry": {toKey(), func(w *world, all []dataset.Entry) { w.manifests[orders]["1"] = "{}" }, "illegal manifest entry"},
	} {
		w := newWorld(t)
		all := w.three(orders)
		if c.make != nil {
			c.make(w, all)
		}
		before := fmt.Sprint(w.info("k"))
		writes := 0
		w.before = func(what string) {
			if what == "append" {
				writes++
			}
		}
		_, _, err := w.run(c.q)
		mustFail(t, name, err, c.want)
		if got := fmt.Sprint(w.info("k")); got != before || !c.q.Original && writes > 0 {
			t.Errorf("%s: it was %s, and is %s; %d writes", name, before, got, writes)
		}
	}
}

func other(e dataset.Entry) dataset.Entry {
	e.Fields = []dataset.Field{{Name: e.Fields[0].Name, Value: []byte("other")}}
	return e
}

func between(e dataset.Entry) dataset.Entry {
	e.ID.Seq++
	return e
}

// A file that is not what its entry says, in whatever way, brings nothing: its
// segment is looked at whole before the first message is written.
//
//fault:store | a file is damaged, cut, gone, or another segment's | each at segment 1 of three | segment 0 is there, of segment 1 there is nothing, and the message names it
func TestDamagedFiles(t *testing.T) {
	path := segment.ObjectPath("korvet:storage:local:orders:0", 1, 0, "")
	for name, c := range map[string]struct {
		spoil func(w *world)
		want  string
	}{
		"a flipped byte": {func(w *world) { w.store.Corrupt(path) }, path},
		"cut": {func(w *world) {
			w.store.Lose(path)
			w.bytes(path, []byte("PAR1 and no more PAR1"))
		}, path},
		"gone": {func(w *world) { w.store.Lose(path) }, "segment orders:0/1"},
		"another segment's": {func(w *world) {
			w.store.Lose(path)
			e := w.putAs(orders, 9, path, 0, messages(100, 21))
			w.write(orders, 1, e)
		}, "file of another segment"},
		"other contents": {func(w *world) {
			w.store.Lose(path)
			e := w.putAs(orders, 1, path, 0, messages(100, 22))
			e.Count = 21
			w.write(orders, 1, e)
		}, "and the entry says 21"},
	} {
		for _, q := range []Query{toKey(), original()} {
			w := newWorld(t)
			all := w.three(orders)
			c.spoil(w)
			_, _, err := w.run(q)
			mustFail(t, name, err, c.want, "orders:0/1")
			if q.Original {
				w.mustHold(w.layout.SegmentKey(orders, 1), nil)
				w.mustHold(w.layout.SegmentKey(orders, 2), all[41:])
				if e := w.entryOf(orders, 1); e.Local != segment.Gone {
					t.Errorf("%s: %+v", name, e)
				}
			} else if n := len(w.info("k").FirstID.String()); n > 0 && w.info("k").Length > 20 {
				t.Errorf("%s: %d messages", name, w.info("k").Length)
			}
		}
	}
}

// Of five segments three are sampled for the plan. The others are compared with the
// SHA-256 of their entries before anything of them is written.
func TestAFlippedByteBehindThePlan(t *testing.T) {
	w := newWorld(t)
	var all []dataset.Entry
	for n := range segment.Number(5) {
		part := messages(100*int(n), 50)
		w.write(orders, n, w.put(orders, n, 0, "", part))
		all = append(all, part...)
	}
	w.store.Corrupt(segment.ObjectPath("korvet:storage:local:orders:0", 3, 0, ""))
	p, _, err := w.run(toKey())
	mustFail(t, "flipped", err, "segment orders:0/3", "damaged segment file: it has", "SHA-256")
	if len(p.Refused) > 0 || p.Steps[3].Fault != nil {
		t.Errorf("the plan knows: %+v", p)
	}
	w.mustHold("k", all[:150])
}

func TestWhatIsLeftOut(t *testing.T) {
	w := newWorld(t)
	all := w.three(orders)
	e := w.entryOf(orders, 1)
	e.State = segment.Deleting
	w.write(orders, 1, e)
	w.write(orders, 3, segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: 5})
	w.write(orders, 4, segment.NewOpen("", 1))
	w.write(orders, 5, w.put(orders, 5, 0, "", nil))
	p, _, err := w.run(toKey())
	if err != nil || len(p.Notes) != 1 || p.Notes[0] != "left out: segments 1, 3, 4" {
		t.Errorf("%v: %q", err, p.Notes)
	}
	w.mustHold("k", append(append([]dataset.Entry{}, all[:20]...), all[41:]...))
	e = w.entryOf(orders, 2)
	e.Local = segment.Present
	w.write(orders, 2, e)
	if _, done, err := w.run(original()); err != nil || len(done) != 1 {
		t.Errorf("%v: %+v", err, done)
	}
}

// The memory is looked at before each segment, and so is what the server evicts.
func TestTheServerChangesMeanwhile(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"evicts":      func(w *world) { w.evicts = "it evicts" },
		"need about ": func(w *world) { w.used, w.most = 1999, 2000 },
	} {
		w := newWorld(t)
		all := w.three(orders)
		opened := 0
		w.before = func(what string) {
			if what == "open" {
				if opened++; opened == 1 {
					change(w)
				}
			}
		}
		_, _, err := w.run(toKey())
		mustFail(t, name, err, name)
		w.mustHold("k", all[:20])
	}
}

// The worker takes a stream that is whole, and whose entry does not say so yet, for
// one that a failover has brought back, and removes it.
func TestTheStreamIsRemovedAtTheLastMoment(t *testing.T) {
	w := newWorld(t)
	w.three(orders)
	key := w.layout.SegmentKey(orders, 0)
	w.before = func(what string) {
		if what == "change" {
			delete(w.streams, key)
		}
	}
	q := original()
	q.Segments = only(0, 0)
	before := w.entryOf(orders, 0)
	_, _, err := w.run(q)
	mustFail(t, "removed", err, "was removed as soon as it was whole")
	if e := w.entryOf(orders, 0); e.Local != segment.Gone || e.Rev != before.Rev+2 {
		t.Errorf("%+v", e)
	}
}

// What was there when the plan was made may be newer when it is carried out.
func TestTheStreamGetsNewerMessagesMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.three(orders)
	r := w.restorer()
	p, err := r.Plan(t.Context(), toKey(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.add("k", messages(5000, 1)...)
	mustFail(t, "newer", r.Run(t.Context(), p, func(Done) { t.Error("a file was read") }), "stream k has newer messages than would be restored")
	w.mustHold("k", messages(5000, 1))
}

func TestTheEntryChangesMeanwhile(t *testing.T) {
	for _, at := range []string{"entry", "change"} {
		w := newWorld(t)
		w.three(orders)
		changed := ""
		w.before = func(what string) {
			if what == at && changed == "" {
				e := w.entryOf(orders, 0)
				e.State, e.DeletingAt = segment.Deleting, 5
				w.write(orders, 0, e)
				changed = w.manifests[orders]["0"]
			}
		}
		q := original()
		q.Segments = only(0, 0)
		_, _, err := w.run(q)
		mustFail(t, at, err, "its entry has changed")
		if got := w.manifests[orders]["0"]; got != changed {
			t.Errorf("%s: %s", at, got)
		}
	}
}

func TestNotesOfRetention(t *testing.T) {
	w := newWorld(t)
	w.three(orders)
	s := segment.DefaultTopicSettings()
	s.RetentionMs, s.LocalRetentionMs = -1, w.now.UnixMilli()-1_700_000_110_000
	p, err := w.restorer().Plan(t.Context(), original(), &s)
	if err != nil || len(p.Notes) != 1 || p.Notes[0] != "1 of these segments are past local.retention.ms: the next tick drops their local copies again; raise it first, or restore to another key" {
		t.Errorf("%v: %q", err, p.Notes)
	}
	p, err = w.restorer().Plan(t.Context(), original(), nil)
	if err != nil || len(p.Notes) != 1 {
		t.Errorf("%v: %q", err, p.Notes)
	}
}
