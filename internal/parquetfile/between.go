package parquetfile

import (
	"context"
	"fmt"
	"io"
	"slices"

	"korvet-offload/segment"
)

// Between is a range of ids, both inclusive; a zero To is the end of the file.
type Between struct{ From, To segment.ID }

// has says whether an id is in the range.
func (b Between) has(id segment.ID) bool {
	return id.Compare(b.From) >= 0 && (b.To.IsZero() || id.Compare(b.To) <= 0)
}

// trim hands on pages that have something of the range, with what.
func (b Between) trim(fn func(p *segment.Page, lo, hi int) error) func(*segment.Page) error {
	return func(p *segment.Page) error {
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
	}
}

// ReadBetween gives the entries whose ids are in a range, in order, in pages
// that are valid until fn returns. A page may hold entries outside of the range:
// lo and hi are those of it that are in, hi not included.
//
// It reads the page index and the blocks that can have such ids, a few at
// first; what it has read it checks as Read does, and that nothing of the range
// can lie elsewhere.
func (f *File) ReadBetween(ctx context.Context, b Between, fn func(p *segment.Page, lo, hi int) error) error {
	found, ok, err := f.find(b)
	if err != nil || !ok {
		return err
	}
	s, in := newScan(b.trim(fn)), newInput(f.source)
	s.first = func(id segment.ID) error { return f.checkFirst(found, id) }
	for loads := range f.forward(found) {
		in.want(loads)
		for _, l := range loads {
			from, err := in.load(l)
			if err != nil {
				return fmt.Errorf("read row group %d: %w", l.runs[0].group, err)
			}
			if err := f.scanRun(ctx, s, from, &l.runs[0]); err != nil {
				return err
			}
		}
		// What was announced is read; nothing more is fetched before it is wanted.
		if err := s.emit(ctx); err != nil {
			return err
		}
	}
	return f.checkLast(found, s.seen.LastID)
}

// checkFirst checks that a reading which begins with an id has all of the range
// that lies before.
func (f *File) checkFirst(s span, id segment.ID) error {
	begins := s.fromGroup == 0 && s.first == 0
	if begins && id != f.meta.FirstID {
		return fmt.Errorf("%w: its first id is %s, and its footer says %s", ErrDamaged, id, f.meta.FirstID)
	}
	if !begins && id.Compare(s.need.From) > 0 {
		return fmt.Errorf("%w: the page index leads to id %s for ids from %s on", ErrDamaged, id, s.need.From)
	}
	return nil
}

// checkLast checks that a reading which ends with an id has all of the range
// that lies behind.
func (f *File) checkLast(s span, id segment.ID) error {
	ends := s.toGroup == len(f.lib.RowGroups())-1 && s.last == len(s.to)-1
	if ends && id != f.meta.LastID {
		return fmt.Errorf("%w: its last id is %s, and its footer says %s", ErrDamaged, id, f.meta.LastID)
	}
	if !ends && id.Compare(s.need.To) < 0 {
		return fmt.Errorf("%w: the page index leads to id %s for ids up to %s", ErrDamaged, id, s.need.To)
	}
	return nil
}

// ReadBack is ReadBetween from the end of the range to its beginning: later
// pages come first. Within a page the entries stand in their order.
func (f *File) ReadBack(ctx context.Context, b Between, fn func(p *segment.Page, lo, hi int) error) error {
	found, ok, err := f.find(b)
	if err != nil || !ok {
		return err
	}
	r := &backReader{file: f, in: newInput(f.source), hand: b.trim(fn)}
	for loads, err := range f.backward(found) {
		if err != nil {
			return err
		}
		r.in.want(loads)
		for _, l := range loads {
			if err := r.load(ctx, found, l); err != nil {
				return err
			}
		}
	}
	return f.checkFirst(found, r.next)
}

// backReader is the state of one ReadBack.
type backReader struct {
	file  *File
	in    *input
	hand  func(*segment.Page) error
	next  segment.ID // the first id of what was read before, which lies behind; zero = none
	pages []*segment.Page
}

func (r *backReader) load(ctx context.Context, s span, l load) error {
	from, err := r.in.load(l)
	if err != nil {
		return fmt.Errorf("read row group %d: %w", l.runs[0].group, err)
	}
	for i := range l.runs {
		if err := r.run(ctx, s, from, &l.runs[i]); err != nil {
			return err
		}
	}
	return nil
}

// run decodes a run, and hands its pages over when all of it has been checked.
func (r *backReader) run(ctx context.Context, found span, from io.ReaderAt, what *run) error {
	used := 0
	var s *scan
	s = newScan(func(p *segment.Page) error {
		if used == len(r.pages) {
			r.pages = append(r.pages, new(segment.Page))
		}
		s.page, r.pages[used] = r.pages[used], p // the spare one is emptied
		used++
		return nil
	})
	if err := r.file.scanRun(ctx, s, from, what); err != nil {
		return err
	}
	if err := s.emit(ctx); err != nil {
		return err
	}
	if err := r.check(found, s.seen); err != nil {
		return err
	}
	r.next = s.seen.FirstID
	for _, p := range slices.Backward(r.pages[:used]) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.hand(p); err != nil {
			return err
		}
	}
	return nil
}

// check holds a run against what was read before it.
func (r *backReader) check(found span, seen segment.Contents) error {
	if r.next.IsZero() {
		return r.file.checkLast(found, seen.LastID)
	}
	if seen.LastID.Compare(r.next) >= 0 {
		return fmt.Errorf("%w: id %s follows %s", ErrDamaged, r.next, seen.LastID)
	}
	return nil
}
