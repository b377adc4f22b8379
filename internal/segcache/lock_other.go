//go:build !unix

package segcache

import (
	"errors"
	"os"
)

// lock says that files can't be locked here: nothing is kept.
func lock(*os.File) error { return errors.ErrUnsupported }
