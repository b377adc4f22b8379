package offload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
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
	t *testing.T

	mu        sync.Mutex
	now       time.Time
	topics    []segment.Topic
	manifests map[segment.Partition]map[string]string
	streams   map[string]*fakeStream
	objects   map[string]fakeObject
	calls     []string
	hook      func(call string) error // before and after each call, with mu held

	createOnly bool // what the store can do
	pageLen    int
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
}

func newWorld(t *testing.T) *world {
	return &world{t: t, now: time.UnixMilli(1_000_000_000_000), createOnly: true, pageLen: 3,
		manifests: map[segment.Partition]map[string]string{}, streams: map[string]*fakeStream{}, objects: map[string]fakeObject{},
		hook: func(string) error { return nil }}
}

// topic declares an offloaded topic.
func (w *world) topic(name string, partitions int) {
	s := segment.DefaultTopicSettings()
	s.RemoteStorage, s.Partitions = true, partitions
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

func (w *world) xadd(key string, id segment.ID) {
	s := w.streams[key]
	if s == nil {
		s = &fakeStream{}
		w.streams[key] = s
	}
	s.entries = append(s.entries, fakeEntry{ID: id, Fields: [][2]string{{"f", key}, {"f", id.String()}}})
	s.last, s.added = id, s.added+1
}

func (w *world) xdel(key string, i int) {
	s := w.streams[key]
	s.deleted = s.entries[i].ID
	s.entries = slices.Delete(s.entries, i, i+1)
}

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
	return Ports{Registry: w, Manifests: w, Streams: w, Clock: w, Encoding: fakeEncoding{w}, Store: w}
}

// worker is a new process on this world.
func (w *world) worker(change ...func(*Config)) *Worker {
	cfg := DefaultConfig()
	cfg.SpoolDir, cfg.SpoolMemory = w.t.TempDir(), 4<<20
	for _, c := range change {
		c(&cfg)
	}
	if errs := cfg.Validate(); len(errs) > 0 {
		w.t.Fatal(errs)
	}
	worker := New(cfg, segment.DefaultLayout(), w.ports(), nobody{})
	worker.parked.jitter = func() float64 { return 0 }
	return worker
}

type nobody struct{}

func (nobody) Planned(Plan)      {}
func (nobody) Advanced(int, int) {}
func (nobody) Finished(Outcome)  {}
func (nobody) Failed(Problem)    {}

// Redis.

func (w *world) Now(ctx context.Context) (now time.Time, err error) {
	err = w.call(ctx, "now", func() error { now = w.now; return nil })
	return now, err
}

func (w *world) Topics(ctx context.Context) (topics []segment.Topic, err error) {
	err = w.call(ctx, "topics", func() error { topics = slices.Clone(w.topics); return nil })
	return topics, err
}

func (w *world) Manifest(ctx context.Context, p segment.Partition) (m segment.Manifest, err error) {
	err = w.call(ctx, "manifest "+p.String(), func() error {
		var pairs []string
		for field, raw := range w.manifests[p] {
			pairs = append(pairs, field, raw)
		}
		m = segment.ParseManifest(p, pairs)
		return nil
	})
	return m, err
}

func (w *world) Swap(ctx context.Context, p segment.Partition, n segment.Number, old, new string) (ok bool, err error) {
	err = w.call(ctx, fmt.Sprintf("swap %s/%s", p, n), func() error {
		if ok = w.manifests[p][n.String()] == old; ok {
			w.manifests[p][n.String()] = new
		}
		return nil
	})
	return ok, err
}

func (w *world) StreamInfo(ctx context.Context, key string) (info StreamInfo, err error) {
	err = w.call(ctx, "info "+key, func() error {
		if s := w.streams[key]; s != nil {
			info = StreamInfo{Exists: true, Length: int64(len(s.entries)), LastID: s.last, EntriesAdded: s.added, MaxDeletedID: s.deleted}
		}
		return nil
	})
	return info, err
}

func (w *world) Pages(key string) PageReader { return &fakePages{w: w, key: key} }

type fakePages struct {
	w      *world
	key    string
	last   segment.ID
	closed bool
}

