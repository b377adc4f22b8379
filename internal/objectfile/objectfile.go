package objectfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// Ranges reads parts of objects; every s3sink.Store does.
type Ranges interface {
	OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error)
}

// Extent is a stretch of an object: Size bytes from At on. It is an alias, so
// that those who read files need not know this package to name extents.
type Extent = struct{ At, Size int64 }

// Stats is what has been asked of the store so far.
type Stats struct {
	Requests int64 // for ranges, those that failed too
	Bytes    int64 // that came
}

// resumes is how often a body that broke off is asked for again.
const resumes = 4

var errClosed = errors.New("the reader of the object is closed")

// Reader is an io.ReaderAt over one object. Its reads end when the context ends
// that it was made with. It may be used by several goroutines at once; only one
// of them should say by Want what it reads.
type Reader struct {
	open     func(offset, n int64) (io.ReadCloser, error)
	key      string
	size     int64
	err      func() error // why no more may be read; nil while it may
	end      context.CancelCauseFunc
	ended    <-chan struct{}
	requests atomic.Int64
	bytes    atomic.Int64

	tails   *Tails
	version string
	reading sync.Mutex // held while the tail is fetched

	mu     sync.Mutex // guards what follows
	tail   []byte     // the last bytes of the object; nil before they are read
	plan   *plan      // nil when nothing was said by Want
	closed bool
}

// Option changes how a Reader works.
type Option func(*Reader)

// WithTails shares the ends of objects among readers. The version tells one
// object of a key from another (its ETag or SHA-256); without one nothing is
// shared.
func WithTails(t *Tails, version string) Option {
	return func(r *Reader) { r.tails, r.version = t, version }
}

// New reads the object of a key, which has size bytes. Nothing is asked of the
// store before something is read. Call Close when it is no longer needed.
func New(ctx context.Context, from Ranges, key string, size int64, opts ...Option) *Reader {
	ctx, end := context.WithCancelCause(ctx)
	r := &Reader{
		open: func(offset, n int64) (io.ReadCloser, error) { return from.OpenRange(ctx, key, offset, n) },
		key:  key, size: size, end: end, ended: ctx.Done(),
		err: func() error { return context.Cause(ctx) },
	}
	for _, o := range opts {
		o(r)
	}
	return r
}

// Size is the size of the object, in bytes.
func (r *Reader) Size() int64 { return r.size }

// Stats says what has been asked of the store so far.
func (r *Reader) Stats() Stats { return Stats{r.requests.Load(), r.bytes.Load()} }

// Close ends what is being fetched, waits for it, and gives back what is held.
// Further reads are errors. The error is nil.
func (r *Reader) Close() error {
	r.end(errClosed)
	r.mu.Lock()
	p := r.plan
	r.plan, r.tail, r.closed = nil, nil, true
	r.mu.Unlock()
	p.wait()
	return nil
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(b []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, fmt.Errorf("read object %s: offset %d is negative", r.key, offset)
	}
	if offset >= r.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), r.size-offset))
	got, err := r.readAll(b[:n], offset)
	switch {
	case err != nil:
		return got, err
	case got < len(b):
		return got, io.EOF
	}
	return got, nil
}

// readAll fills b from wherever each part of it is: what was fetched ahead, the
// tail, or the store.
func (r *Reader) readAll(b []byte, offset int64) (int, error) {
	got := 0
	for got < len(b) {
		n, err := r.readSome(b[got:], offset+int64(got))
		got += n
		if err != nil {
			return got, err
		}
	}
	return got, nil
}

// readSome fills some of b, at least one byte if there is no error.
func (r *Reader) readSome(b []byte, at int64) (int, error) {
	if err := r.err(); err != nil {
		return 0, fmt.Errorf("read object %s: %w", r.key, err)
	}
	r.mu.Lock()
	plan := r.plan
	r.mu.Unlock()
	n, next, err := plan.read(b, at)
	if n > 0 || err != nil {
		return n, err
	}
	b = b[:min(int64(len(b)), next-at)] // as far as nothing is under way
	start, err := r.tailFor(at, int64(len(b)), plan.covers(at))
	if err != nil {
		return 0, err
	}
	if n := r.fromTail(b, at); n > 0 {
		return n, nil
	}
	b = b[:min(int64(len(b)), start-at)]
	return len(b), r.fetch(b, at)
}

// fetch fills b by one request, or by a few if the body breaks off.
func (r *Reader) fetch(b []byte, at int64) error {
	for try := 0; ; try++ {
		n, err := r.request(b, at)
		if err == nil {
			return nil
		}
		b, at = b[n:], at+int64(n)
		if n == 0 || try == resumes || r.err() != nil {
			return fmt.Errorf("read object %s, %d bytes at %d: %w", r.key, len(b), at, err)
		}
	}
}

func (r *Reader) request(b []byte, at int64) (int, error) {
	r.requests.Add(1)
	body, err := r.open(at, int64(len(b)))
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(body, b)
	r.bytes.Add(int64(n))
	_ = body.Close() // all that was asked for is here, or err says why not
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the object is shorter than was said: not its end
	}
	return n, err
}
