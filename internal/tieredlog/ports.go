package tieredlog

import (
	"context"
	"io"

	"korvet-offload/segment"
)

// Manifests reads manifests. Its methods may be called from any goroutine.
type Manifests interface {
	// Each gives every field of a manifest with its value, in no order. A field
	// may come more than once; the last value counts. It returns how many fields
	// must have come: fewer mean that what came is not the whole manifest.
	Each(ctx context.Context, p segment.Partition, take func(field, value string)) (fields int64, err error)
	// Peek reads some entries, one answer per question in the same order.
	Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error)
}

// Streams reads the streams of segments.
type Streams interface {
	// StreamInfo describes a stream; a key that is not there gives the zero
	// StreamInfo, one of another type segment.ErrWrongType.
	StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error)
	// Pages reads the entries of a stream in order, from one id to another, both
	// inclusive. The caller closes the reader.
	Pages(key string, from, to segment.ID) segment.PageReader
}

// Objects opens the files of segments.
type Objects interface {
	// OpenObject opens the object that an entry names. That it is not there is
	// an error that wraps ErrMissing, here or when it is read. The file is read by
	// one goroutine at a time, and not after ctx has ended.
	OpenObject(ctx context.Context, o segment.Object) (Object, error)
}

// Object is an opened file; Close gives back what is held.
type Object interface {
	io.ReaderAt
	io.Closer
}

// Ports are what a log is read from.
type Ports struct {
	Manifests Manifests
	Streams   Streams // nil: there is no Redis, and nothing local is read
	Objects   Objects // nil: there is no store, and a segment that is only there is an error (ErrNoStore)
}
