package parquetfile

import (
	"errors"
	"fmt"
)

// What can be wrong with a file. Callers wrap them with its name.
var (
	// ErrNotSegmentFile: not a Parquet file, or one with another schema or
	// without our metadata.
	ErrNotSegmentFile = errors.New("not a segment file")
	// ErrVersion: a segment file of a newer version than this program reads.
	ErrVersion = errors.New("newer schema version")
	// ErrDamaged: a segment file that is cut short, or whose parts contradict
	// each other.
	ErrDamaged = errors.New("damaged segment file")
	// ErrOtherSegment: a whole file, but of another segment than was asked for.
	ErrOtherSegment = errors.New("file of another segment")
	// ErrOrder: entries that do not come in ascending order of their ids.
	ErrOrder = errors.New("entry ids not ascending")
	// ErrTooLarge: an entry that a Parquet page can't hold.
	ErrTooLarge = errors.New("entry too large")
)

// rescue turns a panic of the Parquet library into an error, so that one
// file's fault stays with that file.
func rescue(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic in the Parquet library: %v", r)
	}
}
