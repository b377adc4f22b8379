package parquetfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// collect reads a range, the pages of a reading back put in order again.
func collect(ctx context.Context, f *File, b Between, back bool) ([]dataset.Entry, error) {
	var out []dataset.Entry
	fn := func(p *segment.Page, lo, hi int) error {
		if lo >= hi || hi > p.Len() {
			return fmt.Errorf("entries %d to %d of %d", lo, hi, p.Len())
		}
		some := dataset.Entries(p)[lo:hi]
		if back {
			out = append(some, out...)
		} else {
			out = append(out, some...)
		}
		return nil
	}
	if back {
		return out, f.ReadBack(ctx, b, fn)
	}
	return out, f.ReadBetween(ctx, b, fn)
}

// within is what a full scan has of a range.
func within(all []dataset.Entry, b Between) []dataset.Entry {
	var out []dataset.Entry
	for _, e := range all {
		if b.has(e.ID) {
			out = append(out, e)
		}
	}
	return out
}

// drawnEntries have ids whose text does not order as they do, gaps, and sizes
// that make pages of one entry and of many, and several row groups.
func drawnEntries(noise []byte) *rapid.Generator[[]dataset.Entry] {
	zeros := make([]byte, 300<<10)
	return rapid.Custom(func(t *rapid.T) []dataset.Entry {
		id := segment.ID{
			Ms:  rapid.SampledFrom([]uint64{0, 1, 8, 95, 99, 1_708_956_789_000, 9_999_999_999_998}).Draw(t, "ms"),
			Seq: rapid.SampledFrom([]uint64{1, 8, 9, 97, 99, 998}).Draw(t, "seq"),
		}
		out := make([]dataset.Entry, rapid.IntRange(1, 40).Draw(t, "n"))
		for i := range out {
			out[i] = dataset.Entry{ID: id, Fields: []dataset.Field{{Name: []byte("n"), Value: []byte(id.String())}}}
			switch kind := rapid.IntRange(0, 40).Draw(t, "kind"); {
			case kind == 0:
				out[i].Fields = append(out[i].Fields, dataset.Field{Name: []byte("noise"), Value: noise})
			case kind == 1:
				out[i].Fields = nil
			case kind < 6:
				size := rapid.SampledFrom([]int{130 << 10, 257 << 10}).Draw(t, "size")
				out[i].Fields = append(out[i].Fields, dataset.Field{Name: []byte("v"), Value: zeros[:size]})
			}
			if rapid.IntRange(0, 3).Draw(t, "step") > 0 {
				id.Seq += rapid.SampledFrom([]uint64{1, 1, 1, 2, 90}).Draw(t, "by")
			} else {
				id = segment.ID{Ms: id.Ms + rapid.SampledFrom([]uint64{1, 1, 2, 900}).Draw(t, "later"), Seq: rapid.SampledFrom([]uint64{0, 0, 9}).Draw(t, "seq")}
			}
		}
		return out
	})
}

// drawnBetween is a range with ends at, beside and far from what is there.
func drawnBetween(all []dataset.Entry) *rapid.Generator[Between] {
	end := rapid.Custom(func(t *rapid.T) segment.ID {
		id := all[rapid.IntRange(0, len(all)-1).Draw(t, "at")].ID
		switch rapid.IntRange(0, 6).Draw(t, "end") {
		case 0:
			return segment.ID{}
		case 1:
			return segment.MaxID()
		case 2:
			id, _ = id.Next()
		case 3:
			if id.Seq > 0 {
				id.Seq--
			}
		case 4:
			id.Seq = 0
		}
		return id
	})
	return rapid.Custom(func(t *rapid.T) Between {
		b := Between{From: end.Draw(t, "from"), To: end.Draw(t, "to")}
		if rapid.Bool().Draw(t, "point") {
			b.To = b.From
		}
		return b
	})
}

// Whatever is looked up, the answer is that of a full scan.
func TestBetweenIsAsAFullScan(t *testing.T) {
	was := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", "25"); err != nil { // megabytes each, of another seed at each run
		t.Fatal(err)
	}
	defer func() { _ = flag.Set("rapid.checks", was) }()
	noise := bytes.Repeat(largeValue(), 2)
	rapid.Check(t, func(t *rapid.T) {
		all := drawnEntries(noise).Draw(t, "entries")
		file := writeFile(t, goldenID, dataset.Pages(all, 10)...)
		source := far(file)
		near, err := Open(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		remote, err := Open(source, int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b := drawnBetween(all).Draw(t, "range")
			want := within(all, b)
			backward := rapid.Bool().Draw(t, "back")
			for i, f := range []*File{near, remote} {
				back := backward != (i == 1)
				got, err := collect(t.Context(), f, b, back)
				if err != nil {
					t.Fatalf("%s to %s, back %t, far %d: %v", b.From, b.To, back, i, err)
				}
				equalEntries(t, got, want)
			}
			if len(source.stray) > 0 {
				t.Fatalf("%s to %s: reads that were not announced: %v", b.From, b.To, source.stray)
			}
		}
	})
}

