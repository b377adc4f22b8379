package offload

import (
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

const (
	baseKey = "korvet:storage:local:orders:0"
	key1    = "korvet:storage:local:orders:0:1"
)

func TestWhenASegmentRolls(t *testing.T) {
	hour := func(s *segment.TopicSettings) { s.SegmentMs = 3_600_000 }
	kilo := func(s *segment.TopicSettings) { s.SegmentBytes = 1000 }
	average := func(s *segment.TopicSettings) { s.SegmentBytes, s.AverageMessageBytes = 70, 10 }
	for name, c := range map[string]struct {
		settings func(*segment.TopicSettings)
		entries  int
		opened   time.Duration // ago
		first    time.Duration // ago; no openedAt then
		why      segment.Due   // empty = it stays open
	}{
		"by ms":                   {hour, 1, time.Hour, 0, segment.Due{Limit: "segment.ms"}},
		"by ms, 1 s over":         {hour, 1, time.Hour + time.Second, 0, segment.Due{Limit: "segment.ms", Over: 1000}},
		"by ms, not yet":          {hour, 1, time.Hour - time.Millisecond, 0, segment.Due{}},
		"by bytes":                {kilo, 10, time.Minute, 0, segment.Due{Limit: "segment.bytes"}},
		"by bytes, not yet":       {kilo, 9, time.Minute, 0, segment.Due{}},
		"by average":              {average, 8, time.Minute, 0, segment.Due{Limit: "segment.bytes", Over: 10}},
		"by average, not yet":     {average, 6, time.Minute, 0, segment.Due{}},
		"first entry":             {hour, 2, 0, time.Hour + time.Minute, segment.Due{Limit: "segment.ms", Over: 60_000}},
		"first entry, not yet":    {hour, 2, 0, time.Hour - time.Minute, segment.Due{}},
		"opened by another clock": {hour, 1, -2 * time.Hour, 0, segment.Due{Limit: "segment.ms"}},
		"opened soon":             {hour, 1, -time.Minute, 0, segment.Due{}},
		"empty":                   {hour, 0, 100 * time.Hour, 0, segment.Due{}},
	} {
		w := lifeWorld(t, c.settings)
		open := segment.NewOpen("", w.now.Add(-c.opened).UnixMilli())
		start := w.now
		if w.now = start.Add(-c.first); c.first != 0 {
			open.OpenedAt = 0
		}
		w.produce(key0, c.entries)
		w.now = start
		w.put(orders0, "0", string(open.Encode()))
		r := runOnce(t, w.worker(rolls))
		if c.why == (segment.Due{}) {
			if w.life(orders0) != "0:OPEN" || len(r.Outcomes) != 0 {
				t.Errorf("%s: %s, %+v", name, w.life(orders0), r.Outcomes)
			}
			continue
		}
		if len(r.Outcomes) != 1 || r.Outcomes[0].Result != Rolled || r.Outcomes[0].Why != c.why {
			t.Errorf("%s: %+v", name, r.Outcomes)
		}
		sealed, next, info := w.entry(orders0, 0), w.entry(orders0, 1), w.look(key0)
		if sealed.State != segment.Sealed || sealed.SealedAt != w.now.UnixMilli() || sealed.Count != info.Length ||
			sealed.FirstID != info.FirstID || sealed.LastID != info.LastID || sealed.Rev != 2 {
			t.Errorf("%s: sealed as %+v", name, sealed)
		}
		if next.State != segment.Open || next.OpenedAt != w.now.UnixMilli() || next.Key != "" {
			t.Errorf("%s: opened as %+v", name, next)
		}
		if measured := w.made("memory") > 0; measured == (name == "by average") {
			t.Errorf("%s: MEMORY USAGE was asked for: %t", name, measured)
		}
	}
}

func TestAnEmptyStreamThatIsThereDoesNotRoll(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.SegmentMs = 1 })
	w.produce(key0, 1)
	w.xdel(key0, 0)
	w.put(orders0, "0", string(segment.NewOpen("", 1).Encode()))
	r := runOnce(t, w.worker(rolls))
	if mustDo(t, r, "", ""); len(r.Plan.Setup) != 0 {
		t.Errorf("planned %+v", r.Plan.Setup)
	}
	// emptied between the look and the roll
	w.produce(key0, 1)
	w.hook = at("before info "+key0, func() { w.xdel(key0, 0) })
	mustDo(t, runOnce(t, w.worker(rolls)), "", "")
	w.mustBe(orders0, "0:OPEN")
}

func TestRollingSwitchedOff(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.Partitions, s.SegmentMs, s.LocalRetentionBytes = 3, 1, 1000 })
	w.produce(key0, 5)
	w.produce("korvet:storage:local:orders:2", 5)
	w.put(orders0, "0", string(segment.NewOpen("", 1).Encode()))
	mustDo(t, runOnce(t, w.worker()), "", "")
	w.mustBe(orders0, "0:OPEN")
	if len(w.manifests) != 1 {
		t.Errorf("manifests were made: %v", w.manifests)
	}
}

