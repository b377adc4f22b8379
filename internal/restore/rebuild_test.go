package restore

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// rebuild plans and runs the manifest of a partition.
func (w *world) rebuild(p segment.Partition, settings *segment.TopicSettings, o Options, deep bool) (Rebuild, error) {
	r := w.restorer()
	s, err := r.Survey(w.t.Context(), w.group(p), deep)
	if err != nil {
		return Rebuild{}, err
	}
	b, err := r.PlanManifest(w.t.Context(), s, settings, o)
	if err != nil {
		return b, err
	}
	return b, r.RunManifest(w.t.Context(), b)
}

// lost is a world whose Redis has lost everything of three segments, and their
// entries as they were.
func lost(t *testing.T, p segment.Partition) (*world, []dataset.Entry) {
	w := newWorld(t)
	all := w.three(p)
	delete(w.manifests, p)
	return w, all
}

// mustBe checks the entries of a rebuilt manifest.
func (w *world) mustBe(p segment.Partition, open segment.Number, numbers ...segment.Number) {
	w.t.Helper()
	if len(w.manifests[p]) != len(numbers)+1 {
		w.t.Errorf("%d entries: %v", len(w.manifests[p]), w.manifests[p])
		return
	}
	for _, n := range numbers {
		e := w.entryOf(p, n)
		if e.State != segment.Sealed || e.Tier != segment.Remote || e.Local != segment.Gone || e.Object == nil || e.Count == segment.NoCount || e.SealedAt == 0 || e.RemoteAt == 0 {
			w.t.Errorf("entry %s: %s", n, w.manifests[p][n.String()])
		}
	}
	if e := w.entryOf(p, open); e.State != segment.Open {
		w.t.Errorf("entry %s: %s", open, w.manifests[p][open.String()])
	}
}

func TestRebuild(t *testing.T) {
	w, all := lost(t, orders)
	b, err := w.rebuild(orders, nil, Options{}, false)
	if err != nil || len(b.Add) != 3 || len(b.Faults)+len(b.Notes) > 0 {
		t.Fatalf("%v: %+v", err, b)
	}
	w.mustBe(orders, 3, 0, 1, 2)
	if e := w.entryOf(orders, 1); e.FirstID != all[20].ID || e.LastID != all[40].ID || e.Count != 21 || e.Object.SHA256 == "" || e.Object.ETag == "" {
		t.Errorf("%+v %+v", e, e.Object)
	}
	if _, _, err := w.run(toKey()); err != nil {
		t.Error(err)
	}
	w.mustHold("k", all)
	before := maps.Clone(w.manifests[orders])
	w.now = w.now.Add(5)
	b, err = w.rebuild(orders, nil, Options{}, true)
	if err != nil || b.There != 3 || b.Does() || !maps.Equal(before, w.manifests[orders]) {
		t.Errorf("again: %v: %+v", err, b)
	}
}

