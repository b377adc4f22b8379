package scrub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// produce appends to the OPEN segment of a partition as a broker does, and now and
// then late, to one that is sealed and still there.
func (w *world) produce(ctx context.Context, p segment.Partition) {
	for i := 0; ctx.Err() == nil; i++ {
		pause(ctx)
		all := w.entries(p)
		for n, e := range all {
			late := e.State == segment.Sealed && i%3 == 0 && e.Local == segment.Present
			if e.State != segment.Open && !late {
				continue
			}
			made := w.server.Exec("XADD", key(p, n), "NOMKSTREAM", "*", "value", fmt.Sprintf("message %d of %d", i, n)) // ids may be the same in two
			if made == "" && e.State == segment.Open && w.entries(p)[n].State == segment.Open {
				w.server.Exec("XADD", key(p, n), "*", "value", fmt.Sprintf("message %d of %d", i, n))
			}
		}
	}
}

// pause keeps a producer from being all that the server has to do.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond): // late ones must not come all the time
	}
}

func TestNothingIsFoundWhileAWorkerMoves(t *testing.T) {
	onBothStores(t, func(t *testing.T, w *world) {
		aged := w.topic("aged", "local.retention.ms", "300", "retention.ms", "1500")
		sized := w.topic("sized", "local.retention.bytes", "2000", "retention.bytes", "4000")
		kept := w.topic("kept")
		ctx, stop := context.WithCancel(t.Context())
		var at sync.WaitGroup
		for _, p := range []segment.Partition{aged, sized, kept} {
			at.Go(func() { w.produce(ctx, p) })
		}
		at.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				pause(ctx)
				w.server.Exec("XADD", "events", "*", "n", fmt.Sprint(n))
			}
		})
		var mu sync.Mutex
		results := map[offload.Result]int{}
		at.Go(func() {
			for ctx.Err() == nil {
				r, _ := w.worker.RunOnce(ctx)
				mu.Lock()
				for _, o := range r.Outcomes {
					results[o.Result]++
				}
				mu.Unlock()
			}
		})
		did := func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range []offload.Result{offload.Rolled, offload.Copied, offload.Dropped, offload.Hidden, offload.Expired, offload.Reopened} {
				if results[r] < 3 {
					return false
				}
			}
			return true
		}
		looks, unsteady, notes := 0, int64(0), map[string]int{}
		for begun := time.Now(); (looks < 9 || !did()) && time.Since(begun) < time.Minute; looks++ {
			s, r := w.scrub(Options{Deep: looks%3 == 1, CompareLocal: looks%3 == 2})
			w.want(fmt.Sprint("findings of look ", looks), s.findings)
			unsteady += r.Unsteady
			for _, n := range s.notes {
				kind, _, _ := strings.Cut(n, " ")
				notes[kind]++
			}
		}
		stop()
		at.Wait()
		t.Log(looks, "looks,", unsteady, "unsteady;", results, notes)
		if !did() {
			t.Errorf("too little was done, the test proves little: %v", results)
		}
		if unsteady > int64(looks) {
			t.Errorf("%d looks, %d unsteady", looks, unsteady)
		}
	})
}

// hooked is a store that lets something happen at each look at an object.
type hooked struct {
	storeAdapter
	stat func(path string) error
}

func (h hooked) Stat(ctx context.Context, path string) (offload.ObjectInfo, error) {
	if err := h.stat(path); err != nil {
		return offload.ObjectInfo{}, err
	}
	return h.storeAdapter.Stat(ctx, path)
}

