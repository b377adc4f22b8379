package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"korvet-offload/segment"
)

// Errors that the ports wrap, where the answer depends on them. Anything else is
// taken for an outage of Redis or the store.
var (
	// ErrNoPartition: there is no such topic, partition or stream.
	ErrNoPartition = errors.New("there is no such partition")
	// ErrMissing: the object is not on the store.
	ErrMissing = errors.New("object does not exist")
	// ErrDamaged: an object or an entry is not what it ought to be.
	ErrDamaged = errors.New("segment is damaged")
	// ErrQuestion: what was asked for makes no sense here; the error's text is for
	// the client.
	ErrQuestion = errors.New("question makes no sense")
)

// Manifests reads manifests; see tieredlog.Manifests.
type Manifests interface {
	// Each gives every field of a manifest with its value, in no order, some
	// perhaps twice, and how many fields must have come.
	Each(ctx context.Context, p segment.Partition, take func(field, value string)) (fields int64, err error)
	// Peek reads some entries, one answer per question in the same order.
	Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error)
}

// Directory says which partitions there are.
type Directory interface {
	// Partitions lists those that may have segments, in order, plain streams
	// last.
	Partitions(ctx context.Context) ([]segment.Partition, error)
}

// Messages reads messages.
type Messages interface {
	// Read gives each message that a query asks for as one line of JSON, with its
	// line break. A line is valid until the function returns; its error ends the
	// reading, and is returned.
	Read(ctx context.Context, p segment.Partition, q Query, line func([]byte) error) error
}

// Files opens the files of segments.
type Files interface {
	// Local opens an object that lies on this machine, or is brought here; false
	// where it is to be read from the store.
	Local(ctx context.Context, o segment.Object) (file *os.File, here bool, err error)
	// OpenRange reads n bytes of an object from offset on.
	OpenRange(ctx context.Context, o segment.Object, offset, n int64) (io.ReadCloser, error)
}

// The tiers of a Query.
const (
	tierBoth   = "both"
	tierLocal  = "local"
	tierRemote = "remote"
)

// Query says which messages are wanted.
type Query struct {
	From, To   segment.ID // inclusive; a zero To is the end
	Skip       int64      // how many of these are left out
	Limit      int64      // how many come then at most; 0 = all
	Reverse    bool       // the last one first
	Tier       string     // both, local or remote
	Envelope   bool       // key, value, headers and timestamp by name
	Decompress string     // codec of the field value; "" = it is left as it is
}

// Parts are what the server is made of. All are set.
type Parts struct {
	Layout    segment.Layout
	Manifests Manifests
	Directory Directory
	Messages  Messages
	Files     Files
}

// Events are what the server tells while it runs, by several goroutines at once.
// All are set.
type Events struct {
	Listening      func(net.Addr) // the port is open
	BadCertificate func(error)    // its files have changed and can't be used; told once for each cause
	Answered       func(Answered) // a request has been answered
	Failed         func(path string, err error)
}

// Answered is a request that was answered.
type Answered struct {
	Method, Path string
	From         string // address of the client
	Status       int
	Bytes        int64 // of the body that were sent
	Took         time.Duration
}
