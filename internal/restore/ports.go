package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"korvet-offload/internal/catalog"
	"korvet-offload/segment"
)

// Manifests is where entries are read and changed.
type Manifests interface {
	// Each gives every field of a manifest, and how many there must be at least.
	Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error)
	// Entry is the value of one entry; "" = there is none.
	Entry(ctx context.Context, p segment.Partition, n segment.Number) (string, error)
	// Change changes one entry in one step; false means that it was not what the
	// change expects.
	Change(ctx context.Context, p segment.Partition, c segment.Change) (bool, error)
}

// Streams is where streams are read and written.
type Streams interface {
	StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error)
	Sizes(ctx context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error)
	Pages(key string, from, to segment.ID) segment.PageReader
	// Append adds a page to the end of a stream that has at that moment length
	// entries and the last id last; false means that it has not.
	Append(ctx context.Context, key string, length int64, last segment.ID, p *segment.Page) (bool, error)
	// Alone says whether an entry has to be the only one of a page.
	Alone(p *segment.Page, i int) bool
}

// Server is what is asked of Redis itself.
type Server interface {
	Now(ctx context.Context) (time.Time, error)
	// Room says how much of its memory the server has in use, and its limit, both
	// in bytes; a limit of 0 is none. The error says why it is not known.
	Room(ctx context.Context) (used, most int64, err error)
	// Evicts is why the server may remove keys by itself; "" = it does not, or does
	// not say.
	Evicts(ctx context.Context) string
}

// Objects is where the files are.
type Objects interface {
	catalog.Lister
	// Look describes an object. ErrMissing: it is not there, for certain.
	Look(ctx context.Context, path string) (Object, error)
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	OpenRange(ctx context.Context, path string, offset, n int64) (io.ReadCloser, error)
}

// Object is what the store says of an object.
type Object struct {
	Size   int64
	ETag   string
	SHA256 string // "" = it does not say
}

// ErrMissing means that an object is not there, and that the store would show it.
var ErrMissing = errors.New("object missing")

// ErrRefused means that something is not as it has to be for a restore to be safe.
// Nothing was changed by what was refused.
var ErrRefused = errors.New("refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// Ports is all that a Restorer works with.
type Ports struct {
	Manifests Manifests
	Streams   Streams
	Server    Server
	Objects   Objects
	// Pace is called before so many bytes are written to Redis.
	Pace func(ctx context.Context, n int) error
	// Temp makes an empty file for one object, which is gone when it is closed.
	Temp func() (Temp, error)
}

// Temp is a file that holds an object while it is restored.
type Temp interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// Restorer restores. It works on one thing at a time.
type Restorer struct {
	Ports
	layout segment.Layout
}

// New makes a Restorer.
func New(p Ports, l segment.Layout) *Restorer { return &Restorer{p, l} }

// entries reads a manifest whole.
func (r *Restorer) entries(ctx context.Context, p segment.Partition) (segment.Manifest, error) {
	all := map[string]string{}
	fields, err := r.Manifests.Each(ctx, p, func(field, value string) { all[field] = value })
	if err != nil {
		return segment.Manifest{}, fmt.Errorf("read the manifest of %s: %w", p, err)
	}
	if int64(len(all)) < fields {
		return segment.Manifest{}, fmt.Errorf("read the manifest of %s: %d of its %d fields came: try again", p, len(all), fields)
	}
	pairs := make([]string, 0, 2*len(all))
	for field, value := range all {
		pairs = append(pairs, field, value)
	}
	return segment.ParseManifest(p, pairs), nil
}