// Killed at any call, the same call made again ends with what one would have made.
//
//fault:crash | restore --manifests is killed at any point | every call of Redis and of the store, in turn, fails before or after its effect; then it is made again, also on a manifest that a worker has begun | the manifest is what it is without the kill; until the last step it has no OPEN entry but the worker's
func TestRebuildKilledAnywhere(t *testing.T) {
	for name, begun := range map[string]string{"fresh": "", "begun by a worker": string(segment.NewOpen("", 7).Encode())} {
		for _, first := range []segment.Number{0, 5} {
			make := func() *world {
				w := newWorld(t)
				for n := range segment.Number(3) {
					w.put(orders, first+n, 0, "", messages(100*int(n), 20))
				}
				if begun != "" {
					w.manifests[orders] = map[string]string{"0": begun}
				}
				return w
			}
			whole := make()
			if _, err := whole.rebuild(orders, nil, Options{}, true); err != nil {
				t.Fatal(err)
			}
			whole.mustBe(orders, first+3, first, first+1, first+2)
			for at := 1; at <= whole.calls; at++ {
				for _, done := range []bool{false, true} {
					w := make()
					w.dies, w.done = at, done
					if _, err := w.rebuild(orders, nil, Options{}, true); !errors.Is(err, errKill) {
						t.Fatalf("%s, call %d: %v", name, at, err)
					}
					if w.manifests[orders][fmt.Sprint(first+3)] == "" && (begun != "" || first > 0) && w.manifests[orders]["0"] != begun {
						t.Errorf("%s, killed at call %d, done %t: %v", name, at, done, w.manifests[orders])
					}
					if m := w.manifests[orders]; len(m) > 0 && m["0"] == "" && m[fmt.Sprint(first)] == "" {
						t.Errorf("%s, killed at call %d, done %t: gc would take the first file for one that retention has left: %v", name, at, done, m)
					}
					w.dies = 0
					if _, err := w.rebuild(orders, nil, Options{}, true); err != nil {
						t.Errorf("%s, killed at call %d, done %t, and then: %v", name, at, done, err)
					}
					for n, raw := range whole.manifests[orders] { // the files are of another moment
						if got, want := stripTimes(w.manifests[orders][n]), stripTimes(raw); got != want {
							t.Errorf("%s, killed at call %d, done %t: entry %s = %s, want %s", name, at, done, n, got, want)
						}
					}
					if len(w.manifests[orders]) != len(whole.manifests[orders]) {
						t.Errorf("%s, killed at call %d, done %t: %v", name, at, done, w.manifests[orders])
					}
				}
			}
		}
	}
}

// stripTimes takes the times out of an entry, which are those of the files.
func stripTimes(raw string) string {
	e, err := segment.ParseEntry([]byte(raw))
	if err != nil {
		return raw
	}
	e.SealedAt, e.RemoteAt = 0, 0
	return string(e.Encode())
}

