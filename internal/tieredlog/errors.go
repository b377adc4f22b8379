package tieredlog

import (
	"errors"
	"fmt"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// Errors to compare with by errors.Is.
var (
	// Stop ends Read without an error when the caller's function returns it.
	Stop = errors.New("enough was read") //nolint:revive,errname,staticcheck // it is no error, as io.EOF is none
	// ErrNoPartition: there is no manifest, and so nothing that could be read.
	ErrNoPartition = errors.New("there is no manifest")
	// ErrMissing: the object that an entry names is not there.
	ErrMissing = errors.New("object does not exist")
	// ErrNoStore: a segment is on the store only, and there is none to read from.
	ErrNoStore = errors.New("no object store to read from")
	// ErrContradiction: a file holds other messages than its entry says.
	ErrContradiction = errors.New("file and manifest contradict each other")
)

// SegmentError is what went wrong with one segment.
type SegmentError struct {
	Partition segment.Partition
	Number    segment.Number
	Err       error
}

// Error names the segment.
func (e *SegmentError) Error() string {
	return fmt.Sprintf("read segment %s/%s: %v", e.Partition, e.Number, e.Err)
}

// Unwrap gives the cause.
func (e *SegmentError) Unwrap() error { return e.Err }

// Damaged says whether the segment is at fault: that it is missing, short or
// damaged. If not, Redis or the store could not be read, and may well be later.
func (e *SegmentError) Damaged() bool { return unreadable(e.Err) }

// unreadable says whether an error is the fault of one segment, so that others
// may well be read; an outage of Redis or the store is not.
func unreadable(err error) bool {
	for _, kind := range []error{
		ErrMissing, ErrContradiction, segment.ErrSourceMissing, segment.ErrShortStream, segment.ErrWrongType, segment.ErrIllegalEntry, segment.ErrEntryVersion,
		parquetfile.ErrDamaged, parquetfile.ErrNotSegmentFile, parquetfile.ErrOtherSegment, parquetfile.ErrVersion,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
