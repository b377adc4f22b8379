// Package objectfile reads one object of a store as a file: at any offset, with
// few requests.
package objectfile

import (
	"context"
	"fmt"
	"io"
)

// Ranges reads parts of objects; every s3sink.Store does.
type Ranges interface {
	OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error)
}

// Reader is an io.ReaderAt over one object. Its reads end when the context ends
// that it was made with.
type Reader struct {
	read func(offset, n int64) (io.ReadCloser, error)
	size int64
}

// New reads the object of a key, which has size bytes.
func New(ctx context.Context, from Ranges, key string, size int64) *Reader {
	return &Reader{func(offset, n int64) (io.ReadCloser, error) { return from.OpenRange(ctx, key, offset, n) }, size}
}

// Size is the size of the object, in bytes.
func (r *Reader) Size() int64 { return r.size }

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(b []byte, offset int64) (int, error) {
	if offset >= r.size {
		return 0, io.EOF
	}
	n := min(int64(len(b)), r.size-offset)
	body, err := r.read(offset, n)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	got, err := io.ReadFull(body, b[:n])
	if err != nil {
		return got, fmt.Errorf("read %d bytes at %d: %w", n, offset, err)
	}
	if got < len(b) {
		return got, io.EOF
	}
	return got, nil
}

// Close gives back what is held.
func (r *Reader) Close() error { return nil }
