package offload

import (
	"context"
	"io"
	"time"

	"korvet-offload/segment"
)

// Registry says which topics there are.
type Registry interface {
	// Topics returns every topic and plain stream that there is, those that
	// can't be worked on with their Err set. An error means that nothing is known.
	Topics(ctx context.Context) ([]segment.Topic, error)
}

// Known remembers the topics that were ever offloaded, with the settings that
// they had last: a topic that is gone from the registry takes them with it.
type Known interface {
	// Known returns the record of each such topic.
	Known(ctx context.Context) (map[string]string, error)
	// SwapKnown replaces the record of a topic if it is old at that moment; ""
	// stands for none. False means that it was not, and nothing was changed.
	SwapKnown(ctx context.Context, topic, old, new string) (bool, error)
}

// Manifests reads and changes manifests.
type Manifests interface {
	// Each gives every field of a manifest with its value, in no order. A field
	// may come more than once; the last value counts. It returns how many fields
	// must have come: fewer mean that what came is not the whole manifest.
	Each(ctx context.Context, p segment.Partition, take func(field, value string)) (fields int64, err error)
	// Peek reads some entries of several manifests, one answer per question in
	// the same order. An error means that there are no answers; one that concerns
	// a single manifest is in its answer.
	Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error)
	// Change changes a manifest, in one step, if it is at that moment what the
	// change expects. False means that it was not: somebody else was faster, and
	// nothing was changed. ErrNotReplicated means that it was changed and that
	// not as many replicas as were asked for have said so in time.
	Change(ctx context.Context, p segment.Partition, c segment.Change) (bool, error)
}

// Streams reads the streams of segments and never changes them.
type Streams interface {
	// StreamInfo describes a stream; a key that is not there gives the zero
	// StreamInfo, one of another type segment.ErrWrongType.
	StreamInfo(ctx context.Context, key string) (StreamInfo, error)
	// Sizes measures several streams, one answer per question in the same order,
	// without reading them. A key that is not there has the size 0; the error of
	// a single key is in its answer.
	Sizes(ctx context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error)
	// Pages reads the entries of a stream in order, from one id to another, both
	// inclusive. The caller closes the reader.
	Pages(key string, from, to segment.ID) PageReader
	// Groups describes the consumer groups of a stream.
	Groups(ctx context.Context, key string) ([]segment.Group, error)
}

// Removals remove what was copied from Redis. Each looks and removes in one
// step on one key.
type Removals interface {
	// Remove removes a stream if it is at that moment what is says, by length,
	// last id and, where the server tells, entries added and largest deleted id.
	// False means that it is not, or is not there, and nothing was changed.
	Remove(ctx context.Context, key string, is StreamInfo) (bool, error)
	// Trim removes a piece from the beginning of a stream if at that moment the
	// stream begins with exactly this piece. False means that it does not, and
	// nothing was changed.
	Trim(ctx context.Context, key string, piece segment.Piece) (bool, error)
}

// StreamInfo is what the server knows of a stream without reading it.
type StreamInfo = segment.StreamInfo

// PageReader reads one stream, page by page.
type PageReader = segment.PageReader

// Gate says what may be worked on at this moment. It is for efficiency and for
// people who want peace, never for safety: what is under way goes on.
type Gate interface {
	// Enter is asked right before a job on a partition begins. If it may, leave
	// is called once when the job is over; if not, the job is left to another
	// pass, or another instance.
	Enter(p segment.Partition) (leave func(), ok bool)
}

// Clock is the Redis server's clock, the only one that decides about ages.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}

// Encoder makes one file of the pages of one segment.
type Encoder interface {
	// Write adds the entries of a page; the page may be reused when it
	// returns.
	Write(p *segment.Page) error
	// Close writes what is left and the footer and says what the file holds.
	Close() (segment.Contents, error)
}

// Encoding makes and checks segment files.
type Encoding interface {
	// NewEncoder begins a file that goes to w. What it writes depends on the
	// segment and the entries alone, not on how they were cut into pages.
	NewEncoder(w io.Writer, s FileOf) Encoder
	// Check reads the footer of a finished file and returns what it holds.
	// The error says so if it is not a whole file of that segment.
	Check(r io.ReaderAt, size int64, s FileOf) (segment.Contents, error)
}

// FileOf names the segment whose file it is; it stands in the file's footer.
type FileOf struct {
	StreamKey string
	Segment   segment.Number
}

// Store is the object store. Paths are relative to its root.
type Store interface {
	// Put stores an object whose path is free. ErrObjectExists means that
	// something lies there, and nothing was changed.
	Put(ctx context.Context, o Upload) (ObjectInfo, error)
	// Stat describes an object. ErrObjectMissing means that there is none;
	// ErrObjectUnknown that the store does not let us look.
	Stat(ctx context.Context, path string) (ObjectInfo, error)
	// Delete removes objects, one answer per path in the same order; nil means
	// that there is none any more. ErrDeleteDenied means that the store does not
	// let it go: a lock, or a right that is missing.
	Delete(ctx context.Context, paths []string) []error
	// Open reads a whole object.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// CreateOnly says whether Put can be trusted to refuse a path that is
	// taken. Where it can't, paths are made unique. It asks the store at most
	// once, and may write the owner marker in doing so.
	CreateOnly(ctx context.Context) (bool, error)
}

// Upload is an object on its way to the store.
type Upload struct {
	Path   string
	Body   io.ReaderAt
	Size   int64
	SHA256 string            // of the body, in hex
	Meta   map[string]string // kept with the object; lower-case names
}

// ObjectInfo is what the store says of an object.
type ObjectInfo struct {
	Size   int64
	ETag   string            // without quotes; "" where the store has none
	SHA256 string            // as it was put; "" where the object has none
	Meta   map[string]string // lower-case names
}
