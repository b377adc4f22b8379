//go:build !linux

package segcache

import (
	"os"
	"time"
)

// usedAt is when a file was fetched; when it was last given out is not known here.
func usedAt(is os.FileInfo) time.Time { return is.ModTime() }
