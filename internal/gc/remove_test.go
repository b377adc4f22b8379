package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

var errLost = errors.New("lease lost")

// replaced is a world with one replaced copy, orders:0/3.parquet.
func replaced(t *testing.T) (*world, segment.Entry) {
	w := newWorld(t)
	return w, w.remote(part("orders"), 3, 1)
}

// Whatever happens between the look and the deletion, up to the last read before
// it, the object stays if it is needed then.
func TestRacesWithWhatIsDeleted(t *testing.T) {
	p := part("orders")
	path := "korvet:storage:local:orders:0/3.parquet"
	for name, c := range map[string]struct {
		happens func(w *world, e segment.Entry)
		want    string // why it stays; "" = it goes
	}{
		"nothing": {func(*world, segment.Entry) {}, ""},
		"the entry names it again": {func(w *world, e segment.Entry) {
			e.Object.Path, e.Copy = path, 0
			w.set(p, 3, e)
		}, "entry has changed"},
		"the entry is LOCAL again": {func(w *world, _ segment.Entry) { w.local(p, 3, 2) }, "entry has changed"},
		"the entry is at its first copy, LOCAL": {func(w *world, _ segment.Entry) {
			w.local(p, 3, 0)
		}, "entry has changed"},
		"the entry is hidden": {func(w *world, e segment.Entry) {
			hidden, err := e.Delete(segment.StreamInfo{}, 1)
			if err != nil {
				panic(err)
			}
			w.set(p, 3, hidden)
		}, "entry has changed"},
		"the entry is gone": {func(w *world, _ segment.Entry) {
			delete(w.manifests[p], "3")
			w.local(p, 4, 0)
		}, "entry is gone"},
		"the entry is none any more": {func(w *world, _ segment.Entry) { w.manifests[p]["3"] = "{" }, "can't be read"},
		"the entry can't be read":    {func(w *world, _ segment.Entry) { w.broken[p] = errInjected }, "injected"},
		"the topic is paused":        {func(w *world, _ segment.Entry) { w.pause(segment.Scope{Topic: "orders"}) }, "paused"},
		"the object is gone":         {func(w *world, _ segment.Entry) { w.store.Lose(path) }, "gone already"},
		"the object was made anew": {func(w *world, _ segment.Entry) {
			w.store.Lose(path)
			w.put(path, "other bytes of it")
		}, "not the object that was listed"},
		"it is of another life":        {func(w *world, _ segment.Entry) { w.otherLife[path] = true }, "another life"},
		"the named object is gone":     {func(w *world, e segment.Entry) { w.store.Lose(e.Object.Path) }, "only copy"},
		"the named object is another":  {func(w *world, e segment.Entry) { w.store.Lose(e.Object.Path); w.put(e.Object.Path, "short") }, "only copy"},
		"the listing was an older one": {func(w *world, _ segment.Entry) { w.store.Lose(path); w.put(path, "orders:0/3 COPY 0") }, "not the object that was listed"},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := replaced(t)
			deleted, why, err := w.collect(t.Context(), func() { c.happens(w, e) })
			there := slices.Contains(w.store.Keys(), path)
			switch {
			case err != nil:
				t.Error(err)
			case c.want == "" && (len(deleted) != 1 || there):
				t.Errorf("it stays: %s", why)
			case c.want != "" && (len(deleted) != 0 || !strings.Contains(why, c.want)):
				t.Errorf("deleted %q, %s", deleted, why)
			}
		})
	}
}

// The entry is read once more behind the looks at the store.
func TestTheEntryIsReadLast(t *testing.T) {
	for call, nth := range map[string][]int{"stat": {1, 2}, "peek": {1, 2}} {
		for _, n := range nth {
			w, e := replaced(t)
			deleted, why, err := w.collect(t.Context(), func() {
				w.happens(call, n, func() {
					e.Local = segment.Present // a failover, or repair
					w.set(part("orders"), 3, e)
				})
			})
			// It is settled before and behind: only the bytes tell, where they were read before.
			read := call == "peek" && n == 1
			if err != nil || (len(deleted) == 1) != read || !read && !strings.Contains(why, "entry has changed") {
				t.Errorf("before %s %d: deleted %q, %s, %v", call, n, deleted, why, err)
			}
		}
	}
}

