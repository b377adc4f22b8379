package parquetfile

import (
	"bytes"
	"testing"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// fatal is what the helpers need of *testing.T and of *rapid.T.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

func writeFile(t fatal, id FileID, pages ...*segment.Page) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, id)
	writeAll(t, w, pages...)
	return out.Bytes()
}

func writeAll(t fatal, w *Writer, pages ...*segment.Page) segment.Contents {
	t.Helper()
	for _, p := range pages {
		if err := w.Write(p); err != nil {
			t.Fatalf("write: %v", err)
		}
	}
	c, err := w.Close()
	if err != nil {
		t.Fatalf("close: %v", err)
	}
	return c
}

func openFile(t *testing.T, file []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return f
}

func readFile(t *testing.T, file []byte) []dataset.Entry {
	t.Helper()
	out, err := tryReadFile(t, file)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return out
}

func tryReadFile(t *testing.T, file []byte) ([]dataset.Entry, error) {
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	var out []dataset.Entry
	err = f.Read(t.Context(), func(p *segment.Page) error {
		out = append(out, dataset.Entries(p)...)
		return nil
	})
	return out, err
}

func equalEntries(t fatal, got, want []dataset.Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i, w := range want {
		if !equalEntry(got[i], w) {
			t.Fatalf("entry %d: got %.200q, want %.200q", i, got[i].Fields, w.Fields)
		}
	}
}

func equalEntry(a, b dataset.Entry) bool {
	if a.ID != b.ID || len(a.Fields) != len(b.Fields) {
		return false
	}
	for i := range a.Fields {
		if !bytes.Equal(a.Fields[i].Name, b.Fields[i].Name) || !bytes.Equal(a.Fields[i].Value, b.Fields[i].Value) {
			return false
		}
	}
	return true
}
