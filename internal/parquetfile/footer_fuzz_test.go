package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// framed is a file of nothing but a footer.
func framed(footer []byte) []byte {
	file := append([]byte(magic), footer...)
	return append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), magic...) //nolint:gosec // a test's
}

// footerOf cuts the footer out of a file.
func footerOf(file []byte) []byte {
	at := len(file) - trailer
	return file[at-int(binary.LittleEndian.Uint32(file[at:])) : at]
}

// allocatedBy is how many bytes a function allocates.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// mostAllocated for a footer: the largest thing in its lists, a column chunk,
// takes less than 2 KiB in memory and at least one byte in the footer.
func mostAllocated(footer int) uint64 { return 1<<20 + 2<<10*uint64(footer) } //nolint:gosec // a length

// A footer that says that its lists are huge allocates nothing.
//
//fault:input | The footer of an object announces lists of a million elements | each length in a good footer is made huge, one after the other | ErrDamaged, and memory as the footer's own size allows
func TestAnnouncedListsAreNotBelieved(t *testing.T) {
	good, err := os.ReadFile("testdata/one-entry.parquet")
	if err != nil {
		t.Fatal(err)
	}
	footer := footerOf(good)
	refused := 0
	for at := range len(footer) - 4 {
		bad := bytes.Clone(footer)
		copy(bad[at:], "\xfc\xfc\xfc\x3f") // a list of structs, a million of them
		file := framed(bad)
		var err error
		if used := allocatedBy(func() { _, err = Open(bytes.NewReader(file), int64(len(file))) }); used > mostAllocated(len(bad)) {
			t.Errorf("byte %d: %d bytes are allocated, %v", at, used, err)
		}
		if err == nil {
			t.Errorf("byte %d: taken for a good file", at)
		}
		if errors.Is(err, ErrDamaged) && strings.Contains(err.Error(), errCompact.Error()) {
			refused++
		}
	}
	if refused < len(footer)/4 {
		t.Errorf("only %d of %d footers are refused for what they announce", refused, len(footer))
	}
}

// Any footer: what it takes is bounded by its size.
//
//fault:input | The footer of an object is any bytes | fuzzing | an error or a file, no crash, and memory as the footer's own size allows
func FuzzFooter(f *testing.F) {
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(names) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(footerOf(file))
	}
	f.Add([]byte("\x19\xfc\xfc\xfc\x3f"))
	f.Fuzz(func(t *testing.T, footer []byte) {
		file := framed(footer)
		var err error
		used := allocatedBy(func() {
			var r *File
			if r, err = Open(bytes.NewReader(file), int64(len(file))); err == nil && r.Rows() > 0 {
				err = errors.New("rows without pages")
			}
		})
		if used > mostAllocated(len(footer)) {
			t.Fatalf("%d bytes are allocated for a footer of %d, %v", used, len(footer), err)
		}
		if err != nil && err.Error() == "rows without pages" {
			t.Fatal("a file without pages has rows")
		}
	})
}
