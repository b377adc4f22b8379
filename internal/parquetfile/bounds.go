package parquetfile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The library allocates what a file says it needs. The checks of this file
// come first, and hold that to a multiple of the file's own size.

// expansion is more than Snappy can do: 3 bytes stand for 64 at most.
const expansion = 22

// maxPageHeader is far more than the header of a page without statistics has.
const maxPageHeader = 512

// checkChunks refuses column chunks that reach beyond the pages (end is where
// the footer begins), that are not SNAPPY, or that claim more values than
// their bytes can hold.
func checkChunks(lib *parquet.File, end int64) error {
	for i, g := range lib.Metadata().RowGroups {
		for c := range g.Columns {
			if err := checkChunk(&g.Columns[c].MetaData, c, g.NumRows, end); err != nil {
				return fmt.Errorf("%w: row group %d, column %d: %w", ErrDamaged, i, c, err)
			}
		}
	}
	return nil
}

func checkChunk(m *format.ColumnMetaData, c int, rows, end int64) error {
	at, size, plain := chunkStart(m), m.TotalCompressedSize, m.TotalUncompressedSize
	// A null takes no byte, and each row has one at most. An id differs from
	// the one before it, and a value has its length in front. The names are as
	// many as the values.
	most := plain
	if c == colValue {
		most = rows + plain/4
	}
	switch {
	case m.Codec != format.Snappy:
		return fmt.Errorf("its codec is %s and not SNAPPY", m.Codec)
	case at < int64(len(magic)) || size <= 0 || size > end || at > end-size:
		return fmt.Errorf("%d bytes at %d, and the pages end at %d", size, at, end)
	case plain < 0 || plain/expansion > size:
		return fmt.Errorf("%d bytes can't hold %d", size, plain)
	case c != colKey && m.NumValues > most:
		return fmt.Errorf("%d bytes can't hold %d values", plain, m.NumValues)
	}
	return nil
}

// chunkStart is where the first page of a column chunk lies.
func chunkStart(m *format.ColumnMetaData) int64 {
	if m.DictionaryPageOffset != 0 {
		return m.DictionaryPageOffset
	}
	return m.DataPageOffset
}

// pageHead is what the header of a page says.
type pageHead struct {
	size   int64 // of the page with its header, bytes
	values int64
}

// checkPages walks over the page headers of a part of a column chunk that has
// passed checkChunk.
func checkPages(r io.ReaderAt, where Extent, m *format.ColumnMetaData) ([]pageHead, error) {
	var head [maxPageHeader]byte
	var found []pageHead
	at, end := where.At, where.At+where.Size
	for at < end {
		n := min(end-at, maxPageHeader)
		if err := readAt(r, head[:n], at); err != nil {
			return nil, err
		}
		page, err := checkPage(head[:n], end-at, m.NumValues)
		if err != nil {
			return nil, fmt.Errorf("%w: page at %d: %w", ErrDamaged, at, err)
		}
		found = append(found, page)
		at += page.size
	}
	return found, nil
}

// checkPage looks at the page that begins with head, in a stretch that has left
// bytes from there on.
func checkPage(head []byte, left, values int64) (pageHead, error) {
	reader := new(thrift.CompactProtocol).NewReaderFromBytes(head)
	var h format.PageHeader
	if err := thrift.NewDecoder(reader).Decode(&h); err != nil {
		return pageHead{}, fmt.Errorf("read header: %w", err)
	}
	body := reader.BytesRead()
	packed, plain := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	if packed <= 0 || int64(body)+packed > left {
		return pageHead{}, fmt.Errorf("%d bytes where %d are left", packed, left-int64(body))
	}
	// A Snappy block begins with the length of what it holds.
	length, n := binary.Uvarint(head[body:])
	if n <= 0 || int64(length) != plain || plain/expansion > packed {
		return pageHead{}, fmt.Errorf("%d bytes can't hold %d", packed, plain)
	}
	page := pageHead{size: int64(body) + packed, values: int64(h.DataPageHeader.V.NumValues)}
	switch {
	case h.Type == format.DictionaryPage && int64(h.DictionaryPageHeader.V.NumValues) <= plain/4:
	case h.Type == format.DataPage && page.values <= values:
	default:
		return pageHead{}, fmt.Errorf("%s that is not expected, or has more values than the column", h.Type)
	}
	return page, nil
}