// The broker seals, or opens, in the very moment.
//
//fault:leaders | A broker, or another worker, rolls first | In memory | It is a lost race, and no segment is opened twice
func TestARollThatLosesTheRace(t *testing.T) {
	open := string(segment.NewOpen("", 1).Encode())
	theirs := `{"v":1,"rev":7,"state":"SEALED","tier":"LOCAL","sealedAt":5}`
	for name, after := range map[string]map[string]string{
		"they sealed and opened the next": {"0": theirs, "1": open},
		"they sealed":                     {"0": theirs},
		"the next number is taken":        {"0": open, "1": `{"state":"OPEN","tier":"LOCAL"}`},
		"they removed it":                 {},
	} {
		w := lifeWorld(t, func(s *segment.TopicSettings) { s.SegmentMs = 1 })
		w.produce(key0, 3)
		w.put(orders0, "0", open)
		w.hook = at("before swap orders:0/0", func() { w.manifests[orders0] = after })
		worker := w.worker(rolls)
		want := fmtMap(after)
		mustDo(t, runOnce(t, worker), "orders:0/0 lost_race", "")
		if got := fmtMap(w.manifests[orders0]); got != want {
			t.Errorf("%s: manifest %s, want %s", name, got, want)
		}
		w.quiet()
		w.calls = nil
		if runOnce(t, worker); w.made("manifest ") != 1 {
			t.Errorf("%s: after a lost race the manifest was not read whole: %q", name, w.calls)
		}
	}
}

func fmtMap(m map[string]string) string {
	var b strings.Builder
	for _, k := range sortedKeys(m) {
		b.WriteString(k + "=" + m[k] + "\n")
	}
	return b.String()
}

//fault:crash | The process ends at any call of a roll | In memory | There is one OPEN segment, the last one
func TestACrashWhileRolling(t *testing.T) {
	make := func() *world {
		w := lifeWorld(t, func(s *segment.TopicSettings) { s.SegmentMs = 1000 })
		w.produce(key0, 5)
		w.put(orders0, "0", string(segment.NewOpen("", 1).Encode()))
		return w
	}
	clean := make()
	for step := range clean.steps(func() { runOnce(t, clean.worker(rolls)) }) {
		w := make()
		w.atStep(step, func() error { return errKilled })
		_, _ = w.worker(rolls).RunOnce(t.Context())
		w.quiet()
		if life := w.life(orders0); life != "0:OPEN" && life != "0:LOCAL 1:OPEN" {
			t.Errorf("after a crash at step %d: %s", step, life)
		}
		worker := w.worker(rolls)
		runOnce(t, worker)
		w.later(worker, time.Minute)
		w.mustBe(orders0, "0:REMOTE 1:OPEN")
		w.mustKeep(0)
	}
}

// A producer that has not heard of the roll yet appends to the sealed stream.
//
//fault:late-data | An append to a segment that was sealed | In memory | It is in the file
func TestALateAppendAfterTheSealIsCopied(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.SegmentMs = 1000 })
	w.produce(key0, 5)
	w.put(orders0, "0", string(segment.NewOpen("", 1).Encode()))
	w.hook = at("after swap orders:0/0", func() { w.produce(key0, 2) })
	worker := w.worker(rolls)
	mustDo(t, runOnce(t, worker), "orders:0/0 rolled", "")
	mustDo(t, w.later(worker, 4*time.Second), "", "") // the grace
	w.produce(key0, 1)
	mustDo(t, w.later(worker, time.Second), "orders:0/0 copied", "")
	if e := w.entry(orders0, 0); e.Count != 8 {
		t.Errorf("copied as %+v", e)
	}
	w.streams = map[string]*fakeStream{} // only the object counts
	w.mustKeep(0)
}

func TestTwoOpenSegments(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.SegmentMs = 1000 })
	for n, key := range []string{key0, key1} {
		w.produce(key, 3)
		w.put(orders0, segment.Number(n).String(), string(segment.NewOpen("", 1).Encode()))
	}
	mustDo(t, runOnce(t, w.worker(rolls)), "orders:0/1 rolled", "segment orders:0/0: open_behind")
	w.mustBe(orders0, "0:OPEN 1:LOCAL 2:OPEN")
}