func (r *fakePages) Next(ctx context.Context, into *segment.Page) error {
	into.Reset()
	err := r.w.call(ctx, "page "+r.key, func() error {
		s := r.w.streams[r.key]
		if s == nil {
			return nil
		}
		for _, e := range s.entries {
			if e.ID.Compare(r.last) <= 0 {
				continue
			}
			if into.Len() == r.w.pageLen {
				break
			}
			into.Entry(e.ID)
			for _, f := range e.Fields {
				if err := into.Field([]byte(f[0]), []byte(f[1])); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if into.Len() == 0 {
		return io.EOF
	}
	r.last = into.ID(into.Len() - 1)
	return nil
}

func (r *fakePages) Close() error {
	if r.closed {
		r.w.t.Errorf("the reader of %s was closed twice", r.key)
	}
	r.closed = true
	return nil
}

// The store.

func (w *world) CreateOnly(ctx context.Context) (ok bool, err error) {
	err = w.call(ctx, "createonly", func() error { ok = w.createOnly; return nil })
	return ok, err
}

func (w *world) Put(ctx context.Context, u Upload) (info ObjectInfo, err error) {
	body, err := io.ReadAll(io.NewSectionReader(u.Body, 0, u.Size))
	if err != nil {
		return info, err
	}
	err = w.call(ctx, "put "+u.Path, func() error {
		if _, taken := w.objects[u.Path]; taken && w.createOnly {
			return fmt.Errorf("put %s: %w", u.Path, ErrObjectExists)
		}
		sum := sha256.Sum256(body)
		if hex.EncodeToString(sum[:]) != u.SHA256 {
			return errors.New("checksum does not match the body")
		}
		o := fakeObject{body: body, meta: u.Meta, sha: u.SHA256}
		w.objects[u.Path] = o
		info = o.info()
		return nil
	})
	return info, err
}

func (o fakeObject) info() ObjectInfo {
	return ObjectInfo{Size: int64(len(o.body)), ETag: "etag", SHA256: o.sha, Meta: o.meta}
}

func (w *world) Stat(ctx context.Context, path string) (info ObjectInfo, err error) {
	err = w.call(ctx, "stat "+path, func() error {
		o, ok := w.objects[path]
		if !ok {
			return fmt.Errorf("stat %s: %w", path, ErrObjectMissing)
		}
		info = o.info()
		return nil
	})
	return info, err
}

func (w *world) Open(ctx context.Context, path string) (body io.ReadCloser, err error) {
	err = w.call(ctx, "open "+path, func() error {
		o, ok := w.objects[path]
		if !ok {
			return fmt.Errorf("open %s: %w", path, ErrObjectMissing)
		}
		body = io.NopCloser(bytes.NewReader(o.body))
		return nil
	})
	return body, err
}

// fakeEncoding writes JSON: what is under test is the order of steps, not the
// file format.
type fakeEncoding struct{ w *world }

type fakeFile struct {
	Of      FileOf
	Entries []fakeEntry
}

func (f fakeFile) contents() segment.Contents {
	c := segment.Contents{Count: int64(len(f.Entries))}
	if c.Count > 0 {
		c.FirstID, c.LastID = f.Entries[0].ID, f.Entries[c.Count-1].ID
	}
	return c
}

type fakeEncoder struct {
	world *world
	to    io.Writer
	file  fakeFile
}

func (f fakeEncoding) NewEncoder(w io.Writer, of FileOf) Encoder {
	return &fakeEncoder{world: f.w, to: w, file: fakeFile{Of: of}}
}

func (e *fakeEncoder) Write(p *segment.Page) error {
	e.world.mu.Lock()
	defer e.world.mu.Unlock()
	if err := e.world.hook("encode " + e.file.Of.StreamKey + "/" + e.file.Of.Segment.String()); err != nil {
		return err
	}
	for i := range p.Len() {
		entry := fakeEntry{ID: p.ID(i)}
		for lo, hi := p.Fields(i); lo < hi; lo++ {
			entry.Fields = append(entry.Fields, [2]string{string(p.Name(lo)), string(p.Value(lo))})
		}
		e.file.Entries = append(e.file.Entries, entry)
	}
	return nil
}

func (e *fakeEncoder) Close() (segment.Contents, error) {
	return e.file.contents(), json.NewEncoder(e.to).Encode(e.file)
}

func (f fakeEncoding) Check(r io.ReaderAt, size int64, of FileOf) (segment.Contents, error) {
	file, err := readFake(io.NewSectionReader(r, 0, size))
	if err != nil {
		return segment.Contents{}, err
	}
	if file.Of != of {
		return segment.Contents{}, fmt.Errorf("a file of %v", file.Of)
	}
	return file.contents(), nil
}

func readFake(r io.Reader) (f fakeFile, err error) {
	return f, json.NewDecoder(r).Decode(&f)
}

// mustHold checks what must hold after any schedule: every acknowledged entry
// is where a reader would look, exactly once.
func (w *world) mustHold(acked map[string][]segment.ID) {
	w.t.Helper()
	named := map[string]bool{}
	for p, manifest := range w.manifests {
		for field, raw := range manifest {
			e, err := segment.ParseEntry([]byte(raw))
			if err != nil {
				continue
			}
			n, err := segment.ParseNumber(field)
			if err != nil {
				w.t.Fatal(err)
			}
			key := segment.DefaultLayout().SegmentKey(p, n)
			if got := w.visible(e, key, named); !slices.Equal(got, acked[key]) {
				w.t.Errorf("%s %s: a reader finds %v, and %v were acknowledged", key, e.Tier, got, acked[key])
			}
		}
	}
	for path := range w.objects {
		if !named[path] {
			w.calls = append(w.calls, "unnamed "+path)
		}
	}
}

func (w *world) visible(e segment.Entry, key string, named map[string]bool) []segment.ID {
	var ids []segment.ID
	if e.Tier == segment.Local {
		if s := w.streams[key]; s != nil {
			for _, entry := range s.entries {
				ids = append(ids, entry.ID)
			}
		}
		return ids
	}
	named[e.Object.Path] = true
	file, err := readFake(bytes.NewReader(w.objects[e.Object.Path].body))
	if err != nil {
		w.t.Errorf("object %s of a REMOTE entry: %v", e.Object.Path, err)
	}
	for _, entry := range file.Entries {
		ids = append(ids, entry.ID)
	}
	return ids
}

// acked is the ledger of what the streams hold now.
func (w *world) acked() map[string][]segment.ID {
	ledger := map[string][]segment.ID{}
	for key, s := range w.streams {
		for _, e := range s.entries {
			ledger[key] = append(ledger[key], e.ID)
		}
	}
	return ledger
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
