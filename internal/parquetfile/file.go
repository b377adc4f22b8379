package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/parquet-go/parquet-go"

	"korvet-offload/segment"
)

// File is an opened segment file. It may be read by several goroutines at once.
type File struct {
	source   io.ReaderAt
	lib      *parquet.File
	meta     Meta
	pagesEnd int64 // where the page index begins
	footer   int64 // where it ends

	indexing sync.Mutex
	index    []byte // nil before it is read
}

// Open reads the footer of a file of size bytes and checks that it is a whole
// segment file: magic, footer, schema, version, that row groups and metadata
// agree on the number of rows, and that every column lies inside the file. It
// does not read the pages; Read checks those, and also how the file begins if r
// is far away (has a method Want, as objectfile.Reader).
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	defer rescue(&err)
	footer, err := checkFrame(r, size)
	if err != nil {
		return nil, err
	}
	end, err := checkFooter(r, footer, size)
	if err != nil {
		return nil, err
	}
	lib, err := parquet.OpenFile(end, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.SkipMagicBytes(true))
	if err != nil {
		return nil, fmt.Errorf("%w: read footer: %w", ErrDamaged, err)
	}
	if err := checkSchema(lib.Schema()); err != nil {
		return nil, err
	}
	meta, err := parseMeta(lib.Lookup)
	if err != nil {
		return nil, err
	}
	if err := checkRows(lib, meta.Count); err != nil {
		return nil, err
	}
	if err := checkChunks(lib, footer); err != nil {
		return nil, err
	}
	return &File{source: r, lib: lib, meta: meta, pagesEnd: pagesEnd(lib), footer: footer}, nil
}

// Check opens a finished file, checks that it is that of the segment, and
// returns what it holds.
func Check(r io.ReaderAt, size int64, id FileID) (segment.Contents, error) {
	f, err := Open(r, size)
	if err != nil {
		return segment.Contents{}, fmt.Errorf("check segment file %s: %w", id, err)
	}
	if f.meta.FileID != id {
		return segment.Contents{}, fmt.Errorf("check segment file %s: %w: it is %.300s", id, ErrOtherSegment, f.meta.FileID)
	}
	return f.meta.Contents, nil
}

// Meta is what the footer says of the file.
func (f *File) Meta() Meta { return f.meta }

// Rows is the number of entries.
func (f *File) Rows() int64 { return f.meta.Count }

// First is the id of the first entry; zero when there is none.
func (f *File) First() segment.ID { return f.meta.FirstID }

// Last is the id of the last entry; zero when there is none.
func (f *File) Last() segment.ID { return f.meta.LastID }

// checkFrame looks at both ends of the file and returns where the footer
// begins. The library would take a footer's length on trust and allocate it.
func checkFrame(r io.ReaderAt, size int64) (footer int64, err error) {
	if size < int64(len(magic)+trailer) {
		return 0, fmt.Errorf("%w: %d bytes, fewer than any Parquet file has", ErrDamaged, size)
	}
	if _, far := r.(wanter); !far {
		if err := checkHead(r); err != nil {
			return 0, err
		}
	}
	var tail [trailer]byte
	if err := readAt(r, tail[:], size-int64(trailer)); err != nil {
		return 0, err
	}
	if string(tail[4:]) != magic {
		if err := checkHead(r); err != nil {
			return 0, err // not one that was cut short
		}
		return 0, fmt.Errorf("%w: it ends with %q and not with %q: cut short", ErrDamaged, tail[4:], magic)
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	footer = size - int64(trailer) - length
	if footer < int64(len(magic)) {
		return 0, fmt.Errorf("%w: a footer of %d bytes in a file of %d", ErrDamaged, length, size)
	}
	return footer, nil
}

// checkHead looks at how the file begins.
func checkHead(r io.ReaderAt) error {
	var head [len(magic)]byte
	if err := readAt(r, head[:], 0); err != nil {
		return err
	}
	if string(head[:]) != magic {
		return fmt.Errorf("%w: it begins with %q, a Parquet file with %q", ErrNotSegmentFile, head[:], magic)
	}
	return nil
}

// checkFooter looks whether all that the footer announces is there, and returns
// the end of the file.
func checkFooter(r io.ReaderAt, at, size int64) (*memory, error) {
	end := new(memory)
	if err := end.fill(r, []Extent{{At: at, Size: size - at}}); err != nil {
		return nil, err
	}
	if err := checkCompact(end.buf[:size-at-int64(trailer)]); err != nil {
		return nil, fmt.Errorf("%w: read footer: %w", ErrDamaged, err)
	}
	return end, nil
}

// pagesEnd is where the last page ends.
func pagesEnd(lib *parquet.File) int64 {
	end := int64(len(magic))
	for _, g := range lib.Metadata().RowGroups {
		for c := range g.Columns {
			m := &g.Columns[c].MetaData
			end = max(end, chunkStart(m)+m.TotalCompressedSize)
		}
	}
	return end
}

func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ErrDamaged, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), at, err)
}

// checkRows compares the three places where the number of rows stands.
func checkRows(lib *parquet.File, count int64) error {
	if lib.NumRows() != count {
		return fmt.Errorf("%w: %d rows, and metadata %s = %d", ErrDamaged, lib.NumRows(), keyCount, count)
	}
	var sum int64
	for i, g := range lib.Metadata().RowGroups {
		if len(g.Columns) != columns {
			return fmt.Errorf("%w: row group %d has %d columns and not %d", ErrDamaged, i, len(g.Columns), columns)
		}
		if ids := g.Columns[colID].MetaData.NumValues; g.NumRows <= 0 || ids != g.NumRows {
			return fmt.Errorf("%w: row group %d has %d rows and %d ids", ErrDamaged, i, g.NumRows, ids)
		}
		if k, v := g.Columns[colKey].MetaData.NumValues, g.Columns[colValue].MetaData.NumValues; k != v || k < g.NumRows {
			return fmt.Errorf("%w: row group %d has %d field names and %d values for %d rows", ErrDamaged, i, k, v, g.NumRows)
		}
		sum += g.NumRows
	}
	if sum != count {
		return fmt.Errorf("%w: its row groups have %d rows, and metadata %s = %d", ErrDamaged, sum, keyCount, count)
	}
	return nil
}
