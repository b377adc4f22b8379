package offload

import (
	"context"
	"io"
	"sync"

	"korvet-offload/segment"
)

// pagePairs lends the two pages that one read-ahead needs, so that their
// memory is used again by the next segment. Safe for concurrent use.
type pagePairs struct {
	mu   sync.Mutex
	idle [][2]*segment.Page
}

// keepPage is how large a page's memory may be to be kept between segments;
// a page of one huge entry is not.
const keepPage = 4 << 20

func (p *pagePairs) take() [2]*segment.Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		pair := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return pair
	}
	return [2]*segment.Page{new(segment.Page), new(segment.Page)}
}

func (p *pagePairs) giveBack(pair [2]*segment.Page) {
	for _, page := range pair {
		if cap(page.Buffer()) > keepPage {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, pair)
}

type fetched struct {
	page *segment.Page
	err  error
}

// each calls use with every page of the stream in turn, while the next one is
// being fetched. It closes the reader and returns when both are done.
func (p *pagePairs) each(ctx context.Context, r PageReader, use func(*segment.Page) error) error {
	pair := p.take()
	ctx, cancel := context.WithCancel(ctx)
	free := make(chan *segment.Page, len(pair))
	full := make(chan fetched, len(pair))
	for _, page := range pair {
		free <- page
	}
	var fetcher sync.WaitGroup
	fetcher.Go(func() { fetch(ctx, r, free, full) })
	defer func() {
		cancel()
		close(free)
		fetcher.Wait()
		_ = r.Close() // all that was wanted of it has come, or the error says why not
		p.giveBack(pair)
	}()
	for f := range full {
		if f.err == io.EOF {
			return nil
		}
		if f.err != nil {
			return f.err
		}
		if err := use(f.page); err != nil {
			return err
		}
		free <- f.page
	}
	return ctx.Err()
}

// fetch fills free pages until the stream ends, an error comes or nobody
// frees pages any more.
func fetch(ctx context.Context, r PageReader, free <-chan *segment.Page, full chan<- fetched) {
	defer close(full)
	for page := range free {
		err := r.Next(ctx, page)
		full <- fetched{page, err}
		if err != nil {
			return
		}
	}
}
