//go:build !linux

package points

import (
	"errors"
	"fmt"
)

// kill is for Linux only.
func kill(point string) error { return unsupported(point) }

// stop is for Linux only.
func stop(point string) error { return unsupported(point) }

func unsupported(point string) error {
	return fmt.Errorf("kill or stop at %s: %w: only on Linux", point, errors.ErrUnsupported)
}