func TestWhatChangesMeanwhileIsLookedAtAnew(t *testing.T) {
	w := newWorld(t, false)
	cold := w.topic("cold", "local.retention.ms", "1")
	w.fill(cold, 3)
	w.remove(path(cold, 0))
	ports := w.ports()
	ports.Store = hooked{w.store, func(string) error {
		w.server.Exec("HDEL", manifestKey(cold), "0") // as a worker that deletes
		return nil
	}}
	s, r, err := w.tryScrub(ports, Options{})
	w.want("findings", s.findings)
	if err != nil || r.Unsteady != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The entry is read once more after the second look.
func TestWhatChangesDuringTheSecondLookIsLookedAtAnew(t *testing.T) {
	w := newWorld(t, false)
	cold := w.topic("cold", "local.retention.ms", "1")
	w.fill(cold, 3)
	w.remove(path(cold, 0))
	ports, stats := w.ports(), 0
	ports.Store = hooked{w.store, func(string) error {
		if stats++; stats == 2 {
			w.server.Exec("HDEL", manifestKey(cold), "0")
		}
		return nil
	}}
	s, r, err := w.tryScrub(ports, Options{})
	w.want("findings", s.findings)
	if err != nil || r.Unsteady != 0 || stats != 2 {
		t.Errorf("%d looks at the object: %+v, %v", stats, r, err)
	}
}

func TestWhatChangesAtEveryLookIsNoFinding(t *testing.T) {
	w := newWorld(t, false)
	cold := w.topic("cold", "local.retention.ms", "1")
	w.fill(cold, 3)
	w.remove(path(cold, 1))
	ports, stats := w.ports(), 0
	ports.Store = hooked{w.store, func(string) error {
		stats++
		w.change(cold, 1, func(e *segment.Entry) { e.Rev++ })
		return nil
	}}
	s, r, err := w.tryScrub(ports, Options{})
	w.want("findings", s.findings)
	if err != nil || r.Unsteady != 1 || stats != maxLooks {
		t.Errorf("%d looks at the object: %+v, %v", stats, r, err)
	}
}

func TestAFindingIsTheSecondLooks(t *testing.T) {
	w := newWorld(t, false)
	cold := w.topic("cold", "local.retention.ms", "1")
	w.fill(cold, 3)
	b := w.read(path(cold, 1))
	w.remove(path(cold, 1))
	waits := 0
	var found []Finding
	r, err := New(w.ports(), segment.DefaultLayout(), Options{Again: time.Minute, Sleep: func(_ context.Context, d time.Duration) error {
		if waits++; d != time.Minute {
			t.Errorf("waits for %s", d)
		}
		w.write(path(cold, 1), b) // a store that lagged behind
		return nil
	}}).Run(t.Context(), func(f Finding) { found = append(found, f) })
	if err != nil || len(found) != 0 || waits != 1 || r.Unsteady != 0 {
		t.Errorf("%d waits, %v, %+v, %v", waits, found, r, err)
	}
}

// What a crash leaves, as docs/architecture.md lists it, is no damage.
func TestWhatACrashLeavesIsNoFinding(t *testing.T) {
	w := newWorld(t, false)
	p := w.topic("t")
	w.fill(p, 9)
	local := func(e *segment.Entry) { *e, _ = e.Recopy(); e.Copy = 0 }
	w.change(p, 0, local)                                         // after the upload, before the flip
	w.change(p, 1, func(e *segment.Entry) { *e, _ = e.Recopy() }) // after copy was raised
	w.change(p, 2, func(e *segment.Entry) { e.Local = segment.Dropping })
	w.change(p, 3, func(e *segment.Entry) { e.Local = segment.Dropping })
	w.server.Exec("DEL", key(p, 3))
	hidden := func(e *segment.Entry) {
		e.State, e.Local, e.DeletingAt = segment.Deleting, segment.Gone, time.Now().UnixMilli()
	}
	w.change(p, 4, hidden)
	w.server.Exec("DEL", key(p, 4))
	w.change(p, 5, hidden)
	w.server.Exec("DEL", key(p, 5))
	w.remove(path(p, 5))
	w.server.Exec("DEL", key(p, 6)) // somebody has; the worker drops it
	w.add(key(p, 7), 2)             // late
	w.server.Exec("XDEL", key(p, 8), w.entries(p)[8].FirstID.String())
	for _, o := range []Options{{}, {Deep: true}, {CompareLocal: true}} {
		s, _ := w.scrub(o)
		w.want("findings", s.findings)
		notes := []string{"half_deleted t:0/3 " + path(p, 3), "orphan t:0/1 " + path(p, 1)}
		if o.CompareLocal {
			notes = append(notes, "stream_differs t:0/8 "+path(p, 8))
		}
		s.notes = slices.DeleteFunc(s.notes, func(n string) bool { return strings.HasPrefix(n, "overlap ") }) // what came late
		w.want("notes", s.notes, notes...)
	}
}

// A topic that was removed, and one that is not offloaded any more, keep what
// they have.
func TestTopicsThatAreGone(t *testing.T) {
	w := newWorld(t, false)
	off, removed := w.topic("off", "local.retention.ms", "1"), w.topic("removed", "local.retention.ms", "1")
	w.fill(off, 2)
	w.fill(removed, 2)
	w.server.Exec("HSET", "korvet:topic:off", "remote.storage.enable", "false")
	w.server.Exec("HSET", manifestKey(off), "7", `{"state":"SEALED","tier":"LOCAL","count":5}`) // whose stream the broker has deleted
	w.server.Exec("SREM", "korvet:topics", "removed")
	w.server.Exec("HSET", manifestKey(removed), "7", `{"state":"SEALED","tier":"LOCAL","count":5}`)
	s, r := w.scrub(Options{Deep: true})
	w.want("findings", s.findings, "gap off:0/3")
	w.want("notes", s.notes, "gap removed:0/3")
	w.remove(path(removed, 0))
	w.remove(path(off, 0))
	if s, _ = w.scrub(Options{}); r.Partitions != 3 {
		t.Errorf("%+v", r)
	}
	w.want("findings", s.findings, "gap off:0/3", "missing_object off:0/0 "+path(off, 0), "missing_object removed:0/0 "+path(removed, 0))
}

// Where Redis has lost everything, all that is on the store is found.
func TestAnEmptiedRedis(t *testing.T) {
	w := newWorld(t, false)
	w.fill(w.topic("a", "local.retention.ms", "1"), 2)
	w.fill(w.topic("b", "local.retention.ms", "1"), 2)
	w.server.Exec("FLUSHALL")
	s, _ := w.scrub(Options{})
	w.want("findings", s.findings, "orphan a:0 "+path(segment.Partition{Topic: "a"}, 0), "orphan b:0 "+path(segment.Partition{Topic: "b"}, 0))
}
