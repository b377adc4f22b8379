package restore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"korvet-offload/segment"
)

// A producer writes to the segment that is replaced, at the last moment.
func TestWrittenToWhileItIsReplaced(t *testing.T) {
	for _, at := range []string{"sizes", "change"} {
		w, _ := lost(t, orders)
		w.write(orders, 0, segment.NewOpen("", 7))
		w.before = func(what string) {
			if what == at && w.streams["korvet:storage:local:orders:0:0"] == nil {
				w.add("korvet:storage:local:orders:0:0", messages(900, 4)...)
			}
		}
		_, err := w.rebuild(orders, nil, Options{}, false)
		mustFail(t, at, err, "stream korvet:storage:local:orders:0:0", "4 messages", "rename it to korvet:storage:local:orders:0:3")
		w.mustHold("korvet:storage:local:orders:0:0", messages(900, 4))
	}
}

// A worker makes its first entry, or anybody another, at any moment.
func TestSomebodyElseWritesTheManifest(t *testing.T) {
	for changes := 1; changes <= 3; changes++ {
		w, _ := lost(t, orders)
		n := 0
		w.before = func(what string) {
			if what == "change" {
				if n++; n == changes {
					w.write(orders, segment.Number(changes), segment.NewOpen("", 7))
				}
			}
		}
		_, err := w.rebuild(orders, nil, Options{}, false)
		mustFail(t, fmt.Sprint(changes), err, "somebody else has changed the manifest meanwhile")
		if e := w.entryOf(orders, segment.Number(changes)); e.State != segment.Open {
			t.Errorf("%d: it is replaced: %+v", changes, e)
		}
	}
}

// A Redis that loses what was written to it meanwhile, in a failover or by a FLUSHALL,
// gets no OPEN entry, so that the same call begins again.
//
//fault:redis | Redis is emptied while restore --manifests writes | the manifest goes before any of the changes | it is refused, and no manifest that lacks segments looks complete
func TestRedisLosesTheManifestMeanwhile(t *testing.T) {
	for _, begun := range []string{"", string(segment.NewOpen("", 7).Encode())} {
		for change := 1; change <= 4; change++ {
			w, _ := lost(t, orders)
			if begun != "" {
				w.manifests[orders] = map[string]string{"0": begun}
			}
			n := 0
			w.before = func(what string) {
				if what == "change" {
					if n++; n == change {
						delete(w.manifests, orders)
					}
				}
			}
			_, err := w.rebuild(orders, nil, Options{}, false)
			if n < change || change == 1 && begun == "" { // nothing was lost
				continue
			}
			if !errors.Is(err, ErrRefused) {
				t.Errorf("before change %d: %v", change, err)
			}
			for n, raw := range w.manifests[orders] {
				if strings.Contains(raw, string(segment.Open)) {
					t.Errorf("before change %d: entry %s is %s", change, n, raw)
				}
			}
			if _, err := w.rebuild(orders, nil, Options{}, false); err != nil {
				t.Errorf("before change %d, and again: %v", change, err)
			}
			w.mustBe(orders, 3, 0, 1, 2)
		}
	}
}

func TestRebuildPlainStream(t *testing.T) {
	w, all := lost(t, plain)
	if _, err := w.rebuild(plain, nil, Options{}, false); err != nil {
		t.Fatal(err)
	}
	w.mustBe(plain, 3, 0, 1, 2)
	last := all[len(all)-1].ID
	next, _ := last.Next()
	e, open := w.entryOf(plain, 2), w.entryOf(plain, 3)
	if e.Key != "events" || e.From != all[41].ID || e.To != last {
		t.Errorf("%+v", e)
	}
	if open.Key != "events" || open.From != next || open.Source == nil || open.Source.Added != 0 {
		t.Errorf("%+v %+v", open, open.Source)
	}
	if b, err := w.rebuild(plain, nil, Options{}, false); err != nil || b.Does() {
		t.Errorf("again: %v %+v", err, b)
	}
	if _, _, err := w.run(Query{Partition: plain, Key: "k"}); err != nil {
		t.Error(err)
	}
	w.mustHold("k", all)

	w, _ = lost(t, plain)
	w.add("events", messages(900, 4)...)
	if _, err := w.rebuild(plain, nil, Options{}, false); err != nil {
		t.Error(err)
	}
	w.mustBe(plain, 3, 0, 1, 2)
	for name, make := range map[string]func(w *world){
		"Redis has not lost it":            func(w *world) { w.add("events", messages(30, 4)...) },
		"delete that entry if it was made": func(w *world) { w.add("events", messages(900, 4)...); w.write(plain, 0, segment.NewOpen("", 1)) },
		"overlap":                          func(w *world) { w.put(plain, 3, 0, "", messages(221, 4)) },
	} {
		w, _ := lost(t, plain)
		make(w)
		_, err := w.rebuild(plain, nil, Options{}, false)
		mustFail(t, name, err, name)
	}
}
