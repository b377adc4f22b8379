package parquetfile

import (
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// anyEntries draws entries with ascending ids and arbitrary fields: none, many,
// duplicates, empty names and values, any byte in a value.
func anyEntries(t *rapid.T) []dataset.Entry {
	names := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "value", "key"}), rapid.String())
	field := rapid.Custom(func(t *rapid.T) dataset.Field {
		return dataset.Field{
			Name:  []byte(names.Draw(t, "name")),
			Value: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "value"),
		}
	})
	var id segment.ID
	entry := rapid.Custom(func(t *rapid.T) dataset.Entry {
		if rapid.Bool().Draw(t, "next ms") {
			id = segment.ID{Ms: id.Ms + rapid.Uint64Range(1, 1<<40).Draw(t, "ms"), Seq: rapid.Uint64Range(0, 20).Draw(t, "seq")}
		} else {
			id.Seq += rapid.Uint64Range(1, 1<<40).Draw(t, "seq")
		}
		return dataset.Entry{ID: id, Fields: rapid.SliceOfN(field, 0, 6).Draw(t, "fields")}
	})
	return rapid.SliceOfN(entry, 0, 50).Draw(t, "entries")
}

func TestWriteRead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := anyEntries(rt)
		file := writeFile(rt, goldenID, dataset.Pages(entries, rapid.IntRange(1, 60).Draw(rt, "page"))...)
		got, err := tryReadFile(t, file)
		if err != nil {
			rt.Fatalf("read: %v", err)
		}
		equalEntries(rt, got, entries)
	})
}

// cutAnywhere cuts entries into pages of arbitrary sizes, empty ones too.
func cutAnywhere(rnd *rand.Rand, entries []dataset.Entry) []*segment.Page {
	var pages []*segment.Page
	for len(entries) > 0 {
		n := rnd.IntN(1 + min(len(entries), 1<<rnd.IntN(12)))
		pages = append(pages, dataset.Page(entries[:n]...))
		entries = entries[n:]
	}
	return pages
}

// TestCutsDoNotShow checks that a file depends on its entries and not on the
// calls that brought them, over several blocks and row groups.
func TestCutsDoNotShow(t *testing.T) {
	entries := severalGroups()
	file := writeFile(t, goldenID, dataset.Pages(entries, 1)...)
	if f := openFile(t, file); len(f.lib.RowGroups()) < 3 {
		t.Fatalf("%d row groups: too few to see where they end", len(f.lib.RowGroups()))
	}
	want := sha256.Sum256(file)
	for seed := range uint64(5) {
		pages := cutAnywhere(rand.New(rand.NewPCG(seed, 0)), entries)
		if sha256.Sum256(writeFile(t, goldenID, pages...)) != want {
			t.Errorf("seed %d: the cuts show in the file", seed)
		}
	}
}

// severalGroups are entries of every size, some of which fill blocks alone.
func severalGroups() []dataset.Entry {
	noise := largeValue()
	entries := dataset.Envelope(5, 100, 2500)
	for i := range entries {
		switch {
		case i%500 == 10:
			entries[i].Fields = nil
		case i%50 == 20 && i < 1200:
			size := 200<<10 + i*331%(600<<10) // below and above a block
			entries[i].Fields = append(entries[i].Fields, dataset.Field{Name: []byte("big"), Value: noise[:size]})
		}
	}
	return entries
}

// largeValue is 800 KiB that do not compress.
func largeValue() []byte {
	b := make([]byte, 800<<10)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(rnd.Uint64())
	}
	return b
}

func TestClose(t *testing.T) {
	entries := dataset.Envelope(1, 10, 5)
	w := NewWriter(io.Discard, goldenID)
	got := writeAll(t, w, dataset.Page(entries...))
	want := segment.Contents{FirstID: entries[0].ID, LastID: entries[4].ID, Count: 5}
	if got != want {
		t.Errorf("contents %+v, want %+v", got, want)
	}
	if err := w.Write(dataset.Page()); err == nil {
		t.Error("a closed writer takes a page")
	}
	if _, err := w.Close(); err == nil {
		t.Error("a closed writer is closed once more")
	}
}

