package tieredlog

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"korvet-offload/segment"
)

// found is one message that was read.
type found struct {
	in segment.Number
	msg
}

// read reads and looks only at what every reading has to keep: no message that
// is unknown or altered, none twice, and their order.
func (w *world) read(q Query) ([]found, error) {
	var got []found
	seen := map[string]bool{}
	err := w.log().Read(w.t.Context(), w.partition, q, func(p *segment.Page, i int) error {
		lo, hi := p.Fields(i)
		if hi != lo+1 {
			w.t.Fatalf("%d fields", hi-lo)
		}
		payload := string(p.Value(lo))
		f := found{w.where[payload], msg{p.ID(i), payload}}
		if w.ids[payload] != f.id || seen[payload] {
			w.t.Fatalf("%s %s: seen before %t", f.id, payload, seen[payload])
		}
		seen[payload] = true
		if len(got) > 0 {
			was := got[len(got)-1]
			ascends := was.in < f.in || was.in == f.in && was.id.Compare(f.id) < 0
			if ascends == q.Reverse {
				w.t.Fatalf("%d/%s after %d/%s", f.in, f.id, was.in, was.id)
			}
		}
		got = append(got, f)
		return nil
	})
	return got, err
}

// visible is what is there now, in order, by the world's own account.
func (w *world) visible() []found {
	var all []found
	for payload, n := range w.where {
		if !w.optional[payload] {
			all = append(all, found{n, msg{w.ids[payload], payload}})
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		if a.in != b.in {
			return int(a.in) - int(b.in)
		}
		return a.id.Compare(b.id)
	})
	return all
}

func (w *world) steps(n int) {
	for range n {
		w.step()
	}
}

func partitions() map[string]segment.Partition {
	return map[string]segment.Partition{"topic": {Topic: "orders"}, "stream": {Topic: "clicks", Plain: true}}
}

// A worker that moves, drops, trims, recopies, expires and a producer that
// appends late, between any two calls of the reader: all that was there when the
// reading began, and that nobody has deleted, comes once and in order.
func TestNothingIsLostOrDoubledWhileSegmentsMove(t *testing.T) {
	for name, p := range partitions() {
		t.Run(name, func(t *testing.T) {
			moved := 0
			for seed := range uint64(250) {
				w := newWorld(t, seed, p)
				w.no70 = seed%5 == 0
				w.steps(20 + w.random.IntN(150))
				before := w.visible()
				w.busy = 1 + w.random.IntN(6)
				if w.busy == 1 {
					w.busy = 2
				}
				opened := len(w.opened)
				got, err := w.read(Query{Reverse: seed%2 == 1})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				have := map[string]bool{}
				for _, f := range got {
					have[f.payload] = true
				}
				for _, f := range before {
					if !have[f.payload] && !w.optional[f.payload] {
						t.Fatalf("seed %d: message %s of segment %d is missing; now %s", seed, f.payload, f.in, w.value(f.in))
					}
				}
				if len(w.opened) > opened {
					moved++
				}
			}
			if moved < 50 {
				t.Errorf("objects were opened in %d readings only", moved)
			}
		})
	}
}

// Without anybody at work, every query gives just what a plain filter gives.
func TestQueriesAgainstAFilter(t *testing.T) {
	for name, p := range partitions() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(80) {
				w := newWorld(t, seed, p)
				for range 20 + w.random.IntN(200) {
					if w.random.IntN(3) > 0 {
						w.step()
					} else {
						w.append(w.numbers()[len(w.entries)-1])
					}
				}
				clear(w.optional) // of what was deleted, the world does not know whether a file has it still
				w.forgetDeleted()
				all := w.visible()
				for range 8 {
					q, skip := w.query(all)
					want := filter(all, q, skip)
					got, err := w.read(q)
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("seed %d: %+v: %v\ngot  %v\nwant %v", seed, q, err, got, want)
					}
				}
			}
		})
	}
}

// forgetDeleted takes out of the account what is in no tier any more.
func (w *world) forgetDeleted() {
	there := map[string]bool{}
	for n, e := range w.entries {
		if e.State == segment.Deleting {
			continue
		}
		if e.Tier == segment.Remote {
			for _, m := range w.inFile(n) {
				there[m.payload] = true
			}
		}
		if e.Local == segment.Gone {
			continue
		}
		if s := w.streams[w.key(n)]; s != nil && e.Tier == segment.Remote && whole(e, s.info(w.no70)) {
			for _, m := range w.inFile(n) {
				delete(there, m.payload) // the stream decides
			}
		}
		for _, m := range w.of(n) {
			there[m.payload] = true
		}
	}
	maps.DeleteFunc(w.where, func(payload string, _ segment.Number) bool { return !there[payload] })
}

// inFile are the messages of the object of a segment.
func (w *world) inFile(n segment.Number) []msg {
	var all []msg
	l := New(w.layout, Ports{w, nil, w})
	err := l.Read(w.t.Context(), w.partition, Query{Tier: Remote}, func(p *segment.Page, i int) error {
		lo, _ := p.Fields(i)
		if payload := string(p.Value(lo)); w.where[payload] == n {
			all = append(all, msg{p.ID(i), payload})
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// query is some query, and how many messages it leaves out.
func (w *world) query(all []found) (Query, int64) {
	skip := int64(w.random.IntN(2) * w.random.IntN(len(all)+2))
	q := Query{Reverse: w.random.IntN(2) == 0, Skip: skip}
	some := func() segment.ID {
		if len(all) == 0 {
			return segment.ID{Ms: 1}
		}
		id := all[w.random.IntN(len(all))].id
		switch w.random.IntN(3) {
		case 0:
			id, _ = id.Next()
		case 1:
			id, _ = previous(id)
		}
		return id
	}
	if w.random.IntN(2) == 0 {
		q.From = some()
	}
	if w.random.IntN(2) == 0 {
		q.To = some()
	}
	if w.random.IntN(2) == 0 {
		q.Limit = int64(w.random.IntN(len(all) + 2))
	}
	return q, skip
}

func filter(all []found, q Query, skip int64) (out []found) {
	all = slices.Clone(all)
	if q.Reverse {
		slices.Reverse(all)
	}
	for _, f := range all {
		if f.id.Compare(q.From) < 0 || f.id.Compare(q.to()) > 0 {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if out = append(out, f); int64(len(out)) == q.Limit {
			break
		}
	}
	return out
}

func (f found) String() string { return fmt.Sprintf("%d/%s=%s", f.in, f.id, f.payload) }
