package restore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/testkit/memstore"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	orders  = segment.Partition{Topic: "orders"}
	plain   = segment.Partition{Topic: "events", Plain: true}
	errKill = errors.New("killed")
)

// world is a Redis in memory, with a store, which dies at any call that a test
// says.
type world struct {
	t      *testing.T
	layout segment.Layout
	store  *memstore.Store

	manifests map[segment.Partition]map[string]string
	streams   map[string]*stream
	texts     map[string]bool // keys of another type
	now       time.Time
	used      int64
	most      int64
	evicts    string

	calls  int
	dies   int           // at which call; 0 = never
	done   bool          // that call is done before it dies
	once   bool          // only that call fails
	lacks  int64         // so many fields of a manifest did not come
	open   int           // readers
	spoilt bool          // an append was refused
	hides  func(*Object) // what the store does not tell
	before func(string)  // is told of each call
	pace   int           // bytes that were paced
}

type stream struct {
	entries []dataset.Entry
	last    segment.ID
	added   int64
	deleted segment.ID
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, layout: segment.DefaultLayout(), store: memstore.New(s3sink.Owner{Namespace: "korvet"}),
		manifests: map[segment.Partition]map[string]string{}, streams: map[string]*stream{}, texts: map[string]bool{},
		now: time.UnixMilli(1_800_000_000_000), before: func(string) {}}
	t.Cleanup(func() {
		if w.open != 0 {
			t.Errorf("%d readers are open", w.open)
		}
	})
	return w
}

func (w *world) restorer() *Restorer {
	return New(Ports{Manifests: w, Streams: w, Server: w, Objects: objects{w.store, w}, Temp: TempIn(w.t.TempDir()),
		Pace: func(_ context.Context, n int) error { w.pace += n; return nil }}, w.layout)
}

// call is one call of a port: its effect takes place or not, as the test says.
func (w *world) call(what string, effect func()) error {
	w.before(what)
	w.calls++
	if w.dies > 0 && w.calls > w.dies && !w.once || w.calls == w.dies && !w.done {
		return errKill
	}
	effect()
	if w.calls == w.dies {
		return errKill
	}
	return nil
}

func (w *world) Each(_ context.Context, p segment.Partition, take func(field, value string)) (n int64, err error) {
	err = w.call("each", func() {
		for f, v := range w.manifests[p] {
			take(f, v)
		}
		n = int64(len(w.manifests[p])) + w.lacks
	})
	return n, err
}

func (w *world) Entry(_ context.Context, p segment.Partition, n segment.Number) (raw string, err error) {
	err = w.call("entry", func() { raw = w.manifests[p][n.String()] })
	return raw, err
}

func (w *world) Change(_ context.Context, p segment.Partition, c segment.Change) (ok bool, err error) {
	err = w.call("change", func() {
		m := w.manifests[p]
		if m == nil {
			m = map[string]string{}
			w.manifests[p] = m
		}
		_, taken := m[c.Next.String()]
		if m[c.Number.String()] != c.Old || c.Open != "" && taken {
			return
		}
		m[c.Number.String()] = c.New
		if c.New == "" {
			delete(m, c.Number.String())
		}
		if c.Open != "" {
			m[c.Next.String()] = c.Open
		}
		ok = true
	})
	return ok, err
}

func (w *world) info(key string) segment.StreamInfo {
	s := w.streams[key]
	if s == nil {
		return segment.StreamInfo{}
	}
	is := segment.StreamInfo{Exists: true, Length: int64(len(s.entries)), LastID: s.last, EntriesAdded: s.added, MaxDeletedID: s.deleted}
	if len(s.entries) > 0 {
		is.FirstID = s.entries[0].ID
	}
	return is
}

func (w *world) StreamInfo(_ context.Context, key string) (is segment.StreamInfo, err error) {
	err = w.call("info", func() { is = w.info(key) })
	if w.texts[key] {
		err = segment.ErrWrongType
	}
	return is, err
}

