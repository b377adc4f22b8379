package offload

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"korvet-offload/segment"
)

// How far a stream is read ahead. The encoder works in bursts: it takes a
// few pages quickly and then compresses them, and Redis should not idle
// meanwhile. Large pages are read ahead less far, so that memory stays within
// aheadBytes and two pages.
const (
	aheadPages = 24
	aheadBytes = 8 << 20
)

// pageSets lends the pages that one read-ahead needs, so that their memory is
// used again by the next segment. Safe for concurrent use.
type pageSets struct {
	mu   sync.Mutex
	idle [][]*segment.Page
}

// keepPage is how large a page's memory may be to be used again. That of a page
// with one huge entry is not: it would lie idle until all other pages have had
// their turn, and the pages of as many huge entries with it.
const keepPage = 2 << 20

// lighten takes the memory of a page that has become too large to keep.
func lighten(page *segment.Page) {
	if cap(page.Buffer()) > keepPage {
		page.Reset()
		page.SetBuffer(nil)
	}
}

func (p *pageSets) take() []*segment.Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		set := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return set
	}
	set := make([]*segment.Page, aheadPages)
	for i := range set {
		set[i] = new(segment.Page)
	}
	return set
}

func (p *pageSets) giveBack(set []*segment.Page) {
	for _, page := range set { // some were fetched and not used
		lighten(page)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, set)
}

// each calls use with every page of the stream in turn, while the next ones
// are being fetched. It closes the reader and returns when both are done.
func (p *pageSets) each(ctx context.Context, r PageReader, use func(*segment.Page) error) error {
	set := p.take()
	ctx, cancel := context.WithCancel(ctx)
	f := &fetcher{reader: r, free: make(chan *segment.Page, len(set)), full: make(chan fetched, len(set))}
	for _, page := range set {
		f.free <- page
	}
	var fetching sync.WaitGroup
	fetching.Go(func() { f.run(ctx) })
	defer func() {
		cancel()
		close(f.free)
		fetching.Wait()
		_ = r.Close() // all that was wanted of it has come, or the error says why not
		p.giveBack(set)
	}()
	for got := range f.full {
		if got.err == io.EOF { //nolint:errorlint // the bare io.EOF is the end; one inside another error is a broken connection
			return nil
		}
		if got.err != nil {
			return got.err
		}
		if err := use(got.page); err != nil {
			return err
		}
		f.ahead.Add(-int64(got.page.Bytes()))
		lighten(got.page)
		f.free <- got.page
	}
	return ctx.Err()
}

type fetched struct {
	page *segment.Page
	err  error
}

// fetcher fills free pages.
type fetcher struct {
	reader PageReader
	free   chan *segment.Page
	full   chan fetched
	ahead  atomic.Int64 // bytes fetched and not used yet
}

// next turns a panic of the reader into an error of this one stream.
func (f *fetcher) next(ctx context.Context, page *segment.Page) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal fault: %v", r)
		}
	}()
	return f.reader.Next(ctx, page)
}

// run goes on until the stream ends, an error comes or nobody frees pages any
// more.
func (f *fetcher) run(ctx context.Context) {
	defer close(f.full)
	var idle []*segment.Page
	for {
		for len(idle) == 0 || f.ahead.Load() > aheadBytes {
			page, ok := <-f.free
			if !ok {
				return
			}
			idle = append(idle, page)
		}
		page := idle[len(idle)-1]
		idle = idle[:len(idle)-1]
		err := f.next(ctx, page)
		f.ahead.Add(int64(page.Bytes()))
		f.full <- fetched{page, err}
		if err != nil {
			return
		}
	}
}
