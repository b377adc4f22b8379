// Package scrub compares the manifests with the object store and with Redis, and
// says what of it is not as it has to be. It changes nothing.
package scrub

import (
	"korvet-offload/segment"
)

// Kind is what is wrong. The list is closed.
type Kind string

// The kinds of findings.
const (
	MissingObject    Kind = "missing_object"    // an entry names an object that is not there
	Truncated        Kind = "truncated"         // the object is shorter than its entry says
	ChecksumMismatch Kind = "checksum_mismatch" // the object's bytes are not those that its entry tells of
	Schema           Kind = "schema"            // a file that is none of this format, or of a newer version
	WrongContents    Kind = "wrong_contents"    // a whole file, and not of the rows that its entry tells of, or of another segment
	Gap              Kind = "gap"               // a segment is missing between two others
	Overlap          Kind = "overlap"           // two segments hold the same ids
	DuplicatePath    Kind = "duplicate_path"    // two entries name one object
	Orphan           Kind = "orphan"            // an object of a segment that no entry names
	Unknown          Kind = "unknown_object"    // an object that is none of this program's
	SourceMissing    Kind = "source_missing"    // a LOCAL entry without its stream, or with less than it tells of
	StrayStream      Kind = "stray_stream"      // a stream of a segment whose local copy is gone
	StreamDiffers    Kind = "stream_differs"    // the local stream does not have the messages of the object
	IllegalEntry     Kind = "illegal_entry"     // a value of the manifest that is no entry
	HalfDeleted      Kind = "half_deleted"      // a DELETING entry that nothing has come of for long
	Owner            Kind = "owner"             // the root belongs to somebody else, or says nothing
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{MissingObject, Truncated, ChecksumMismatch, Schema, WrongContents, Gap, Overlap, DuplicatePath, Orphan, Unknown,
		SourceMissing, StrayStream, StreamDiffers, IllegalEntry, HalfDeleted, Owner}
}

// Finding is one thing that is wrong.
type Finding struct {
	Kind      Kind
	Partition segment.Partition
	// Segment and Raw are those of the entry, where there is one; HasSegment says
	// that Segment means something, as it does of an orphan, too.
	Segment    segment.Number
	HasSegment bool
	Raw        string // the entry's bytes as they were read; "" = none
	Path       string // of the object, below the root; "" = there is none to name
	Detail     string // one line: what was found, and what was expected
	// Note: it is as it may be, and nothing has to be done. Notes are no damage,
	// and are told for those who want to know all.
	Note bool
}
