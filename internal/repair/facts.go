package repair

import (
	"slices"

	"korvet-offload/internal/scrub"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Facts is all that Plan goes by: what was found about one segment, and what was
// read of it since. The pointers are nil, and OthersRead false, until Plan has
// asked for them.
type Facts struct {
	Partition segment.Partition
	Segment   segment.Number
	Findings  []scrub.Finding // of this segment

	Key       string // of its stream
	Folder    string // of its objects
	StreamKey string // that its file's footer names

	Raw   string        // its entry as it is now; "" = there is none
	Entry segment.Entry // of Raw
	Err   error         // Raw is no legal entry

	Place *Place // asked for by NeedPlace
	Held  *Held  // asked for by NeedStream
	Own   *File  // the object that the entry names; asked for by NeedOwn

	Others     []File // all objects at paths of the segment, but for Own; asked for by NeedOthers
	OthersRead bool

	Now            int64 // epoch ms by the Redis server's clock
	IncludeExpired bool  // segments below the first entry of the manifest may be taken over
}

// Need is what Plan has to know before it can go on.
type Need int

// The needs.
const (
	NeedNothing Need = iota // the action is there
	NeedPlace               // the manifest around the segment
	NeedStream              // the stream, to its last entry
	NeedStat                // whether the entry's object is there
	NeedOwn                 // the entry's object, to its last row
	NeedOthers              // the other objects of the segment, each to its last row
)

// Place is where a segment stands in its manifest.
type Place struct {
	Empty       bool // the manifest has no entry
	First, Last segment.Number
	// Before and After are the nearest segments that hold anything; nil = there
	// is none.
	Before, After *Neighbor
}

// Neighbor is another segment of the manifest.
type Neighbor struct {
	Number      segment.Number
	Raw         string
	Known       bool       // First and Last are what it holds at least; false: nobody knows
	First, Last segment.ID // of its entries
	From, To    segment.ID // of a range in a shared stream: its bounds; zero = none
}

// Held is what a stream holds of a segment, as it was read.
type Held struct {
	Info     segment.StreamInfo // equal before and after
	Contents segment.Contents   // of all that belongs to the segment
	Copied   segment.Contents   // of these: up to the entry's lastId
	CRC32C   uint32             // of all (segment.Page.Digest)
	Wrong    error              // the key holds no stream

	sums map[segment.ID]sum // of every entry; nil = there are too many
}

// File is an object, as it was read.
type File struct {
	Path     string
	Copy     int64
	Size     int64
	ETag     string
	SHA256   string // of what was read
	Contents segment.Contents
	CRC32C   uint32 // of its rows (segment.Page.Digest)
	Begins   start  // of it: up to the entry's lastId
	// Lacks is how many of the stream's entries it does not have, or has
	// otherwise; -1 = that was not counted.
	Lacks int64

	Missing bool  // there is no such object
	Damage  error // it is no whole file of this segment, or only Stat was asked for and it is there (errUnread)

	told string // SHA-256 that the store tells of it; "" = none
}

// start is what the first rows of an object are.
type start struct {
	Contents segment.Contents
	CRC32C   uint32
}

// whole says whether it was read and is a whole file of its segment.
func (f *File) whole() bool { return !f.Missing && f.Damage == nil }

// object is what an entry says of it.
func (f *File) object() segment.Object {
	return segment.Object{Path: f.Path, Bytes: f.Size, ETag: f.ETag, SHA256: f.SHA256}
}

// has says whether one of the findings is of one of the kinds.
func (f *Facts) has(kinds ...scrub.Kind) bool {
	return slices.ContainsFunc(f.Findings, func(x scrub.Finding) bool { return slices.Contains(kinds, x.Kind) })
}

// detail is what the finding of one of the kinds says.
func (f *Facts) detail(kinds ...scrub.Kind) string {
	for _, x := range f.Findings {
		if slices.Contains(kinds, x.Kind) {
			return x.Detail
		}
	}
	return ""
}

// asTold says whether a file is what the entry says of its object.
func (f *Facts) asTold(file *File) error {
	e := f.Entry
	switch {
	case file.Missing:
		return errMissing
	case file.Damage != nil:
		return file.Damage
	case e.Count == segment.NoCount || e.Object == nil:
		return errNotTold
	case file.Contents != contentsOf(e):
		return otherContents(file.Contents, contentsOf(e))
	case file.Size != e.Object.Bytes || file.SHA256 != e.Object.SHA256:
		return errOtherBytes
	case !f.digestFits(file.CRC32C):
		return errOtherRows
	}
	return nil
}

// digestFits says whether a digest is that of the range that was copied, where
// the entry tells.
func (f *Facts) digestFits(crc uint32) bool {
	s := f.Entry.Source
	return !f.Entry.Shared() || s == nil || s.CRC32C == 0 || s.CRC32C == int64(crc)
}

// streamWhole says whether the stream still has all that was copied: as many
// entries up to the last one, from the first on; never where nobody knows how many.
// What came late does not matter.
func (f *Facts) streamWhole() bool {
	return f.Held.Wrong == nil && f.Held.Copied == contentsOf(f.Entry) && f.digestFits(f.Held.CRC32C)
}

// sourceFault is why a worker would not copy the LOCAL segment; nil = it would.
func (f *Facts) sourceFault() error {
	e, held := f.Entry, f.Held
	if held.Wrong != nil {
		return held.Wrong
	}
	if err := offload.CheckSource(e, f.Key, held.Info); err != nil {
		return err
	}
	if e.Shared() && held.Contents.Count == 0 && e.Count != 0 {
		return segment.ErrSourceMissing
	}
	return nil
}

// contentsOf is what an entry says that the segment holds.
func contentsOf(e segment.Entry) segment.Contents {
	return segment.Contents{FirstID: e.FirstID, LastID: e.LastID, Count: e.Count}
}
