package restore

import (
	"errors"
	"os"
	"strings"
	"testing"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

func TestFetch(t *testing.T) {
	w := newWorld(t)
	e := w.put(orders, 1, 0, "", messages(0, 300))
	r, of := w.restorer(), parquetfile.FileID{StreamKey: w.layout.StreamKey(orders), Segment: 1}
	size, path := e.Object.Bytes, e.Object.Path
	try := func(want Object, of parquetfile.FileID) error {
		f, err := r.fetch(t.Context(), path, want, of)
		if err == nil {
			f.close()
		}
		return err
	}
	if err := try(Object{Size: size}, of); err != nil { // the entry tells of no checksum
		t.Error(err)
	}
	if err := try(Object{Size: size + 1}, of); !errors.Is(err, parquetfile.ErrDamaged) {
		t.Errorf("another size: %v", err)
	}
	if err := try(Object{Size: size, SHA256: strings.Repeat("0", 64)}, of); !errors.Is(err, parquetfile.ErrDamaged) {
		t.Errorf("another checksum: %v", err)
	}
	if err := try(Object{Size: size}, parquetfile.FileID{StreamKey: of.StreamKey, Segment: 2}); !errors.Is(err, parquetfile.ErrOtherSegment) {
		t.Errorf("another segment: %v", err)
	}
	r.Temp = func() (Temp, error) { return nil, os.ErrPermission }
	if err := try(Object{Size: size}, of); !errors.Is(err, os.ErrPermission) {
		t.Errorf("no temporary file: %v", err)
	}
	r.Temp = func() (Temp, error) { return fullDisk{}, nil }
	if err := try(Object{Size: size}, of); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a full disk: %v", err)
	}
	r = w.restorer()
	w.store.Corrupt(path)
	if err := try(Object{Size: size}, of); !damaged(err) {
		t.Errorf("a flipped byte, and no checksum: %v", err)
	}
}

// fullDisk takes nothing.
type fullDisk struct{ Temp }

func (fullDisk) Write([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
func (fullDisk) Close() error              { return nil }

// The estimate counts what Redis needs: nodes of 100 entries or 4 KiB, each with the
// names of its first entry, and the names of an entry that has others.
func TestEstimateOfASample(t *testing.T) {
	page := func(n int, value string, names ...string) *segment.Page {
		p := new(segment.Page)
		for i := range n {
			p.Entry(segment.ID{Ms: uint64(1 + i)})
			_ = p.Field([]byte(names[i%len(names)]), []byte(value)) // far from being too long
		}
		return p
	}
	const named, small = 4 + fieldBytes, entryBytes + 1 + fieldBytes
	for name, c := range map[string]struct {
		page *segment.Page
		want float64
	}{
		"one node":       {page(100, "v", "name"), nodeOverhead + named + 100*small},
		"two nodes":      {page(101, "v", "name"), 2*(nodeOverhead+named) + 101*small},
		"large values":   {page(3, strings.Repeat("v", 3000), "name"), 3 * (nodeOverhead + named + entryBytes + 3000 + fieldBytes)},
		"changing names": {page(4, "v", "name", "eman"), nodeOverhead + named + 4*small + 2*named},
	} {
		var s sample
		if s.add(c.page); s.bytes != c.want {
			t.Errorf("%s: %f bytes, want %f", name, s.bytes, c.want)
		}
	}
	if each := new(sample).each(); each != 0 {
		t.Errorf("of nothing: %f", each)
	}
}
