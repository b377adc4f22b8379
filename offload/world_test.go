package offload

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"korvet-offload/segment"
)

// world is Redis, the object store and an encoding in memory, with the
// physics that the tests need: before and after every call a hook may fail
// it, change something, or end the process.
type world struct {
	t   tb
	dir string // for spools

	mu        sync.Mutex
	now       time.Time
	topics    []segment.Topic
	manifests map[segment.Partition]map[string]string
	streams   map[string]*fakeStream
	groups    map[string][]segment.Group
	known     map[string]string
	objects   map[string]fakeObject
	files     map[string]fakeFile     // what bodies of objects were seen to hold
	log       map[string][]segment.ID // stream key -> what was acknowledged to producers
	calls     []string
	hook      func(call string) error // before and after each call, with mu held

	createOnly bool            // what the store can do
	locked     map[string]bool // objects that may not be deleted
	inStep     bool            // replicas are up to date
	old        bool            // a server before 7.0
	pageLen    int
	damageNext bool            // the next object that is put is altered on the way
	tokens     int             // that were given to unique paths
	aside      []segment.Topic // that will be back
	replica    *replica        // what a failover leads back to
	waits      bool            // for the replica, with each durable change of a manifest
	forgiven   map[string]bool // what need not be there any more
}

// tb is what the world needs of a test: testing.T and rapid.T have it.
type tb interface {
	Helper()
	Context() context.Context
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
	Log(args ...any)
	Logf(format string, args ...any)
}

// replica is what another server has of Redis.
type replica struct {
	manifests map[segment.Partition]map[string]string
	streams   map[string]*fakeStream
	known     map[string]string
	log       map[string][]segment.ID
}

// replicate brings the replica up to date.
func (w *world) replicate() {
	r := &replica{manifests: map[segment.Partition]map[string]string{}, streams: map[string]*fakeStream{}, known: maps.Clone(w.known), log: map[string][]segment.ID{}}
	for p, m := range w.manifests {
		r.manifests[p] = maps.Clone(m)
	}
	for key, s := range w.streams {
		c := *s
		c.entries = slices.Clone(s.entries)
		r.streams[key] = &c
	}
	for key, ids := range w.log {
		r.log[key] = slices.Clone(ids)
	}
	w.replica = r
}

type fakeStream struct {
	entries []fakeEntry
	last    segment.ID
	added   int64
	deleted segment.ID
}

type fakeEntry struct {
	ID     segment.ID
	Fields [][2]string
}

type fakeObject struct {
	body []byte
	meta map[string]string
	sha  string
	etag string
}

func newWorld(t *testing.T) *world { return newWorldIn(t, t.TempDir()) }

func newWorldIn(t tb, dir string) *world {
	return &world{t: t, dir: dir, now: time.UnixMilli(1_000_000_000_000), createOnly: true, inStep: true, pageLen: 3,
		groups: map[string][]segment.Group{}, log: map[string][]segment.ID{}, known: map[string]string{}, forgiven: map[string]bool{}, locked: map[string]bool{},
		manifests: map[segment.Partition]map[string]string{}, streams: map[string]*fakeStream{}, objects: map[string]fakeObject{}, files: map[string]fakeFile{},
		hook: func(string) error { return nil }}
}

// topic declares an offloaded topic.
func (w *world) topic(name string, partitions int) {
	s := segment.DefaultTopicSettings()
	s.RemoteStorage, s.Partitions, s.RetentionMs = true, partitions, -1
	w.topics = append(w.topics, segment.Topic{Name: name, Settings: s})
}

// sealed writes a stream of n entries and its SEALED LOCAL manifest entry.
func (w *world) sealed(p segment.Partition, n segment.Number, entries int) {
	key := segment.DefaultLayout().SegmentKey(p, n)
	w.streams[key] = &fakeStream{}
	for i := range entries {
		w.xadd(key, segment.ID{Ms: uint64(n)*1000 + 1, Seq: uint64(i)})
	}
	e := segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: int64(entries),
		SealedAt: w.now.Add(-time.Hour).UnixMilli()}
	if entries > 0 {
		e.FirstID, e.LastID = w.streams[key].entries[0].ID, w.streams[key].last
	}
	w.put(p, n.String(), string(e.Encode()))
}

