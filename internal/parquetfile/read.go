package parquetfile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"korvet-offload/segment"
)

// A page that Read gives holds at most readEntries, and no further entry once
// it has readBytes.
const (
	readEntries = 1000
	readBytes   = 1 << 20
)

// Read gives all entries in order, field for field as they were written, in
// pages that are valid until fn returns. It verifies the pages' checksums,
// that ids ascend, and that first and last id and their number are those of
// the footer. It ends with the first error of its own, of fn, or of ctx.
func (f *File) Read(ctx context.Context, fn func(*segment.Page) error) error {
	s, in, loads := newScan(fn), newInput(f.source), f.all()
	if in.far != nil && len(loads) > 0 {
		// Open has left it away, to save a request.
		loads[0].extents = append([]Extent{{At: 0, Size: int64(len(magic))}}, loads[0].extents...)
	}
	in.want(loads)
	for i, l := range loads {
		from, err := in.load(l)
		if err == nil && i == 0 {
			err = checkHead(from)
		}
		if err != nil {
			return fmt.Errorf("read row group %d: %w", i, err)
		}
		if err := f.scanRun(ctx, s, from, &l.runs[0]); err != nil {
			return err
		}
	}
	if err := s.emit(ctx); err != nil {
		return err
	}
	if s.seen != f.meta.Contents {
		return fmt.Errorf("%w: it holds %d entries from %s to %s, and its footer says %d from %s to %s", ErrDamaged,
			s.seen.Count, s.seen.FirstID, s.seen.LastID, f.meta.Count, f.meta.FirstID, f.meta.LastID)
	}
	return nil
}

// scanRun decodes a run that was loaded.
func (f *File) scanRun(ctx context.Context, s *scan, from io.ReaderAt, r *run) error {
	err := f.checkRun(from, r)
	if err == nil {
		err = s.run(ctx, f.lib.RowGroups()[r.group], from, r)
	}
	if err != nil {
		return fmt.Errorf("read row group %d: %w", r.group, err)
	}
	return nil
}

// checkRun checks the page headers of a run before the library believes them,
// and against the index, if it was read.
func (f *File) checkRun(from io.ReaderAt, r *run) (err error) {
	defer rescue(&err)
	chunks := f.lib.Metadata().RowGroups[r.group].Columns
	var keys []pageHead
	for c := range chunks {
		m := &chunks[c].MetaData
		if _, err := checkPages(from, r.cols[c].dict, m); err != nil {
			return fmt.Errorf("column %d: %w", c, err)
		}
		heads, err := checkPages(from, r.cols[c].pages, m)
		if err == nil && r.blocks != nil {
			err = checkHeads(r.blocks, heads, c, keys)
		}
		if err != nil {
			return fmt.Errorf("column %d: %w", c, err)
		}
		if c == colKey {
			keys = heads
		}
	}
	return nil
}

// checkHeads holds the pages of a column against the index: their sizes, the
// number of ids, and that there are as many values as names.
func checkHeads(blocks []block, heads []pageHead, c int, keys []pageHead) error {
	if len(heads) != len(blocks) {
		return fmt.Errorf("%w: %d pages where the index has %d", ErrDamaged, len(heads), len(blocks))
	}
	for i, h := range heads {
		if want := blocks[i].pages[c].Size; h.size != want {
			return fmt.Errorf("%w: a page of %d bytes where the index says %d", ErrDamaged, h.size, want)
		}
		want := h.values
		switch c {
		case colID:
			want = blocks[i].rows
		case colValue:
			want = keys[i].values
		}
		if h.values != want {
			return fmt.Errorf("%w: a page of %d values, and %d belong there", ErrDamaged, h.values, want)
		}
	}
	return nil
}

// scan is the state of one reading.
type scan struct {
	fn    func(*segment.Page) error
	first func(segment.ID) error // sees the first id before fn does; may be nil
	page  *segment.Page
	seen  segment.Contents
}

func newScan(fn func(*segment.Page) error) *scan { return &scan{fn: fn, page: new(segment.Page)} }

func (s *scan) run(ctx context.Context, g parquet.RowGroup, from io.ReaderAt, r *run) error {
	cols, err := openColumns(g, from, r)
	if err != nil {
		return err
	}
	defer cols.close()
	for range r.rows {
		if err := s.entry(cols); err != nil {
			return err
		}
		if s.page.Len() >= readEntries || s.page.Bytes() >= readBytes {
			if err := s.emit(ctx); err != nil {
				return err
			}
		}
	}
	return cols.ended()
}

// emit hands the page over and empties it.
func (s *scan) emit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.page.Len() == 0 {
		return nil
	}
	if err := s.fn(s.page); err != nil {
		return err
	}
	s.page.Reset()
	return nil
}

