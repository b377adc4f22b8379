package offload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"korvet-offload/segment"
)

// spyManifests counts how many entries are asked for, and can tear a reading.
type spyManifests struct {
	*world
	asked int
	tear  func(reading int, field, value string, take func(field, value string)) bool // true: it has given the field itself
	reads int
}

func (s *spyManifests) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	for _, one := range q {
		s.asked += len(one.Numbers)
	}
	return s.world.Peek(ctx, q)
}

func (s *spyManifests) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	s.reads++
	return s.world.Each(ctx, p, func(field, value string) {
		if s.tear == nil || !s.tear(s.reads, field, value, take) {
			take(field, value)
		}
	})
}

// spied is a worker whose readings of manifests are counted.
func (w *world) spied(change ...func(*Config)) (*Worker, *spyManifests) {
	spy := &spyManifests{world: w}
	worker := w.worker(change...)
	worker.ports.Manifests = spy
	return worker, spy
}

// The cost of a tick follows the work, not the history.
func TestATickOverALargeManifest(t *testing.T) {
	const history = 100_000
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.LocalRetentionMs = hourMs })
	w.local(orders0, history, 3, w.now)
	w.open(orders0, history+1, 1)
	gone := string(segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Count: 1, SealedAt: 5,
		Object: &segment.Object{Path: "p", Bytes: 1}}.Encode())
	for n := range segment.Number(history) {
		w.put(orders0, n.String(), gone)
	}
	worker, spy := w.spied()
	r := runOnce(t, worker)
	if mustDo(t, r, "", ""); r.Plan.Counts.Remote != history || r.Plan.Counts.Open != 1 || spy.asked != 0 {
		t.Errorf("%+v, asked for %d entries", r.Plan.Counts, spy.asked)
	}
	w.calls = nil
	const ticks = 10
	for range ticks {
		r = w.later(worker, 10*time.Second)
	}
	if w.made("manifest") != 0 || spy.asked > ticks*(2+probes) || r.Plan.Counts.Remote != history+1 {
		t.Errorf("%d whole readings, %d entries asked for, %+v", w.made("manifest"), spy.asked, r.Plan.Counts)
	}
	w.mustBeSoundAt(orders0, history)
	mustDo(t, w.later(worker, time.Hour-2*time.Minute), "", "")
	if w.made("manifest") != 0 {
		t.Error("read whole although nothing changed")
	}
	mustDo(t, w.later(worker, time.Minute), fmt.Sprintf("orders:0/%d dropped", history), "")
	if w.later(worker, time.Minute); w.made("manifest") != 1 { // fullEvery
		t.Errorf("%d whole readings in %s", w.made("manifest"), fullEvery)
	}
}

// mustBeSoundAt checks one segment only.
func (w *world) mustBeSoundAt(p segment.Partition, n segment.Number) {
	w.t.Helper()
	e := w.entry(p, n)
	w.mustBeRight(located{p, n, e, w.keyOf(p, n, e)})
}

// What others do to a manifest is seen in the next pass, or, where only a
// settled entry changes, when the manifest is read whole.
func TestWhatOthersDoIsSeen(t *testing.T) {
	sealed := func(w *world) string {
		return fmt.Sprintf(`{"state":"SEALED","tier":"LOCAL","count":0,"sealedAt":%d}`, w.now.Add(-time.Hour).UnixMilli())
	}
	for name, c := range map[string]struct {
		do    func(*world)
		whole bool // the manifest is read whole at once
		done  string
	}{
		"nothing":                 {func(*world) {}, false, ""},
		"the next is opened":      {func(w *world) { w.put(orders0, "5", `{"state":"OPEN","tier":"LOCAL"}`) }, false, ""},
		"the open one is sealed":  {func(w *world) { w.put(orders0, "4", sealed(w)) }, false, "orders:0/4 copied"},
		"one far off is opened":   {func(w *world) { w.put(orders0, "40", sealed(w)) }, true, "orders:0/40 copied"},
		"one is deleted":          {func(w *world) { delete(w.manifests[orders0], "1") }, true, ""},
		"one comes, one goes":     {func(w *world) { delete(w.manifests[orders0], "1"); w.put(orders0, "5", sealed(w)) }, true, "orders:0/5 copied"},
		"an active one goes":      {func(w *world) { delete(w.manifests[orders0], "4") }, false, ""},
		"all is gone":             {func(w *world) { w.manifests[orders0] = nil }, true, ""},
		"a field of another kind": {func(w *world) { w.put(orders0, "meta", "x") }, true, ""},
		"many come": {func(w *world) {
			for n := range segment.Number(probes) {
				w.put(orders0, (n + 5).String(), sealed(w))
			}
		}, true, "orders:0/10 copied, orders:0/11 copied, orders:0/12 copied, orders:0/5 copied, orders:0/6 copied, orders:0/7 copied, orders:0/8 copied, orders:0/9 copied"},
		"a settled one changes": {func(w *world) { w.put(orders0, "1", sealed(w)) }, false, ""},
	} {
		w := retainWorld(t, func(*segment.TopicSettings) {})
		worker := w.worker()
		runOnce(t, worker)
		c.do(w)
		w.calls = nil
		r := w.later(worker, time.Minute)
		if did(r) != c.done || w.made("manifest") == 1 != c.whole {
			t.Errorf("%s: %s; %d whole readings", name, did(r), w.made("manifest"))
		}
		w.now = w.now.Add(fullEvery)
		var done []string
		for range 3 {
			r, _ = worker.RunOnce(t.Context())
			done = append(done, did(r))
		}
		if name == "a settled one changes" && !slices.Contains(done, "orders:0/1 copied") {
			t.Errorf("%s: never seen: %q", name, done)
		}
	}
}