// A point is looked up with one block, two if it lies between them.
func TestPointReadsOneBlock(t *testing.T) {
	all := dataset.Envelope(1, 1024, 9000)
	file := writeFile(t, goldenID, dataset.Pages(all, 1000)...)
	source := far(file)
	f, err := Open(source, int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(all); i += 899 {
		for _, back := range []bool{false, true} {
			source.reads = nil
			id := all[i].ID
			got, err := collect(t.Context(), f, Between{From: id, To: id}, back)
			if err != nil {
				t.Fatal(err)
			}
			equalEntries(t, got, all[i:i+1])
			var bytes int64
			for _, r := range source.reads {
				bytes += r.Size
			}
			if len(source.reads) > 4 || bytes > blockBytes { // id, dictionary, names, values
				t.Errorf("%s: %d reads of %d bytes", id, len(source.reads), bytes)
			}
		}
	}
}

// Whoever has enough after one message has not had the whole file read.
func TestBetweenBeginsSmall(t *testing.T) {
	all := dataset.Envelope(1, 1024, 9000)
	file := writeFile(t, goldenID, dataset.Pages(all, 1000)...)
	errEnough := errors.New("enough")
	for name, read := range map[string]func(*File) error{
		"forward": func(f *File) error {
			return f.ReadBetween(t.Context(), Between{}, func(*segment.Page, int, int) error { return errEnough })
		},
		"back": func(f *File) error {
			return f.ReadBack(t.Context(), Between{}, func(*segment.Page, int, int) error { return errEnough })
		},
	} {
		source := far(file)
		f, err := Open(source, int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		if err := read(f); !errors.Is(err, errEnough) {
			t.Errorf("%s: error %v", name, err)
		}
		var bytes int64
		for _, r := range source.wanted {
			bytes += r.Size
		}
		if bytes == 0 || bytes > blockBytes {
			t.Errorf("%s: %d bytes are announced", name, bytes)
		}
	}
}

// A full scan announces all, and reads each byte of the pages once.
func TestReadReadsOnce(t *testing.T) {
	all := severalGroups()
	file := writeFile(t, goldenID, dataset.Pages(all, 1000)...)
	for name, read := range map[string]func(*File) ([]dataset.Entry, error){
		"read": func(f *File) (out []dataset.Entry, err error) {
			err = f.Read(t.Context(), func(p *segment.Page) error { out = append(out, dataset.Entries(p)...); return nil })
			return out, err
		},
		"between": func(f *File) ([]dataset.Entry, error) { return collect(t.Context(), f, Between{}, false) },
		"back":    func(f *File) ([]dataset.Entry, error) { return collect(t.Context(), f, Between{}, true) },
	} {
		t.Run(name, func(t *testing.T) {
			source := far(file)
			f, err := Open(source, int64(len(file)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(f)
			if err != nil {
				t.Fatal(err)
			}
			equalEntries(t, got, all)
			var bytes int64
			for _, r := range source.reads {
				bytes += r.Size
			}
			// A range is read in four steps at its beginning, each with the dictionary.
			if most := f.pagesEnd + 8*1024; bytes > most || len(source.stray) > 0 {
				t.Errorf("%d bytes are read of %d, %d times without a word", bytes, f.pagesEnd, len(source.stray))
			}
		})
	}
}

// No flipped bit of index or footer gives a wrong answer.
//
//fault:input | A bit of a file's page index or footer is flipped | every 47th byte of both, one after the other | the right messages or an error, never fewer or others
func TestIndexIsNotTrusted(t *testing.T) {
	all := indexedEntries()
	file := writeFile(t, goldenID, dataset.Pages(all, 10)...)
	good := openFile(t, file)
	ranges := []Between{
		{From: all[0].ID, To: all[0].ID}, {From: all[17].ID, To: all[17].ID}, {From: all[30].ID, To: all[44].ID},
		{From: all[len(all)-1].ID, To: all[len(all)-1].ID}, {To: all[2].ID}, {From: all[len(all)-3].ID},
	}
	wrong, refused := 0, 0
	for at := int(good.pagesEnd); at < len(file)-trailer; at += 47 {
		file[at] ^= 1 << (at % 8)
		f, err := Open(bytes.NewReader(file), int64(len(file)))
		for i, b := range ranges {
			if err != nil {
				refused++
				break
			}
			got, err := collect(t.Context(), f, b, i%2 == 1)
			if want := within(all, b); err == nil && !slices.EqualFunc(got, want, equalEntry) {
				wrong++
				t.Errorf("byte %d of the index: %d entries and no error, want %d", at-int(good.pagesEnd), len(got), len(want))
			} else if err != nil {
				refused++
			}
		}
		file[at] ^= 1 << (at % 8)
	}
	if wrong > 0 || refused == 0 {
		t.Errorf("%d wrong answers, %d refused", wrong, refused)
	}
}

// indexedEntries are two row groups of a dozen blocks each, at ids whose order
// as text is another.
func indexedEntries() []dataset.Entry {
	noise, zeros := largeValue(), make([]byte, 100<<10)
	var all []dataset.Entry
	for i := range 60 {
		v := zeros
		if i%5 == 0 {
			v = noise[:400<<10]
		}
		all = append(all, dataset.Entry{ID: segment.ID{Ms: dataset.FirstMs + uint64(i/25), Seq: uint64(i%25) * 7}, Fields: []dataset.Field{{Name: []byte("v"), Value: v}}})
	}
	return all
}

// What is read has to bear out where the index led.
func TestIndexThatLeadsElsewhere(t *testing.T) {
	all := indexedEntries()
	f := openFile(t, writeFile(t, goldenID, dataset.Pages(all, 10)...))
	found, _, err := f.find(Between{From: all[30].ID, To: all[30].ID})
	if err != nil || len(found.from) < 3 {
		t.Fatalf("%d blocks, %v", len(found.from), err)
	}
	for name, at := range map[string]int{"before it": 0, "behind it": len(found.from) - 1} {
		found.first, found.last = at, at
		s := newScan(func(*segment.Page) error { return nil })
		s.first = func(id segment.ID) error { return f.checkFirst(found, id) }
		err := f.scanRun(t.Context(), s, f.source, &single(f.some(found.fromGroup, found.from[at:at+1])).runs[0])
		if err == nil {
			err = f.checkLast(found, s.seen.LastID)
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "the page index leads to id") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Every edge case can be looked up.
func TestBetweenGoldenFiles(t *testing.T) {
	for _, c := range dataset.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			f := openFile(t, writeFile(t, goldenID, dataset.Pages(c.Entries, 100)...))
			for _, back := range []bool{false, true} {
				got, err := collect(t.Context(), f, Between{}, back)
				if err != nil {
					t.Fatal(err)
				}
				equalEntries(t, got, c.Entries)
				for i, e := range c.Entries[:min(len(c.Entries), 3)] {
					if back != (i == 1) { // each once
						continue
					}
					got, err := collect(t.Context(), f, Between{From: e.ID, To: e.ID}, back)
					if err != nil {
						t.Fatal(err)
					}
					equalEntries(t, got, []dataset.Entry{e})
				}
			}
		})
	}
}

// FuzzBetween damages a good file anywhere: an answer is right, or an error.
func FuzzBetween(f *testing.F) {
	all := indexedEntries()
	file := writeFile(f, goldenID, dataset.Pages(all, 10)...)
	index := len(file) - trailer - int(binary.LittleEndian.Uint32(file[len(file)-trailer:]))
	f.Add(uint(4), []byte{1}, uint(3))
	f.Add(uint(index), []byte{0xff}, uint(30))
	f.Fuzz(func(t *testing.T, at uint, with []byte, which uint) {
		bad := bytes.Clone(file)
		for i, b := range with {
			bad[(at+uint(i))%uint(len(bad))] ^= b //nolint:gosec // not negative
		}
		o, err := Open(bytes.NewReader(bad), int64(len(bad)))
		if err != nil {
			return
		}
		e := all[which%uint(len(all))]
		got, err := collect(t.Context(), o, Between{From: e.ID, To: e.ID}, which%2 == 0)
		if err != nil && errors.Is(err, io.EOF) {
			t.Fatalf("the end of the file is an error of its own: %v", err)
		}
		if err == nil && (len(got) != 1 || got[0].ID != e.ID) {
			t.Fatalf("%d entries", len(got))
		}
	})
}
