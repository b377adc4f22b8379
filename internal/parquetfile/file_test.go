package parquetfile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

func TestOpen(t *testing.T) {
	entries := dataset.Envelope(1, 100, 1500)
	f := openFile(t, writeFile(t, goldenID, dataset.Page(entries...)))
	want := Meta{SchemaVersion, goldenID, segment.Contents{FirstID: entries[0].ID, LastID: entries[1499].ID, Count: 1500}}
	if f.Meta() != want {
		t.Errorf("meta %+v, want %+v", f.Meta(), want)
	}
	if f.Rows() != 1500 || f.First() != entries[0].ID || f.Last() != entries[1499].ID {
		t.Errorf("%d rows from %s to %s", f.Rows(), f.First(), f.Last())
	}
}

func TestCheck(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Page(dataset.Envelope(1, 100, 3)...))
	check := func(id FileID) (segment.Contents, error) {
		return Check(bytes.NewReader(file), int64(len(file)), id)
	}
	if c, err := check(goldenID); err != nil || c.Count != 3 {
		t.Errorf("contents %+v, error %v", c, err)
	}
	for _, other := range []FileID{{goldenID.StreamKey, 8}, {"other", goldenID.Segment}} {
		_, err := check(other)
		if !errors.Is(err, ErrOtherSegment) || !strings.Contains(err.Error(), goldenID.String()) {
			t.Errorf("%s: error %v", other, err)
		}
	}
}

// TestCutShort checks every length that a file can be cut to.
func TestCutShort(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Page(dataset.Envelope(1, 100, 20)...))
	for n := range file {
		_, err := Check(bytes.NewReader(file[:n]), int64(n), goldenID)
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d bytes: error %v", n, err)
		}
	}
}

// TestShorterThanSaid checks a file that is shorter than its size says.
func TestShorterThanSaid(t *testing.T) {
	file := writeFile(t, goldenID)
	if _, err := Open(bytes.NewReader(file), int64(len(file))+1000); !errors.Is(err, ErrDamaged) {
		t.Errorf("error %v", err)
	}
}

// TestFlippedBits flips every bit of a file: it is refused, or what changed
// does not touch the entries.
func TestFlippedBits(t *testing.T) {
	entries := dataset.Envelope(1, 30, 4)
	file := writeFile(t, goldenID, dataset.Page(entries...))
	for at := range file {
		for bit := range 8 {
			file[at] ^= 1 << bit
			if got, err := tryReadFile(t, file); err == nil {
				if len(got) != len(entries) {
					t.Fatalf("byte %d bit %d: %d entries", at, bit, len(got))
				}
				for i := range got {
					if !equalEntry(got[i], entries[i]) {
						t.Fatalf("byte %d bit %d changes entry %s unseen", at, bit, entries[i].ID)
					}
				}
			}
			file[at] ^= 1 << bit
		}
	}
}

func TestNotParquet(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 100), "PAR1" + strings.Repeat("x", 100), "PAR1\xff\xff\xff\xffPAR1", "PAR1\x00\x00\x00\x00PAR1"} {
		_, err := Open(strings.NewReader(text), int64(len(text)))
		if !errors.Is(err, ErrNotSegmentFile) && !errors.Is(err, ErrDamaged) {
			t.Errorf("%.20q: error %v", text, err)
		}
	}
}