// Whoever finds that an entry is not what was remembered changes nothing, and
// reads the manifest anew.
//
//fault:leaders | What is remembered of an entry is not what it is | In memory | The entry is read again before it is changed
func TestASettledEntryIsReadBeforeItIsChanged(t *testing.T) {
	for name, theirs := range map[string]string{
		"LOCAL again": `{"state":"SEALED","tier":"LOCAL","count":0}`,
		"DELETING":    `{"state":"DELETING","tier":"REMOTE","deletingAt":1}`,
		"nonsense":    `x`,
		"gone":        "",
	} {
		w := retainWorld(t, func(s *segment.TopicSettings) { s.LocalRetentionMs = 10 * hourMs })
		worker := w.worker(func(c *Config) { c.DeleteGrace = 10_000 * time.Hour })
		runOnce(t, worker)
		if w.put(orders0, "0", theirs); theirs == "" {
			delete(w.manifests[orders0], "0")
			w.put(orders0, "5", `{"state":"OPEN","tier":"LOCAL"}`) // so that the number of fields is the same
		}
		w.set("orders", func(s *segment.TopicSettings) { s.LocalRetentionMs = 3.5 * hourMs })
		w.calls = nil
		w.later(worker, time.Minute)
		if w.made("remove") != 0 || w.manifests[orders0]["0"] != theirs {
			t.Errorf("%s: calls %q, entry %q", name, w.calls, w.manifests[orders0]["0"])
		}
		before := w.made("manifest")
		if w.later(worker, time.Minute); theirs != "" && w.made("manifest") != before+1 {
			t.Errorf("%s: not read anew: %q", name, w.calls)
		}
	}
}

// A reading in which the manifest changes: fields twice, the old value first,
// and fields that do not come.
//
//fault:redis | A manifest changes while it is read | In memory | What came is not taken for the whole
func TestATornReading(t *testing.T) {
	old := `{"state":"OPEN","tier":"LOCAL"}`
	w := retainWorld(t, func(*segment.TopicSettings) {})
	w.put(orders0, "meta", "x")
	worker, spy := w.spied()
	spy.tear = func(_ int, field, value string, take func(field, value string)) bool {
		take(field, old)
		take(field, value)
		return false // and so a third time
	}
	r := runOnce(t, worker)
	if want := (Counts{Topics: 1, Partitions: 1, Open: 1, Remote: 4, Both: 4, Illegal: 1}); r.Plan.Counts != want || spy.reads != 1 {
		t.Errorf("fields twice: %+v after %d readings", r.Plan.Counts, spy.reads)
	}
	for torn := range readTries + 1 {
		worker, spy = w.spied()
		spy.tear = func(reading int, field, _ string, _ func(field, value string)) bool {
			return reading <= torn && field == "2"
		}
		r = runOnce(t, worker)
		want := "segment orders:0/meta: illegal_entry"
		if torn == readTries {
			want = "partition orders:0: manifest_unsteady"
		}
		if complaints(r) != want || spy.reads != min(torn+1, readTries) {
			t.Errorf("torn %d times: %s after %d readings", torn, complaints(r), spy.reads)
		}
		spy.tear = nil
		if r = w.later(worker, time.Minute); r.Plan.Counts.Remote != 4 {
			t.Errorf("torn %d times, then: %+v, %s", torn, r.Plan.Counts, complaints(r))
		}
	}
}