// entry puts the next row into the page. The library may panic on damaged
// pages; emit, which calls foreign code, stands outside of the rescue.
func (s *scan) entry(cols *cursors) (err error) {
	defer rescue(&err)
	if err := s.id(&cols[colID]); err != nil {
		return err
	}
	for first := true; ; first = false {
		k, v, more, err := cols.field(first)
		if err == nil && more {
			err = s.page.Field(k, v)
		}
		if err != nil {
			return fmt.Errorf("fields of entry %s: %w", s.seen.LastID, err)
		}
		if !more {
			return nil
		}
	}
}

func (s *scan) id(ids *cursor) error {
	v, ok, err := ids.peek()
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: fewer ids than rows", ErrDamaged)
	}
	ids.skip()
	id, err := segment.ParseID(string(v.ByteArray()))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if s.seen.Count > 0 && id.Compare(s.seen.LastID) <= 0 {
		return fmt.Errorf("%w: id %s follows %s", ErrDamaged, id, s.seen.LastID)
	}
	if s.seen.Count == 0 {
		s.seen.FirstID = id
		if s.first != nil {
			if err := s.first(id); err != nil {
				return err
			}
		}
	}
	s.seen.LastID = id
	s.seen.Count++
	s.page.Entry(id)
	return nil
}

// cursors are the columns of one row group.
type cursors [columns]cursor

func openColumns(g parquet.RowGroup, from io.ReaderAt, r *run) (c *cursors, err error) {
	defer rescue(&err)
	c = new(cursors)
	for i, chunk := range g.ColumnChunks() {
		file, ok := chunk.(*parquet.FileColumnChunk)
		if !ok {
			return nil, fmt.Errorf("column %d is a %T", i, chunk)
		}
		c[i].pages = file.PagesFrom(splice{from, r.base[i], r.cols[i]})
	}
	return c, nil
}

func (c *cursors) close() {
	for i := range c {
		c[i].close()
	}
}

// field is the next name and value of a row; more is false when the row has
// no further one. Names and values lie in two columns with the same levels,
// so any difference between them is damage.
func (c *cursors) field(first bool) (key, value []byte, more bool, err error) {
	keys, values := &c[colKey], &c[colValue]
	k, kok, err := keys.peek()
	if err != nil {
		return nil, nil, false, err
	}
	v, vok, err := values.peek()
	if err != nil {
		return nil, nil, false, err
	}
	if kok != vok || k.RepetitionLevel() != v.RepetitionLevel() || k.DefinitionLevel() != v.DefinitionLevel() {
		return nil, nil, false, fmt.Errorf("%w: names and values do not pair", ErrDamaged)
	}
	begins, empty := kok && k.RepetitionLevel() == levelFirst, k.DefinitionLevel() == levelEmpty
	switch {
	case first && !begins:
		return nil, nil, false, fmt.Errorf("%w: they do not begin with the entry", ErrDamaged)
	case !first && (begins || !kok):
		return nil, nil, false, nil
	case !first && empty:
		return nil, nil, false, fmt.Errorf("%w: a null among them", ErrDamaged)
	}
	keys.skip()
	values.skip()
	return k.ByteArray(), v.ByteArray(), !empty, nil
}

// ended checks that no column has more than its rows.
func (c *cursors) ended() (err error) {
	defer rescue(&err)
	for i := range c {
		switch _, ok, err := c[i].peek(); {
		case err != nil:
			return err
		case ok:
			return fmt.Errorf("%w: column %d has more values than its rows", ErrDamaged, i)
		}
	}
	return nil
}

// cursor reads the values of one column chunk, one page in memory at a time.
type cursor struct {
	pages  parquet.Pages
	page   parquet.Page
	reader parquet.ValueReader
	buf    [128]parquet.Value
	values []parquet.Value // of buf, not yet taken
}

// peek is the next value, valid until the peek after the next skip; false at
// the end of the chunk.
func (c *cursor) peek() (parquet.Value, bool, error) {
	for len(c.values) == 0 {
		if c.reader == nil {
			more, err := c.nextPage()
			if err != nil || !more {
				return parquet.Value{}, false, err
			}
		}
		n, err := c.reader.ReadValues(c.buf[:])
		if err != nil && !errors.Is(err, io.EOF) {
			return parquet.Value{}, false, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err != nil || n == 0 {
			c.reader = nil
		}
		c.values = c.buf[:n]
	}
	return c.values[0], true, nil
}

func (c *cursor) skip() { c.values = c.values[1:] }

func (c *cursor) nextPage() (bool, error) {
	parquet.Release(c.page)
	c.page = nil
	page, err := c.pages.ReadPage()
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: read page: %w", ErrDamaged, err)
	}
	c.page, c.reader = page, page.Values()
	return true, nil
}

func (c *cursor) close() {
	var ignored error // nothing that was read depends on it
	defer rescue(&ignored)
	parquet.Release(c.page)
	_ = c.pages.Close() // it only gives buffers back
}
