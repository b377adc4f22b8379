package parquetfile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// TestSchema compares the schema with that of docs/file-format.md.
func TestSchema(t *testing.T) {
	const want = `message segment {
	required binary id (STRING);
	required group fields (MAP) {
		repeated group key_value {
			required binary key (STRING);
			required binary value;
		}
	}
}`
	f := openFile(t, writeFile(t, goldenID))
	if got := f.lib.Schema().String(); got != want {
		t.Errorf("schema\n%s\nwant\n%s", got, want)
	}
}

func TestFooter(t *testing.T) {
	f := openFile(t, writeFile(t, goldenID, dataset.Pages(severalGroups(), 1000)...))
	meta := f.lib.Metadata()
	if meta.CreatedBy != createdBy {
		t.Errorf("created by %q", meta.CreatedBy)
	}
	for i, g := range meta.RowGroups {
		if len(g.SortingColumns) > 0 {
			t.Errorf("row group %d declares an order", i)
		}
		for c := range g.Columns {
			checkFooterChunk(t, &g.Columns[c], c)
		}
	}
}

func checkFooterChunk(t *testing.T, chunk *format.ColumnChunk, c int) {
	t.Helper()
	m := &chunk.MetaData
	path := [][]string{{"id"}, {"fields", "key_value", "key"}, {"fields", "key_value", "value"}}[c]
	if !slices.Equal(m.PathInSchema, path) {
		t.Errorf("column %d: path %q", c, m.PathInSchema)
	}
	if m.Codec != format.Snappy {
		t.Errorf("column %d: codec %s", c, m.Codec)
	}
	want := []format.Encoding{format.DeltaByteArray, format.RLEDictionary, format.Plain}[c]
	for _, s := range m.EncodingStats {
		if s.PageType == format.DataPage && s.Encoding != want || s.PageType == format.DataPageV2 {
			t.Errorf("column %d: %d pages of %s %s", c, s.Count, s.PageType, s.Encoding)
		}
	}
	if chunk.OffsetIndexOffset == 0 {
		t.Errorf("column %d: no offset index", c)
	}
	// Bounds of ids alone: names and values would repeat what comes from outside.
	if bounds := m.Statistics.MinValue != nil; bounds != (c == colID) {
		t.Errorf("column %d: bounds in its statistics: %t", c, bounds)
	}
	if index := chunk.ColumnIndexOffset != 0; index != (c == colID) {
		t.Errorf("column %d: a column index: %t", c, index)
	}
}

// TestPageIndex checks that the page of an id can be found without reading
// the others: the bounds of each page are those of its ids, as text.
func TestPageIndex(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Pages(dataset.Envelope(1, 100, 20_000), 1000)...)
	lib, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range lib.RowGroups() {
		chunk := g.ColumnChunks()[colID]
		index, err := chunk.ColumnIndex()
		if err != nil {
			t.Fatal(err)
		}
		pages := chunk.Pages()
		for i := range index.NumPages() {
			ids := pageValues(t, pages)
			if lo := slices.Min(ids); lo != string(index.MinValue(i).ByteArray()) {
				t.Errorf("page %d: least id %s, index says %s", i, lo, index.MinValue(i))
			}
			if hi := slices.Max(ids); hi != string(index.MaxValue(i).ByteArray()) {
				t.Errorf("page %d: greatest id %s, index says %s", i, hi, index.MaxValue(i))
			}
		}
		if err := pages.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func pageValues(t *testing.T, pages parquet.Pages) []string {
	t.Helper()
	page, err := pages.ReadPage()
	if err != nil {
		t.Fatal(err)
	}
	defer parquet.Release(page)
	values := make([]parquet.Value, page.NumValues())
	if n, err := page.Values().ReadValues(values); n != len(values) {
		t.Fatalf("%d of %d values: %v", n, len(values), err)
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v.ByteArray())
	}
	return out
}

// TestPages reads every page's header: small, without statistics, with a
// checksum; and checks that blocks end where they should.
func TestPages(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Pages(severalGroups(), 1000)...)
	f := openFile(t, file)
	for _, g := range f.lib.Metadata().RowGroups {
		for c := range g.Columns {
			m := &g.Columns[c].MetaData
			at := m.DataPageOffset
			if m.DictionaryPageOffset != 0 {
				at = m.DictionaryPageOffset
			}
			checkPageHeaders(t, file[at:at+m.TotalCompressedSize])
		}
	}
}

