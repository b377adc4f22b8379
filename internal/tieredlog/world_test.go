package tieredlog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// msg is a message; its payload is unique in the world.
type msg struct {
	id      segment.ID
	payload string
}

// stream is a stream of the fake Redis.
type stream struct {
	all        []msg
	last       segment.ID
	added      int64
	maxDeleted segment.ID
}

// world is a Redis and a store in memory, with a broker and a worker that take
// a step now and then, between any two calls of the reader.
type world struct {
	t         testing.TB
	random    *rand.Rand
	partition segment.Partition
	layout    segment.Layout
	entries   map[segment.Number]segment.Entry
	raw       map[segment.Number]string // what differs from the entry: an illegal one
	streams   map[string]*stream
	objects   map[string][]byte

	clock    uint64
	serial   int
	where    map[string]segment.Number // payload -> segment
	ids      map[string]segment.ID
	optional map[string]bool // payload may be missing: deleted by somebody, or hidden

	busy    int // a step happens at one call in busy; 0 = never
	infos   int // calls of StreamInfo
	peeks   int // calls of Peek
	opened  []string
	no70    bool // the server does not tell what is told since 7.0
	pageLen int
}

func newWorld(t testing.TB, seed uint64, p segment.Partition) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), partition: p, layout: segment.DefaultLayout(), clock: 1_700_000_000_000,
		entries: map[segment.Number]segment.Entry{}, raw: map[segment.Number]string{}, streams: map[string]*stream{}, objects: map[string][]byte{},
		where: map[string]segment.Number{}, ids: map[string]segment.ID{}, optional: map[string]bool{}, pageLen: 3}
	if p.Plain {
		w.streams[p.Topic] = new(stream)
		w.entries[0] = segment.NewOpenRange("", segment.ID{Seq: 1}, segment.Source{}, int64(w.clock))
	} else {
		w.entries[0] = segment.NewOpen("", int64(w.clock))
	}
	return w
}

func (w *world) log() *Log { return New(w.layout, Ports{w, w, w}) }

func (w *world) key(n segment.Number) string { return w.layout.SegmentKey(w.partition, n) }

// numbers are those of the segments, in order.
func (w *world) numbers() []segment.Number { return slices.Sorted(maps.Keys(w.entries)) }

// append puts a message into the stream of a segment.
func (w *world) append(n segment.Number) {
	s := w.streams[w.key(n)]
	if s == nil {
		s = new(stream)
		w.streams[w.key(n)] = s
	}
	w.clock += uint64(w.random.IntN(3))
	id := segment.ID{Ms: w.clock}
	if s.last.Compare(id) >= 0 {
		id, _ = s.last.Next()
	}
	w.serial++
	m := msg{id, strconv.Itoa(w.serial)}
	s.all, s.last, s.added = append(s.all, m), id, s.added+1
	w.where[m.payload], w.ids[m.payload] = n, id
}

func (s *stream) info(no70 bool) segment.StreamInfo {
	if s == nil {
		return segment.StreamInfo{}
	}
	i := segment.StreamInfo{Exists: true, Length: int64(len(s.all)), LastID: s.last, EntriesAdded: s.added, MaxDeletedID: s.maxDeleted}
	if len(s.all) > 0 {
		i.FirstID = s.all[0].id
	}
	if no70 {
		i.EntriesAdded, i.MaxDeletedID = -1, segment.ID{}
	}
	return i
}

// of are the messages of a segment that are in Redis.
func (w *world) of(n segment.Number) []msg {
	s := w.streams[w.key(n)]
	if s == nil {
		return nil
	}
	e := w.entries[n]
	return slices.DeleteFunc(slices.Clone(s.all), func(m msg) bool {
		return m.id.Compare(e.From) < 0 || !e.To.IsZero() && m.id.Compare(e.To) > 0
	})
}

func contents(all []msg) segment.Contents {
	if len(all) == 0 {
		return segment.Contents{}
	}
	return segment.Contents{FirstID: all[0].id, LastID: all[len(all)-1].id, Count: int64(len(all))}
}

