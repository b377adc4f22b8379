package parquetfile

import (
	"io"
	"runtime"
	"testing"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// endless gives pages with the content of one, under ever new ids.
type endless struct {
	from, page *segment.Page
	offsets    [][4]int // of each field's name and value in the page
	next       segment.ID
}

func newEndless(t testing.TB, valueBytes, entries int) *endless {
	t.Helper()
	from := dataset.Page(dataset.Envelope(1, valueBytes, entries)...)
	e := &endless{from: from, page: new(segment.Page), next: segment.ID{Ms: dataset.FirstMs}}
	at := 0
	for j := range from.FieldCount() {
		n, v := len(from.Name(j)), len(from.Value(j))
		e.offsets = append(e.offsets, [4]int{at, n, at + n, v})
		at += n + v
	}
	return e
}

func (e *endless) fill() *segment.Page {
	e.page.Reset()
	e.page.SetBuffer(e.from.Buffer())
	for i := range e.from.Len() {
		e.page.Entry(e.next)
		e.next.Ms++
		lo, hi := e.from.Fields(i)
		for _, o := range e.offsets[lo:hi] {
			e.page.FieldAt(o[0], o[1], o[2], o[3])
		}
	}
	return e.page
}

// peakHeap writes a file of so many bytes of entries and returns by how much
// the live heap grew at most. Garbage is left out: how much of it there is
// depends on the collector's pace, and with the race detector on chance, since
// pools then forget at random.
func peakHeap(t *testing.T, size int64) int64 {
	t.Helper()
	source := newEndless(t, 1000, 1000)
	base, peak := liveHeap(), int64(0)
	w := NewWriter(io.Discard, goldenID)
	for written, i := int64(0), 0; written < size; i++ {
		if err := w.Write(source.fill()); err != nil {
			t.Fatal(err)
		}
		written += int64(source.page.Bytes())
		if i%7 == 0 { // row groups are about 8 pages, so this sees them at every size
			peak = max(peak, liveHeap()-base)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return max(peak, liveHeap()-base)
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what lay in pools survives the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemory checks that a file's size hardly shows in the memory that it
// takes: what grows is the footer, by about 1.5 kB for each 4 MiB written.
func TestMemory(t *testing.T) {
	const small, large = 32 << 20, 192 << 20
	a, b := peakHeap(t, small), peakHeap(t, large)
	t.Logf("peak live heap: %.1f MiB for 32 MiB, %.1f MiB for 192 MiB", float64(a)/(1<<20), float64(b)/(1<<20))
	if limit := int64(10 << 20); a > limit || b > limit {
		t.Errorf("peak live heap %d and %d bytes, %d at most", a, b, limit)
	}
}

// TestAllocations checks that writing allocates by the file and the row
// group, not by the message.
func TestAllocations(t *testing.T) {
	source := newEndless(t, 100, 1000)
	const pages = 60
	allocs := testing.AllocsPerRun(1, func() {
		w := NewWriter(io.Discard, goldenID)
		for range pages {
			if err := w.Write(source.fill()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
	// Without the race detector it is 0.005; with it, pools forget at random.
	per := allocs / (pages * 1000)
	t.Logf("%.4f allocations per message", per)
	if per > 0.1 {
		t.Errorf("%.4f allocations per message", per)
	}
}
