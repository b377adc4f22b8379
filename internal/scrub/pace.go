package scrub

import (
	"context"
	"io"
	"sync"
	"time"
)

// pace keeps what is read from the store below a rate. It may be used by several
// goroutines at once.
type pace struct {
	rate  int64 // bytes per second; 0 = no limit
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	mu   sync.Mutex
	free time.Time // when the next byte may come
}

// burst is for how long nothing may have been read without being made up for.
const burst = 100 * time.Millisecond

// wait returns when so many bytes may have been read.
func (p *pace) wait(ctx context.Context, n int) error {
	if p.rate <= 0 || n <= 0 {
		return nil
	}
	p.mu.Lock()
	now := p.now()
	if p.free.Before(now.Add(-burst)) {
		p.free = now.Add(-burst)
	}
	p.free = p.free.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	d := p.free.Sub(now)
	p.mu.Unlock()
	if d <= 0 {
		return nil
	}
	return p.sleep(ctx, d)
}

// pacedReader reads no faster than the pace, and tells what it has read.
type pacedReader struct {
	ctx  context.Context
	from io.Reader
	pace *pace
	read func(n int)
}

// pieceBytes is how much is read before it is waited.
const pieceBytes = 64 << 10

// Read implements io.Reader.
func (r pacedReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b[:min(len(b), pieceBytes)])
	r.read(n)
	if werr := r.pace.wait(r.ctx, n); werr != nil {
		return n, werr
	}
	return n, err
}

// sleep waits, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
