//go:build unix

package segcache

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock holds a file for this process, or says that another one does. It ends with
// the file.
func lock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