func checkPageHeaders(t *testing.T, chunk []byte) {
	t.Helper()
	for len(chunk) > 0 {
		r := bytes.NewReader(chunk)
		var h format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r)).Decode(&h); err != nil {
			t.Fatal(err)
		}
		size := len(chunk) - r.Len()
		if size > 64 {
			t.Errorf("page header of %d bytes", size)
		}
		body := chunk[size : size+int(h.CompressedPageSize)]
		if uint32(h.CRC) != crc32.ChecksumIEEE(body) {
			t.Errorf("checksum %x, want %x", uint32(h.CRC), crc32.ChecksumIEEE(body))
		}
		if h.DataPageHeader.Valid && h.DataPageHeader.V.Statistics.MinValue != nil {
			t.Error("a page header has statistics")
		}
		if h.UncompressedPageSize > blockBytes && h.DataPageHeader.V.NumValues > 5 {
			t.Errorf("page of %d bytes with %d values", h.UncompressedPageSize, h.DataPageHeader.V.NumValues)
		}
		chunk = chunk[size+len(body):]
	}
}

// TestRowGroupsEndInTime checks that a row group is closed by what it holds
// compressed, and that a large value does not join a group that is full.
func TestRowGroupsEndInTime(t *testing.T) {
	f := openFile(t, writeFile(t, goldenID, dataset.Pages(severalGroups(), 1000)...))
	groups := f.lib.Metadata().RowGroups
	for i, g := range groups {
		if g.TotalCompressedSize > groupBytes+1<<20 {
			t.Errorf("row group %d has %d bytes", i, g.TotalCompressedSize)
		}
		if i < len(groups)-1 && g.TotalCompressedSize < groupBytes {
			t.Errorf("row group %d has only %d bytes", i, g.TotalCompressedSize)
		}
	}
}

// TestDictionaryFallsBack checks that names are written plainly once there are
// too many, and with the dictionary again in the next row group.
func TestDictionaryFallsBack(t *testing.T) {
	var entries []dataset.Entry
	for _, c := range dataset.Cases() {
		if c.Name == "many-names" {
			entries = c.Entries
		}
	}
	f := openFile(t, writeFile(t, goldenID, dataset.Pages(entries, 1000)...))
	seen := make(map[format.Encoding]bool)
	for _, g := range f.lib.Metadata().RowGroups {
		for _, s := range g.Columns[colKey].MetaData.EncodingStats {
			if s.PageType == format.DataPage {
				seen[s.Encoding] = true
			}
		}
	}
	if !seen[format.Plain] || !seen[format.RLEDictionary] {
		t.Errorf("encodings of names: %v", seen)
	}
}

// TestFooterLength checks the frame that readers start from.
func TestFooterLength(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Page(dataset.Envelope(1, 100, 10)...))
	at := len(file) - trailer
	length := int(binary.LittleEndian.Uint32(file[at:]))
	var meta format.FileMetaData
	r := bytes.NewReader(file[at-length : at])
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r)).Decode(&meta); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 {
		t.Errorf("%d bytes follow the metadata: %v", len(rest), err)
	}
}

// TestLongNames checks that names from outside do not grow the footer.
func TestLongNames(t *testing.T) {
	name := bytes.Repeat([]byte("n"), 2<<20)
	p := dataset.Page(
		dataset.Entry{ID: segment.ID{Ms: 1}, Fields: []dataset.Field{{Name: name, Value: []byte("v")}}},
		dataset.Entry{ID: segment.ID{Ms: 2}, Fields: []dataset.Field{{Name: name[1:], Value: []byte("v")}}},
	)
	file := writeFile(t, goldenID, p)
	if length := binary.LittleEndian.Uint32(file[len(file)-trailer:]); length > 4096 {
		t.Errorf("footer of %d bytes", length)
	}
	equalEntries(t, readFile(t, file), dataset.Entries(p))
}

// TestLargeEntryStandsAlone checks that an entry as large as a row group gets
// one of its own, between small ones.
func TestLargeEntryStandsAlone(t *testing.T) {
	noise := largeValue()
	var entries []dataset.Entry
	for i := range 9 {
		e := dataset.Entry{ID: segment.ID{Ms: uint64(i) + 1}}
		if i%3 == 1 {
			e.Fields = []dataset.Field{{Name: []byte("big"), Value: bytes.Repeat(noise, 6)}}
		}
		entries = append(entries, e)
	}
	f := openFile(t, writeFile(t, goldenID, dataset.Pages(entries, 2)...))
	var rows []int64
	for _, g := range f.lib.Metadata().RowGroups {
		rows = append(rows, g.NumRows)
	}
	if want := []int64{1, 1, 2, 1, 2, 1, 1}; !slices.Equal(rows, want) {
		t.Errorf("rows of the groups %v, want %v", rows, want)
	}
}