func (w *world) Sizes(_ context.Context, q []segment.SizeQuery) (all []segment.StreamSize, err error) {
	err = w.call("sizes", func() {
		for _, s := range q {
			size := segment.StreamSize{Length: w.info(s.Key).Length}
			if w.texts[s.Key] {
				size.Err = segment.ErrWrongType
			}
			all = append(all, size)
		}
	})
	return all, err
}

// add is XADD of somebody.
func (w *world) add(key string, all ...dataset.Entry) {
	if w.streams[key] == nil {
		w.streams[key] = new(stream)
	}
	s := w.streams[key]
	for _, e := range all {
		if e.ID.Compare(s.last) <= 0 {
			w.t.Fatalf("XADD %s %s: it has %s", key, e.ID, s.last)
		}
		s.entries, s.last = append(s.entries, e), e.ID
		s.added++
	}
}

func (w *world) Append(_ context.Context, key string, length int64, last segment.ID, p *segment.Page) (ok bool, err error) {
	for i := range p.Len() {
		if p.Len() > 1 && w.Alone(p, i) {
			w.t.Errorf("%d entries in one step, and one has to be alone", p.Len())
		}
	}
	if p.Len() > batchEntries || p.Len() > 1 && p.Bytes() > 2*batchBytes || w.spoilt {
		w.t.Errorf("%d entries of %d bytes in one step; one before was refused: %t", p.Len(), p.Bytes(), w.spoilt)
	}
	err = w.call("append", func() {
		w.spoilt = true
		if is := w.info(key); is.Length != length || is.LastID != last {
			return
		}
		w.add(key, dataset.Entries(p)...)
		ok, w.spoilt = true, false
	})
	return ok, err
}

func (w *world) Alone(p *segment.Page, i int) bool {
	lo, hi := p.Fields(i)
	return hi-lo > 3
}

type pages struct {
	w    *world
	all  []dataset.Entry
	from int
}

func (w *world) Pages(key string, _, _ segment.ID) segment.PageReader {
	r := &pages{w: w}
	w.open++
	if s := w.streams[key]; s != nil {
		r.all = s.entries
	}
	return r
}

func (r *pages) Next(_ context.Context, into *segment.Page) error {
	into.Reset()
	if err := r.w.call("page", func() {}); err != nil {
		return err
	}
	if r.from == len(r.all) {
		return io.EOF
	}
	n := min(7, len(r.all)-r.from)
	for _, e := range r.all[r.from : r.from+n] {
		into.Entry(e.ID)
		for _, f := range e.Fields {
			if err := into.Field(f.Name, f.Value); err != nil {
				return err
			}
		}
	}
	r.from += n
	return nil
}

func (r *pages) Close() error {
	r.w.open--
	return nil
}

func (w *world) Now(context.Context) (time.Time, error) { return w.now, w.call("now", func() {}) }

func (w *world) Room(context.Context) (used, most int64, err error) { return w.used, w.most, nil }

func (w *world) Evicts(context.Context) string { return w.evicts }

// objects is the store as restore wants it.
type objects struct {
	*memstore.Store
	w *world
}

func (o objects) Look(ctx context.Context, path string) (is Object, err error) {
	if err := o.w.call("look", func() {}); err != nil {
		return is, err
	}
	info, err := o.Stat(ctx, path)
	if errors.Is(err, s3sink.ErrMissing) {
		err = fmt.Errorf("%w: %w", ErrMissing, err)
	}
	is = Object{info.Size, info.ETag, info.SHA256}
	if o.w.hides != nil {
		o.w.hides(&is)
	}
	return is, err
}

func (o objects) Open(ctx context.Context, path string) (body io.ReadCloser, err error) {
	if err := o.w.call("open", func() {}); err != nil {
		return nil, err
	}
	return o.Store.Open(ctx, path)
}

