package repair

import (
	"context"
	"io"

	"korvet-offload/internal/catalog"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Ports are what a repair works with.
type Ports struct {
	Manifests offload.Manifests
	Streams   Streams
	Removals  Removals
	Clock     offload.Clock
	Store     Store
	Copier    Copier
	Gate      offload.Gate // nil = always open
}

// Streams reads streams, as offload.Streams does.
type Streams interface {
	// StreamInfo describes a stream; a key that is not there gives the zero
	// StreamInfo, one of another type segment.ErrWrongType.
	StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error)
	// Pages reads the entries of a stream in order, from one id to another, both
	// inclusive. The caller closes the reader.
	Pages(key string, from, to segment.ID) segment.PageReader
}

// Removals removes streams, as offload.Removals does.
type Removals interface {
	// Remove removes a stream if it is at that moment what is says.
	Remove(ctx context.Context, key string, is segment.StreamInfo) (bool, error)
}

// Store reads the object store. Paths are relative to its root.
type Store interface {
	catalog.Lister
	// Stat describes an object. offload.ErrObjectMissing means that there is none;
	// offload.ErrObjectUnknown that the store does not let us look.
	Stat(ctx context.Context, path string) (offload.ObjectInfo, error)
	// Open reads a whole object.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// Owner says whose the root is: nil that it is ours.
	Owner(ctx context.Context) error
}

// Copier copies one segment that is SEALED LOCAL at once, as a worker does in its
// passes; *offload.Worker does.
type Copier interface {
	CopyNow(ctx context.Context, p segment.Partition, n segment.Number) (offload.Outcome, error)
}
