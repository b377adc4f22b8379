package parquetfile

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// reindexed is that file, of indexedEntries, whose index of the first row group's
// ids, and where its values lie, was changed.
func reindexed(t *testing.T, file []byte, change func(*format.ColumnIndex, *format.OffsetIndex)) *File {
	t.Helper()
	f := openFile(t, file)
	chunks := f.lib.Metadata().RowGroups[0].Columns
	var bounds format.ColumnIndex
	var places format.OffsetIndex
	ids, values := &chunks[colID], &chunks[colValue]
	if err := f.decode(ids.ColumnIndexOffset, int64(ids.ColumnIndexLength), &bounds); err != nil {
		t.Fatal(err)
	}
	if err := f.decode(values.OffsetIndexOffset, int64(values.OffsetIndexLength), &places); err != nil {
		t.Fatal(err)
	}
	change(&bounds, &places)
	add := func(what any) (at int64, size int32) {
		b, err := thrift.Marshal(new(thrift.CompactProtocol), what)
		if err != nil {
			t.Fatal(err)
		}
		at = f.pagesEnd + int64(len(f.index))
		f.index = append(f.index, b...)
		f.footer = f.pagesEnd + int64(len(f.index))
		return at, int32(len(b)) //nolint:gosec // a test's
	}
	ids.ColumnIndexOffset, ids.ColumnIndexLength = add(&bounds)
	values.OffsetIndexOffset, values.OffsetIndexLength = add(&places)
	return f
}

// An index that contradicts itself, the footer or another column's is refused.
//
//fault:input | The page index of a file contradicts itself, or the footer | each thing that it says is changed, one after the other | ErrDamaged that says what
func TestIndexContradicts(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Pages(indexedEntries(), 10)...)
	for _, c := range []struct {
		name, says string
		change     func(*format.ColumnIndex, *format.OffsetIndex)
	}{
		{"nothing", "", func(*format.ColumnIndex, *format.OffsetIndex) {}},
		{"pages out of order", "bounds do not ascend", func(i *format.ColumnIndex, _ *format.OffsetIndex) {
			i.MinValues[1], i.MinValues[2] = i.MinValues[2], i.MinValues[1]
			i.MaxValues[1], i.MaxValues[2] = i.MaxValues[2], i.MaxValues[1]
		}},
		{"a bound beyond the footer's", "and the footer says", func(i *format.ColumnIndex, _ *format.OffsetIndex) {
			i.MaxValues[len(i.MaxValues)-1] = []byte("9708956789000-0")
		}},
		{"a bound that is no id", "stream id", func(i *format.ColumnIndex, _ *format.OffsetIndex) { i.MinValues[0] = []byte("x") }},
		{"a bound less", "upper bounds", func(i *format.ColumnIndex, _ *format.OffsetIndex) { i.MaxValues = i.MaxValues[1:] }},
		{"a page less", "have bounds", func(_ *format.ColumnIndex, i *format.OffsetIndex) { i.PageLocations = i.PageLocations[1:] }},
		{"a gap", "where", func(_ *format.ColumnIndex, i *format.OffsetIndex) { i.PageLocations[2].Offset++ }},
		{"a page without bytes", "where", func(_ *format.ColumnIndex, i *format.OffsetIndex) { i.PageLocations[1].CompressedPageSize = -1 }},
		{"an end before the chunk's", "its pages end at", func(_ *format.ColumnIndex, i *format.OffsetIndex) {
			i.PageLocations[len(i.PageLocations)-1].CompressedPageSize--
		}},
		{"other rows", "and that of the ids", func(_ *format.ColumnIndex, i *format.OffsetIndex) { i.PageLocations[1].FirstRowIndex++ }},
		{"rows that begin late", "begins with row", func(_ *format.ColumnIndex, i *format.OffsetIndex) { i.PageLocations[0].FirstRowIndex = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := reindexed(t, file, c.change).find(Between{})
			if c.says == "" && err == nil {
				return
			}
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}

// Where the index lies is checked before it is read.
func TestIndexElsewhere(t *testing.T) {
	for name, move := range map[string]func(*format.ColumnChunk, *File){
		"among the pages": func(c *format.ColumnChunk, _ *File) { c.ColumnIndexOffset = 4 },
		"in the footer":   func(c *format.ColumnChunk, f *File) { c.ColumnIndexOffset = f.footer - 1 },
		"not there":       func(c *format.ColumnChunk, _ *File) { c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0 },
		"negative":        func(c *format.ColumnChunk, _ *File) { c.ColumnIndexLength = -1 },
		"pages before the chunk": func(c *format.ColumnChunk, _ *File) {
			c.MetaData.DictionaryPageOffset = c.MetaData.DataPageOffset + 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := openFile(t, writeFile(t, goldenID, dataset.Page(dataset.Envelope(1, 100, 100)...)))
			move(&f.lib.Metadata().RowGroups[0].Columns[colID], f)
			if _, _, err := f.find(Between{}); !errors.Is(err, ErrDamaged) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Row groups whose bounds contradict each other or the metadata are refused.
func TestGroupsContradict(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Pages(indexedEntries(), 10)...)
	for name, spoil := range map[string]func(*File){
		"out of order":     func(f *File) { slices.Reverse(f.lib.Metadata().RowGroups) },
		"no bounds":        func(f *File) { f.lib.Metadata().RowGroups[1].Columns[colID].MetaData.Statistics.MinValue = nil },
		"before the first": func(f *File) { f.meta.FirstID = f.meta.LastID },
		"behind the last":  func(f *File) { f.meta.LastID = f.meta.FirstID },
	} {
		t.Run(name, func(t *testing.T) {
			f := openFile(t, file)
			spoil(f)
			if _, _, err := f.find(Between{}); !errors.Is(err, ErrDamaged) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// The headers of the pages have to be as the index says.
func TestPageHeadersAgainstTheIndex(t *testing.T) {
	f := openFile(t, writeFile(t, goldenID, dataset.Pages(indexedEntries(), 10)...))
	for _, c := range []struct {
		name, says string
		spoil      func(*run)
	}{
		{"nothing", "", func(*run) {}},
		{"rows", "values, and", func(r *run) { r.blocks[1].rows++ }},
		{"size", "where the index says", func(r *run) { r.blocks[1].pages[colKey].Size++ }},
		{"pages", "pages where the index has", func(r *run) { r.blocks = r.blocks[1:] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocks, err := f.blocks(0)
			if err != nil {
				t.Fatal(err)
			}
			r := f.some(0, blocks)
			c.spoil(&r)
			err = f.checkRun(f.source, &r)
			if c.says == "" && err == nil {
				return
			}
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}

// A far file that is none is told from one that was cut short, and its
// beginning is looked at by the full scan.
func TestFarFrame(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Page(dataset.Envelope(1, 100, 10)...))
	open := func(b []byte) error {
		f, err := Open(far(b), int64(len(b)))
		if err != nil {
			return err
		}
		return f.Read(t.Context(), func(*segment.Page) error { return nil })
	}
	if err := open(file); err != nil {
		t.Error(err)
	}
	if err := open(bytes.Repeat([]byte("x"), 100)); !errors.Is(err, ErrNotSegmentFile) {
		t.Errorf("not Parquet: %v", err)
	}
	if err := open(file[:len(file)-1]); !errors.Is(err, ErrDamaged) {
		t.Errorf("cut short: %v", err)
	}
	file[0] ^= 1
	if err := open(file); !errors.Is(err, ErrNotSegmentFile) {
		t.Errorf("another beginning: %v", err)
	}
}