func TestOrder(t *testing.T) {
	a, b := segment.ID{Ms: 5, Seq: 9}, segment.ID{Ms: 5, Seq: 10}
	for _, c := range []struct {
		name  string
		pages []*segment.Page
	}{
		{"twice in a page", []*segment.Page{dataset.Page(dataset.Entry{ID: a}, dataset.Entry{ID: a})}},
		{"backwards in a page", []*segment.Page{dataset.Page(dataset.Entry{ID: b}, dataset.Entry{ID: a})}},
		{"twice over pages", []*segment.Page{dataset.Page(dataset.Entry{ID: a}), dataset.Page(dataset.Entry{ID: a})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := writeUntilError(c.pages...)
			if !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), "5-9") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func writeUntilError(pages ...*segment.Page) error {
	w := NewWriter(io.Discard, goldenID)
	for _, p := range pages {
		if err := w.Write(p); err != nil {
			return err
		}
	}
	_, err := w.Close()
	return err
}

func TestFieldName(t *testing.T) {
	long := strings.Repeat("x", 10_000) + "\xff"
	for _, name := range []string{"\xff", "a\xc3", "\xed\xa0\x80", long} {
		err := writeUntilError(dataset.Page(
			dataset.Entry{ID: segment.ID{Ms: 7, Seq: 1}},
			dataset.Entry{ID: segment.ID{Ms: 7, Seq: 2}, Fields: []dataset.Field{{Name: []byte("ok")}, {Name: []byte(name)}}},
		))
		if !errors.Is(err, segment.ErrFieldName) {
			t.Fatalf("%.10q: error %v", name, err)
		}
		if msg := err.Error(); !strings.Contains(msg, "7-2") || len(msg) > 200 || strings.Contains(msg, "\n") {
			t.Errorf("%.10q: message %q", name, msg)
		}
	}
}

// TestTooLarge names one region of memory many times, so that an entry of
// more than 2 GiB needs no such memory.
func TestTooLarge(t *testing.T) {
	const size = 64 << 20
	p := new(segment.Page)
	p.SetBuffer(make([]byte, size))
	p.Entry(segment.ID{Ms: 1})
	for range 33 {
		p.FieldAt(0, 0, 0, size)
	}
	err := writeUntilError(p)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "1-0") {
		t.Errorf("error %v", err)
	}
}

// TestErrorStays checks that a file is lost with its first error.
func TestErrorStays(t *testing.T) {
	w := NewWriter(io.Discard, goldenID)
	bad := dataset.Page(dataset.Entry{ID: segment.ID{Ms: 1}, Fields: []dataset.Field{{Name: []byte{0xff}}}})
	first := w.Write(bad)
	if first == nil {
		t.Fatal("a bad name was taken")
	}
	if err := w.Write(dataset.Page(dataset.Entry{ID: segment.ID{Ms: 2}})); !errors.Is(err, first) {
		t.Errorf("next write: %v", err)
	}
	if _, err := w.Close(); !errors.Is(err, first) {
		t.Errorf("close: %v", err)
	}
}

// failing is a destination that fails, or panics, after so many bytes.
type failing struct {
	left   int
	panics bool
}

var errDisk = errors.New("no space left")

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left >= 0 {
		return len(b), nil
	}
	if f.panics {
		panic("destination broken")
	}
	return 0, errDisk
}

func TestDestinationFails(t *testing.T) {
	small, large := dataset.Envelope(1, 100, 50), dataset.Envelope(1, 1000, 12_000)
	size := len(writeFile(t, goldenID, dataset.Pages(small, 1000)...))
	half := len(writeFile(t, goldenID, dataset.Pages(large, 1000)...)) / 2
	for _, left := range []int{0, 3, 4, 100, size - trailer, size - 1, half} {
		entries := small
		if left == half { // in the middle of the writing, behind some row groups
			entries = large
		}
		w := NewWriter(&failing{left: left}, goldenID)
		if err := closeAfter(w, entries); !errors.Is(err, errDisk) {
			t.Errorf("after %d of %d bytes: error %v", left, size, err)
		}
		w = NewWriter(&failing{left: left, panics: true}, goldenID)
		if err := closeAfter(w, entries); err == nil || !strings.Contains(err.Error(), "destination broken") {
			t.Errorf("panic after %d of %d bytes: error %v", left, size, err)
		}
	}
}

func closeAfter(w *Writer, entries []dataset.Entry) error {
	for _, p := range dataset.Pages(entries, 1000) {
		if err := w.Write(p); err != nil {
			return err
		}
	}
	_, err := w.Close()
	return err
}
