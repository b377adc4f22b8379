package repair

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"

	"korvet-offload/segment"
)

// sumOf is the sum of entry i of a page: of its id, and of its names and values in
// their order, each with its length before it.
func sumOf(p *segment.Page, i int) (s sum) {
	lo, hi := p.Fields(i)
	h := sha256.New()
	buf := p.ID(i).Append(make([]byte, 0, 64))
	h.Write(binary.AppendUvarint(append(buf, ' '), uint64(hi-lo))) //nolint:gosec // a count
	for j := lo; j < hi; j++ {
		name, value := p.Name(j), p.Value(j)
		buf = binary.AppendUvarint(buf[:0], uint64(len(name)))
		h.Write(binary.AppendUvarint(buf, uint64(len(value))))
		h.Write(name)
		h.Write(value)
	}
	h.Sum(s[:0])
	return s
}

// hold reads what a stream holds of a segment.
func hold(ctx context.Context, from Streams, key string, e segment.Entry) (*Held, error) {
	info, err := from.StreamInfo(ctx, key)
	if errors.Is(err, segment.ErrWrongType) {
		return &Held{Wrong: err}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", key, err)
	}
	h := &Held{Info: info, sums: map[segment.ID]sum{}}
	if info.Length == 0 {
		return h, nil
	}
	first, last := segment.ID{}, segment.MaxID()
	if e.Shared() {
		first, last = e.From, e.To
	}
	if err := h.read(ctx, from.Pages(key, first, last), e.LastID); err != nil {
		return nil, fmt.Errorf("read stream %s: %w", key, err)
	}
	now, err := from.StreamInfo(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", key, err)
	}
	if !e.Shared() && (now != info || h.Contents.Count != info.Length) {
		return nil, fmt.Errorf("%w: %s had %d entries up to %s, and has %d up to %s; run it again", errUnsteady, key, info.Length, info.LastID, now.Length, now.LastID)
	}
	return h, nil
}

// read counts all entries, and those up to the last one that was copied.
func (h *Held) read(ctx context.Context, pages segment.PageReader, copied segment.ID) error {
	defer pages.Close()
	var p segment.Page
	for {
		err := pages.Next(ctx, &p)
		if err == io.EOF { //nolint:errorlint // the bare io.EOF is the end; one inside another error is a broken connection
			return nil
		}
		if err != nil {
			return err
		}
		h.CRC32C = p.Digest(h.CRC32C)
		for i := range p.Len() {
			id := p.ID(i)
			add(&h.Contents, id)
			if id.Compare(copied) <= 0 {
				add(&h.Copied, id)
			}
			if h.sums == nil {
				continue
			}
			if h.sums[id] = sumOf(&p, i); len(h.sums) > maxSums {
				h.sums = nil
			}
		}
	}
}

// all is a copy of the sums of all entries; nil = they are not known.
func (h *Held) all() map[segment.ID]sum {
	if h == nil {
		return nil
	}
	return maps.Clone(h.sums)
}

func add(c *segment.Contents, id segment.ID) {
	if c.Count == 0 {
		c.FirstID = id
	}
	c.LastID = id
	c.Count++
}