// What holds for the whole ends it, and nothing more is deleted.
func TestWhatEndsARemoval(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *world)
		want    error
	}{
		"the root is another's":  {func(w *world) { w.notOurs = errInjected }, errInjected},
		"redis was emptied":      {func(w *world) { clear(w.manifests) }, ErrMoved},
		"redis is emptied later": {func(w *world) { w.happens("peek", 2, func() { clear(w.manifests) }) }, ErrMoved},
		"redis is away":          {func(w *world) { w.broken[part("orders")] = ErrOutage }, ErrOutage},
		"the store is away": {func(w *world) {
			w.store.FailNth("stat", 3, &s3sink.Error{Class: s3sink.ClassUnavailable, Err: errInjected})
		}, errInjected},
		"the store fails while two copies are compared": {func(w *world) {
			w.readFails = &s3sink.Error{Class: s3sink.ClassTimeout, Err: errInjected}
		}, errInjected},
		"the bucket is away": {func(w *world) {
			w.store.FailNth("stat", 3, &s3sink.Error{Class: s3sink.ClassNoBucket, Err: errInjected})
		}, errInjected},
		"the named one's is away": {func(w *world) {
			w.store.FailNth("stat", 4, &s3sink.Error{Class: s3sink.ClassNoBucket, Err: errInjected})
		}, errInjected},
	} {
		w, _ := replaced(t)
		deleted, why, err := w.collect(t.Context(), func() { c.happens(w) })
		if !errors.Is(err, c.want) || len(deleted) != 0 || len(w.store.Keys()) != 2 {
			t.Errorf("%s: deleted %q, %s, %v", name, deleted, why, err)
		}
	}
}

// A lease that is lost ends it before the next deletion, wherever it is lost.
func TestTheLeaseIsLostInTheMiddle(t *testing.T) {
	for call, n := range map[string]int{"owned": 1, "paused": 1, "stat": 1, "peek": 2} { // the last call before the deletion
		w, _ := replaced(t)
		lead, lose := context.WithCancelCause(t.Context())
		defer lose(nil)
		deleted, why, err := w.collect(lead, func() { w.happens(call, n, func() { lose(errLost) }) })
		if !errors.Is(err, errLost) || len(deleted) != 0 || w.calls["delete"] != 0 || len(w.store.Keys()) != 2 {
			t.Errorf("at %s: deleted %q, %s, %v", call, deleted, why, err)
		}
	}
	w := newWorld(t)
	w.remote(part("orders"), 500, 0)
	for n := range segment.Number(250) {
		w.put(w.path(part("orders"), n, 0), "past retention")
	}
	lead, lose := context.WithCancelCause(t.Context())
	defer lose(nil)
	deleted, why, err := w.collect(lead, func() { w.happens("owned", 2, func() { lose(errLost) }) })
	if !errors.Is(err, errLost) || len(deleted) != batch || w.calls["delete"] != 1 {
		t.Errorf("deleted %d in %d requests, %s, %v", len(deleted), w.calls["delete"], why, err)
	}
}

func TestWhatIsTheSameObject(t *testing.T) {
	at := time.Now()
	for _, c := range []struct {
		now, listed s3sink.Info
		want        bool
	}{
		{s3sink.Info{Size: 1, ModTime: at}, s3sink.Info{Size: 1, ModTime: at}, true},
		{s3sink.Info{Size: 2, ModTime: at}, s3sink.Info{Size: 1, ModTime: at}, false},
		{s3sink.Info{Size: 1, ModTime: at.Add(1)}, s3sink.Info{Size: 1, ModTime: at}, false}, // a folder tells it exactly
		{s3sink.Info{ETag: "a", ModTime: at.Truncate(time.Second)}, s3sink.Info{ETag: "a", ModTime: at}, true},
		{s3sink.Info{ETag: "a", ModTime: at.Add(time.Second)}, s3sink.Info{ETag: "a", ModTime: at}, false},
		{s3sink.Info{ETag: "b", ModTime: at}, s3sink.Info{ETag: "a", ModTime: at}, false},
		{s3sink.Info{ETag: "b", ModTime: at}, s3sink.Info{ModTime: at}, false},
	} {
		if got := same(c.now, c.listed); got != c.want {
			t.Errorf("%+v, %+v: %t", c.now, c.listed, got)
		}
	}
}

func TestMoreThanOneRequestTakes(t *testing.T) {
	w := newWorld(t)
	w.remote(part("orders"), 5000, 0)
	for n := range segment.Number(1001) {
		w.put(w.path(part("orders"), n, 0), "past retention")
	}
	deleted, why, err := w.collect(t.Context(), func() {})
	if err != nil || why != "" || len(deleted) != 1001 || w.calls["delete"] != 11 || len(w.store.Keys()) != 1 {
		t.Errorf("deleted %d in %d requests, %s, %v", len(deleted), w.calls["delete"], why, err)
	}
}