func TestAPartitionWithoutAManifest(t *testing.T) {
	first := func(w *world) segment.Entry { return w.entry(orders0, 0) }
	hourAgo := func(w *world) int64 { return w.now.Add(-time.Hour).UnixMilli() }
	past := func(w *world, key string) {
		w.now = w.now.Add(-time.Hour)
		w.produce(key, 2)
		w.now = w.now.Add(time.Hour)
	}
	for name, c := range map[string]struct {
		make     func(*world)
		done     string
		problems string
		check    func(*world) bool
	}{
		"nothing there": {func(*world) {}, "orders:0/0 created", "", func(w *world) bool {
			return w.life(orders0) == "0:OPEN" && first(w).Key == "" && first(w).OpenedAt == w.now.UnixMilli()
		}},
		"its stream is there": {func(w *world) { w.produce(key0, 1) }, "orders:0/0 created", "", func(w *world) bool {
			return w.life(orders0) == "0:OPEN" && first(w).Key == ""
		}},
		"the whole log is one stream": {func(w *world) { past(w, baseKey) }, "orders:0/0 created", "", func(w *world) bool {
			return w.life(orders0) == "0:OPEN" && first(w).Key == baseKey && first(w).OpenedAt == hourAgo(w)
		}},
		"that stream begins in the future": {func(w *world) { w.xadd(baseKey, segment.ID{Ms: 1 << 62}) }, "orders:0/0 created", "", func(w *world) bool {
			return first(w).Key == baseKey && first(w).OpenedAt == w.now.UnixMilli()
		}},
		"it comes after the look": {func(w *world) { w.hook = at("after sizes", func() { w.produce(baseKey, 1) }) }, "orders:0/0 created", "", func(w *world) bool {
			return first(w).Key == baseKey
		}},
		"both": {func(w *world) { past(w, baseKey); past(w, key0) }, "", "segment orders:0/0: ambiguous_stream", func(w *world) bool {
			return len(w.manifests[orders0]) == 0
		}},
		"a manifest comes meanwhile": {func(w *world) {
			w.hook = at("before swap orders:0/0", func() { w.put(orders0, "5", `{"state":"OPEN","tier":"LOCAL"}`) })
		}, "orders:0/0 lost_race", "", func(w *world) bool { return w.life(orders0) == "5:OPEN" }},
		"so does its entry": {func(w *world) {
			w.hook = at("before swap orders:0/0", func() { w.put(orders0, "0", `{"state":"OPEN","tier":"LOCAL"}`) })
		}, "orders:0/0 lost_race", "", func(w *world) bool { return w.manifests[orders0]["0"] == `{"state":"OPEN","tier":"LOCAL"}` }},
		"a manifest of nonsense": {func(w *world) { w.put(orders0, "meta", "x") }, "", "segment orders:0/meta: illegal_entry", func(w *world) bool {
			return len(w.manifests[orders0]) == 1
		}},
	} {
		w := lifeWorld(t, func(*segment.TopicSettings) {})
		c.make(w)
		t.Log(name)
		mustDo(t, runOnce(t, w.worker(rolls)), c.done, c.problems)
		if !c.check(w) {
			t.Errorf("%s: %v", name, w.manifests[orders0])
		}
	}
}

// An adopted stream lives like any other segment, and its removal removes its
// own key.
func TestAnAdoptedStreamsLife(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.SegmentMs, s.LocalRetentionMs = 60_000, 120_000 })
	w.produce(baseKey, 4)
	worker := w.worker(rolls)
	mustDo(t, runOnce(t, worker), "orders:0/0 created", "")
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 rolled", "")
	w.produce(key1, 1)
	mustDo(t, w.later(worker, 10*time.Second), "orders:0/0 copied", "")
	mustDo(t, w.later(worker, 55*time.Second), "orders:0/0 dropped, orders:0/1 rolled", "")
	if w.streams[baseKey] != nil || w.streams[key1] == nil || w.objects[path0].body == nil {
		t.Errorf("streams %v, objects %v", sortedKeys(w.streams), sortedKeys(w.objects))
	}
	w.mustBe(orders0, "0:GONE 1:LOCAL 2:OPEN")
	w.mustKeep(0)
}

// Who knows of no segments writes to the partition's own key, and may come
// after the first entry was made. While that segment is empty, the stream takes
// its place; once both have entries a person has to look.
func TestABaseStreamThatComesLate(t *testing.T) {
	w := lifeWorld(t, func(s *segment.TopicSettings) { s.SegmentMs = 3_600_000 })
	worker := w.worker(rolls)
	mustDo(t, runOnce(t, worker), "orders:0/0 created", "")
	w.put(orders0, "0", strings.Replace(w.manifests[orders0]["0"], "}", `,"epoch":7}`, 1)) // a broker's own field
	w.now = w.now.Add(time.Minute)
	came := w.now
	w.produce(baseKey, 5)
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 created", "")
	e := w.entry(orders0, 0)
	if e.Key != baseKey || e.OpenedAt != came.UnixMilli() || !strings.Contains(w.manifests[orders0]["0"], `"epoch":7`) {
		t.Errorf("%s", w.manifests[orders0]["0"])
	}
	mustDo(t, w.later(worker, time.Hour), "orders:0/0 rolled", "")
	mustDo(t, w.later(worker, time.Minute), "orders:0/0 copied", "")
	w.mustKeep(0)

	both := lifeWorld(t, func(*segment.TopicSettings) {})
	worker = both.worker(rolls)
	runOnce(t, worker)
	both.produce(key0, 1)
	both.produce(baseKey, 1)
	mustDo(t, both.later(worker, time.Minute), "", "partition orders:0: ambiguous_stream")
	both.mustBe(orders0, "0:OPEN")
	both.set("orders", func(s *segment.TopicSettings) { s.SegmentMs = 1 }) // and the partition goes on
	mustDo(t, both.later(worker, time.Minute), "orders:0/0 rolled", "partition orders:0: ambiguous_stream")
}
