package offload

import (
	"context"
	"io"
	"testing"

	"korvet-offload/segment"
)

// hugePages gives pages of one huge entry each, and notes with how much memory
// pages come back to be filled.
type hugePages struct {
	next, count int
	value       []byte
	most        int
}

func (h *hugePages) Next(_ context.Context, into *segment.Page) error {
	h.most = max(h.most, cap(into.Buffer()))
	into.Reset()
	if h.next++; h.next > h.count {
		return io.EOF
	}
	into.Entry(segment.ID{Ms: uint64(h.next)}) //nolint:gosec // a count
	return into.Field([]byte("value"), h.value)
}

func (h *hugePages) Close() error { return nil }

// A stream with more huge entries than there are pages: no page keeps the
// memory of one while it waits for its turn.
//
//fault:load | A segment with many huge records | 60 pages of 3 MiB from a reader in memory | each page gives its memory back once it is written, so that they do not add up
func TestHugePagesAreNotKept(t *testing.T) {
	h, used := &hugePages{count: 60, value: make([]byte, keepPage+1<<20)}, 0
	err := new(pageSets).each(t.Context(), h, func(p *segment.Page) error {
		if used++; p.Len() != 1 || p.ID(0).Ms != uint64(used) || len(p.Value(0)) != len(h.value) {
			t.Errorf("page %d: %d entries, the first is %s", used, p.Len(), p.ID(0))
		}
		return nil
	})
	if err != nil || used != h.count {
		t.Fatalf("%d of %d pages, %v", used, h.count, err)
	}
	if h.most > keepPage {
		t.Errorf("a page of %d bytes was kept, want %d at most", h.most, keepPage)
	}
}