// Of a segment without an entry: one may come.
func TestRacesWithSegmentsWithoutAnEntry(t *testing.T) {
	p := part("orders")
	for name, c := range map[string]struct {
		happens func(w *world)
		want    string
	}{
		"nothing":                  {func(*world) {}, ""},
		"an entry has come":        {func(w *world) { w.local(p, 2, 0) }, "has an entry now"},
		"something that is none":   {func(w *world) { w.manifests[p]["2"] = "?" }, "has an entry now"},
		"the first entry expires":  {func(w *world) { delete(w.manifests[p], "3") }, ""},
		"it is another's manifest": {func(w *world) { clear(w.manifests[p]); w.local(p, 0, 0) }, "neither the first nor the last"},
	} {
		w := newWorld(t)
		w.remote(p, 3, 0)
		w.remote(p, 5, 0)
		w.put(w.path(p, 2, 0), "past retention")
		deleted, why, err := w.collect(t.Context(), func() { c.happens(w) })
		if err != nil || (len(deleted) == 1) != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: deleted %q, %s, %v", name, deleted, why, err)
		}
	}
}

// Of a topic that was removed: it may come back.
func TestRacesWithATopicThatComesBack(t *testing.T) {
	gone := part("gone")
	for name, c := range map[string]struct {
		happens func(w *world)
		want    string
		err     error
	}{
		"nothing":                {func(*world) {}, "", nil},
		"it is registered":       {func(w *world) { w.topic("gone", 1) }, "in the registry", nil},
		"it is remembered":       {func(w *world) { w.known["gone"] = "{}" }, "still being removed", nil},
		"it has a manifest":      {func(w *world) { w.local(gone, 0, 0) }, "has a manifest now", nil},
		"at the last moment":     {func(w *world) { w.happens("file", 1, func() { w.local(gone, 0, 0) }) }, "has a manifest now", nil},
		"the registry was lost":  {func(w *world) { w.topics = nil }, "", ErrNoTopics},
		"it is no file any more": {func(w *world) { w.foreign[w.path(gone, 0, 0)] = true }, "somebody's table", nil},
	} {
		w := newWorld(t)
		w.opt.Removed = true
		w.remote(part("orders"), 3, 0)
		w.put(w.path(gone, 0, 0), "x")
		deleted, why, err := w.collect(t.Context(), func() { c.happens(w) })
		if !errors.Is(err, c.err) || (len(deleted) == 1) != (c.want == "" && c.err == nil) || !strings.Contains(why, c.want) {
			t.Errorf("%s: deleted %q, %s, %v", name, deleted, why, err)
		}
	}
}

// An object that the store does not let go is told of, and the others go.
func TestWhatTheStoreDoesNotLetGo(t *testing.T) {
	w := newWorld(t)
	w.remote(part("orders"), 3, 2)
	w.store.RefuseDelete(w.path(part("orders"), 3, 0), &s3sink.Error{Op: "delete", Class: s3sink.ClassLocked, Err: errInjected})
	deleted, why, err := w.collect(t.Context(), func() {})
	if want := []string{"orders:0/3-1.parquet"}; err != nil || !slices.Equal(deleted, want) || !strings.Contains(why, "failed: ") {
		t.Errorf("%q, %s, %v", deleted, why, err)
	}
	w = newWorld(t)
	w.remote(part("orders"), 5000, 0)
	for n := range segment.Number(batch + 1) {
		w.put(w.path(part("orders"), n, 0), "x")
	}
	w.store.FailNth("delete", 1, &s3sink.Error{Op: "delete", Class: s3sink.ClassUnavailable, Err: errInjected})
	deleted, _, err = w.collect(t.Context(), func() {})
	if !errors.Is(err, errInjected) || len(deleted) != 0 || w.calls["delete"] != 1 {
		t.Errorf("%q in %d requests, %v", deleted, w.calls["delete"], err)
	}
}

// What is put while the store is listed has its entry by the time its manifest is
// read, or was listed too late to be a candidate.
func TestAPutWhileItLooks(t *testing.T) {
	p := part("orders")
	w := newWorld(t)
	w.opt.Gaps = true
	w.remote(p, 3, 0)
	w.happens("each", 1, func() { // the listing is over
		w.local(p, 4, 0)
		w.put(w.path(p, 4, 0), "put and not flipped")
	})
	w.must("put behind the listing")
	w.happens("list", w.calls["list"]+1, func() {
		w.local(p, 5, 1)
		w.put(w.path(p, 5, 1), "put and not flipped")
	})
	w.must("put before the listing")
	deleted, why, err := w.collect(t.Context(), func() {
		for n := range segment.Number(3) {
			w.put(w.path(p, 10+n, 0), fmt.Sprint(n))
		}
	})
	if err != nil || len(deleted) != 0 || why != "" {
		t.Errorf("%q, %s, %v", deleted, why, err)
	}
}
