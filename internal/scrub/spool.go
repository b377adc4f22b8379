package scrub

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// spoolMemory is up to what size an object is held in memory.
const spoolMemory = 8 << 20

// spool holds one object while it is looked at, so that it is read from the
// store only once.
type spool struct {
	io.ReaderAt
	file *os.File // nil where it is in memory
}

// fill makes a spool of what comes, which should be size bytes. A file of it has
// no name: it is gone with the process.
func fill(from io.Reader, size int64, dir string) (*spool, int64, error) {
	if size <= spoolMemory {
		var b bytes.Buffer
		n, err := io.Copy(&b, io.LimitReader(from, spoolMemory+1))
		return &spool{ReaderAt: bytes.NewReader(b.Bytes())}, n, err
	}
	f, err := os.CreateTemp(dir, "korvet-offload-*.verify")
	if err != nil {
		return nil, 0, fmt.Errorf("make a spool file: %w", err)
	}
	s := &spool{f, f}
	if err := os.Remove(f.Name()); err != nil {
		s.close()
		return nil, 0, fmt.Errorf("make a spool file: %w", err)
	}
	n, err := io.Copy(f, from)
	return s, n, err
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // nothing in it is needed any more
	}
}
