package redisstore

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// TestPagesStayBelowTheMemoryBound: COUNT grows over tiny entries, and then
// a page of that COUNT would be gigabytes.
func TestPagesStayBelowTheMemoryBound(t *testing.T) {
	server := redisserver.Start(t)
	var b []byte
	for i := range 100_000 {
		b = redisserver.AppendCommand(b, "XADD", "s", fmt.Sprintf("1-%d", i+1), "f", "tiny")
	}
	server.Pipe(b)
	large := strings.Repeat("x", 5<<20)
	for i := range 50 {
		server.Pipe(redisserver.AppendCommand(nil, "XADD", "s", fmt.Sprintf("2-%d", i), "f", large))
	}
	s := openReader(t, config(server), ReaderDirect)
	r := s.Pages("s", segment.ID{}, segment.ID{})
	defer r.Close()
	var p segment.Page
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	before, heap := mem.HeapAlloc, uint64(0)
	var n, most, peak int
	last := segment.ID{}
	for {
		err := r.Next(t.Context(), &p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Len() {
			if p.ID(i).Compare(last) <= 0 {
				t.Fatalf("entry %s after %s", p.ID(i), last)
			}
			last = p.ID(i)
		}
		runtime.ReadMemStats(&mem)
		heap = max(heap, mem.HeapAlloc)
		n, most, peak = n+p.Len(), max(most, p.Bytes()), max(peak, cap(p.Buffer()))
	}
	if n != 100_050 {
		t.Errorf("%d entries, want 100050", n)
	}
	if most > maxPage+5<<20 || peak > 2*maxPage {
		t.Errorf("largest page %d bytes in a buffer of %d", most, peak)
	}
	if heap > before+48<<20 {
		t.Errorf("the heap has grown from %d to %d bytes", before, heap)
	}
	t.Logf("largest page %d bytes, largest buffer %d, heap at most %d", most, peak, heap-before)
}
