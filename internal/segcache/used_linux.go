package segcache

import (
	"os"
	"syscall"
	"time"
)

// usedAt is when a file was last given out: its access time, which is set by hand
// and so is right on any file system.
func usedAt(is os.FileInfo) time.Time {
	if s, ok := is.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Atim.Unix())
	}
	return is.ModTime()
}
