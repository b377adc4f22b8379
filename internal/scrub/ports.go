package scrub

import (
	"context"
	"errors"
	"io"

	"korvet-offload/internal/catalog"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Ports are what is compared. Nothing of it is ever changed.
type Ports struct {
	Registry  offload.Registry
	Known     Known
	Manifests Manifests
	Streams   Streams
	Clock     offload.Clock
	Store     Store
}

// Known says which topics were ever offloaded.
type Known interface {
	// Known returns the record of each such topic.
	Known(ctx context.Context) (map[string]string, error)
}

// Manifests reads manifests, as offload.Manifests does.
type Manifests interface {
	// Each gives every field of a manifest with its value, in no order, and says
	// how many fields must have come.
	Each(ctx context.Context, p segment.Partition, take func(field, value string)) (fields int64, err error)
	// Peek reads some entries of several manifests.
	Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error)
}

// Streams reads streams, as offload.Streams does.
type Streams interface {
	// StreamInfo describes a stream; a key that is not there gives the zero
	// StreamInfo, one of another type segment.ErrWrongType.
	StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error)
	// Sizes measures several streams, one answer per question in the same order.
	Sizes(ctx context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error)
	// Pages reads the entries of a stream in order. The caller closes the reader.
	Pages(key string, from, to segment.ID) segment.PageReader
}

// Store reads the object store. Paths are relative to its root.
type Store interface {
	catalog.Lister
	// Stat describes an object. offload.ErrObjectMissing means that there is none;
	// offload.ErrObjectUnknown that the store does not let us look.
	Stat(ctx context.Context, path string) (offload.ObjectInfo, error)
	// Open reads a whole object.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// OpenRange reads a part of an object.
	OpenRange(ctx context.Context, path string, offset, n int64) (io.ReadCloser, error)
	// Owner says whose the root is: ErrForeign that it is somebody else's,
	// ErrNoOwner that nothing says so.
	Owner(ctx context.Context) error
}

// What Store.Owner says.
var (
	ErrForeign = errors.New("the root belongs to somebody else")
	ErrNoOwner = errors.New("the root has no owner marker")
)
