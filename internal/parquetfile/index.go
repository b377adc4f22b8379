package parquetfile

import (
	"errors"
	"fmt"
	"sort"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"korvet-offload/segment"
)

// The page index says where each block lies and what ids it has. It has no
// checksum, so it is only believed as far as what is read bears it out: a
// reading begins with an id that is not above the first one that is wanted, and
// ends with one that is not below the last; and ids ascend in between. An index
// that leads elsewhere is ErrDamaged.

// witnesses are two ids of a block or of a row group, in stream order. Bounds
// are of ids as text, so they are not its first and last id; but both are ids
// that it has, and that is enough to know that it begins no later than lo and
// ends no sooner than hi.
type witnesses struct{ lo, hi segment.ID }

// block is one page of every column, over the same rows.
type block struct {
	witnesses
	rows  int64
	pages [columns]Extent
}

func witnessesOf(least, most []byte) (witnesses, error) {
	a, err := segment.ParseID(string(least))
	if err != nil {
		return witnesses{}, err
	}
	b, err := segment.ParseID(string(most))
	if err != nil {
		return witnesses{}, err
	}
	if a.Compare(b) > 0 {
		a, b = b, a
	}
	return witnesses{a, b}, nil
}

// ascend checks that no two overlap.
func ascend(all []witnesses) error {
	for i := 1; i < len(all); i++ {
		if all[i-1].hi.Compare(all[i].lo) >= 0 {
			return fmt.Errorf("bounds do not ascend: %s is before %s", all[i-1].hi, all[i].lo)
		}
	}
	return nil
}

// groups are the ids that the footer tells of each row group.
func (f *File) groups() ([]witnesses, error) {
	all := make([]witnesses, len(f.lib.Metadata().RowGroups))
	for i, g := range f.lib.Metadata().RowGroups {
		var err error
		s := &g.Columns[colID].MetaData.Statistics
		if all[i], err = witnessesOf(s.MinValue, s.MaxValue); err != nil {
			return nil, fmt.Errorf("%w: bounds of row group %d: %w", ErrDamaged, i, err)
		}
	}
	if err := ascend(all); err != nil {
		return nil, fmt.Errorf("%w: row groups: %w", ErrDamaged, err)
	}
	if n := len(all); n > 0 && (all[0].lo.Compare(f.meta.FirstID) < 0 || all[n-1].hi.Compare(f.meta.LastID) > 0) {
		return nil, fmt.Errorf("%w: row groups have ids from %s to %s, and the metadata says %s to %s", ErrDamaged,
			all[0].lo, all[n-1].hi, f.meta.FirstID, f.meta.LastID)
	}
	return all, nil
}

// blocks reads the index of a row group.
func (f *File) blocks(group int) (_ []block, err error) {
	defer rescue(&err)
	g := &f.lib.Metadata().RowGroups[group]
	found, err := f.bounds(&g.Columns[colID])
	if err != nil {
		return nil, fmt.Errorf("%w: column index of row group %d: %w", ErrDamaged, group, err)
	}
	for c := range g.Columns {
		if err := f.place(found, c, &g.Columns[c], g.NumRows); err != nil {
			return nil, fmt.Errorf("%w: offset index of row group %d, column %d: %w", ErrDamaged, group, c, err)
		}
	}
	return found, nil
}

// bounds makes blocks of the column index of the ids, and holds it against what
// the footer tells of the whole chunk.
func (f *File) bounds(chunk *format.ColumnChunk) ([]block, error) {
	var index format.ColumnIndex
	if err := f.decode(chunk.ColumnIndexOffset, int64(chunk.ColumnIndexLength), &index); err != nil {
		return nil, err
	}
	n := len(index.MinValues)
	if n == 0 || len(index.MaxValues) != n {
		return nil, fmt.Errorf("%d lower and %d upper bounds", n, len(index.MaxValues))
	}
	found, all := make([]block, n), make([]witnesses, n)
	least, most := index.MinValues[0], index.MaxValues[0]
	for i := range found {
		w, err := witnessesOf(index.MinValues[i], index.MaxValues[i])
		if err != nil {
			return nil, fmt.Errorf("page %d: %w", i, err)
		}
		found[i].witnesses, all[i] = w, w
		if string(index.MinValues[i]) < string(least) {
			least = index.MinValues[i]
		}
		if string(index.MaxValues[i]) > string(most) {
			most = index.MaxValues[i]
		}
	}
	s := &chunk.MetaData.Statistics
	if string(least) != string(s.MinValue) || string(most) != string(s.MaxValue) {
		return nil, fmt.Errorf("its bounds are %.60q and %.60q, and the footer says %.60q and %.60q", least, most, s.MinValue, s.MaxValue)
	}
	return found, ascend(all)
}

