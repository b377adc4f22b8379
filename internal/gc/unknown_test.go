package gc

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// What makes a world unlikely ends it all.
func TestNothingIsBelievedOfAnEmptyWorld(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *world)
		want  error
	}{
		"redis is empty":                   {func(w *world) { clear(w.manifests) }, ErrNoManifests},
		"redis is empty, topics are there": {func(w *world) { clear(w.manifests); w.opt.Removed = true }, ErrNoManifests},
		"the listing is empty": {func(w *world) {
			for _, key := range w.store.Keys() {
				w.store.Lose(key)
			}
		}, ErrNoObjects},
		"the root is not ours":   {func(w *world) { w.notOurs = errInjected }, errInjected},
		"redis is away":          {func(w *world) { w.broken[part("orders")] = ErrOutage }, ErrOutage},
		"the registry is empty":  {func(w *world) { w.topics, w.opt.Removed = nil, true }, ErrNoTopics},
		"the listing breaks off": {func(w *world) { w.store.FailNth("list", 1, errInjected) }, errInjected},
		"the store can't be asked": {func(w *world) {
			w.store.FailNth("stat", 1, &s3sink.Error{Class: s3sink.ClassUnavailable, Err: errInjected})
		}, errInjected},
	} {
		w := newWorld(t)
		w.remote(part("orders"), 3, 1)
		w.put("korvet:storage:local:gone:0/0.parquet", "x")
		c.spoil(w)
		if plan, err := w.collector().Look(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, plan, err)
		}
	}
}

func TestPartitionsWithoutAManifest(t *testing.T) {
	gone := "korvet:storage:local:gone:0/0.parquet"
	for name, c := range map[string]struct {
		change func(w *world)
		goes   bool
	}{
		"removed":                    {func(*world) {}, true},
		"registered":                 {func(w *world) { w.topic("gone", 1) }, false},
		"registered and faulty":      {func(w *world) { w.topic("gone", 1); w.topics[1].Err = segment.ErrTopicSetting }, false},
		"remembered":                 {func(w *world) { w.known["gone"] = "{}" }, false},
		"the object is no such file": {func(w *world) { w.foreign[gone] = true }, false},
		"only streams are listed":    {func(w *world) { w.topics = []segment.Topic{{Name: "s", Plain: true}} }, false},
	} {
		w := newWorld(t)
		w.opt.Removed = true
		w.remote(part("orders"), 3, 0)
		w.put(gone, "x")
		c.change(w)
		var want []string
		if c.goes {
			want = []string{"gone:0/0.parquet"}
		}
		w.must(name, want...)
	}
}

// A folder of somebody else's that looks like a plain stream's is left, unless it
// holds files of this program.
func TestFoldersOfOthers(t *testing.T) {
	w := newWorld(t)
	w.opt.Removed, w.opt.Gaps = true, true
	w.remote(part("orders"), 3, 0)
	w.put("reports/1.parquet", "somebody's")
	w.put("deep/korvet:storage:local:orders:0/1.parquet", "another root's")
	w.put("korvet:storage:local:orders:0/deep/1.parquet", "somebody's")
	w.put("other:storage:local:orders:0/1.parquet", "of another namespace")
	w.must("no stream is configured")
	w.topics = append(w.topics, segment.Topic{Name: "events", Plain: true, Settings: segment.DefaultStreamSettings()})
	w.foreign["reports/1.parquet"], w.foreign["other:storage:local:orders:0/1.parquet"] = true, true
	plan := w.must("they are no files of ours")
	if plan.Alien.Objects != 2 || len(plan.Left) != 2 || !strings.Contains(plan.Left[0].Stays, "somebody's table") {
		t.Errorf("%+v", plan)
	}
}

// An older copy stays where the newer one is not what its entry tells of.
func TestTheOnlyCopyStays(t *testing.T) {
	p := part("orders")
	for name, spoil := range map[string]func(w *world, e segment.Entry){
		"gone":           func(w *world, e segment.Entry) { w.store.Lose(e.Object.Path) },
		"another size":   func(w *world, e segment.Entry) { e.Object.Bytes++; w.set(p, 3, e) },
		"another etag":   func(w *world, e segment.Entry) { e.Object.ETag = "x"; w.set(p, 3, e) },
		"another sha256": func(w *world, e segment.Entry) { e.Object.SHA256 = "x"; w.set(p, 3, e) },
		"not to be seen": func(w *world, _ segment.Entry) {
			w.store.FailNth("stat", 2, &s3sink.Error{Op: "stat", Class: s3sink.ClassDenied, Err: errInjected})
		},
	} {
		w := newWorld(t)
		spoil(w, w.remote(p, 3, 1))
		if plan := w.must(name); len(plan.Left) != 1 || plan.Left[0].Stays == "" {
			t.Errorf("%s: %+v", name, plan)
		}
	}
}

func TestUnfinishedUploads(t *testing.T) {
	w := newWorld(t)
	w.remote(part("orders"), 3, 0)
	old, young := time.Now().Add(w.age-2*MinAge), time.Now().Add(w.age-time.Hour)
	w.unstarted = []s3sink.Unfinished{
		{Key: "korvet:storage:local:orders:0/4.parquet", ID: "old", Begun: old},
		{Key: "korvet:storage:local:orders:0/4.parquet", ID: "young", Begun: young},
		{Key: "korvet:storage:local:orders:0/4.parquet", ID: "undated"},
		{Key: "backup.tar", ID: "foreign", Begun: old},
		{Key: "deep/korvet:storage:local:orders:0/4.parquet", ID: "another root's", Begun: old},
		{Key: "_korvet_offload_doctor/x", ID: "probe", Begun: old},
		{Key: "korvet:storage:local:audit:0/4.parquet", ID: "audit", Begun: old},
	}
	deleted, why, err := w.collect(t.Context(), func() {})
	if want := []string{"upload old", "upload probe", "upload audit"}; err != nil || why != "" || !slices.Equal(deleted, want) || len(w.aborted) != 3 {
		t.Errorf("%q, %s, %v", deleted, why, err)
	}
	w.opt.Scope = segment.Scope{Topic: "orders"}
	if plan := w.look(); len(plan.Uploads) != 1 || plan.NewBegun != 6 {
		t.Errorf("%+v", plan)
	}
	w.pause(w.opt.Scope)
	if plan := w.look(); len(plan.Uploads) != 0 {
		t.Errorf("paused: %+v", plan)
	}
	clear(w.pauses)
	w.aborted = nil
	_, _, err = w.collect(t.Context(), func() { w.notOurs = errInjected })
	if !errors.Is(err, errInjected) || len(w.aborted) != 0 {
		t.Errorf("not ours any more: %v, %q", err, w.aborted)
	}
	w.notOurs, w.opt.Uploads = nil, false
	if plan := w.look(); len(plan.Uploads) != 0 {
		t.Errorf("%+v", plan)
	}
}