// messages are n entries of a partition, the i-th second after a time of their own.
func messages(from, n int) (all []dataset.Entry) {
	for i := range n {
		e := dataset.Entry{ID: segment.ID{Ms: uint64(1_700_000_000_000 + 1000*(from+i)), Seq: uint64(i % 3)}}
		for j := range 1 + i%5 {
			e.Fields = append(e.Fields, dataset.Field{Name: fmt.Append(nil, "f", j%2), Value: fmt.Append(nil, "\x00", from+i)})
		}
		all = append(all, e)
	}
	return all
}

// put puts a file of a segment on the store, and returns what its entry tells.
func (w *world) put(p segment.Partition, n segment.Number, copied int64, suffix string, all []dataset.Entry) segment.Entry {
	w.t.Helper()
	return w.putAs(p, n, segment.ObjectPath(w.layout.Folder(p), n, copied, suffix), copied, all)
}

func (w *world) putAs(p segment.Partition, n segment.Number, path string, copied int64, all []dataset.Entry) segment.Entry {
	w.t.Helper()
	var b bytes.Buffer
	file := parquetfile.NewWriter(&b, parquetfile.FileID{StreamKey: w.layout.StreamKey(p), Segment: n})
	for _, page := range dataset.Pages(all, 100) {
		if err := file.Write(page); err != nil {
			w.t.Fatal(err)
		}
	}
	c, err := file.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	w.bytes(path, b.Bytes())
	sum := sha256.Sum256(b.Bytes())
	o := segment.Object{Path: path, Bytes: int64(b.Len()), SHA256: hex.EncodeToString(sum[:])}
	if info, err := w.store.Stat(w.t.Context(), path); err == nil {
		o.ETag = info.ETag
	}
	return segment.NewRemote(c, o, copied, 1)
}

func (w *world) bytes(path string, b []byte) {
	w.t.Helper()
	sum := sha256.Sum256(b)
	if _, err := w.store.Put(w.t.Context(), s3sink.Upload{Key: path, Body: bytes.NewReader(b), Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:])}); err != nil {
		w.t.Fatal(err)
	}
}

// write writes entries into a manifest.
func (w *world) write(p segment.Partition, n segment.Number, e segment.Entry) {
	if w.manifests[p] == nil {
		w.manifests[p] = map[string]string{}
	}
	w.manifests[p][n.String()] = string(e.Encode())
}

func (w *world) entryOf(p segment.Partition, n segment.Number) segment.Entry {
	w.t.Helper()
	e, err := segment.ParseEntry([]byte(w.manifests[p][n.String()]))
	if err != nil {
		w.t.Fatalf("entry %s/%s: %v", p, n, err)
	}
	return e
}

// three is a partition with three segments on the store, and what they hold.
func (w *world) three(p segment.Partition) []dataset.Entry {
	var all []dataset.Entry
	for n := range segment.Number(3) {
		part := messages(100*int(n), 20+int(n))
		w.write(p, n, w.put(p, n, 0, "", part))
		all = append(all, part...)
	}
	return all
}

// group is what the store has of a partition.
func (w *world) group(p segment.Partition) catalog.Group {
	w.t.Helper()
	g, err := catalog.List(w.t.Context(), w.store, w.layout, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func same(a, b []dataset.Entry) bool {
	return slices.EqualFunc(a, b, func(a, b dataset.Entry) bool {
		return a.ID == b.ID && slices.EqualFunc(a.Fields, b.Fields, func(a, b dataset.Field) bool {
			return bytes.Equal(a.Name, b.Name) && bytes.Equal(a.Value, b.Value)
		})
	})
}

// mustHold checks a stream.
func (w *world) mustHold(key string, want []dataset.Entry) {
	w.t.Helper()
	s := w.streams[key]
	if s == nil {
		s = new(stream)
	}
	if !same(s.entries, want) {
		w.t.Errorf("stream %s has %d entries that are not the %d that it should have", key, len(s.entries), len(want))
	}
}

// mustFail checks an error's text.
func mustFail(t *testing.T, name string, err error, want ...string) {
	t.Helper()
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", name, err, text)
		}
	}
}
