package objectfile_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"korvet-offload/internal/objectfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is a store of one object that notes what it is asked for.
type object struct {
	body []byte

	mu    sync.Mutex
	asked []objectfile.Extent
	under int                                                  // bodies that are open
	most  int                                                  // of them at a time
	spoil func(n int, body io.Reader) io.Reader                // of the n-th request, from 1; may be nil
	gate  func(ctx context.Context, e objectfile.Extent) error // before the body; may be nil
}

func newObject(size int) *object {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(b) // it never fails
	return &object{body: b}
}

func (o *object) OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error) {
	if key != "key" {
		return nil, errors.New("no such object")
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	o.mu.Lock()
	e := objectfile.Extent{At: offset, Size: n}
	o.asked = append(o.asked, e)
	o.under++
	o.most = max(o.most, o.under)
	count, gate, spoil := len(o.asked), o.gate, o.spoil
	o.mu.Unlock()
	if gate != nil {
		if err := gate(ctx, e); err != nil {
			o.closed()
			return nil, err
		}
	}
	var body io.Reader = bytes.NewReader(o.body[offset:min(offset+n, int64(len(o.body)))])
	if spoil != nil {
		body = spoil(count, body)
	}
	return &openBody{body, o}, nil
}

func (o *object) closed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.under--
}

// requests are those so far.
func (o *object) requests() []objectfile.Extent {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

type openBody struct {
	io.Reader
	of *object
}

func (b *openBody) Close() error { b.of.closed(); return nil }

func open(t testing.TB, o *object, opts ...objectfile.Option) *objectfile.Reader {
	t.Helper()
	r := objectfile.New(t.Context(), o, "key", int64(len(o.body)), opts...)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if o.under != 0 {
			t.Errorf("%d bodies are left open", o.under)
		}
	})
	return r
}

// expect reads and compares.
func expect(t interface {
	Helper()
	Fatalf(string, ...any)
}, r io.ReaderAt, body []byte, at, n int) {
	t.Helper()
	b := make([]byte, n)
	got, err := r.ReadAt(b, int64(at))
	want := body[min(at, len(body)):min(at+n, len(body))]
	if (err != nil) != (len(want) < n || at == len(body)) || err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("read %d at %d of %d: %d bytes, %v", n, at, len(body), got, err)
	}
	if got != len(want) || !bytes.Equal(b[:got], want) {
		t.Fatalf("read %d at %d: other bytes, or %d of %d", n, at, got, len(want))
	}
}

func TestIsAReaderAt(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 200 << 10} {
		o := newObject(size)
		r := open(t, o)
		if err := iotest.TestReader(io.NewSectionReader(r, 0, int64(size)), o.body); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if r.Size() != int64(size) {
			t.Errorf("size %d, want %d", r.Size(), size)
		}
		if n := len(o.requests()); size <= 64<<10 && n > 1 {
			t.Errorf("%d bytes: %d requests", size, n)
		}
	}
	r := open(t, newObject(10))
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative offset is no error")
	}
}

// The end of an object is one request, whatever of it is read.
func TestTail(t *testing.T) {
	o := newObject(32 << 20)
	r := open(t, o)
	end := len(o.body)
	expect(t, r, o.body, end-8, 8)
	expect(t, r, o.body, end-50_000, 49_000)
	expect(t, r, o.body, end-128<<10, 1)
	if got := o.requests(); len(got) != 1 || got[0].Size != 128<<10 {
		t.Errorf("requests %v", got)
	}
	if s := r.Stats(); s != (objectfile.Stats{Requests: 1, Bytes: 128 << 10}) {
		t.Errorf("stats %+v", s)
	}
}

