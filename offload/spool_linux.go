package offload

import (
	"os"

	"golang.org/x/sys/unix"
)

// newChunk takes memory from the system and not from the heap, which would
// grow by more than the chunk before it is collected. nil: there is none.
func newChunk(size int) []byte {
	c, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil // the file takes it
	}
	return c[:0]
}

// emptyChunk gives the memory of a chunk back to the system; the chunk reads
// as zeros then, and can be written again.
func emptyChunk(c []byte) {
	_ = unix.Madvise(c, unix.MADV_DONTNEED) // it only stays in use otherwise
}

// unnamedFile makes a file that no one can see and that is gone when the
// process is, however it ends.
func unnamedFile(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return removedFile(dir) // a file system without O_TMPFILE
	}
	return os.NewFile(uintptr(fd), dir+"/(unnamed)"), nil
}
