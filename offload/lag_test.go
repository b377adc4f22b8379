package offload

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"korvet-offload/segment"
)

// refuseCopies makes copies fail, and nothing else.
func (w *world) refuseCopies() {
	w.hook = func(call string) error {
		if call == "before createonly" {
			return errors.New("refused")
		}
		return nil
	}
}

func TestLagOfTopics(t *testing.T) {
	w := newWorld(t)
	w.topic("a", 2)
	w.topic("b", 1)
	w.topic("idle", 1)
	a0, a1, b0 := segment.Partition{Topic: "a"}, segment.Partition{Topic: "a", Number: 1}, segment.Partition{Topic: "b"}
	w.sealed(a0, 0, 10)
	w.sealed(a0, 1, 5)
	w.sealed(a1, 0, 3)
	w.sealed(b0, 7, 1)
	w.change(b0, 7, func(e *segment.Entry) { e.SealedAt = w.now.Add(-2 * time.Hour).UnixMilli() })
	w.change(a1, 0, func(e *segment.Entry) { e.SealedAt = 0 })
	w.remote(a1, 1, 4, w.now)
	plan, err := w.worker().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Lag{Segments: 4, Bytes: 19 * bytesPerEntry, Oldest: 2 * time.Hour, Unknown: 1}
	if plan.Lag != want {
		t.Errorf("%+v, want %+v", plan.Lag, want)
	}
	var topics []string
	for _, l := range plan.Topics {
		topics = append(topics, l.Topic+" "+strconv.Itoa(l.Segments)+" "+strconv.FormatInt(l.Bytes/bytesPerEntry, 10)+" "+l.Oldest.String())
	}
	if want := []string{"a 3 18 1h0m0s", "b 1 1 2h0m0s", "idle 0 0 0s"}; !slices.Equal(topics, want) {
		t.Errorf("%q, want %q", topics, want)
	}
	sealed := w.now.Add(-time.Hour).UnixMilli()
	waiting := []Waiting{
		{Partition: a0, Number: 0, SealedAt: sealed, Newest: sealed, Bytes: 10 * bytesPerEntry},
		{Partition: a0, Number: 1, SealedAt: sealed, Newest: sealed, Bytes: 5 * bytesPerEntry},
		{Partition: a1, Number: 0, Bytes: 3 * bytesPerEntry},
		{Partition: b0, Number: 7, SealedAt: w.now.Add(-2 * time.Hour).UnixMilli(), Newest: w.now.Add(-2 * time.Hour).UnixMilli(), Bytes: bytesPerEntry},
	}
	if !reflect.DeepEqual(plan.Waiting, waiting) {
		t.Errorf("%+v, want %+v", plan.Waiting, waiting)
	}
}

// What waits is measured once, however long it waits.
func TestWhatWaitsIsMeasuredOnce(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.sealed(orders0, 0, 10)
	w.sealed(orders0, 1, 10)
	w.refuseCopies()
	worker := w.worker()
	for pass := range 3 {
		r, err := worker.RunOnce(t.Context())
		if err != nil || r.Plan.Lag.Bytes != 20*bytesPerEntry {
			t.Errorf("pass %d: %v, %d bytes", pass, err, r.Plan.Lag.Bytes)
		}
	}
	if n := w.made("memory "); n != 2 {
		t.Errorf("two streams were measured %d times", n)
	}
	w.sealed(orders0, 2, 1)
	if r := w.later(worker, time.Minute); r.Plan.Lag.Bytes != 21*bytesPerEntry {
		t.Errorf("with another one: %d bytes", r.Plan.Lag.Bytes)
	}
	if n := w.made("memory "); n != 3 {
		t.Errorf("three streams were measured %d times", n)
	}
	w.quiet()
	w.later(worker, 2*time.Hour)
	if r := w.later(worker, time.Minute); r.Plan.Lag.Bytes != 0 || len(worker.memory.indexes[orders0].sizes) != 0 {
		t.Errorf("%d bytes, and %v is remembered", r.Plan.Lag.Bytes, worker.memory.indexes[orders0].sizes)
	}
}

func TestBytesByTheAverage(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.set("orders", func(s *segment.TopicSettings) { s.AverageMessageBytes = 7 })
	w.sealed(orders0, 0, 10)
	w.sealed(orders0, 1, 5)
	w.change(orders0, 1, func(e *segment.Entry) { e.Count = segment.NoCount }) // by somebody who does not say
	plan, err := w.worker().Plan(t.Context())
	if err != nil || plan.Lag.Bytes != 15*7 || w.made("memory ") != 0 || w.made("sizes") != 2 { // one looks whether they are there
		t.Errorf("%v, %d bytes; %q", err, plan.Lag.Bytes, w.calls)
	}
}

