package serve

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// giveWay is for how long a client may have the server wait, within pieceSize
	// bytes, while others want its place: so who takes 210 kB/s keeps it.
	giveWay = 10 * time.Second
	// placeTime is how long a request waits for a place that was taken from another.
	placeTime = 5 * time.Second
)

// places bounds how many requests do something at once. Whoever takes its answer
// slowly loses its place to one that comes when there is none left: it would cost
// nothing to hold them all.
type places struct {
	free    chan struct{}
	giveWay time.Duration

	mu    sync.Mutex
	taken map[*reply]struct{}
}

func newPlaces(n int) *places {
	return &places{free: make(chan struct{}, n), giveWay: giveWay, taken: map[*reply]struct{}{}}
}

// take gives a request a place, which it leaves when it is done.
func (p *places) take(ctx context.Context, w *reply) (leave func(), err error) {
	select {
	case p.free <- struct{}{}:
	default:
		if !p.makePlace() || !p.await(ctx) {
			return nil, refused{http.StatusServiceUnavailable, "too many are reading at once; try again"}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[w] = struct{}{}
	return func() {
		p.mu.Lock()
		delete(p.taken, w)
		p.mu.Unlock()
		<-p.free
	}, nil
}

// makePlace cuts the answer off whose client has had the server wait for longest,
// if that was long.
func (p *places) makePlace() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var slowest *reply
	most, now := p.giveWay, time.Now()
	for w := range p.taken {
		if waits := w.waits(now); waits >= most {
			slowest, most = w, waits
		}
	}
	if slowest == nil {
		return false
	}
	slowest.end()
	return true
}

// await takes the place of an answer that was cut off.
func (p *places) await(ctx context.Context) bool {
	ctx, done := context.WithTimeout(ctx, placeTime)
	defer done()
	select {
	case p.free <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
