package parquetfile

import (
	"context"

	"korvet-offload/segment"
)

// Between is a range of ids, both inclusive; a zero To is the end of the file.
type Between struct{ From, To segment.ID }

// has says whether an id is in the range.
func (b Between) has(id segment.ID) bool {
	return id.Compare(b.From) >= 0 && (b.To.IsZero() || id.Compare(b.To) <= 0)
}

// ReadBetween gives the entries whose ids are in a range, in order, in pages
// that are valid until fn returns. A page may hold entries outside of the range:
// lo and hi are those of it that are in, hi not included.
func (f *File) ReadBetween(ctx context.Context, b Between, fn func(p *segment.Page, lo, hi int) error) error {
	return f.Read(ctx, func(p *segment.Page) error {
		lo, hi := 0, p.Len()
		for lo < hi && p.ID(lo).Compare(b.From) < 0 {
			lo++
		}
		for hi > lo && !b.has(p.ID(hi-1)) {
			hi--
		}
		if lo == hi {
			return nil
		}
		return fn(p, lo, hi)
	})
}

// ReadBack is ReadBetween from the end of the range to its beginning: later
// pages come first. Within a page the entries stand in their order.
func (f *File) ReadBack(ctx context.Context, b Between, fn func(p *segment.Page, lo, hi int) error) error {
	type part struct {
		p      *segment.Page
		lo, hi int
	}
	var parts []part
	err := f.ReadBetween(ctx, b, func(p *segment.Page, lo, hi int) error {
		q := new(segment.Page)
		for i := range p.Len() {
			q.Entry(p.ID(i))
			from, to := p.Fields(i)
			for j := from; j < to; j++ {
				if err := q.Field(p.Name(j), p.Value(j)); err != nil {
					return err
				}
			}
		}
		parts = append(parts, part{q, lo, hi})
		return nil
	})
	if err != nil {
		return err
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if err := fn(parts[i].p, parts[i].lo, parts[i].hi); err != nil {
			return err
		}
	}
	return nil
}