// One manifest that does not answer stops no other, and is read whole when it
// does again.
func TestAPeekThatFails(t *testing.T) {
	w := retainWorld(t, func(s *segment.TopicSettings) { s.Partitions = 2 })
	w.local(orders1, 0, 3, w.now)
	worker := w.worker()
	runOnce(t, worker)
	w.hook = failOnce("before peek", errors.New("no answer"))
	if _, err := worker.RunOnce(t.Context()); err == nil {
		t.Error("a pass without an answer")
	}
	spy := &brokenPeek{world: w}
	worker.ports.Manifests = spy
	w.calls = nil
	r := w.later(worker, 10*time.Second)
	if mustDo(t, r, "orders:1/0 copied", "partition orders:0: wrong_type"); w.made("manifest") != 0 {
		t.Errorf("%q", w.calls)
	}
	worker.ports.Manifests = w
	if r = w.later(worker, time.Second); w.made("manifest orders:0") != 1 || complaints(r) != "" {
		t.Errorf("%s, %q", complaints(r), w.calls)
	}
}

type brokenPeek struct{ *world }

func (b brokenPeek) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	a, err := b.world.Peek(ctx, q)
	for i := range a {
		if q[i].Partition == orders0 {
			a[i] = segment.Peeked{Err: segment.ErrWrongType}
		}
	}
	return a, err
}

// Whatever happens to a manifest, an index that says it is up to date counts
// what is there.
func TestTheIndexAgainstTheManifest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.t = rt
		w.topic("orders", 1)
		w.put(orders0, "0", `{"state":"OPEN","tier":"LOCAL"}`)
		worker := w.worker()
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			n := segment.Number(rapid.IntRange(0, 30).Draw(rt, "number"))
			raw := rapid.SampledFrom([]string{
				"", "x", `{"state":"OPEN","tier":"LOCAL"}`, `{"state":"SEALED","tier":"LOCAL","sealedAt":999999999999}`,
				`{"state":"SEALED","tier":"REMOTE","local":"GONE"}`, `{"state":"SEALED","tier":"REMOTE"}`,
				`{"state":"DELETING","tier":"REMOTE","local":"GONE","deletingAt":999999999999}`,
			}).Draw(rt, "entry")
			was, there := w.manifests[orders0][n.String()]
			if there && strings.Contains(was, "REMOTE") && raw != "" {
				continue // nobody but us changes what is settled
			}
			if w.put(orders0, n.String(), raw); raw == "" {
				delete(w.manifests[orders0], n.String())
			}
			s, err := worker.Scan(rt.Context())
			if err != nil {
				rt.Fatal(err)
			}
			checkScan(rt, w, s.Partitions[0])
		}
	})
}

func checkScan(t tb, w *world, p PartitionScan) {
	t.Helper()
	var active []segment.Stored
	for _, name := range sortedKeys(w.manifests[orders0]) {
		n, _ := segment.ParseNumber(name)
		raw := w.manifests[orders0][name]
		e, err := segment.ParseEntry([]byte(raw))
		_, gone := p.index.gone.find(n)
		_, present := p.index.present.find(n)
		settled := err == nil && e.State == segment.Sealed && e.Tier == segment.Remote
		if wantGone := settled && e.Local == segment.Gone; gone != wantGone || present != (settled && !wantGone) {
			t.Errorf("%s: %s; gone %t, present %t", name, raw, gone, present)
		}
		if !settled {
			active = append(active, segment.Stored{Number: n, Raw: raw})
		}
	}
	slices.SortFunc(active, func(a, b segment.Stored) int { return byNumber(a, b.Number) })
	same := slices.EqualFunc(active, p.Active, func(a, b segment.Stored) bool { return a.Number == b.Number && a.Raw == b.Raw })
	if !same || p.Empty != (len(w.manifests[orders0]) == 0) || p.index.fields() != int64(len(w.manifests[orders0])) {
		t.Errorf("active %v, want %v; empty %t, fields %d of %d", p.Active, active, p.Empty, p.index.fields(), len(w.manifests[orders0]))
	}
}
