package offload

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// dropWorld has one REMOTE segment of ten entries whose local copy is due.
func dropWorld(t *testing.T, old bool) *world {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.LocalRetentionMs = 3_600_000 })
	w.old = old
	w.remote(orders0, 0, 10, w.now.Add(-2*time.Hour))
	return w
}

// settle makes passes until the drop is through, or for good refused.
func (w *world) settle(worker *Worker) {
	w.t.Helper()
	for range 6 {
		w.now = w.now.Add(90 * time.Minute)
		if _, err := worker.RunOnce(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

//fault:store | The object is missing, cut, damaged, or can't be looked at, when the local copy is due | In memory | The stream stays, and is copied again where that is certain
func TestTheObjectIsLookedAtBeforeADrop(t *testing.T) {
	other := func(o *fakeObject) { o.body = append([]byte("x"), o.body[1:]...) }
	damage := func(how func(*fakeObject)) func(*world) {
		return func(w *world) {
			o := w.objects[path0]
			how(&o)
			w.objects[path0] = o
		}
	}
	fails := func(call string, err error) func(*world) {
		return func(w *world) {
			damage(func(o *fakeObject) { o.etag = "" })(w)
			w.hook = failOnce("before "+call+path0, err)
		}
	}
	const again = "orders:0/0 reopened"
	for name, c := range map[string]struct {
		do       func(*world)
		done     string
		problems string
		life     string
	}{
		"fine":                      {func(*world) {}, "orders:0/0 dropped", "", "0:GONE"},
		"fine, without ETag":        {damage(func(o *fakeObject) { o.etag = "" }), "orders:0/0 dropped", "", "0:GONE"},
		"fine, with another ETag":   {damage(func(o *fakeObject) { o.etag = "moved" }), "orders:0/0 dropped", "", "0:GONE"},
		"missing":                   {func(w *world) { delete(w.objects, path0) }, again, "", "0+1:LOCAL"},
		"cut":                       {damage(func(o *fakeObject) { o.body = o.body[:len(o.body)/2] }), again, "", "0+1:LOCAL"},
		"another checksum":          {damage(func(o *fakeObject) { o.sha = strings.Repeat("0", 64) }), again, "", "0+1:LOCAL"},
		"other bytes, another ETag": {damage(func(o *fakeObject) { other(o); o.sha, o.etag = "", "theirs" }), again, "", "0+1:LOCAL"},
		"other bytes, no ETag":      {damage(func(o *fakeObject) { other(o); o.sha, o.etag = "", "" }), again, "", "0+1:LOCAL"},
		"other bytes, never an ETag": {func(w *world) {
			damage(func(o *fakeObject) { other(o); o.sha, o.etag = "", "" })(w)
			w.change(orders0, 0, func(e *segment.Entry) { e.Object.ETag = "" })
		}, again, "", "0+1:LOCAL"},
		"other bytes, all else the same": {damage(other), "orders:0/0 dropped", "", "0:GONE"}, // a store that lies; nothing but reading everything would find it
		"not to be seen":                 {fails("stat ", ErrObjectUnknown), "", "segment orders:0/0: store", "0:REMOTE"},
		"no answer":                      {fails("stat ", errors.New("503")), "", "segment orders:0/0: other", "0:REMOTE"},
		"not to be read":                 {fails("open ", errors.New("503")), "", "segment orders:0/0: other", "0:REMOTE"},
		"removed while it is read":       {fails("open ", ErrObjectMissing), "", "segment orders:0/0: other", "0:REMOTE"},
	} {
		w := dropWorld(t, false)
		c.do(w)
		there := w.objects[path0]
		worker := w.worker()
		t.Log(name)
		mustDo(t, runOnce(t, worker), c.done, c.problems)
		w.mustBe(orders0, c.life)
		if kept := w.streams[key0] != nil; kept == (c.life == "0:GONE") {
			t.Errorf("the stream is there: %t", kept)
		}
		if c.life != "0+1:LOCAL" {
			continue
		}
		mustDo(t, w.later(worker, time.Minute), "orders:0/0 copied", "")
		mustDo(t, w.later(worker, time.Minute), "orders:0/0 dropped", "")
		w.mustBe(orders0, "0+1:GONE")
		w.mustKeep(0)
		if path := w.entry(orders0, 0).Object.Path; path != "korvet:storage:local:orders:0/0-1.parquet" {
			t.Errorf("copied again to %s", path)
		}
		if now := w.objects[path0]; string(now.body) != string(there.body) {
			t.Error("the object that is not ours was changed")
		}
	}
}

//fault:late-data | The stream has grown, shrunk, vanished or been made anew since the copy | In memory | It goes only if all that it holds was copied
func TestTheStreamIsLookedAtBeforeADrop(t *testing.T) {
	const dropped, again, kept = "0:GONE", "0+1:GONE", "0:REMOTE"
	for name, c := range map[string]struct {
		do        func(*world)
		life, old string // in the end; old: on a server before 7.0
	}{
		"as it was":                      {func(*world) {}, dropped, dropped},
		"deleted from":                   {func(w *world) { w.xdel(key0, 3) }, dropped, kept},
		"the last one deleted":           {func(w *world) { w.xdel(key0, 9) }, dropped, kept},
		"late append":                    {func(w *world) { w.produce(key0, 1) }, again, again},
		"late appends":                   {func(w *world) { w.produce(key0, 20) }, again, again},
		"late append, deletion":          {func(w *world) { w.produce(key0, 1); w.xdel(key0, 2) }, again, kept},
		"late append, the first deleted": {func(w *world) { w.produce(key0, 1); w.xdel(key0, 0) }, kept, kept},
		"late append, deleted":           {func(w *world) { w.produce(key0, 1); w.xdel(key0, 10) }, again, kept},
		"deletion, late appends":         {func(w *world) { w.xdel(key0, 2); w.produce(key0, 2) }, again, kept},
		"trimmed":                        {func(w *world) { w.xtrim(key0, 4) }, dropped, kept},
		"trimmed, late append":           {func(w *world) { w.xtrim(key0, 4); w.produce(key0, 1) }, kept, kept},
		"trimmed, as many anew":          {func(w *world) { w.xtrim(key0, 4); w.produce(key0, 4) }, kept, kept},
		"trimmed, more anew":             {func(w *world) { w.xtrim(key0, 4); w.produce(key0, 6) }, kept, kept},
		"gone":                           {func(w *world) { w.del(key0) }, dropped, dropped},
		"gone, late append":              {func(w *world) { w.del(key0); w.produce(key0, 1) }, kept, kept},
		"gone, as many anew":             {func(w *world) { w.del(key0); w.produce(key0, 10) }, kept, kept},
		"gone, more anew":                {func(w *world) { w.del(key0); w.produce(key0, 15) }, kept, kept},
		"emptied":                        {func(w *world) { w.xtrim(key0, 10) }, dropped, kept},
		"replaced by fewer, same":        {func(w *world) { last := w.streams[key0].last; w.del(key0); w.xadd(key0, last) }, kept, kept},
	} {
		for _, old := range []bool{false, true} {
			w := dropWorld(t, old)
			c.do(w)
			left := len(w.streams[key0].all())
			worker := w.worker()
			r := runOnce(t, worker)
			want := c.life
			if old {
				want = c.old
			}
			if refused := complaints(r) != ""; refused != (want == kept) {
				t.Errorf("%s, old %t: %v", name, old, r.Problems)
			}
			w.settle(worker)
			if got := w.life(orders0); got != want {
				t.Errorf("%s, old %t: %s, want %s", name, old, got, want)
			}
			if n := len(w.streams[key0].all()); want == kept && n != left || want != kept && n != 0 {
				t.Errorf("%s, old %t: %d entries in the stream, %d before", name, old, n, left)
			}
			w.mustKeep(0)
		}
	}
}

// What the server remembers, against what the entry says.
func TestCompare(t *testing.T) {
	id := func(ms uint64) segment.ID { return segment.ID{Ms: ms} }
	entry := segment.Entry{Count: 10, LastID: id(9), Source: &segment.Source{LastID: id(9), Added: 12, MaxDeletedID: id(2)}}
	bare := segment.Entry{Count: 10, LastID: id(9)} // written by another program
	older := segment.Entry{Count: 10, LastID: id(9), Source: &segment.Source{LastID: id(9), Added: -1}}
	first := entry
	first.FirstID = id(1)
	from1 := func(s StreamInfo) StreamInfo { s.FirstID = id(1); return s }
	there := func(length int64, last uint64, added int64, deleted uint64) StreamInfo {
		return StreamInfo{Exists: true, Length: length, LastID: id(last), EntriesAdded: added, MaxDeletedID: id(deleted)}
	}
	for name, c := range map[string]struct {
		e    segment.Entry
		now  StreamInfo
		want likeness
	}{
		"the same":                          {entry, there(10, 9, 12, 2), intact},
		"made anew and trimmed":             {entry, there(10, 9, 13, 2), different},
		"made anew with fewer":              {entry, there(10, 9, 10, 2), different},
		"another one deleted":               {entry, there(10, 9, 12, 3), different},
		"one less":                          {entry, there(9, 9, 12, 3), lessened},
		"one less, added to":                {entry, there(9, 9, 13, 3), different},
		"more, none added":                  {entry, there(11, 9, 12, 2), different},
		"one more":                          {entry, there(11, 10, 13, 2), perhaps},
		"one more, one of the middle less":  {first, from1(there(10, 10, 13, 3)), thinned},
		"one more, one less, none deleted":  {first, from1(there(10, 10, 13, 0)), different},
		"one more, one less":                {entry, there(10, 10, 13, 3), different},
		"one more, counter lost":            {entry, there(11, 10, 11, 2), different},
		"goes back":                         {entry, there(10, 8, 12, 2), different},
		"not there":                         {entry, StreamInfo{}, absent},
		"the server tells no longer":        {entry, there(10, 9, -1, 2), intact},
		"nor how much was deleted":          {entry, there(9, 9, -1, 2), different},
		"the server tells by now":           {older, there(10, 9, 10, 0), intact},
		"the server tells by now, deletion": {older, there(9, 9, 10, 3), different},
		"the server tells by now, one more": {older, there(11, 10, 11, 0), perhaps},
		"nothing is said":                   {bare, there(10, 9, 10, 0), intact},
		"nothing is said, one less":         {bare, there(9, 9, 10, 0), different},
		"nothing is said, one more":         {bare, there(11, 10, 11, 0), perhaps},
		"nothing is said, replaced":         {bare, there(10, 10, 11, 0), different},
	} {
		if got := compare(c.e, c.now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Where neither the object nor the stream is whole, nothing is changed.
func TestNothingWholeIsLeft(t *testing.T) {
	for name, do := range map[string]func(*world){
		"stream gone":             func(w *world) { w.del(key0) },
		"stream deleted from":     func(w *world) { w.xdel(key0, 3) },
		"stream trimmed":          func(w *world) { w.xtrim(key0, 3) },
		"trimmed and appended to": func(w *world) { w.xtrim(key0, 3); w.produce(key0, 4) },
	} {
		w := dropWorld(t, false)
		delete(w.objects, path0)
		do(w)
		raw, left := w.manifests[orders0]["0"], len(w.streams[key0].all())
		worker := w.worker()
		mustDo(t, runOnce(t, worker), "", "segment orders:0/0: object_damaged")
		w.settle(worker)
		if w.manifests[orders0]["0"] != raw || len(w.streams[key0].all()) != left {
			t.Errorf("%s: %s, %d entries", name, w.life(orders0), len(w.streams[key0].all()))
		}
	}
	w := dropWorld(t, false) // but what grew has all of it
	delete(w.objects, path0)
	w.produce(key0, 3)
	w.settle(w.worker())
	w.mustBe(orders0, "0+1:GONE")
	w.mustKeep(0)
}

// A late append at any moment of a drop goes nowhere but into the next copy,
// or, when the stream is gone already, into a stray stream that is reported.
//
//fault:late-data | An append in the moment of the removal | In memory, at every step of the drop | It is copied again, or stays as a stray stream that is reported
func TestALateAppendWhileDropping(t *testing.T) {
	for _, old := range []bool{false, true} {
		clean := dropWorld(t, old)
		ends := map[string]int{}
		for step := range clean.steps(func() { runOnce(t, clean.worker()) }) {
			w := dropWorld(t, old)
			w.atStep(step, func() error { w.produce(key0, 1); return nil })
			worker := w.worker()
			runOnce(t, worker)
			w.mustKeep(0)
			w.quiet()
			stray := w.life(orders0) == "0:GONE" && w.streams[key0] != nil
			reported := complaints(w.later(worker, time.Minute)) == "segment orders:0/0: stray_stream"
			if stray != reported {
				t.Errorf("step %d: stray %t, reported %t", step, stray, reported)
			}
			w.settle(worker)
			w.mustKeep(0)
			if e := w.entry(orders0, 0); !stray && (e.Count != 11 || e.Copy != 1 || w.streams[key0] != nil) {
				t.Errorf("step %d: %+v, stream there: %t", step, e, w.streams[key0] != nil)
			}
			ends[fmt.Sprintf("%s stray %t", w.life(orders0), stray)]++
		}
		if len(ends) != 2 {
			t.Errorf("the ends were %v: the steps do not cover both", ends)
		}
	}
}

// Ended before or after any call, a drop is finished by the next process, no
// matter whether somebody appended or deleted meanwhile.
//
//fault:crash | The process ends at any call of a drop | In memory | The next one finishes the drop
func TestACrashWhileDropping(t *testing.T) {
	for name, meanwhile := range map[string]func(*world){
		"":             func(*world) {},
		"late append":  func(w *world) { w.produce(key0, 1) },
		"many appends": func(w *world) { w.produce(key0, 30) },
	} {
		for _, old := range []bool{false, true} {
			clean := dropWorld(t, old)
			for step := range clean.steps(func() { runOnce(t, clean.worker()) }) {
				w := dropWorld(t, old)
				w.atStep(step, func() error { return errKilled })
				_, _ = w.worker().RunOnce(t.Context())
				w.quiet()
				removed := w.streams[key0] == nil
				meanwhile(w)
				worker := w.worker()
				runOnce(t, worker)
				w.mustKeep(0)
				w.settle(worker)
				w.mustKeep(0)
				life := w.life(orders0)
				if good := name == "" && life == "0:GONE" && w.streams[key0] == nil ||
					name != "" && !removed && life == "0+1:GONE" && w.streams[key0] == nil ||
					name != "" && removed && w.streams[key0] != nil; !good {
					t.Errorf("%s, old %t, killed at step %d: %s, stream there: %t", name, old, step, life, w.streams[key0] != nil)
				}
			}
		}
	}
}

//fault:leaders | Another worker changes the entry during a drop | In memory | It is a lost race and no failure
func TestADropThatLosesTheRace(t *testing.T) {
	for name, c := range map[string]struct {
		nth     int // which write of the entry is lost
		damaged bool
		stream  bool // what is left
	}{
		"DROPPING":      {0, false, true},
		"GONE":          {1, false, false},
		"back to LOCAL": {0, true, true},
	} {
		w := dropWorld(t, false)
		if c.damaged {
			delete(w.objects, path0)
		}
		writes := 0
		w.hook = func(call string) error {
			if call == "before swap orders:0/0" {
				if writes++; writes == c.nth+1 {
					w.change(orders0, 0, func(e *segment.Entry) { e.Rev += 100 })
				}
			}
			return nil
		}
		mustDo(t, runOnce(t, w.worker()), "orders:0/0 lost_race", "")
		if e := w.entry(orders0, 0); (w.streams[key0] != nil) != c.stream || e.Rev < 100 {
			t.Errorf("%s: stream there %t, entry %+v", name, w.streams[key0] != nil, e)
		}
	}
}

//fault:redis | Fewer replicas than asked for have DROPPING in time | In memory | The stream stays
func TestReplicasThatAreBehind(t *testing.T) {
	w := dropWorld(t, false)
	w.inStep = false
	worker := w.worker()
	for range 3 {
		mustDo(t, w.later(worker, 10*time.Minute), "", "segment orders:0/0: not_replicated")
		w.calls = nil
		mustDo(t, w.later(worker, time.Second), "", "segment orders:0/0: not_replicated")
		if w.made("swap") != 0 {
			t.Errorf("tried again at once: %q", w.calls)
		}
		w.mustBe(orders0, "0:DROPPING")
		if w.streams[key0] == nil {
			t.Fatal("the stream was removed before the replicas knew")
		}
	}
	w.inStep = true
	mustDo(t, w.later(worker, 10*time.Minute), "orders:0/0 dropped", "")
	w.mustBe(orders0, "0:GONE")
}

func TestHoldPending(t *testing.T) {
	last := segment.ID{Ms: uint64(newWorld(t).now.Add(-2 * time.Hour).UnixMilli()), Seq: 9}
	beyond := segment.ID{Ms: last.Ms + 1}
	for name, c := range map[string]struct {
		groups []segment.Group
		holds  bool
	}{
		"no group":      {nil, false},
		"all delivered": {[]segment.Group{{LastDelivered: last}}, false},
		"one pending":   {[]segment.Group{{LastDelivered: beyond, Pending: 1, OldestPending: last}}, true},
		"pending later": {[]segment.Group{{LastDelivered: beyond, Pending: 1, OldestPending: beyond}}, false},
		"one unread":    {[]segment.Group{{LastDelivered: segment.ID{Ms: last.Ms, Seq: 8}}}, true},
		"one of two":    {[]segment.Group{{LastDelivered: last}, {}}, true},
	} {
		for _, on := range []bool{true, false} {
			w := dropWorld(t, false)
			w.groups[key0] = c.groups
			worker := w.worker(func(cfg *Config) { cfg.HoldPending = on })
			r := runOnce(t, worker)
			want := "orders:0/0 dropped"
			if on && c.holds {
				want = "orders:0/0 held"
			}
			if did(r) != want {
				t.Errorf("%s, hold-pending %t: %s", name, on, did(r))
			}
			w.groups[key0] = nil
			if w.later(worker, time.Minute); w.life(orders0) != "0:GONE" {
				t.Errorf("%s: then %s", name, w.life(orders0))
			}
		}
	}
}

func TestAnEntryThatSaysTooLittleIsKept(t *testing.T) {
	for _, less := range []func(*segment.Entry){
		func(e *segment.Entry) { e.Object = nil },
		func(e *segment.Entry) { e.Count = segment.NoCount },
	} {
		w := dropWorld(t, false)
		w.change(orders0, 0, less)
		mustDo(t, runOnce(t, w.worker()), "", "segment orders:0/0: illegal_entry")
		if w.streams[key0] == nil || w.life(orders0) != "0:REMOTE" {
			t.Errorf("%s", w.life(orders0))
		}
	}
}
