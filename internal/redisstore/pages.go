package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"korvet-offload/segment"
)

// source is one of the two ways to fetch pages.
type source interface {
	session() session // of one reader
	close()
}

// session fetches the pages of one reader, one at a time.
type session interface {
	// fetch sends one XRANGE and puts its reply into the page. A connection
	// that was lost after the request had gone out gives an *errCut.
	fetch(ctx context.Context, r request, into *segment.Page) (sample, error)
	// confirm is called behind the last page, with the origin of the first, and
	// gives errChanged where not all that was fetched came from there.
	confirm(ctx context.Context, origin string) error
	close()
}

// request is one XRANGE.
type request struct {
	key      string
	from, to segment.ID
	after    bool // from itself is left out
	count    int
}

// sample is what a page has cost.
type sample struct {
	bytes  int           // of the reply
	wait   time.Duration // from the request to the first byte of the reply
	rtt    time.Duration // the shortest round trip seen on the connection
	origin string        // of the server; "" where that is not looked at
	left   int           // not 0: the reply was left because it was too large, and an entry in it is of about this size
}

// errCut says that the connection was lost before the whole reply was there.
// It does not unwrap: what it holds may be io.EOF, which a page's reader
// would take for the end of the stream.
type errCut struct {
	err   error
	stale bool // it had lain idle, and nothing came: that was its fault alone
}

func (e *errCut) Error() string { return "connection lost in mid-reply: " + e.err.Error() }

const (
	// maxTries bounds how often a page is asked for again after a lost
	// connection or an answer like LOADING; with the pauses between them
	// that is 1 to 3 seconds.
	maxTries   = 6
	firstPause = 50 * time.Millisecond
)

// pages reads one stream. Both readers share it: what to ask for, when to
// try again, and what to believe. It is a segment.PageReader.
type pages struct {
	session session
	key     string
	next    segment.ID // where the next page begins
	after   bool       // and whether next itself was in the last one
	to      segment.ID
	pace    pacer
	origin  string // of the server that the first page came from
	begun   bool   // a page has come
	ended   bool   // nothing can follow
	err     error  // what Next says from now on
}

// newPages reads the ids from first to last, both inclusive.
func newPages(from source, key string, first, last segment.ID, pageSize int) *pages {
	return &pages{session: from.session(), key: key, next: first, to: last, pace: newPacer(pageSize)}
}

// Next fills the page with the entries that follow; io.EOF comes instead of
// an empty page.
//
// The end is a reply without entries, or the last id that is wanted, and
// nothing else: a reply with fewer entries than were asked for is followed by
// one more question. A connection lost in mid-reply, which is how the server
// refuses a reply beyond its client-output-buffer-limit, is followed by a
// request for half as many from the same id. What can pass, such as LOADING,
// is tried again a few times.
func (r *pages) Next(ctx context.Context, into *segment.Page) error {
	if r.err == nil {
		r.err = r.read(ctx, into)
	}
	return r.err
}

// Close gives the connection back.
func (r *pages) Close() error {
	r.session.close()
	if r.err == nil {
		r.err = errors.New("page reader is closed")
	}
	return nil
}

func (r *pages) read(ctx context.Context, into *segment.Page) error {
	if r.ended {
		into.Reset()
		return r.finish(ctx)
	}
	for t := (trial{}); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := r.session.fetch(ctx, r.request(), into)
		if err == nil {
			err = r.accept(into, s)
			if err == nil {
				return nil
			}
			if err == io.EOF { //nolint:errorlint // accept gives the bare one
				return r.finish(ctx)
			}
		}
		if err = t.again(ctx, &r.pace, err); err != nil {
			return wrap(ctx, "XRANGE", r.key, r.explain(err))
		}
	}
}

// finish gives io.EOF once it is certain that all pages came from one server
// that has been the primary all the time.
func (r *pages) finish(ctx context.Context) error {
	for t := (trial{}); ; {
		err := r.session.confirm(ctx, r.origin)
		if err == nil {
			return io.EOF
		}
		if err = t.again(ctx, &r.pace, err); err != nil {
			return wrap(ctx, "XRANGE", r.key, r.explain(err))
		}
	}
}

func (r *pages) request() request {
	return request{key: r.key, from: r.next, to: r.to, after: r.after, count: r.pace.next()}
}

// accept checks the page's ids and moves on behind it.
func (r *pages) accept(p *segment.Page, s sample) error {
	if r.begun && s.origin != r.origin {
		return errChanged
	}
	r.begun, r.origin = true, s.origin
	n := p.Len()
	if n == 0 {
		return io.EOF
	}
	last, exclusive := r.next, r.after
	for i := range n {
		id := p.ID(i)
		if c := id.Compare(last); c < 0 || c == 0 && exclusive {
			return fmt.Errorf("%w: id %s where one behind %s should be", errProtocol, id, last)
		}
		last, exclusive = id, true
	}
	if last.Compare(r.to) > 0 {
		return fmt.Errorf("%w: id %s is beyond %s", errProtocol, last, r.to)
	}
	r.next, r.after = last, true
	r.pace.done(n, s.bytes, s.wait, s.rtt)
	if s.left > 0 {
		r.pace.left(s.left)
	}
	r.ended = last == r.to // and behind the largest id that there is the server refuses a range
	return nil
}

// explain says where the reader was, and what to raise when the server cuts
// even a single entry.
func (r *pages) explain(err error) error {
	if errors.Is(err, errChanged) {
		return &Error{Op: "XRANGE", Key: r.key, Class: Unavailable, Err: errChanged}
	}
	var cut *errCut
	where := "from " + r.next.String()
	if r.after {
		where = "behind " + r.next.String()
	}
	if errors.As(err, &cut) && r.pace.count == 1 {
		return &Error{Op: "XRANGE", Key: r.key, Class: OutputLimit, Err: fmt.Errorf(
			"entry %s: the server cuts the reply even with COUNT 1: raise its client-output-buffer-limit for normal clients: %w", where, err)}
	}
	return fmt.Errorf("entries %s: %w", where, err)
}

// trial counts what was tried for one page.
type trial struct {
	failed int
	stale  int
}

// again waits until it makes sense to ask again, and returns the error if it
// does not.
func (t *trial) again(ctx context.Context, pace *pacer, err error) error {
	var cut *errCut
	if errors.As(err, &cut) {
		if cut.stale && t.stale < maxIdle {
			t.stale++
			return nil
		}
		if pace.count > 1 {
			pace.cut()
			return nil
		}
	} else if !passing(err) {
		return err
	}
	if t.failed++; t.failed == maxTries {
		return err
	}
	return pause(ctx, t.failed, err)
}

// passing says whether an error is one of those that end by themselves, soon.
func passing(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Class == Unavailable
	}
	return classify(err) == Unavailable && !isTimeout(err)
}

// pause waits for 50 ms and twice as long each further time, give or take
// half. It returns err when ctx ends before.
func pause(ctx context.Context, n int, err error) error {
	base := firstPause << (n - 1)
	timer := time.NewTimer(base/2 + rand.N(base))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return err
	}
}
