package tieredlog

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// moved is a world with segments 0 to 2 on the store alone, and an open one.
func moved(t *testing.T) *world {
	w := newWorld(t, 1, segment.Partition{Topic: "orders"})
	for n := range segment.Number(3) {
		for range 5 {
			w.append(n)
		}
		w.roll()
		w.copy(n)
		w.drop(n)
		w.drop(n)
		w.drop(n)
		if w.entries[n].Local != segment.Gone {
			t.Fatal(w.value(n))
		}
	}
	w.append(3)
	return w
}

func TestOnlyWhatIsAskedForIsOpened(t *testing.T) {
	w := moved(t)
	all := w.visible()
	for want, q := range map[string]Query{
		"":    {From: all[15].id},
		"1":   {From: all[6].id, To: all[8].id},
		"0 1": {Limit: 6},
		"1 2": {Skip: 5},
		"2 1": {Reverse: true, Skip: 1, Limit: 6},
		"1 0": {Reverse: true, Skip: 6},
	} {
		w.opened = nil
		if _, err := w.read(q); err != nil {
			t.Error(err)
		}
		var numbers []string
		for _, path := range w.opened {
			o, _ := segment.ParseObjectPath(path)
			numbers = append(numbers, o.Segment.String())
		}
		if got := strings.Join(numbers, " "); got != want {
			t.Errorf("%+v opened %q, want %q", q, got, want)
		}
	}
}

