package objectfile

import (
	"math"
	"slices"
	"sync"
)

const (
	// mostGap is what is read in vain rather than asking once more: at a usual
	// distance a request takes as long as this many bytes do, or longer.
	mostGap = 256 << 10

	// A piece is asked for at once. A long stretch is cut into pieces, so that
	// no body stands still while nobody reads on.
	pieceSize = 4 << 20

	// mostPieces are held or under way at a time, mostFetches under way.
	mostPieces  = 3
	mostFetches = 2
)

// Want says what will be read next, in this order, and what was said before is
// forgotten. It begins to be fetched at once. Reads of anything else are right
// as well, and each is a request of its own.
func (r *Reader) Want(extents []Extent) {
	r.mu.Lock()
	tail := r.size - int64(len(r.tail))
	old := r.plan
	r.plan = nil
	r.mu.Unlock()
	old.wait() // its pieces must not count beside those of the next

	p := newPlan(cut(merge(extents, tail)), extents, r.ended)
	if len(p.pieces) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.plan = p
	for range min(mostFetches, len(p.pieces)) {
		p.fetchers.Go(func() { p.run(r.fetch) })
	}
}

// merge joins extents that follow one another closely, and leaves out what
// lies behind end, which is held already.
func merge(extents []Extent, end int64) (out []Extent) {
	for _, e := range extents {
		e.Size = min(e.Size, end-e.At)
		if e.Size <= 0 || e.At < 0 {
			continue
		}
		if n := len(out) - 1; n >= 0 {
			last := &out[n]
			if gap := e.At - (last.At + last.Size); gap >= 0 && gap <= mostGap {
				last.Size += gap + e.Size
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

// cut makes pieces of extents.
func cut(extents []Extent) (out []*piece) {
	for _, e := range extents {
		for e.Size > 0 {
			n := min(e.Size, pieceSize)
			out = append(out, &piece{Extent: Extent{At: e.At, Size: n}, done: make(chan struct{})})
			e.At, e.Size = e.At+n, e.Size-n
		}
	}
	return out
}

// piece is fetched by one request.
type piece struct {
	Extent
	done chan struct{} // closed when body or err is there
	body []byte
	err  error
}

func (p *piece) end() int64 { return p.At + p.Size }

// plan fetches pieces in order, while they are read in order.
type plan struct {
	said     []Extent
	pieces   []*piece
	buffers  chan []byte // whoever takes one may fetch; nil ones are not made yet
	ended    <-chan struct{}
	halt     func() // closes halted
	halted   chan struct{}
	fetchers sync.WaitGroup

	mu     sync.Mutex // guards what follows, and the bodies of pieces
	next   int        // the first piece that nobody fetches yet
	passed int        // the pieces before this one have been read, their buffers given back
}

func newPlan(pieces []*piece, said []Extent, ended <-chan struct{}) *plan {
	p := &plan{said: said, pieces: pieces, buffers: make(chan []byte, mostPieces), ended: ended, halted: make(chan struct{})}
	p.halt = sync.OnceFunc(func() { close(p.halted) })
	for range mostPieces {
		p.buffers <- nil
	}
	return p
}

// wait ends the plan, and returns when nothing is under way any more.
func (p *plan) wait() {
	if p != nil {
		p.halt()
		p.fetchers.Wait()
	}
}

// covers says whether it was said that the byte will be read.
func (p *plan) covers(at int64) bool {
	return p != nil && slices.ContainsFunc(p.said, func(e Extent) bool { return e.At <= at && at < e.At+e.Size })
}

// run fetches one piece after the other.
func (p *plan) run(fetch func([]byte, int64) error) {
	for {
		var buffer []byte
		select {
		case buffer = <-p.buffers:
		case <-p.halted:
			return
		case <-p.ended:
			return
		}
		i := p.take()
		if i == len(p.pieces) {
			p.buffers <- buffer
			return
		}
		t := p.pieces[i]
		buffer = slices.Grow(buffer[:0], int(t.Size))[:t.Size]
		p.finish(i, buffer, fetch(buffer, t.At))
	}
}

// take is the next piece to fetch; their number when there is none.
func (p *plan) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := max(p.next, p.passed)
	p.next = min(i+1, len(p.pieces))
	return i
}

func (p *plan) finish(i int, buffer []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.pieces[i]
	if t.err = err; err == nil && i >= p.passed {
		t.body = buffer
	} else {
		p.buffers <- buffer
	}
	close(t.done)
}

// pass gives back the buffers of the pieces before i. The lock is held.
func (p *plan) pass(i int) {
	for ; p.passed < i; p.passed++ {
		if t := p.pieces[p.passed]; t.body != nil {
			p.buffers <- t.body
			t.body = nil
		}
	}
}

// read gives what the piece has that holds a byte, and waits for it if it is
// under way. It gives nothing if no piece will hold it; then next is where the
// next piece begins.
func (p *plan) read(b []byte, at int64) (n int, next int64, err error) {
	if p == nil {
		return 0, math.MaxInt64, nil
	}
	i, next := p.find(at)
	if i < 0 {
		return 0, next, nil
	}
	t := p.pieces[i]
	select {
	case <-t.done:
	case <-p.halted:
		return 0, math.MaxInt64, nil
	case <-p.ended:
		return 0, math.MaxInt64, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.err != nil {
		p.pass(i + 1) // who asks again is served by a request of its own
		return 0, 0, t.err
	}
	if t.body != nil {
		n = copy(b, t.body[at-t.At:])
	}
	if at+int64(n) == t.end() {
		p.pass(i + 1)
	}
	return n, math.MaxInt64, nil
}

// find is the piece that holds a byte; what comes before it is passed. -1 if
// there is none, with the place of the next one.
func (p *plan) find(at int64) (int, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := int64(math.MaxInt64)
	for i := p.passed; i < len(p.pieces); i++ {
		t := p.pieces[i]
		if t.At <= at && at < t.end() {
			p.pass(i)
			return i, 0
		}
		if t.At > at {
			next = min(next, t.At)
		}
	}
	return -1, next
}
