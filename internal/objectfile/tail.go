package objectfile

// How much of the end is read at once. The footer and the page index of segment
// files are between a 400th and a 2000th of the file, so that this holds them
// with room to spare, and costs less time than a second request would.
const (
	tailShare = 256
	leastTail = 64 << 10
	mostTail  = 1 << 20

	// mostGrowth is how far the tail grows towards a read that begins before
	// it: a footer that is larger than was thought. More is read, but not kept.
	mostGrowth = 4 << 20
)

func tailSize(size int64) int64 {
	return min(size, max(leastTail, min(size/tailShare, mostTail)))
}

// tailFor reads the tail, if a read of n bytes is the first one to need it, and
// makes it longer, if such a read reaches into it from before: unless the read
// was announced, for then it is of pages and not of the footer. It returns
// where the tail begins; the object's size while there is none.
func (r *Reader) tailFor(at, n int64, announced bool) (int64, error) {
	start := r.size - tailSize(r.size)
	if at+n <= start {
		return start, nil
	}
	r.reading.Lock()
	defer r.reading.Unlock()
	tail := r.held()
	if tail == nil {
		tail = r.tails.get(tailKey{r.key, r.version, r.size})
	}
	have := r.size - int64(len(tail))
	want := min(start, have)
	if !announced && at < want && want-at <= mostGrowth {
		want = at
	}
	if want == have {
		return have, r.keep(tail)
	}
	longer := make([]byte, r.size-want)
	copy(longer[have-want:], tail)
	if err := r.fetch(longer[:have-want], want); err != nil {
		return 0, err
	}
	r.tails.put(tailKey{r.key, r.version, r.size}, longer)
	return want, r.keep(longer)
}

func (r *Reader) held() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tail
}

// keep holds the tail, unless the reader was closed meanwhile.
func (r *Reader) keep(tail []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.tail = tail
	return nil
}

// fromTail copies what the tail has of a read; 0 if it begins before the tail.
func (r *Reader) fromTail(b []byte, at int64) int {
	tail := r.held()
	start := r.size - int64(len(tail))
	if at < start {
		return 0
	}
	return copy(b, tail[at-start:])
}