// foreign writes a file by the library's own means.
func foreign[T any](t *testing.T, row T, meta ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[T](&out)
	for i := 0; i < len(meta); i += 2 {
		w.SetKeyValueMetadata(meta[i], meta[i+1])
	}
	if _, err := w.Write([]T{row}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestOtherSchema(t *testing.T) {
	for _, c := range []struct {
		name string
		file []byte
		says string
	}{
		{"missing column", foreign(t, struct {
			ID string `parquet:"id"`
		}{}), "column 1 is missing"},
		{"other type", foreign(t, struct {
			ID int64 `parquet:"id"`
		}{}), "found id required INT64 INT(64,true), want id required BYTE_ARRAY STRING"},
		{"other name", foreign(t, struct {
			Key string `parquet:"key"`
		}{}), "found key required"},
		{"no map", foreign(t, struct {
			ID     string `parquet:"id"`
			Fields string `parquet:"jfields"`
		}{}), "found jfields"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(bytes.NewReader(c.file), int64(len(c.file)))
			if !errors.Is(err, ErrNotSegmentFile) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestMeta(t *testing.T) {
	good := map[string]string{
		keyVersion: "1", keyStreamKey: "s", keySegment: "4", keyCount: "2", keyFirstID: "1-0", keyLastID: "1-1",
	}
	for _, c := range []struct {
		key, value string // "" = taken away
		is         error
		says       string
	}{
		{keyVersion, "", ErrNotSegmentFile, keyVersion},
		{keyVersion, "2", ErrVersion, "found 2, this program reads up to 1"},
		{keyVersion, "0", ErrNotSegmentFile, keyVersion},
		{keyVersion, "one", ErrNotSegmentFile, keyVersion},
		{keyStreamKey, "", ErrNotSegmentFile, keyStreamKey},
		{keySegment, "-1", ErrNotSegmentFile, keySegment},
		{keyCount, "many", ErrNotSegmentFile, keyCount},
		{keyCount, "-1", ErrNotSegmentFile, keyCount},
		{keyFirstID, "1", ErrNotSegmentFile, keyFirstID},
		{keyFirstID, "1-2", ErrNotSegmentFile, keyFirstID},
		{keyLastID, "", ErrNotSegmentFile, keyLastID},
	} {
		_, err := parseMeta(func(key string) (string, bool) {
			if key == c.key {
				return c.value, c.value != ""
			}
			v, ok := good[key]
			return v, ok
		})
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s = %q: error %v", c.key, c.value, err)
		}
	}
}

func TestReadStops(t *testing.T) {
	f := openFile(t, writeFile(t, goldenID, dataset.Page(dataset.Envelope(1, 100, 3000)...)))
	errStop := errors.New("stop")
	calls := 0
	err := f.Read(t.Context(), func(*segment.Page) error { calls++; return errStop })
	if !errors.Is(err, errStop) || calls != 1 {
		t.Errorf("error %v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = f.Read(ctx, func(*segment.Page) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestReadPagesAreBounded checks the promise on the size of pages.
func TestReadPagesAreBounded(t *testing.T) {
	f := openFile(t, writeFile(t, goldenID, dataset.Pages(severalGroups(), 500)...))
	err := f.Read(t.Context(), func(p *segment.Page) error {
		if p.Len() == 0 || p.Len() > readEntries {
			t.Errorf("page of %d entries", p.Len())
		}
		lo, hi := p.Fields(p.Len() - 1)
		last := 0
		for j := lo; j < hi; j++ {
			last += len(p.Name(j)) + len(p.Value(j))
		}
		if p.Bytes()-last >= readBytes {
			t.Errorf("page of %d bytes, %d in its last entry", p.Bytes(), last)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzOpen looks for bytes that make a reader panic or hang.
func FuzzOpen(f *testing.F) {
	files, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := Open(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		seen := int64(0)
		err = r.Read(t.Context(), func(p *segment.Page) error { seen += int64(p.Len()); return nil })
		if err == nil && seen != r.Rows() {
			t.Fatalf("read %d of %d rows and saw no fault", seen, r.Rows())
		}
	})
}

// FuzzDamage overwrites a part of a good file, which keeps more of it whole
// than FuzzOpen does and so reaches further into the reader.
func FuzzDamage(f *testing.F) {
	var out bytes.Buffer
	w := NewWriter(&out, goldenID)
	if err := w.Write(dataset.Page(dataset.Envelope(1, 60, 40)...)); err != nil {
		f.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(uint(4), []byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add(uint(out.Len()-trailer), []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, at uint, with []byte) {
		file := bytes.Clone(out.Bytes())
		copy(file[at%uint(len(file)):], with)
		r, err := Open(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		seen := int64(0)
		err = r.Read(t.Context(), func(p *segment.Page) error { seen += int64(p.Len()); return nil })
		if err == nil && seen != r.Rows() {
			t.Fatalf("read %d of %d rows and saw no fault", seen, r.Rows())
		}
	})
}
