package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// Of two objects of a segment, one is an earlier copy of the other only if both
// begin with the same message, and the other goes at least as far.
func TestWhatIsAnEarlierCopy(t *testing.T) {
	id := parquetfile.FileID{StreamKey: "k", Segment: 7}
	row := func(ms uint64, value string) string { return fmt.Sprintf("%d %s", ms, value) }
	named := []string{row(1, "a"), row(2, "b"), row(5, "c"), row(7, "d")}
	for name, c := range map[string]struct {
		older []string
		id    parquetfile.FileID
		spoil func(path string) error
		want  error  // nil: it is one
		says  string // "" = it is one
	}{
		"the very same":                 {older: named},
		"late ones came":                {older: named[:2]},
		"one message":                   {older: named[:1]},
		"some were deleted since":       {older: []string{row(1, "a"), row(3, "x"), row(4, "y")}},
		"nothing":                       {},
		"it begins earlier":             {older: []string{row(0, "a"), row(1, "a")}, want: errOtherLife, says: "are not among those"},
		"it begins later":               {older: named[1:], want: errOtherLife, says: "are not among those"},
		"it goes further":               {older: append([]string{row(1, "a")}, row(9, "z")), want: errOtherLife, says: "are not among those"},
		"the first is another message":  {older: []string{row(1, "A"), row(2, "b")}, want: errOtherLife, says: "its message 1-0 is not that"},
		"the last is another message":   {older: []string{row(1, "a"), row(2, "B")}, want: errOtherLife, says: "its message 2-0 is not that"},
		"it is of another segment":      {older: named[:2], id: parquetfile.FileID{StreamKey: "k", Segment: 8}, want: parquetfile.ErrOtherSegment, says: "no file of this segment"},
		"it is cut":                     {older: named[:2], spoil: func(path string) error { return os.Truncate(path, 50) }, want: parquetfile.ErrDamaged, says: "no file of this segment"},
		"it is gone since it was seen":  {older: named[:2], spoil: os.Remove, want: errMissingObject, says: "0.parquet"},
		"its name and value are others": {older: []string{row(1, " a")}, want: errOtherLife, says: "its message 1-0 is not that"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store, err := s3sink.Open(s3sink.Config{URL: "file://" + dir}, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet"}})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if c.id == (parquetfile.FileID{}) {
				c.id = id
			}
			older := catalog.Object{Info: s3sink.Info{Key: "f/0.parquet", Size: writeRows(t, filepath.Join(dir, "f/0.parquet"), c.id, c.older)}}
			is := segment.Object{Path: "f/0-1.parquet", Bytes: writeRows(t, filepath.Join(dir, "f/0-1.parquet"), id, named)}
			if c.spoil != nil {
				if err := c.spoil(filepath.Join(dir, "f/0.parquet")); err != nil {
					t.Fatal(err)
				}
				if now, err := os.Stat(filepath.Join(dir, "f/0.parquet")); err == nil {
					older.Info.Size = now.Size() // as a listing says it
				}
			}
			err = earlierCopy(t.Context(), store, id, older, is)
			switch {
			case c.says == "" && err == nil:
			case errors.Is(c.want, errMissingObject) && s3sink.ClassOf(err) == s3sink.ClassMissing:
			case c.says == "" || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says):
				t.Errorf("%v, want %v: %s", err, c.want, c.says)
			}
		})
	}
}

var errMissingObject = errors.New("the store has no such object")

// writeRows writes a segment file of messages, "ms value" each, and returns its
// size.
func writeRows(t *testing.T, path string, id parquetfile.FileID, rows []string) int64 {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := parquetfile.NewWriter(f, id)
	for _, r := range rows {
		var p segment.Page
		var ms uint64
		if _, err := fmt.Sscanf(r, "%d", &ms); err != nil {
			t.Fatal(err)
		}
		_, value, _ := strings.Cut(r, " ")
		name := "value"
		if strings.HasPrefix(value, " ") { // the same bytes, cut in another place
			name, value = "valuea", ""
		}
		p.Entry(segment.ID{Ms: ms})
		if err := p.Field([]byte(name), []byte(value)); err != nil {
			t.Fatal(err)
		}
		if err := w.Write(&p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