func (w *world) must(e segment.Entry, err error) segment.Entry {
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// roll seals the open segment.
func (w *world) roll() {
	all := w.numbers()
	n := all[len(all)-1]
	e, has := w.entries[n], w.of(n)
	if len(has) == 0 || e.State != segment.Open {
		return
	}
	if w.partition.Plain { // what has piled up is cut
		has = has[:1+w.random.IntN(len(has))]
	}
	w.entries[n] = w.must(e.Seal(contents(has), int64(w.clock)))
	if w.partition.Plain {
		from, _ := contents(has).LastID.Next()
		for payload, in := range w.where {
			if in == n && w.ids[payload].Compare(from) >= 0 {
				w.where[payload] = n + 1
			}
		}
		w.entries[n+1] = segment.NewOpenRange("", from, segment.Source{}, int64(w.clock))
	} else {
		w.entries[n+1] = segment.NewOpen("", int64(w.clock))
	}
}

// file is the object of a segment.
func (w *world) file(n segment.Number, all []msg) []byte {
	var b bytes.Buffer
	enc := parquetfile.NewWriter(&b, parquetfile.FileID{StreamKey: w.layout.StreamKey(w.partition), Segment: n})
	p := new(segment.Page)
	fill(p, all)
	if err := enc.Write(p); err != nil {
		w.t.Fatal(err)
	}
	if _, err := enc.Close(); err != nil {
		w.t.Fatal(err)
	}
	return b.Bytes()
}

func fill(p *segment.Page, all []msg) {
	p.Reset()
	for _, m := range all {
		p.Entry(m.id)
		_ = p.Field([]byte("value"), []byte(m.payload)) // it is small
	}
}

// copy makes a sealed segment REMOTE.
func (w *world) copy(n segment.Number) {
	e := w.entries[n]
	if e.State != segment.Sealed || e.Tier != segment.Local {
		return
	}
	all := w.of(n)
	if len(all) == 0 && e.Count != 0 {
		return
	}
	path := segment.ObjectPath(w.layout.Folder(w.partition), n, e.Copy, "")
	w.objects[path] = w.file(n, all)
	w.entries[n] = w.must(e.Flip(contents(all), w.streams[w.key(n)].info(w.no70), segment.Object{Path: path, Bytes: int64(len(w.objects[path]))}, int64(w.clock)))
}

// drop takes one step towards GONE, or back to LOCAL.
func (w *world) drop(n segment.Number) {
	e := w.entries[n]
	if e.State != segment.Sealed || e.Tier != segment.Remote || e.Local == segment.Gone {
		return
	}
	s := w.streams[w.key(n)]
	late := s != nil && !e.Shared() && s.last.Compare(e.LastID) > 0
	switch {
	case late:
		w.entries[n] = w.must(e.Recopy())
	case e.Local == segment.Present:
		w.entries[n] = w.must(e.Drop())
	case s == nil:
		w.entries[n] = w.must(e.Dropped())
	case e.Shared():
		w.trim(n)
	default:
		delete(w.streams, w.key(n))
	}
}

// trim removes a piece of a range, where nothing lies before it.
func (w *world) trim(n segment.Number) {
	s, e := w.streams[w.key(n)], w.entries[n]
	if n > 0 && w.entries[n-1].State != "" && w.entries[n-1].Local != segment.Gone {
		return
	}
	piece := min(len(w.of(n)), 1+w.random.IntN(3))
	if s.all = s.all[piece:]; len(w.of(n)) == 0 {
		w.entries[n] = w.must(e.Dropped())
	}
}

// expire hides the first segment, then deletes its object, then its entry.
func (w *world) expire() {
	n := w.numbers()[0]
	e := w.entries[n]
	switch {
	case e.State == segment.Deleting && w.objects[e.Object.Path] != nil:
		delete(w.objects, e.Object.Path)
	case e.State == segment.Deleting:
		delete(w.entries, n)
	case e.Local == segment.Gone:
		w.entries[n] = w.must(e.Delete(segment.StreamInfo{}, int64(w.clock)))
		for payload, in := range w.where {
			if in == n {
				w.optional[payload] = true
			}
		}
	}
}

// xdel deletes a message by its id.
func (w *world) xdel(n segment.Number) {
	all := w.of(n)
	if len(all) < 2 {
		return
	}
	m := all[w.random.IntN(len(all))]
	s := w.streams[w.key(n)]
	s.all = slices.DeleteFunc(s.all, func(o msg) bool { return o == m })
	if s.maxDeleted.Compare(m.id) < 0 {
		s.maxDeleted = m.id
	}
	w.optional[m.payload] = true
}

// collect deletes objects that no entry names.
func (w *world) collect() {
	named := map[string]bool{}
	for _, e := range w.entries {
		if e.Object != nil {
			named[e.Object.Path] = true
		}
	}
	maps.DeleteFunc(w.objects, func(path string, _ []byte) bool { return !named[path] })
}

// step does one thing somewhere.
func (w *world) step() {
	all := w.numbers()
	n := all[w.random.IntN(len(all))]
	last := all[len(all)-1]
	switch w.random.IntN(12) {
	case 0, 1, 2:
		w.append(last)
	case 3:
		if e := w.entries[n]; e.State == segment.Sealed && w.streams[w.key(n)] != nil && !w.partition.Plain {
			w.append(n) // late
		}
	case 4:
		w.roll()
	case 5, 6:
		w.copy(n)
	case 7, 8, 9:
		w.drop(n)
	case 10:
		w.collect()
		w.expire()
	case 11:
		if w.random.IntN(4) == 0 {
			w.xdel(n)
		}
	}
}

func (w *world) interleave() {
	for w.busy > 0 && w.random.IntN(w.busy) == 0 {
		w.step()
	}
}

// Each implements Manifests.
func (w *world) Each(_ context.Context, _ segment.Partition, take func(field, value string)) (int64, error) {
	w.interleave()
	for n := range w.entries {
		take(n.String(), w.value(n))
	}
	return int64(len(w.entries)), nil
}

func (w *world) value(n segment.Number) string {
	if raw := w.raw[n]; raw != "" {
		return raw
	}
	e, there := w.entries[n]
	if !there {
		return ""
	}
	return string(e.Encode())
}

// Peek implements Manifests.
func (w *world) Peek(_ context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	w.interleave()
	w.peeks++
	return []segment.Peeked{{Raw: []string{w.value(q[0].Numbers[0])}, Fields: int64(len(w.entries))}}, nil
}

// StreamInfo implements Streams.
func (w *world) StreamInfo(_ context.Context, key string) (segment.StreamInfo, error) {
	w.interleave()
	w.infos++
	return w.streams[key].info(w.no70), nil
}

// Pages implements Streams.
func (w *world) Pages(key string, from, to segment.ID) segment.PageReader {
	return &pages{w, key, from, to}
}

type pages struct {
	w        *world
	key      string
	from, to segment.ID
}

func (r *pages) Next(_ context.Context, into *segment.Page) error {
	r.w.interleave()
	into.Reset()
	s := r.w.streams[r.key]
	var page []msg
	for i := 0; s != nil && i < len(s.all) && len(page) < 1+r.w.random.IntN(r.w.pageLen); i++ {
		if m := s.all[i]; m.id.Compare(r.from) >= 0 && m.id.Compare(r.to) <= 0 {
			page = append(page, m)
		}
	}
	if len(page) == 0 {
		return io.EOF
	}
	r.from, _ = page[len(page)-1].id.Next()
	fill(into, page)
	return nil
}

func (r *pages) Close() error { return nil }

// OpenObject implements Objects.
func (w *world) OpenObject(_ context.Context, o segment.Object) (Object, error) {
	w.interleave()
	w.opened = append(w.opened, o.Path)
	b, there := w.objects[o.Path]
	if !there {
		return nil, fmt.Errorf("get %s: %w", o.Path, ErrMissing)
	}
	return file{bytes.NewReader(b)}, nil
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }
