package offload

import (
	"context"
	"io"
	"time"

	"korvet-offload/segment"
)

// Registry says which topics there are.
type Registry interface {
	// Topics returns every known topic, those that can't be worked on with
	// their Err set. An error means that nothing is known.
	Topics(ctx context.Context) ([]segment.Topic, error)
}

// Manifests reads and changes manifests, one entry at a time.
type Manifests interface {
	// Manifest reads the manifest of a partition; a partition that has none
	// gives an empty one. It never returns a part of a manifest.
	Manifest(ctx context.Context, p segment.Partition) (segment.Manifest, error)
	// Swap replaces the entry of a segment if, at that moment, its bytes are
	// old. False means that they were not: somebody else was faster, and
	// nothing was changed.
	Swap(ctx context.Context, p segment.Partition, n segment.Number, old, new string) (bool, error)
}

// Streams reads the streams of segments and never changes them.
type Streams interface {
	// StreamInfo describes a stream; a key that is not there gives the zero
	// StreamInfo, one of another type segment.ErrWrongType.
	StreamInfo(ctx context.Context, key string) (StreamInfo, error)
	// Pages reads the entries of a stream in order, from its first to its
	// last. The caller closes the reader.
	Pages(key string) PageReader
}

// StreamInfo is what the server knows of a stream without reading it.
type StreamInfo = segment.StreamInfo

// PageReader reads one stream, page by page.
type PageReader = segment.PageReader

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