// A footer that is larger than was thought takes one request more, once.
func TestTailGrows(t *testing.T) {
	o := newObject(1 << 20)
	r := open(t, o)
	end := len(o.body)
	expect(t, r, o.body, end-8, 8)
	for range 2 {
		expect(t, r, o.body, end-300_000, 300_000-8)
		expect(t, r, o.body, end-300_000, 1000)
	}
	if got, want := r.Stats(), (objectfile.Stats{Requests: 2, Bytes: 300_000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What was announced does not make the tail grow, and its end comes from there.
func TestAnnouncedIsNotTail(t *testing.T) {
	o := newObject(1 << 20)
	r := open(t, o)
	end := len(o.body)
	expect(t, r, o.body, end-8, 8)
	r.Want([]objectfile.Extent{{At: 0, Size: int64(end - 100)}})
	expect(t, r, o.body, 0, end-100)
	if got, want := r.Stats(), (objectfile.Stats{Requests: 2, Bytes: int64(end)}); got != want {
		t.Errorf("%+v, want %+v: each byte once", got, want)
	}
}

func TestWantMerges(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		want []objectfile.Extent
		asks []objectfile.Extent
	}{
		{"neighbours", []objectfile.Extent{{At: 0, Size: 10}, {At: 10, Size: 5}}, []objectfile.Extent{{At: 0, Size: 15}}},
		{"a small gap", []objectfile.Extent{{At: 0, Size: 10}, {At: 200_000, Size: 5}}, []objectfile.Extent{{At: 0, Size: 200_005}}},
		{"a large gap", []objectfile.Extent{{At: 0, Size: 10}, {At: mib, Size: 5}}, []objectfile.Extent{{At: 0, Size: 10}, {At: mib, Size: 5}}},
		{"backwards", []objectfile.Extent{{At: 100, Size: 10}, {At: 0, Size: 10}}, []objectfile.Extent{{At: 0, Size: 10}, {At: 100, Size: 10}}},
		{"pieces", []objectfile.Extent{{At: 5, Size: 9 * mib}}, []objectfile.Extent{{At: 5, Size: 4 * mib}, {At: 5 + 4*mib, Size: 4 * mib}, {At: 5 + 8*mib, Size: mib}}},
		{"nothing", []objectfile.Extent{{At: 5, Size: 0}, {At: 6, Size: -1}, {At: -3, Size: 2}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newObject(32 * mib)
			r := open(t, o)
			r.Want(c.want)
			for _, e := range c.want {
				if e.Size > 0 && e.At >= 0 {
					expect(t, r, o.body, int(e.At), int(e.Size))
				}
			}
			got := o.requests()
			slices.SortFunc(got, func(a, b objectfile.Extent) int { return int(a.At - b.At) })
			if !slices.Equal(got, c.asks) {
				t.Errorf("requests %v, want %v", got, c.asks)
			}
		})
	}
}

// Reading ahead is bounded, and goes on as what was read is given back.
func TestReadAheadIsBounded(t *testing.T) {
	const piece = 4 << 20
	o := newObject(10 * piece)
	started := make(chan struct{}, 10)
	o.gate = func(context.Context, objectfile.Extent) error { started <- struct{}{}; return nil }
	r := open(t, o)
	r.Want([]objectfile.Extent{{At: 0, Size: 9 * piece}})
	for range 3 {
		<-started
	}
	for i := range 9 {
		if n := len(o.requests()); n > i+3 {
			t.Fatalf("%d pieces are asked for when %d are read", n, i)
		}
		expect(t, r, o.body, i*piece, piece-1)
		expect(t, r, o.body, (i+1)*piece-1, 1)
	}
	if s := r.Stats(); s.Requests != 9 || s.Bytes != 9*piece || o.most > 2 {
		t.Errorf("%+v, %d at a time", s, o.most)
	}
}

// Whatever is announced and read, in whatever order, the bytes are right.
func TestReadsAreRight(t *testing.T) {
	o := newObject(6 << 20)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{100, 70 << 10, 5 << 20, len(o.body)}).Draw(t, "size")
		part := &object{body: o.body[:size]}
		r := objectfile.New(context.Background(), part, "key", int64(size))
		defer r.Close()
		at := rapid.IntRange(0, size)
		n := rapid.OneOf(rapid.IntRange(0, 1000), rapid.IntRange(0, 5<<20))
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			var said []objectfile.Extent
			for range rapid.IntRange(0, 3).Draw(t, "extents") {
				a := at.Draw(t, "at")
				said = append(said, objectfile.Extent{At: int64(a), Size: int64(min(n.Draw(t, "n"), size-a))})
			}
			if len(said) > 0 {
				r.Want(said)
			}
			for _, e := range said {
				if rapid.IntRange(0, 3).Draw(t, "read") > 0 {
					expect(t, r, part.body, int(e.At), int(e.Size))
				}
			}
			expect(t, r, part.body, at.Draw(t, "other"), n.Draw(t, "of it"))
		}
	})
}

// Several goroutines may read one object, whoever announces.
func TestConcurrentReaders(t *testing.T) {
	o := newObject(12 << 20)
	r := open(t, o)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 2)) //nolint:gosec // a test's
			for range 20 {
				at, n := rnd.IntN(len(o.body)), rnd.IntN(1<<20)
				if g == 0 {
					r.Want([]objectfile.Extent{{At: int64(at), Size: int64(n)}, {At: 0, Size: 5 << 20}})
				}
				b := make([]byte, n)
				got, err := r.ReadAt(b, int64(at))
				if err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(b[:got], o.body[at:min(at+n, len(o.body))]) {
					t.Errorf("read %d at %d: %d bytes, %v", n, at, got, err)
				}
			}
		})
	}
	wg.Wait()
}

// Readers of one object share its end, as long as it is the same object.
func TestTails(t *testing.T) {
	tails := objectfile.NewTails(200 << 10)
	count := func(o *object, version string) int {
		r := open(t, o, objectfile.WithTails(tails, version))
		expect(t, r, o.body, len(o.body)-8, 8)
		return int(r.Stats().Requests)
	}
	a, b := newObject(1<<20), newObject(2<<20)
	for i, c := range []struct {
		of      *object
		version string
		want    int
	}{
		{a, "v1", 1}, {a, "v1", 0}, {a, "v2", 1}, {a, "", 1}, {a, "", 1}, // 64 KiB each
		{b, "v1", 1}, {b, "v1", 0}, // the size tells it from the others
		{a, "v2", 0}, {b, "v2", 1}, // takes the place of a, v1
		{a, "v1", 1}, {a, "v2", 0},
	} {
		if got := count(c.of, c.version); got != c.want {
			t.Errorf("%d: %d requests, want %d", i, got, c.want)
		}
	}
	large := newObject(300 << 10)
	r := open(t, large, objectfile.WithTails(tails, "v1"))
	expect(t, r, large.body, 0, 300<<10) // more than is kept at all
	if count(a, "v2") != 0 {
		t.Error("a tail that is too large has driven out another")
	}
}
