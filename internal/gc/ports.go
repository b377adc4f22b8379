package gc

import (
	"context"
	"errors"
	"iter"
	"time"

	"korvet-offload/internal/catalog"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// Registry says which topics there are, and what is paused.
type Registry interface {
	// Topics returns every topic and plain stream that is known, also those that
	// can't be worked on. An error means that nothing is known.
	Topics(ctx context.Context) ([]segment.Topic, error)
	// Known returns the records of the topics that were ever offloaded.
	Known(ctx context.Context) (map[string]string, error)
	Paused(ctx context.Context) (segment.Pauses, error)
}

// Manifests reads entries, from the primary. Errors that are ErrOutage concern
// every manifest, others the one alone.
type Manifests interface {
	// Each gives every field with its value, in no order, some perhaps twice. fields
	// is how many different ones must have come.
	Each(ctx context.Context, p segment.Partition, take func(field, value string)) (fields int64, err error)
	// Peek reads some entries of several manifests.
	Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error)
}

// Store is what is needed of an s3sink.Store.
type Store interface {
	catalog.Lister
	Stat(ctx context.Context, key string) (s3sink.Info, error)
	Delete(ctx context.Context, keys []string) []error
}

// Uploads finds and gives up unfinished uploads; see s3sink.Sweeper.
type Uploads interface {
	Uploads(ctx context.Context) iter.Seq2[s3sink.Unfinished, error]
	AbortUpload(ctx context.Context, u s3sink.Unfinished) error
}

// Ports are all that the collector uses.
type Ports struct {
	Registry  Registry
	Manifests Manifests
	Store     Store
	Uploads   Uploads
	// Now is the time that ages are told by: the clock that is behind, of Redis and
	// of the store.
	Now func(ctx context.Context) (time.Time, error)
	// Owned says why the root is not ours, or can't be told to be: the owner marker
	// is there, and names this namespace and this Redis.
	Owned func(ctx context.Context) error
	// File says what a file of a segment holds, or why an object is not a whole file
	// of that very segment.
	File func(ctx context.Context, p segment.Partition, o catalog.Object) (segment.Contents, error)
	// Earlier says why an object is not an earlier copy of what the one that the
	// entry of its segment names holds.
	Earlier func(ctx context.Context, p segment.Partition, o catalog.Object, named segment.Object) error
}

// ErrOutage says that Redis or the store fails as such.
var ErrOutage = errors.New("not available")

// Reasons for which nothing is deleted at all.
var (
	ErrNoManifests = errors.New("redis has no manifest of any partition: it was emptied, or it is another one; nothing is deleted (korvet-offload restore --manifests rebuilds them)")
	ErrNoObjects   = errors.New("the store lists no object, and entries name some: is this the right remote-path, and is the folder mounted? nothing is deleted")
	ErrNoTopics    = errors.New("the topic registry is empty: no topic counts as removed; nothing is deleted")
	ErrMoved       = errors.New("a manifest is gone that was there: redis has lost data; nothing more is deleted")
)
