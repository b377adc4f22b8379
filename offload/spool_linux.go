package offload

import (
	"os"

	"golang.org/x/sys/unix"
)

// unnamedFile makes a file that no one can see and that is gone when the
// process is, however it ends.
func unnamedFile(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return removedFile(dir) // a file system without O_TMPFILE
	}
	return os.NewFile(uintptr(fd), dir+"/(unnamed)"), nil
}
