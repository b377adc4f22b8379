package goreaders

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/dataset"
)

// row is an entry as the readers show it: names and values in hex, a long one
// as "<length>:<SHA-256>".
type row struct {
	ID     string      `json:"id"`
	Fields [][2]string `json:"fields"`
}

const long = 512 // bytes; also in test/readers/read.mjs

func show(b []byte) string {
	if len(b) <= long {
		return hex.EncodeToString(b)
	}
	return fmt.Sprintf("%d:%x", len(b), sha256.Sum256(b))
}

func rowsOf(entries []dataset.Entry) []row {
	rows := make([]row, len(entries))
	for i, e := range entries {
		rows[i] = row{ID: e.ID.String(), Fields: [][2]string{}}
		for _, f := range e.Fields {
			rows[i].Fields = append(rows[i].Fields, [2]string{show(f.Name), show(f.Value)})
		}
	}
	return rows
}

// cases are the edge cases and one file of several row groups.
func cases() []dataset.Case {
	return append(dataset.Cases(), dataset.Case{Name: "row-groups", Entries: dataset.Envelope(3, 1024, 30_000)})
}

// writeCase writes the file of a case and returns its path.
func writeCase(t *testing.T, dir string, c dataset.Case) string {
	t.Helper()
	var out bytes.Buffer
	w := parquetfile.NewWriter(&out, parquetfile.FileID{StreamKey: "readers", Segment: 1})
	for _, p := range dataset.Pages(c.Entries, 1000) {
		if err := w.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, c.Name+".parquet")
	writeBytes(t, path, out.Bytes())
	return path
}

func writeBytes(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, got, want []row) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("entry %d: got %.300v, want %.300v", i, got[i], want[i])
		}
	}
}

// eachCase reads every case with a reader of this process.
func eachCase(t *testing.T, read func(t *testing.T, path string) []row) {
	for _, c := range cases() {
		t.Run(c.Name, func(t *testing.T) {
			compare(t, read(t, writeCase(t, t.TempDir(), c)), rowsOf(c.Entries))
		})
	}
}
