package offload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	orders0 = segment.Partition{Topic: "orders", Number: 0}
	orders1 = segment.Partition{Topic: "orders", Number: 1}
)

const (
	key0  = "korvet:storage:local:orders:0:0"
	path0 = "korvet:storage:local:orders:0/0.parquet"
)

// ordersWorld has topic orders with the given number of sealed segments of
// ten entries in each of two partitions.
func ordersWorld(t *testing.T, segments int) *world {
	w := newWorld(t)
	w.topic("orders", 2)
	for n := range segments {
		w.sealed(orders0, segment.Number(n), 10)
		w.sealed(orders1, segment.Number(n), 10)
	}
	return w
}

func runOnce(t tb, w *Worker) Report {
	t.Helper()
	r, err := w.RunOnce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunOnceFlipsEveryDueSegment(t *testing.T) {
	w := ordersWorld(t, 3)
	w.put(orders0, "3", `{"v":1,"state":"OPEN","tier":"LOCAL"}`)
	acked := w.acked()
	r := runOnce(t, w.worker())
	if len(r.Outcomes) != 6 || len(r.Problems) != 0 || r.Left != 0 {
		t.Errorf("report: %+v", r)
	}
	for _, p := range []segment.Partition{orders0, orders1} {
		for n := range segment.Number(3) {
			e := w.entry(p, n)
			path := segment.ObjectPath(segment.DefaultLayout().StreamKey(p), n, 0, "")
			if e.Tier != segment.Remote || e.Local != segment.Present || e.Object.Path != path || e.Count != 10 ||
				e.RemoteAt != w.now.UnixMilli() || e.Rev != 1 {
				t.Errorf("%s/%s: %+v", p, n, e)
			}
			if got := w.objects[path].meta["stream-key"]; got != segment.DefaultLayout().StreamKey(p) {
				t.Errorf("%s: stream key in the metadata: %q", path, got)
			}
		}
	}
	w.mustHold(acked)
}

func TestASecondPassDoesNothing(t *testing.T) {
	w := ordersWorld(t, 2)
	worker := w.worker()
	runOnce(t, worker)
	w.calls = nil
	runOnce(t, worker)
	if want := []string{"now", "topics", "peek"}; !reflect.DeepEqual(w.calls, want) {
		t.Errorf("a pass with nothing to do called %q, want %q", w.calls, want)
	}
}

// How many calls a segment costs is part of the contract with whoever pays
// for them.
func TestCallsOfOneSegment(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.sealed(orders0, 0, 10)
	runOnce(t, w.worker())
	want := []string{"now", "topics", "known", "manifest orders:0", "sizes", "memory " + key0, "swapknown orders",
		"createonly", "stat " + path0, "info " + key0,
		"page " + key0, "page " + key0, "page " + key0, "page " + key0, "page " + key0,
		"info " + key0, "createonly", "stat " + path0, "put " + path0, "stat " + path0, "info " + key0,
		"now", "swap orders:0/0"}
	if !reflect.DeepEqual(w.calls, want) {
		t.Errorf("got  %q\nwant %q", w.calls, want)
	}
}

func TestSegmentsOfOnePartitionGoInOrderAndOneAtATime(t *testing.T) {
	w := ordersWorld(t, 5)
	busy := map[string]string{} // partition -> the segment that is being copied
	w.hook = func(call string) error {
		if where, ok := strings.CutPrefix(call, "before page korvet:storage:local:orders:"); ok {
			partition, n, _ := strings.Cut(where, ":")
			if was, ok := busy[partition]; ok && was != n {
				return errors.New("two segments of one partition at once")
			}
			busy[partition] = n
		}
		if where, ok := strings.CutPrefix(call, "after swap orders:"); ok {
			partition, _, _ := strings.Cut(where, "/")
			delete(busy, partition)
		}
		return nil
	}
	r := runOnce(t, w.worker(func(c *Config) { c.Concurrency = 8 }))
	if len(r.Problems) > 0 {
		t.Fatal(r.Problems)
	}
	next := map[string]int{}
	for _, call := range w.calls {
		if where, ok := strings.CutPrefix(call, "swap "); ok {
			partition, n, _ := strings.Cut(where, "/")
			if n != fmt.Sprint(next[partition]) {
				t.Errorf("%s was flipped when %d was the oldest", where, next[partition])
			}
			next[partition]++
		}
	}
}

func TestWhatIsNotDueIsLeftAlone(t *testing.T) {
	w := ordersWorld(t, 0)
	w.topics = append(w.topics, segment.Topic{Name: "kept", Settings: segment.DefaultTopicSettings()})
	sealedAt := func(ms int64) string {
		return fmt.Sprintf(`{"v":1,"state":"SEALED","tier":"LOCAL","count":1,"sealedAt":%d}`, w.now.UnixMilli()-ms)
	}
	w.put(segment.Partition{Topic: "kept"}, "0", sealedAt(60_000))
	w.put(orders0, "0", `{"v":1,"state":"SEALED","tier":"REMOTE"}`)
	w.put(orders0, "1", `{"v":1,"state":"DELETING","tier":"REMOTE"}`)
	w.put(orders0, "2", sealedAt(4_999))
	w.put(orders0, "3", `{"v":1,"state":"OPEN","tier":"LOCAL"}`)
	r := runOnce(t, w.worker())
	if n := w.made("info") + w.made("put") + w.made("createonly"); n != 0 || w.made("swap orders:0/") != 1 || w.made("swap kept") != 0 {
		t.Errorf("calls: %q", w.calls)
	}
	if e := w.entry(orders0, 1); e.DeletingAt != w.now.UnixMilli() { // hidden by somebody else: our grace begins now
		t.Errorf("the one that is DELETING: %+v", e)
	}
	want := Counts{Topics: 1, OtherTopics: 1, Partitions: 2, Open: 1, Sealed: 1, Grace: 1, Remote: 1, Both: 1, Deleting: 1}
	if r.Plan.Counts != want || len(r.Problems) != 0 {
		t.Errorf("got %+v and %v, want %+v", r.Plan.Counts, r.Problems, want)
	}
}

// An entry that was changed after it was read is not overwritten, whatever
// the change.
//
//fault:leaders | Another worker flips the entry first | In memory | It is a lost race and no failure
func TestALostRaceIsASkip(t *testing.T) {
	for _, theirs := range []string{
		`{"v":1,"state":"DELETING","tier":"LOCAL"}`,
		`{"v":1,"rev":1,"state":"SEALED","tier":"REMOTE","object":{"path":"theirs","bytes":1,"etag":"","sha256":""}}`,
		"",
	} {
		w := ordersWorld(t, 1)
		w.hook = func(call string) error {
			if call == "before swap orders:0/0" {
				w.put(orders0, "0", theirs)
			}
			return nil
		}
		r := runOnce(t, w.worker())
		if got := w.manifests[orders0]["0"]; got != theirs {
			t.Errorf("their entry %q became %q", theirs, got)
		}
		if len(r.Problems) != 0 || len(r.Outcomes) != 2 {
			t.Errorf("report: %+v", r)
		}
		for _, o := range r.Outcomes {
			if (o.Result == LostRace) != (o.Partition == orders0) {
				t.Errorf("%s: %s", o.Partition, o.Result)
			}
		}
	}
}

//fault:store | An object lies at the path: the same, another, or a part of it | In memory | The same is adopted after it was read; anything else stays, and the next path is taken
func TestAnObjectThatIsThereAlready(t *testing.T) {
	first := ordersWorld(t, 1)
	runOnce(t, first.worker())
	same := first.objects[path0]
	cut := fakeObject{body: same.body[:len(same.body)/2], meta: same.meta, sha: same.sha}
	lying := fakeObject{body: append([]byte("x"), same.body[1:]...), meta: same.meta, sha: same.sha}
	for name, c := range map[string]struct {
		there fakeObject
		path  string
		puts  int
	}{
		"the same":          {same, path0, 0},
		"empty":             {fakeObject{}, "korvet:storage:local:orders:0/0-1.parquet", 1},
		"cut":               {cut, "korvet:storage:local:orders:0/0-1.parquet", 1},
		"lies about itself": {lying, "korvet:storage:local:orders:0/0-1.parquet", 1},
	} {
		w := ordersWorld(t, 1)
		w.objects[path0] = c.there
		acked := w.acked()
		r := runOnce(t, w.worker())
		if len(r.Problems) != 0 {
			t.Fatalf("%s: %v", name, r.Problems)
		}
		if e := w.entry(orders0, 0); e.Object.Path != c.path {
			t.Errorf("%s: the entry names %s, want %s", name, e.Object.Path, c.path)
		}
		if !reflect.DeepEqual(w.objects[path0], c.there) {
			t.Errorf("%s: the object that was there was changed", name)
		}
		if swap, put := w.firstCall("swap orders:0/0"), w.firstCall("put "+c.path); c.puts > 0 && swap > put {
			t.Errorf("%s: the next path was used before it was written down: %q", name, w.calls)
		}
		if got := w.made("put korvet:storage:local:orders:0/"); got != c.puts {
			t.Errorf("%s: %d uploads, want %d", name, got, c.puts)
		}
		w.mustHold(acked)
	}
}

func TestEveryPathTaken(t *testing.T) {
	w := ordersWorld(t, 1)
	for n := range int64(maxPaths + 1) {
		w.objects[segment.ObjectPath("korvet:storage:local:orders:0", 0, n, "")] = fakeObject{body: []byte("theirs")}
	}
	r := runOnce(t, w.worker())
	if len(r.Problems) != 1 || r.Problems[0].Reason != ReasonConflict || w.entry(orders0, 0).Tier != segment.Local {
		t.Errorf("%v, %+v", r.Problems, w.entry(orders0, 0))
	}
}

// The put may be answered with an error although the object was stored; the
// next attempt finds it and uploads nothing.
//
//fault:store | The store keeps an object and answers with an error | In memory | The next attempt adopts it
func TestStoredButAnsweredWithAnError(t *testing.T) {
	w := ordersWorld(t, 1)
	w.hook = failOnce("after put "+path0, errors.New("503"))
	worker := w.worker(func(c *Config) { c.TickInterval = time.Millisecond })
	worker.parked.now = func() time.Time { return w.now }
	r := runOnce(t, worker)
	if len(r.Problems) != 1 || w.entry(orders0, 0).Tier != segment.Local {
		t.Fatalf("%v, %+v", r.Problems, w.entry(orders0, 0))
	}
	w.now = w.now.Add(time.Second)
	w.calls = nil
	r = runOnce(t, worker)
	if len(r.Outcomes) != 1 || r.Outcomes[0].Result != Adopted || w.made("put") != 0 {
		t.Errorf("%+v, calls %q", r.Outcomes, w.calls)
	}
}

//fault:store | The store shows another size or checksum after the put | In memory | No flip
func TestTheStoreShowsSomethingElse(t *testing.T) {
	for name, damage := range map[string]func(*fakeObject){
		"cut":     func(o *fakeObject) { o.body = o.body[1:] },
		"changed": func(o *fakeObject) { o.sha = strings.Repeat("0", 64) },
	} {
		w := ordersWorld(t, 1)
		w.hook = func(call string) error {
			if call == "after put "+path0 {
				o := w.objects[path0]
				damage(&o)
				w.objects[path0] = o
			}
			return nil
		}
		r := runOnce(t, w.worker())
		if len(r.Problems) != 1 || r.Problems[0].Reason != ReasonObject {
			t.Errorf("%s: %v", name, r.Problems)
		}
		if e := w.entry(orders0, 0); e.Tier != segment.Local {
			t.Errorf("%s: flipped to %+v", name, e)
		}
	}
}

// A late append, or a removal by somebody else, at any point of the copy must
// leave no entry that says REMOTE without the whole segment behind it.
//
//fault:late-data | An append, a deletion, or the loss of the stream during the copy | In memory, at every step | No flip; it is copied again
func TestTheStreamChangesDuringTheCopy(t *testing.T) {
	clean := ordersWorld(t, 1)
	runOnce(t, clean.worker(func(c *Config) { c.Concurrency = 1 }))
	calls := slices.DeleteFunc(clean.calls, func(call string) bool { return strings.HasPrefix(call, "memory ") }) // part of another
	flip := slices.Index(calls, "swap orders:0/0")
	for name, change := range map[string]func(*world){
		"late append": func(w *world) { w.xadd(key0, segment.ID{Ms: 5000}) },
		"append and removal": func(w *world) {
			w.xadd(key0, segment.ID{Ms: 5000})
			w.xdel(key0, 0)
		},
		"removal": func(w *world) { w.xdel(key0, 4) },
	} {
		for at := range flip - 1 { // after the last look only the check before the removal can tell
			w := ordersWorld(t, 1)
			steps := 0
			w.hook = func(call string) error {
				if strings.HasPrefix(call, "before") {
					if steps++; steps == at+1 {
						change(w)
					}
				}
				return nil
			}
			worker := w.worker(func(c *Config) { c.Concurrency = 1 })
			worker.parked.now = func() time.Time { return w.now }
			runOnce(t, worker)
			w.mustHold(w.acked())
			w.now = w.now.Add(time.Hour)
			if r := runOnce(t, worker); len(r.Problems) != 0 {
				t.Fatalf("%s before call %d: the next pass: %v", name, at, r.Problems)
			}
			if w.entry(orders0, 0).Tier != segment.Remote {
				t.Errorf("%s before call %d: not copied again", name, at)
			}
			w.mustHold(w.acked())
		}
	}
}

//fault:redis | Streams that are missing, short, empty, of another type | In memory | Each is refused with what was found, and never becomes an empty file
func TestSources(t *testing.T) {
	last := segment.ID{Ms: 1, Seq: 9}
	for name, c := range map[string]struct {
		change func(*world)
		reason Reason // "" = copied
		count  int64
	}{
		"whole":               {func(*world) {}, "", 10},
		"entries were XDELed": {func(w *world) { w.xdel(key0, 3); w.xdel(key0, 8) }, "", 8},
		"gone":                {func(w *world) { delete(w.streams, key0) }, ReasonSourceMissing, 0},
		"emptied": {func(w *world) {
			for range 10 {
				w.xdel(key0, 0)
			}
		}, ReasonSourceMissing, 0},
		"short": {func(w *world) {
			w.streams[key0].entries = w.streams[key0].entries[:7]
			w.streams[key0].last = segment.ID{Ms: 1, Seq: 6}
			w.streams[key0].added = -1 // as a server before 7.0 says
		}, ReasonShortStream, 0},
		"gone, count unknown": {func(w *world) {
			delete(w.streams, key0)
			w.put(orders0, "0", `{"state":"SEALED","tier":"LOCAL"}`)
		}, ReasonSourceMissing, 0},
		"nothing is said of it": {func(w *world) { w.put(orders0, "0", `{"state":"SEALED","tier":"LOCAL"}`) }, "", 10},
		"never held anything": {func(w *world) {
			delete(w.streams, key0)
			w.put(orders0, "0", `{"state":"SEALED","tier":"LOCAL","count":0}`)
		}, "", 0},
		"lost, and made again by a late append": {func(w *world) { delete(w.streams, key0); w.xadd(key0, segment.ID{Ms: 5000}) }, ReasonShortStream, 0},
		"trimmed by somebody else":              {func(w *world) { w.streams[key0].entries = w.streams[key0].entries[9:] }, ReasonShortStream, 0},
		"late append before":                    {func(w *world) { w.xadd(key0, segment.ID{Ms: 2}) }, "", 11},
		"its own key": {func(w *world) {
			w.streams["elsewhere"] = w.streams[key0]
			delete(w.streams, key0)
			w.put(orders0, "0", `{"state":"SEALED","tier":"LOCAL","key":"elsewhere","lastId":"`+last.String()+`"}`)
		}, "", 10},
		"range of a shared stream": {func(w *world) {
			w.put(orders0, "0", `{"state":"SEALED","tier":"LOCAL","from":"1-0","to":"1-5"}`)
		}, "", 6},
	} {
		w := ordersWorld(t, 1)
		c.change(w)
		r := runOnce(t, w.worker())
		e := w.entry(orders0, 0)
		if c.reason == "" {
			if len(r.Problems) != 0 || e.Tier != segment.Remote || e.Count != c.count {
				t.Errorf("%s: %v, %+v", name, r.Problems, e)
			}
		} else if len(r.Problems) != 1 || r.Problems[0].Reason != c.reason || e.Tier != segment.Local || w.made("put korvet:storage:local:orders:0/") != 0 {
			t.Errorf("%s: %v, %+v", name, r.Problems, e)
		}
		if w.entry(orders1, 0).Tier != segment.Remote {
			t.Errorf("%s: the other partition was held up", name)
		}
	}
}

func TestBadThingsHoldUpNothingElse(t *testing.T) {
	w := ordersWorld(t, 3)
	w.put(orders0, "0", `not JSON`)
	w.put(orders0, "1", `{"v":7}`)
	w.put(orders0, "meta", `{}`)
	w.topics = append(w.topics, segment.ResolveTopic("a/b", nil, nil), segment.ResolveTopic("odd", map[string]string{"retention.ms": "x"}, nil))
	r := runOnce(t, w.worker())
	var got []string
	for _, p := range r.Problems {
		got = append(got, string(p.Reason)+" "+p.Where())
	}
	want := []string{`topic_name topic "a/b"`, `topic_setting topic "odd"`, "illegal_entry segment orders:0/meta",
		"illegal_entry segment orders:0/0", "entry_version segment orders:0/1"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(r.Outcomes) != 4 || w.manifests[orders0]["0"] != "not JSON" || w.manifests[orders0]["1"] != `{"v":7}` {
		t.Errorf("outcomes %+v, manifest %q", r.Outcomes, w.manifests[orders0])
	}
}

//fault:redis | A manifest can't be read | In memory | Nothing is written to it, and other partitions go on
func TestAManifestThatCantBeRead(t *testing.T) {
	w := ordersWorld(t, 1)
	w.hook = failOnce("before manifest orders:0", segment.ErrWrongType)
	r := runOnce(t, w.worker())
	if len(r.Problems) != 1 || r.Problems[0].Where() != "partition orders:0" || len(r.Outcomes) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestAFailedSegmentIsParkedAndTriedAgain(t *testing.T) {
	w := ordersWorld(t, 2)
	failing := errors.New("no")
	w.hook = func(call string) error {
		if strings.HasPrefix(call, "encode korvet:storage:local:orders:0/0") {
			return failing
		}
		return nil
	}
	worker := w.worker(func(c *Config) { c.TickInterval = time.Minute })
	worker.parked.now = func() time.Time { return w.now }
	var tries []time.Duration
	start := w.now
	for w.now.Sub(start) < 6*time.Hour {
		w.calls = nil
		r := runOnce(t, worker)
		if len(r.Problems) != 1 || r.Problems[0].Where() != "segment orders:0/0" {
			t.Fatalf("after %s: %v", w.now.Sub(start), r.Problems)
		}
		if w.made("page "+key0) > 0 {
			tries = append(tries, w.now.Sub(start))
		}
		w.now = w.now.Add(time.Minute)
	}
	if n := len(tries); n < 8 || n > 20 {
		t.Errorf("%d tries in six hours: %v", n, tries)
	}
	if gap := tries[len(tries)-1] - tries[len(tries)-2]; gap > longestParking {
		t.Errorf("the longest wait was %s", gap)
	}
	if w.entry(orders0, 1).Tier != segment.Remote {
		t.Error("the next segment was held up")
	}
	failing = nil
	w.put(orders0, "0", w.manifests[orders0]["0"]+" ") // a changed entry is tried at once
	if r := runOnce(t, worker); len(r.Problems) != 0 {
		t.Error(r.Problems)
	}
}

//fault:input | The encoder panics at one segment | In memory | It is that segment's fault, and the others go on
func TestAPanicIsOneSegmentsFault(t *testing.T) {
	w := ordersWorld(t, 2)
	w.hook = func(call string) error {
		if strings.HasPrefix(call, "encode korvet:storage:local:orders:0/0") {
			panic("index out of range")
		}
		return nil
	}
	r := runOnce(t, w.worker())
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Error(), "internal fault: index out of range") || len(r.Outcomes) != 3 {
		t.Errorf("%+v", r)
	}
}

// When the store or Redis as a whole can't be used, the pass ends instead of
// failing segment by segment, and what failed is tried again as soon as
// something goes through.
//
//fault:store | The store is down | In memory | The pass is given up after three segments
func TestAnOutageEndsThePass(t *testing.T) {
	for _, down := range []error{ErrStoreDown, ErrRedisDown} {
		w := ordersWorld(t, 20)
		w.hook = func(call string) error {
			if strings.HasPrefix(call, "before stat") {
				return fmt.Errorf("bucket b: %w", down)
			}
			return nil
		}
		worker := w.worker(func(c *Config) { c.Concurrency = 1 })
		worker.parked.now = func() time.Time { return w.now }
		for range 10 {
			w.now = w.now.Add(2 * time.Hour)
			w.calls = nil
			r, err := worker.RunOnce(t.Context())
			if !errors.Is(err, down) || r.Left != 37 || len(r.Problems) != 3 {
				t.Errorf("%v, left %d, problems %v", err, r.Left, r.Problems)
			}
			if n := w.made("page"); n != 0 {
				t.Errorf("%d pages were read for nothing", n)
			}
		}
		w.hook = func(string) error { return nil }
		if r := runOnce(t, worker); len(r.Outcomes) != 37 {
			t.Errorf("after it came back: %+v", r.Outcomes)
		}
		if r := runOnce(t, worker); len(r.Outcomes) != 3 {
			t.Errorf("then: %+v", r.Outcomes)
		}
	}
}

// One segment whose upload always times out must not hold up the rest.
func TestOneSegmentThatLooksLikeAnOutage(t *testing.T) {
	w := ordersWorld(t, 5)
	w.hook = func(call string) error {
		if call == "before put "+path0 {
			return fmt.Errorf("too slow: %w", ErrStoreDown)
		}
		return nil
	}
	r := runOnce(t, w.worker())
	if len(r.Outcomes) != 9 || len(r.Problems) != 1 || r.Problems[0].Reason != ReasonStore {
		t.Errorf("%+v", r)
	}
}

func TestAScanThatFailsPlansNothing(t *testing.T) {
	for _, at := range []string{"before now", "before topics"} {
		w := ordersWorld(t, 1)
		w.hook = failOnce(at, errors.New("no answer"))
		if _, err := w.worker().RunOnce(t.Context()); err == nil || w.made("swap") != 0 {
			t.Errorf("%s: %v, calls %q", at, err, w.calls)
		}
	}
}

//fault:store | The store can't refuse a path that is taken | In memory | Every attempt has a path of its own
func TestAStoreWithoutConditionalPuts(t *testing.T) {
	w := ordersWorld(t, 2)
	w.createOnly = false
	acked := w.acked()
	runOnce(t, w.worker())
	paths := sortedKeys(w.objects)
	if len(paths) != 4 {
		t.Errorf("objects %q", paths)
	}
	for _, path := range paths {
		if !strings.Contains(path, "/0.") && !strings.Contains(path, "/1.") || len(path) < len(path0)+17 {
			t.Errorf("path %q is not unique to an attempt", path)
		}
	}
	w.mustHold(acked)
}

func TestACancelledPassStops(t *testing.T) {
	w := ordersWorld(t, 3)
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("lease lost")
	w.hook = func(call string) error {
		if call == "before put "+path0 {
			cancel(lost)
		}
		return nil
	}
	r, err := w.worker(func(c *Config) { c.Concurrency = 1 }).RunOnce(ctx)
	if !errors.Is(err, lost) || r.Left == 0 || len(r.Problems) != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	if w.entry(orders0, 0).Tier != segment.Local {
		t.Error("the segment was flipped after the lease was lost")
	}
}

// Ended before or after any call, a new process must come to the same end:
// every segment REMOTE and right, and no object that no entry names.
//
//fault:crash | The process ends before or after any call of a copy | In memory | The next one goes on, nothing is copied twice
func TestACrashAtAnyCall(t *testing.T) {
	clean := ordersWorld(t, 2)
	runOnce(t, clean.worker())
	want := clean.acked()
	for at := range 2 * len(clean.calls) {
		w := ordersWorld(t, 2)
		crash(t, w, at)
		r := runOnce(t, w.worker())
		if len(r.Problems) != 0 {
			t.Errorf("crash at step %d: then %v", at, r.Problems)
		}
		for _, p := range []segment.Partition{orders0, orders1} {
			for n := range segment.Number(2) {
				if e := w.entry(p, n); e.Tier != segment.Remote || e.Copy != 0 {
					t.Errorf("crash at step %d: %s/%s is %+v", at, p, n, e)
				}
			}
		}
		w.mustHold(want)
		if n := w.made("unnamed"); n != 0 {
			t.Errorf("crash at step %d: objects that no entry names: %q", at, w.calls[len(w.calls)-n:])
		}
	}
}

// crash runs a process that dies at the given step: from then on it has no
// effect any more.
func crash(t *testing.T, w *world, at int) {
	t.Helper()
	steps := 0
	dead := errors.New("killed")
	w.hook = func(string) error {
		if steps++; steps > at {
			return dead
		}
		return nil
	}
	_, _ = w.worker().RunOnce(t.Context())
	w.hook = func(string) error { return nil }
}

// Two processes that both believe that they lead.
//
//fault:leaders | Two workers copy the same segments at the same time | In memory | Each segment is flipped once
func TestTwoWorkersAtOnce(t *testing.T) {
	for range 20 {
		w := ordersWorld(t, 4)
		acked := w.acked()
		var both sync.WaitGroup
		for range 2 {
			worker := w.worker()
			both.Go(func() {
				if _, err := worker.RunOnce(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		runOnce(t, w.worker())
		w.mustHold(acked)
		if len(w.objects) != 8 || w.made("unnamed") != 0 {
			t.Fatalf("objects: %q", sortedKeys(w.objects))
		}
	}
}

// A partition whose segments all fail must not keep the others from their
// turn, even where each failure looks like an outage.
func TestAFailingTopicDoesNotStarveTheOthers(t *testing.T) {
	w := newWorld(t)
	w.topic("bad", 3)
	w.topic("good", 1)
	good := segment.Partition{Topic: "good"}
	w.sealed(good, 0, 5)
	for p := range 3 {
		for n := range segment.Number(30) {
			w.sealed(segment.Partition{Topic: "bad", Number: p}, n, 5)
		}
	}
	w.hook = func(call string) error {
		if strings.HasPrefix(call, "before put korvet:storage:local:bad:") {
			return fmt.Errorf("403: %w", ErrStoreDown)
		}
		return nil
	}
	worker := w.worker(func(c *Config) { c.Concurrency = 1 })
	worker.parked.now = func() time.Time { return w.now }
	for pass := range 10 {
		_, _ = worker.RunOnce(t.Context()) // given up, most of the time
		if w.entry(good, 0).Tier == segment.Remote {
			return
		}
		w.now = w.now.Add(time.Minute)
		t.Logf("pass %d", pass)
	}
	t.Error("ten passes, and the good topic was never tried")
}

// An attempt that raised the copy before it failed waits as long as any other.
func TestAnAttemptThatRaisedTheCopyIsParkedToo(t *testing.T) {
	w := ordersWorld(t, 1)
	for n := range int64(100) {
		w.objects[segment.ObjectPath("korvet:storage:local:orders:0", 0, n, "")] = fakeObject{body: []byte("theirs")}
	}
	worker := w.worker(func(c *Config) { c.TickInterval = time.Minute })
	worker.parked.now = func() time.Time { return w.now }
	for range 60 {
		runOnce(t, worker)
		w.now = w.now.Add(time.Minute)
	}
	if e := w.entry(orders0, 0); e.Copy > 8*maxPaths {
		t.Errorf("an hour of failing raised the copy to %d", e.Copy)
	}
}

// A panic of the page reader, in its own goroutine, is one segment's fault.
func TestAPanicOfTheReaderIsOneSegmentsFault(t *testing.T) {
	w := ordersWorld(t, 1)
	w.hook = func(call string) error {
		if call == "before page "+key0 {
			panic("slice bounds out of range")
		}
		return nil
	}
	r := runOnce(t, w.worker())
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Error(), "internal fault") || len(r.Outcomes) != 1 {
		t.Errorf("%+v", r)
	}
}

// failOnce fails the first call with that label.
func failOnce(at string, err error) func(string) error {
	var done atomic.Bool
	return func(call string) error {
		if call == at && !done.Swap(true) {
			return err
		}
		return nil
	}
}

// A file that does not hold what was read must not get as far as the store.
//
//fault:input | The encoder loses an entry | In memory | The file is read back before it is put, and refused
func TestAnEncoderThatLosesAnEntry(t *testing.T) {
	w := ordersWorld(t, 1)
	ports := w.ports()
	ports.Encoding = forgetful{fakeEncoding{w}}
	worker := w.worker()
	worker.ports = ports
	r := runOnce(t, worker)
	if len(r.Problems) != 2 || w.made("put") != 0 || w.entry(orders0, 0).Tier != segment.Local {
		t.Errorf("%v, calls %q", r.Problems, w.calls)
	}
}

type forgetful struct{ fakeEncoding }

type forgetfulEncoder struct{ *fakeEncoder }

func (f forgetful) NewEncoder(w io.Writer, of FileOf) Encoder {
	return forgetfulEncoder{f.fakeEncoding.NewEncoder(w, of).(*fakeEncoder)}
}

func (e forgetfulEncoder) Close() (segment.Contents, error) {
	said := e.file.contents()
	e.file.Entries = e.file.Entries[:len(e.file.Entries)-1]
	_, err := e.fakeEncoder.Close()
	return said, err
}

// A reader that ends before the stream does must not make a short file.
//
//fault:redis | A reader ends before the stream does | In memory | The file is refused
func TestAReaderThatEndsEarly(t *testing.T) {
	w := ordersWorld(t, 1)
	ports := w.ports()
	ports.Streams = earlyEnd{w}
	worker := w.worker()
	worker.ports = ports
	r := runOnce(t, worker)
	if len(r.Problems) != 2 || r.Problems[0].Reason != ReasonChanged || w.made("put") != 0 {
		t.Errorf("%v, calls %q", r.Problems, w.calls)
	}
}

type earlyEnd struct{ *world }

type earlyPages struct {
	PageReader
	pages int
}

func (e earlyEnd) Pages(key string, from, to segment.ID) PageReader {
	return &earlyPages{PageReader: e.world.Pages(key, from, to)}
}

func (p *earlyPages) Next(ctx context.Context, into *segment.Page) error {
	if p.pages++; p.pages > 2 {
		return io.EOF
	}
	return p.PageReader.Next(ctx, into)
}