// unmeasurable are streams that can be read and not measured.
type unmeasurable struct{ Streams }

func (u unmeasurable) Sizes(_ context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error) {
	a := make([]segment.StreamSize, len(q))
	for i := range a {
		a[i].Err = errors.New("no permission")
	}
	return a, nil
}

// What is only shown keeps no segment from being copied.
func TestASizeThatIsNotKnownHoldsUpNothing(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.sealed(orders0, 0, 10)
	worker := w.worker()
	worker.ports.Streams = unmeasurable{w}
	r := runOnce(t, worker)
	if len(r.Problems) != 0 || w.entry(orders0, 0).Tier != segment.Remote || r.Plan.Lag.Bytes != 0 || r.Plan.Lag.Segments != 1 {
		t.Errorf("%+v %+v", r.Problems, r.Plan.Lag)
	}
	w.set("orders", func(s *segment.TopicSettings) { s.LocalRetentionBytes = 1 }) // retention depends on it
	w.sealed(orders0, 1, 10)
	if r := w.later(worker, 2*time.Minute); len(r.Problems) == 0 {
		t.Error("no problem")
	}
}

func TestHeadroomOfLag(t *testing.T) {
	hour := time.Hour.Milliseconds()
	for _, tt := range []struct {
		name         string
		change       func(*segment.TopicSettings)
		local, total Headroom
	}{
		{"no limit", func(*segment.TopicSettings) {}, Headroom{}, Headroom{}},
		{"ahead", func(s *segment.TopicSettings) { s.LocalRetentionMs, s.RetentionMs = 3*hour, 10*hour },
			Headroom{true, time.Hour}, Headroom{true, 8 * time.Hour}},
		{"passed", func(s *segment.TopicSettings) { s.LocalRetentionMs, s.RetentionMs = hour, 3*hour },
			Headroom{true, -time.Hour}, Headroom{true, time.Hour}},
		{"size is not reached", func(s *segment.TopicSettings) { s.LocalRetentionBytes, s.RetentionBytes = 1<<40, 1<<40 }, Headroom{}, Headroom{}},
		{"size is reached", func(s *segment.TopicSettings) { s.LocalRetentionBytes = 2 * bytesPerEntry }, Headroom{true, 0}, Headroom{}},
		{"total size is reached", func(s *segment.TopicSettings) {
			s.AverageMessageBytes, s.RetentionBytes, s.LocalRetentionBytes = 10, 20, 20
		}, Headroom{true, 0}, Headroom{true, 0}},
	} {
		w := newWorld(t)
		w.topic("orders", 1)
		w.set("orders", tt.change)
		w.local(orders0, 0, 10, w.now.Add(-2*time.Hour))
		w.local(orders0, 1, 10, w.now.Add(-time.Hour))
		plan, err := w.worker(func(c *Config) { c.DeleteGrace = 0 }).Plan(t.Context())
		if err != nil || plan.Lag.Local != tt.local || plan.Lag.Total != tt.total || plan.Topics[0].Lag != plan.Lag {
			t.Errorf("%s: %v; %+v and %+v, want %+v and %+v", tt.name, err, plan.Lag.Local, plan.Lag.Total, tt.local, tt.total)
		}
	}
}

// The lists are whole: who shows all values of a kind relies on them.
func TestListsAreWhole(t *testing.T) {
	mustList(t, "errors.go", "Reason", Reasons())
	mustList(t, "outcome.go", "Result", Results())
	mustList(t, "worker.go", "PassPhase", PassPhases())
}

// mustList compares a list with the constants of its type in a file.
func mustList[S ~string](t *testing.T, file, kind string, list []S) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var consts []string
	ast.Inspect(tree, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		if of, ok := v.Type.(*ast.Ident); ok && of.Name == kind {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			consts = append(consts, text)
		}
		return true
	})
	var listed []string
	for _, s := range list {
		listed = append(listed, string(s))
	}
	slices.Sort(consts)
	slices.Sort(listed)
	if !slices.Equal(consts, listed) {
		t.Errorf("%s: the constants are %q, and %q are listed", kind, consts, listed)
	}
}