func TestASegmentThatCanNotBeReadIsNamed(t *testing.T) {
	path := func(n segment.Number) string { return segment.ObjectPath("korvet:storage:local:orders:0", n, 0, "") }
	for name, tt := range map[string]struct {
		break1 func(w *world)
		want   error
	}{
		"missing":        {func(w *world) { delete(w.objects, path(1)) }, ErrMissing},
		"cut":            {func(w *world) { w.objects[path(1)] = w.objects[path(1)][:40] }, parquetfile.ErrDamaged},
		"of another":     {func(w *world) { w.objects[path(1)] = w.file(2, w.inFile(1)) }, nil},
		"fewer messages": {func(w *world) { w.objects[path(1)] = w.file(1, w.inFile(1)[1:]) }, nil},
		"illegal entry":  {func(w *world) { w.raw[1] = "{}" }, segment.ErrIllegalEntry},
		"newer entry":    {func(w *world) { w.raw[1] = `{"v":2}` }, segment.ErrEntryVersion},
		"no object":      {func(w *world) { w.raw[1] = `{"state":"SEALED","tier":"REMOTE","local":"GONE"}` }, segment.ErrIllegalEntry},
		"no stream":      {func(w *world) { w.raw[1] = `{"state":"SEALED","tier":"LOCAL","count":5}` }, segment.ErrSourceMissing},
	} {
		w := moved(t)
		all := w.visible()
		tt.break1(w)
		if e := w.entries[1]; tt.want == nil { // whose size is right
			e.Object.Bytes = int64(len(w.objects[path(1)]))
			w.entries[1] = e
		}
		got, err := w.read(Query{})
		var of *SegmentError
		if !errors.As(err, &of) || of.Number != 1 || of.Partition != w.partition || tt.want != nil && !errors.Is(err, tt.want) || !slices.Equal(got, all[:5]) {
			t.Errorf("%s: %d messages, %v", name, len(got), err)
		}
		var told []error
		got, err = w.read(Query{Unreadable: func(e *SegmentError) error { told = append(told, e); return nil }})
		if want := slices.Concat(all[:5], all[10:]); err != nil || len(told) != 1 || !slices.Equal(got, want) {
			t.Errorf("%s: skipped: %d messages, %v, %v", name, len(got), told, err)
		}
		mine := errors.New("no further")
		if _, err = w.read(Query{Unreadable: func(*SegmentError) error { return mine }}); !errors.Is(err, mine) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestShortStreamsAreNamed(t *testing.T) {
	w := newWorld(t, 1, segment.Partition{Topic: "orders"})
	for range 9 {
		w.append(0)
	}
	w.roll()
	s := w.streams[w.key(0)]
	whole := *s
	for name, tt := range map[string]struct {
		change func()
		want   error
	}{
		"trimmed":           {func() { s.all = s.all[3:] }, segment.ErrShortStream},
		"made anew":         {func() { s.added, s.all = 2, s.all[7:] }, segment.ErrShortStream},
		"never came so far": {func() { s.all, s.last = s.all[:8], s.all[7].id }, segment.ErrShortStream},
		"emptied":           {func() { s.all = nil }, segment.ErrSourceMissing},
		"deleted by id":     {func() { s.all, s.maxDeleted = s.all[1:], s.all[0].id }, nil},
	} {
		*s = whole
		tt.change()
		if _, err := w.read(Query{}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// broken is a store that goes away in the middle of an object.
type broken struct{}

var errAway = errors.New("the store is away")

func (broken) OpenRange(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader("PAR1"), away{})), nil
}

type away struct{}

func (away) Read([]byte) (int, error) { return 0, errAway }

// A store that is away damages nothing: it is no reason to go on with the next
// segment.
func TestAnOutageIsNoDamage(t *testing.T) {
	w := moved(t)
	l := New(w.layout, Ports{w, w, FromRanges(broken{})})
	err := l.Read(t.Context(), w.partition, Query{Unreadable: func(*SegmentError) error { return nil }}, func(*segment.Page, int) error { return nil })
	if !errors.Is(err, errAway) {
		t.Error(err)
	}
	err = New(w.layout, Ports{w, w, nil}).Read(t.Context(), w.partition, Query{}, func(*segment.Page, int) error { return nil })
	if !errors.Is(err, ErrNoStore) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.log().Read(ctx, w.partition, Query{}, func(*segment.Page, int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// short gives the first bytes of each object.
type short struct{ *world }

func (s short) OpenRange(_ context.Context, key string, offset, n int64) (io.ReadCloser, error) {
	b := s.objects[key]
	b = b[:len(b)/2]
	lo := min(offset, int64(len(b)))
	return io.NopCloser(strings.NewReader(string(b[lo:min(offset+n, int64(len(b)))]))), nil
}

func TestAnObjectThatIsShorter(t *testing.T) {
	w := moved(t)
	told := 0
	l := New(w.layout, Ports{w, w, FromRanges(short{w})})
	err := l.Read(t.Context(), w.partition, Query{Unreadable: func(*SegmentError) error { told++; return nil }}, func(*segment.Page, int) error { return nil })
	if err != nil || told != 3 {
		t.Errorf("%d segments are damaged, %v", told, err)
	}
}

// halves is a manifest that does not come whole so many times.
type halves struct {
	*world
	times int
}

func (h *halves) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	if h.times--; h.times >= 0 {
		take("0", h.value(0))
		return 4, nil
	}
	return h.world.Each(ctx, p, take)
}

func TestAManifestThatDoesNotComeWhole(t *testing.T) {
	w := moved(t)
	for times, want := range map[int]int{0: 4, manifestTries - 1: 4, manifestTries: 0} {
		all, err := New(w.layout, Ports{&halves{w, times}, w, w}).Segments(t.Context(), w.partition)
		if len(all) != want || (err == nil) != (want > 0) {
			t.Errorf("%d times: %d segments, %v", times, len(all), err)
		}
	}
	clear(w.entries)
	if _, err := w.read(Query{}); !errors.Is(err, ErrNoPartition) {
		t.Error(err)
	}
}

func TestStopAndErrorsOfTheCaller(t *testing.T) {
	w := moved(t)
	mine := errors.New("mine")
	for give, want := range map[error]error{Stop: nil, mine: mine} {
		n := 0
		err := w.log().Read(t.Context(), w.partition, Query{}, func(*segment.Page, int) error {
			if n++; n == 7 {
				return give
			}
			return nil
		})
		if !errors.Is(err, want) || n != 7 {
			t.Errorf("%v after %d", err, n)
		}
	}
	for _, q := range []Query{{Skip: -1}, {Limit: -1}, {Tier: "cold"}} {
		if _, err := w.read(q); err == nil {
			t.Errorf("%+v", q)
		}
	}
}

func TestListingTakesTheNewestCopy(t *testing.T) {
	w := moved(t)
	name := func(path string) segment.ObjectName { o, _ := segment.ParseObjectPath(path); return o }
	var found []Found
	for path, b := range w.objects {
		found = append(found, Found{ObjectName: name(path), Bytes: int64(len(b))})
	}
	w.objects["korvet:storage:local:orders:0/1-1.parquet"] = w.file(1, w.inFile(1)[:2])
	found = append(found, Found{ObjectName: name("korvet:storage:local:orders:0/1-1.parquet"), Bytes: int64(len(w.objects["korvet:storage:local:orders:0/1-1.parquet"]))})
	all := w.visible()
	m := FromListing(func(context.Context, segment.Partition) ([]Found, error) { return found, nil })
	n := 0
	err := New(w.layout, Ports{m, nil, w}).Read(t.Context(), w.partition, Query{From: all[1].id}, func(*segment.Page, int) error { n++; return nil })
	if err != nil || n != 4+2+5 {
		t.Errorf("%d messages, %v", n, err)
	}
}

func TestBetween(t *testing.T) {
	for _, tt := range []struct{ a, b, want segment.ID }{
		{segment.ID{Ms: 1}, segment.ID{Ms: 3}, segment.ID{Ms: 2}},
		{segment.ID{Ms: 1}, segment.ID{Ms: 2}, segment.ID{Ms: 1, Seq: 1 << 63}},
		{segment.ID{Ms: 1, Seq: math.MaxUint64}, segment.ID{Ms: 2}, segment.ID{Ms: 1, Seq: math.MaxUint64}},
		{segment.ID{Ms: 1, Seq: 5}, segment.ID{Ms: 1, Seq: 6}, segment.ID{Ms: 1, Seq: 5}},
		{segment.ID{}, segment.MaxID(), segment.ID{Ms: math.MaxUint64 >> 1, Seq: math.MaxUint64}},
	} {
		if got := between(tt.a, tt.b); got != tt.want || got.Compare(tt.b) >= 0 || got.Compare(tt.a) < 0 {
			t.Errorf("%s to %s: %s", tt.a, tt.b, got)
		}
	}
}

// A long stream is read backwards in leaves, none of them larger than it has to be.
func TestBackwardsThroughALongStream(t *testing.T) {
	w := newWorld(t, 3, segment.Partition{Topic: "orders"})
	w.pageLen = 5000
	for range 20_000 {
		w.append(0)
	}
	s := w.streams[w.key(0)]
	for i := range s.all { // what makes a leaf full
		long := s.all[i].payload + strings.Repeat(" ", 300)
		w.where[long], w.ids[long] = 0, s.all[i].id
		delete(w.where, s.all[i].payload)
		s.all[i].payload = long
	}
	got, err := w.read(Query{Reverse: true})
	if err != nil || len(got) != 20_000 {
		t.Errorf("%d messages, %v", len(got), err)
	}
}
