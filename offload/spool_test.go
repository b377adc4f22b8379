package offload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// Wherever the border between memory and file falls, a spool gives back what
// was written, and its checksum.
func TestSpoolGivesBackWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		from := newSpools(dir, int64(rapid.SampledFrom([]int{0, 1, spoolChunk, 3 * spoolChunk}).Draw(t, "memory")))
		s := from.open()
		defer s.close()
		var want []byte
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, spoolChunk*3/2), 0, 6).Draw(t, "writes") {
			part := bytes.Repeat([]byte{byte(len(want))}, n)
			if got, err := s.Write(part); got != n || err != nil {
				t.Fatalf("write of %d: %d, %v", n, got, err)
			}
			want = append(want, part...)
		}
		if err := s.finish(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(s, 0, s.size))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(want))
		}
		sum := sha256.Sum256(want)
		if s.sha256() != hex.EncodeToString(sum[:]) {
			t.Fatal("wrong checksum")
		}
		off := rapid.IntRange(0, len(want)).Draw(t, "offset")
		part := make([]byte, rapid.IntRange(0, len(want)-off).Draw(t, "length"))
		if n, err := s.ReadAt(part, int64(off)); n != len(part) || err != nil || !bytes.Equal(part, want[off:off+n]) {
			t.Fatalf("read of %d at %d: %d, %v", len(part), off, n, err)
		}
		if n, err := s.ReadAt(make([]byte, 1), s.size); n != 0 || !errors.Is(err, io.EOF) {
			t.Fatalf("read behind the end: %d, %v", n, err)
		}
	})
}

// The budget is shared, comes back, and leaves nothing on the disk.
func TestSpoolsShareTheirMemory(t *testing.T) {
	dir := t.TempDir()
	from := newSpools(dir, 2*spoolChunk)
	a, b := from.open(), from.open()
	for _, s := range []*spool{a, b} {
		if _, err := s.Write(make([]byte, 2*spoolChunk)); err != nil {
			t.Fatal(err)
		}
	}
	if a.file != nil || b.file == nil || b.mem != 0 {
		t.Errorf("the first has a file: %t; the second has %d bytes in memory", a.file != nil, b.mem)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files with a name in the spool folder: %v, %v", left, err)
	}
	a.close()
	b.close()
	if from.left != 0 || len(from.idle) != 2 {
		t.Errorf("%d bytes were never taken, %d chunks came back", from.left, len(from.idle))
	}
	allocs := testing.AllocsPerRun(5, func() {
		s := from.open()
		_, _ = s.Write(make([]byte, 1))
		s.close()
	})
	if allocs > 10 {
		t.Errorf("%v allocations: chunks are not used again", allocs)
	}
}

func TestAFullSpoolFolderIsNamed(t *testing.T) {
	s := newSpools("/does/not/exist", 0).open()
	_, err := s.Write([]byte("x"))
	if err == nil || !strings.Contains(err.Error(), "/does/not/exist") || !strings.Contains(err.Error(), "korvet.storage.offload.spool-dir") {
		t.Errorf("got %v", err)
	}
	full := newSpools(t.TempDir(), 0).open()
	full.file, err = os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	full.buf = newSpoolBuffer(full.file)
	if _, err = full.Write(make([]byte, 2*spoolWrites)); !errors.Is(err, syscall.ENOSPC) || ReasonOf(err) != ReasonDiskFull {
		t.Errorf("got %v, reason %s", err, ReasonOf(err))
	}
	full.close()
}
