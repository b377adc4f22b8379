package offload

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"
)

// spoolChunk is the unit in which a spool takes memory.
const spoolChunk = 1 << 20

// spoolWrites is the buffer before the spool's file: the encoder writes page
// headers of a few bytes.
const spoolWrites = 64 << 10

// spools hands out spools that share one budget of memory. Safe for
// concurrent use.
type spools struct {
	dir string

	mu   sync.Mutex
	left int64    // bytes that may still be taken
	idle [][]byte // chunks given back
}

func newSpools(dir string, memory int64) *spools {
	return &spools{dir: dir, left: memory}
}

// chunk takes an empty chunk off the budget; nil when that is used up.
func (s *spools) chunk() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return c[:0]
	}
	if s.left < spoolChunk {
		return nil
	}
	c := newChunk(spoolChunk)
	if c != nil {
		s.left -= spoolChunk
	}
	return c
}

// giveBack takes chunks back. They stay reserved, for a transport may still
// read what it will not be asked for, but their memory is free.
func (s *spools) giveBack(chunks [][]byte) {
	for _, c := range chunks {
		emptyChunk(c[:cap(c)])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, chunks...)
}

// open begins a new spool.
func (s *spools) open() *spool { return &spool{from: s, sum: sha256.New()} }

// spool holds one finished file until it is stored, so that a retry of the
// upload never reads Redis again: its beginning in memory as far as the
// budget goes, the rest in a file without a name, which is gone with the
// process. It is written first and read afterwards; reads may be concurrent.
type spool struct {
	from   *spools
	sum    hash.Hash
	size   int64
	chunks [][]byte
	mem    int64 // bytes in chunks; the file begins there

	file *os.File
	buf  *bufio.Writer
}

// Write appends. It returns an error only when the disk does.
func (s *spool) Write(p []byte) (int, error) {
	s.sum.Write(p)
	s.size += int64(len(p))
	rest := p
	for len(rest) > 0 && s.file == nil {
		last := len(s.chunks) - 1
		if last < 0 || len(s.chunks[last]) == spoolChunk {
			c := s.from.chunk()
			if c == nil {
				if err := s.spill(); err != nil {
					return 0, err
				}
				break
			}
			s.chunks = append(s.chunks, c)
			last++
		}
		n := min(len(rest), spoolChunk-len(s.chunks[last]))
		s.chunks[last] = append(s.chunks[last], rest[:n]...)
		s.mem += int64(n)
		rest = rest[n:]
	}
	if len(rest) > 0 {
		if _, err := s.buf.Write(rest); err != nil {
			return 0, s.diskError(err)
		}
	}
	return len(p), nil
}

func (s *spool) spill() error {
	f, err := unnamedFile(s.from.dir)
	if err != nil {
		return s.diskError(err)
	}
	s.file, s.buf = f, newSpoolBuffer(f)
	return nil
}

func newSpoolBuffer(w io.Writer) *bufio.Writer { return bufio.NewWriterSize(w, spoolWrites) }

func (s *spool) diskError(err error) error {
	return fmt.Errorf("write the unfinished file in spool-dir %s: %w; make room there or set korvet.storage.offload.spool-dir", s.from.dir, err)
}

// finish ends the writing.
func (s *spool) finish() error {
	if s.file == nil {
		return nil
	}
	if err := s.buf.Flush(); err != nil {
		return s.diskError(err)
	}
	s.buf = nil
	return nil
}

// sha256 is the checksum, in hex, of all that was written.
func (s *spool) sha256() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// ReadAt implements io.ReaderAt over memory and file.
func (s *spool) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("read of a spool at a negative offset")
	}
	read := 0
	for read < len(p) && off < s.mem {
		c := s.chunks[off/spoolChunk]
		n := copy(p[read:], c[off%spoolChunk:])
		read += n
		off += int64(n)
	}
	switch {
	case read == len(p):
		return read, nil
	case s.file == nil:
		return read, io.EOF
	}
	n, err := s.file.ReadAt(p[read:], off-s.mem)
	return read + n, err
}

// close gives memory and file back.
func (s *spool) close() {
	s.from.giveBack(s.chunks) // and kept: what still reads finds no sense, but memory
	if s.file != nil {
		_ = s.file.Close() // a file without a name: nothing is lost with it
	}
}