func TestWhichCopy(t *testing.T) {
	path := func(n segment.Number, c int64) string {
		return segment.ObjectPath("korvet:storage:local:orders:0", n, c, "")
	}
	w := newWorld(t)
	w.put(orders, 0, 0, "", messages(0, 5))
	w.put(orders, 0, 9, "", messages(0, 7)) // 9 and 10 are in another order as text
	w.put(orders, 0, 10, "", messages(0, 8))
	w.put(orders, 1, 0, "", messages(100, 5))
	w.put(orders, 1, 1, "", messages(100, 6))
	w.store.Corrupt(path(1, 1))
	w.put(orders, 2, 0, "", messages(200, 5))
	w.store.Corrupt(path(2, 0))
	w.bytes(path(3, 0), []byte("nonsense"))
	w.put(orders, 4, 0, "abc", messages(400, 5))
	w.bytes("korvet:storage:local:orders:0/notes.txt", []byte("x"))
	b, err := w.rebuild(orders, nil, Options{}, true)
	if err != nil {
		t.Fatal(err)
	}
	w.mustBe(orders, 5, 0, 1, 4)
	for n, want := range map[segment.Number]string{0: path(0, 10), 1: path(1, 0), 4: segment.ObjectPath("korvet:storage:local:orders:0", 4, 0, "abc")} {
		e := w.entryOf(orders, n)
		name, _ := segment.ParseObjectPath(want)
		if e.Object.Path != want || e.Copy != name.Copy {
			t.Errorf("entry %s: copy %d, %s", n, e.Copy, e.Object.Path)
		}
	}
	text := fmt.Sprint(b.Faults, b.Notes)
	for _, want := range []string{"segment orders:0/1: object " + path(1, 1), "copy 0 is taken instead", "segment orders:0/2: no whole file", "segment orders:0/3: no whole file",
		"segment 0: " + path(0, 10) + " is taken, of 3 copies", "1 object in its folder is of no segment: left alone"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if len(b.Faults) != 3 {
		t.Errorf("%d faults: %v", len(b.Faults), b.Faults)
	}
}

// The number of the OPEN segment is behind all that have an object, whole or not:
// its own object must not meet another.
func TestTheOpenSegmentIsBehindDamagedOnes(t *testing.T) {
	w, _ := lost(t, orders)
	w.bytes(segment.ObjectPath("korvet:storage:local:orders:0", 7, 0, ""), []byte("nonsense"))
	b, err := w.rebuild(orders, nil, Options{}, false)
	if err != nil || len(b.Faults) != 1 || !strings.Contains(fmt.Sprint(b.Notes), "segments 3 to 6 have no object") {
		t.Errorf("%v: %+v", err, b)
	}
	w.mustBe(orders, 8, 0, 1, 2)
	w = newWorld(t)
	w.bytes(segment.ObjectPath("korvet:storage:local:orders:0", 7, 0, ""), []byte("nonsense"))
	if b, err := w.rebuild(orders, nil, Options{}, false); err != nil || b.Does() || len(w.manifests[orders]) > 0 {
		t.Errorf("%v: %+v", err, b)
	}
}

// Each has a manifest or a stream that it alone keeps from harm.
//
//fault:redis | restore --manifests meets a Redis that is not empty | entries of others, streams, ids in disorder, a retention that would delete | that partition is left alone, with a message that says what to do
func TestRebuildRefuses(t *testing.T) {
	days := segment.DefaultTopicSettings()
	forever := days
	forever.RetentionMs = -1
	other := func(w *world, n segment.Number) segment.Entry {
		e := w.put(orders, 90, int64(n)+1, "", messages(100*int(n), 3))
		w.store.Lose(e.Object.Path)
		return e
	}
	for name, c := range map[string]struct {
		make     func(w *world)
		settings *segment.TopicSettings
		opt      Options
		want     string
	}{
		"another object":      {func(w *world) { w.write(orders, 1, other(w, 1)) }, &forever, Options{}, "has an entry of segment 1 that is not what the store tells"},
		"a LOCAL one":         {func(w *world) { w.write(orders, 1, segment.Entry{State: segment.Sealed, Tier: segment.Local}) }, nil, Options{}, "has an entry of segment 1 that"},
		"a LOCAL first one":   {func(w *world) { w.write(orders, 0, segment.Entry{State: segment.Sealed, Tier: segment.Local}) }, nil, Options{}, "has an entry of segment 0 that"},
		"a text for a stream": {func(w *world) { w.texts["korvet:storage:local:orders:0:1"] = true }, nil, Options{}, "key is not a stream"},
		"two open streams": {func(w *world) {
			w.add("korvet:storage:local:orders:0", messages(900, 4)...)
			w.add("korvet:storage:local:orders:0:3", messages(900, 4)...)
		}, nil, Options{}, "only one can be the open segment"},
		"one of nothing":       {func(w *world) { w.write(orders, 8, other(w, 8)) }, nil, Options{}, "has an entry of segment 8 that"},
		"an illegal one":       {func(w *world) { w.manifests[orders] = map[string]string{"8": "x"} }, nil, Options{}, "has an entry of segment 8 that"},
		"one in use":           {func(w *world) { w.write(orders, 5, segment.NewOpen("", 7)) }, nil, Options{}, "is in use and lacks 3 segments of the store, the first of them 0"},
		"an adopted first one": {func(w *world) { w.write(orders, 0, segment.NewOpen("korvet:storage:local:orders:0", 7)) }, nil, Options{}, "has an entry of segment 0 that"},
		"an OPEN 0 that is written to": {func(w *world) {
			w.write(orders, 0, segment.NewOpen("", 7))
			w.add("korvet:storage:local:orders:0:0", messages(900, 4)...)
		}, nil, Options{}, "stream korvet:storage:local:orders:0:0 is there, with 4 messages"},
		"a local copy":    {func(w *world) { w.add("korvet:storage:local:orders:0:2", messages(0, 4)...) }, nil, Options{}, "stream korvet:storage:local:orders:0:2 is there"},
		"a later stream":  {func(w *world) { w.add("korvet:storage:local:orders:0:4", messages(0, 4)...) }, nil, Options{}, "stream korvet:storage:local:orders:0:4 is there"},
		"an old base":     {func(w *world) { w.add("korvet:storage:local:orders:0", messages(0, 4)...) }, nil, Options{}, "stream korvet:storage:local:orders:0 is there"},
		"disorder":        {func(w *world) { w.put(orders, 3, 0, "", messages(50, 4)) }, nil, Options{}, "segment 3 begins at 1700000050000-0, below segment 2"},
		"retention":       {nil, &days, Options{}, "3 of its 3 segments are past retention.ms"},
		"a damaged front": {func(w *world) { w.store.Corrupt(fileOf(0)) }, nil, Options{}, "segment 0 has no whole file, and comes before segment 1"},
		"a newer version": {func(w *world) { w.bytes(fileOf(3), newer(w.t)) }, nil, Options{}, "newer schema version"},
		"no number left":  {func(w *world) { w.bytes(fileOf(math.MaxInt64), nil) }, nil, Options{}, "none is left for those to come"},
		"a stream far behind": {func(w *world) {
			w.bytes(fileOf(1<<40), nil)
			w.add("korvet:storage:local:orders:0:1099511627780", messages(0, 4)...)
		}, nil, Options{}, "stream korvet:storage:local:orders:0:1099511627780 is there"},
	} {
		w, _ := lost(t, orders)
		if c.make != nil {
			c.make(w)
		}
		before := maps.Clone(w.manifests[orders])
		_, err := w.rebuild(orders, c.settings, c.opt, false)
		mustFail(t, name, err, c.want, "orders:0")
		if !errors.Is(err, ErrRefused) || !maps.Equal(before, w.manifests[orders]) {
			t.Errorf("%s: %v", name, w.manifests[orders])
		}
	}
}

func fileOf(n segment.Number) string {
	return segment.ObjectPath("korvet:storage:local:orders:0", n, 0, "")
}

// newer is a file of a version that is not known yet.
func newer(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("../parquetfile/testdata/refused/newer-version.parquet")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A number is only a file's name: however large it is, the looks at Redis are few.
func TestAFileWithALargeNumber(t *testing.T) {
	w, _ := lost(t, orders)
	w.bytes(fileOf(1<<40), nil)
	b, err := w.rebuild(orders, nil, Options{}, false)
	if err != nil || b.Open != 1<<40+1 || w.calls > 100 {
		t.Errorf("%v after %d calls: %+v", err, w.calls, b)
	}
	w.mustBe(orders, 1<<40+1, 0, 1, 2)
}

func TestRebuildAllTheSame(t *testing.T) {
	days := segment.DefaultTopicSettings()
	w, _ := lost(t, orders)
	w.put(orders, 3, 0, "", messages(50, 4))
	w.add("korvet:storage:local:orders:0:4", messages(900, 4)...) // the stream of the OPEN one
	b, err := w.rebuild(orders, &days, Options{Disorder: true, Expired: true}, false)
	if err != nil || b.Expired != 4 {
		t.Errorf("%v: %+v", err, b)
	}
	w.mustBe(orders, 4, 0, 1, 2, 3)
	w, _ = lost(t, orders)
	w.put(orders, 3, 0, "", messages(221, 4)) // as late appends make it
	b, err = w.rebuild(orders, nil, Options{}, false)
	if err != nil || !strings.Contains(fmt.Sprint(b.Notes), "segments 2 (up to 1700000221000-0) and 3 (from 1700000221000-2) overlap, as late appends make them") {
		t.Logf("%v", b.Notes)
		if err != nil || !strings.Contains(fmt.Sprint(b.Notes), "overlap, as late appends") {
			t.Errorf("%v: %+v", err, b)
		}
	}
	w, _ = lost(t, orders)
	w.add("korvet:storage:local:orders:0", messages(900, 4)...) // a broker that knows of no segments has gone on
	if _, err = w.rebuild(orders, nil, Options{}, false); err != nil {
		t.Error(err)
	}
	w.mustBe(orders, 3, 0, 1, 2)
	if e := w.entryOf(orders, 3); e.Key != "korvet:storage:local:orders:0" {
		t.Errorf("%+v", e)
	}
}
