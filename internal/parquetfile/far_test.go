package parquetfile

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// farFile is a file that is far away: it holds its readers to what they said.
type farFile struct {
	*bytes.Reader
	tail   int64 // what lies behind is at hand
	wanted []Extent
	reads  []Extent
	stray  []Extent // reads that were not announced
}

// far makes a file whose index and footer are at hand.
func far(file []byte) *farFile {
	f := &farFile{Reader: bytes.NewReader(file)}
	if o, err := Open(f.Reader, int64(len(file))); err == nil {
		f.tail = o.pagesEnd
	}
	return f
}

func (f *farFile) Want(extents []Extent) { f.wanted = slices.Clone(extents) }

func (f *farFile) ReadAt(b []byte, at int64) (int, error) {
	if at < f.tail {
		read := Extent{At: at, Size: int64(len(b))}
		f.reads = append(f.reads, read)
		if !slices.Contains(f.wanted, read) {
			f.stray = append(f.stray, read)
		}
	}
	return f.Reader.ReadAt(b, at)
}

// brokenFile fails as a network does.
type brokenFile struct {
	*farFile
	err error
}

func (f *brokenFile) ReadAt(b []byte, at int64) (int, error) {
	if at < f.tail && f.err != nil {
		return 0, f.err
	}
	return f.farFile.ReadAt(b, at)
}

// An error of the network is not called damage.
//
//fault:input | The store fails while a segment file is read | a source that fails at every read of pages | that error, and not ErrDamaged
func TestNetworkErrorsAreNotDamage(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Pages(severalGroups(), 1000)...)
	source := &brokenFile{farFile: far(file)}
	f, err := Open(source, int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	source.err = errors.New("connection reset")
	_, between := collect(t.Context(), f, Between{}, false)
	_, back := collect(t.Context(), f, Between{}, true)
	read := f.Read(t.Context(), func(*segment.Page) error { return nil })
	source.tail = int64(len(file)) // now also the index
	again := &File{source: source, lib: f.lib, meta: f.meta, pagesEnd: f.pagesEnd, footer: f.footer}
	_, index := collect(t.Context(), again, Between{}, false)
	_, open := Open(source, int64(len(file)))
	for i, err := range []error{between, back, read, index, open} {
		if !errors.Is(err, source.err) || errors.Is(err, ErrDamaged) {
			t.Errorf("%d: error %v", i, err)
		}
	}
}