// place puts into the blocks where their pages of a column lie. They fill the
// chunk behind its dictionary, and the rows of all columns are cut alike.
func (f *File) place(found []block, c int, chunk *format.ColumnChunk, rows int64) error {
	var index format.OffsetIndex
	if err := f.decode(chunk.OffsetIndexOffset, int64(chunk.OffsetIndexLength), &index); err != nil {
		return err
	}
	pages := index.PageLocations
	if len(pages) != len(found) {
		return fmt.Errorf("%d pages, and %d have bounds", len(pages), len(found))
	}
	m := &chunk.MetaData
	if m.DataPageOffset < chunkStart(m) {
		return fmt.Errorf("its pages begin at %d, before the chunk at %d", m.DataPageOffset, chunkStart(m))
	}
	at, row := m.DataPageOffset, int64(0)
	for i, p := range pages {
		if p.Offset != at || p.CompressedPageSize <= 0 || p.FirstRowIndex != row {
			return fmt.Errorf("page %d lies at %d and begins with row %d, where %d and %d follow", i, p.Offset, p.FirstRowIndex, at, row)
		}
		next := rows
		if i+1 < len(pages) {
			next = pages[i+1].FirstRowIndex
		}
		if n := next - row; c == colID {
			found[i].rows = n
		} else if n != found[i].rows {
			return fmt.Errorf("page %d has %d rows, and that of the ids %d", i, n, found[i].rows)
		}
		if found[i].rows <= 0 {
			return fmt.Errorf("page %d has %d rows", i, found[i].rows)
		}
		found[i].pages[c] = Extent{At: at, Size: int64(p.CompressedPageSize)}
		at, row = at+int64(p.CompressedPageSize), next
	}
	if end := chunkStart(m) + m.TotalCompressedSize; at != end {
		return fmt.Errorf("its pages end at %d, and the chunk at %d", at, end)
	}
	return nil
}

// decode reads a struct of the page index, which lies between pages and footer.
func (f *File) decode(at, size int64, to any) error {
	index, err := f.pageIndex()
	if err != nil {
		return err
	}
	if at < f.pagesEnd || size <= 0 || size > f.footer-at {
		return fmt.Errorf("%d bytes at %d, where the index is from %d to %d", size, at, f.pagesEnd, f.footer)
	}
	b := index[at-f.pagesEnd:][:size]
	if err := checkCompact(b); err != nil {
		return err
	}
	return thrift.Unmarshal(new(thrift.CompactProtocol), b, to)
}

// pageIndex reads all that lies between the pages and the footer, once.
func (f *File) pageIndex() ([]byte, error) {
	f.indexing.Lock()
	defer f.indexing.Unlock()
	if f.index == nil {
		index := make([]byte, f.footer-f.pagesEnd)
		if err := readAt(f.source, index, f.pagesEnd); err != nil {
			return nil, errUnread{err}
		}
		f.index = index
	}
	return f.index, nil
}

// errUnread is an error of the source, on its way past those who would call
// it damage.
type errUnread struct{ error }

func (e errUnread) Unwrap() error { return e.error }

// span is what has to be read for a range of ids: from a block to a block, both
// inclusive.
type span struct {
	fromGroup, toGroup int
	from, to           []block // of those groups
	first, last        int     // of those blocks
	need               Between // what it has to cover
}

// find looks up a range of ids; false when there can be nothing in it. What the
// metadata says of the first and the last id is not taken on trust either: for a
// range outside of them the block beside it is read.
func (f *File) find(b Between) (s span, ok bool, err error) {
	need := b
	if b.To.IsZero() {
		need.To = segment.MaxID()
	}
	if f.meta.Count == 0 || need.From.Compare(need.To) > 0 {
		return span{}, false, nil
	}
	groups, err := f.groups()
	if err != nil {
		return span{}, false, err
	}
	s = span{need: need}
	s.fromGroup, s.toGroup = around(len(groups), func(i int) witnesses { return groups[i] }, need)
	if s.from, err = f.blocks(s.fromGroup); err != nil {
		return span{}, false, unread(err)
	}
	s.to = s.from
	if s.toGroup != s.fromGroup {
		if s.to, err = f.blocks(s.toGroup); err != nil {
			return span{}, false, unread(err)
		}
	}
	s.first, _ = around(len(s.from), func(i int) witnesses { return s.from[i].witnesses }, need)
	_, s.last = around(len(s.to), func(i int) witnesses { return s.to[i].witnesses }, need)
	return s, true, nil
}

// unread takes the damage away from an error of the source.
func unread(err error) error {
	if e, ok := errors.AsType[errUnread](err); ok {
		return fmt.Errorf("read page index: %w", e.error)
	}
	return err
}

// around is the last of n that is known to begin at or before the range, and
// the first that is known to end at or behind it; the outermost where none is.
func around(n int, at func(int) witnesses, need Between) (first, last int) {
	first = sort.Search(n, func(i int) bool { return at(i).lo.Compare(need.From) > 0 }) - 1
	last = sort.Search(n, func(i int) bool { return at(i).hi.Compare(need.To) >= 0 })
	return max(first, 0), min(last, n-1)
}
