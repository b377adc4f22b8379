//go:build !linux

package s3sink

import (
	"context"
	"os"
	"time"
)

// writeUnnamed is Linux's; elsewhere files have a temporary name first.
func (f *files) writeUnnamed(context.Context, *os.Root, string, Upload) (time.Time, error) {
	return time.Time{}, errNoUnnamed
}

// changeOf is Linux's.
func changeOf(os.FileInfo) string { return "" }

// writable is not known without writing.
func writable(string) error { return nil }