// xadd appends an entry and acknowledges it.
func (w *world) xadd(key string, id segment.ID) {
	s := w.streams[key]
	if s == nil {
		s = &fakeStream{}
		w.streams[key] = s
	}
	s.entries = append(s.entries, fakeEntry{ID: id, Fields: fieldsOf(key, id)})
	s.last, s.added = id, s.added+1
	w.log[key] = append(w.log[key], id)
}

// fieldsOf is what a message holds.
func fieldsOf(key string, id segment.ID) [][2]string {
	return [][2]string{{"f", key}, {"f", id.String()}}
}

// xdel is somebody else who deletes an entry.
func (w *world) xdel(key string, i int) {
	s := w.streams[key]
	w.forgive(key, s.entries[i].ID)
	if s.deleted.Compare(s.entries[i].ID) < 0 {
		s.deleted = s.entries[i].ID
	}
	s.entries = slices.Delete(s.entries, i, i+1)
}

// xtrim is somebody else who deletes the first n entries.
func (w *world) xtrim(key string, n int) {
	s := w.streams[key]
	for _, e := range s.entries[:n] {
		w.forgive(key, e.ID)
	}
	s.entries = slices.Delete(s.entries, 0, n)
}

// del is somebody else who deletes a stream.
func (w *world) del(key string) {
	delete(w.streams, key)
	for _, id := range w.log[key] {
		w.forgive(key, id)
	}
}

// forgive notes that a message need not be there any more.
func (w *world) forgive(key string, id segment.ID) { w.forgiven[key+" "+id.String()] = true }

func (w *world) put(p segment.Partition, field, raw string) {
	if w.manifests[p] == nil {
		w.manifests[p] = map[string]string{}
	}
	w.manifests[p][field] = raw
}

func (w *world) entry(p segment.Partition, n segment.Number) segment.Entry {
	w.t.Helper()
	e, err := segment.ParseEntry([]byte(w.manifests[p][n.String()]))
	if err != nil {
		w.t.Fatalf("entry %s/%s: %v", p, n, err)
	}
	return e
}

// call runs a port's body between its two hooks.
func (w *world) call(ctx context.Context, name string, body func() error) error {
	if gate, ok := ctx.Value(gateKey{}).(*gate); ok {
		gate.pass()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.hook("before " + name); err != nil {
		return err
	}
	w.calls = append(w.calls, name)
	if err := body(); err != nil {
		return err
	}
	if err := w.hook("after " + name); err != nil {
		return err
	}
	return ctx.Err()
}

// made counts the calls whose name begins with a prefix.
func (w *world) made(prefix string) int {
	n := 0
	for _, c := range w.calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// firstCall is when a call was made first; a large number if never.
func (w *world) firstCall(name string) int {
	if i := slices.Index(w.calls, name); i >= 0 {
		return i
	}
	return len(w.calls)
}

func (w *world) ports() Ports {
	return Ports{Registry: w, Known: w, Manifests: w, Streams: w, Removals: w, Clock: w, Encoding: fakeEncoding{w}, Store: w}
}

// worker is a new process on this world.
func (w *world) worker(change ...func(*Config)) *Worker {
	cfg := DefaultConfig()
	cfg.SpoolDir, cfg.SpoolMemory, cfg.Roll = w.dir, 4<<20, false
	for _, c := range change {
		c(&cfg)
	}
	if errs := cfg.Validate(); len(errs) > 0 {
		w.t.Fatal(errs)
	}
	worker := New(cfg, segment.DefaultLayout(), w.ports(), nobody{})
	worker.jitter = func() float64 { return 0 }
	worker.parked.jitter = worker.jitter
	worker.now, worker.parked.now = w.clock, w.clock
	worker.piece = int64(w.pageLen)
	return worker
}

// clock is this host's, in step with that of Redis.
func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

type nobody struct{}

func (nobody) Planned(Plan)      {}
func (nobody) Advanced(int, int) {}
func (nobody) Finished(Outcome)  {}
func (nobody) Failed(Problem)    {}
