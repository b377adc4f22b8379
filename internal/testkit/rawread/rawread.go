// Package rawread measures how fast a Redis server hands out streams when
// nobody looks at what comes: the limit that every reader is compared with.
//
// It walks each stream once, unmeasured, to learn where pages begin and how
// many bytes each reply has. The measured run sends the same requests again
// and throws exactly those bytes away.
package rawread

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// Plan is the pages of one stream.
type Plan struct {
	pages   []page
	Entries int   // of the stream
	Bytes   int64 // of all replies
}

type page struct {
	request []byte
	bytes   int64 // of the reply
}

// NewPlan walks a stream in pages of count entries. The server needs no
// password and no TLS.
func NewPlan(ctx context.Context, addr, key string, count int) (*Plan, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	plan, r := &Plan{}, &replyReader{r: bufio.NewReaderSize(c, 1<<20)}
	for last := "-"; ; {
		request := command("XRANGE", key, last, "+", "COUNT", strconv.Itoa(count))
		if _, err := c.Write(request); err != nil {
			return nil, err
		}
		r.read = 0
		n, id, err := r.page()
		if err != nil {
			return nil, fmt.Errorf("walk stream %s: %w", key, err)
		}
		plan.pages = append(plan.pages, page{request, r.read})
		plan.Entries, plan.Bytes = plan.Entries+n, plan.Bytes+r.read
		if n < count {
			return plan, nil
		}
		last = "(" + id
	}
}

// Read fetches every plan on a connection of its own, all at once, and
// returns how long it took.
func Read(ctx context.Context, addr string, plans ...*Plan) (time.Duration, error) {
	conns := make([]net.Conn, len(plans))
	for i := range conns {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		defer context.AfterFunc(ctx, func() { c.Close() })()
		conns[i] = c
	}
	errs := make([]error, len(plans))
	start := time.Now()
	var wg sync.WaitGroup
	for i, p := range plans {
		wg.Go(func() { errs[i] = p.read(conns[i]) })
	}
	wg.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return took, nil
}

func (p *Plan) read(c net.Conn) error {
	buf := make([]byte, 1<<20)
	for _, page := range p.pages {
		if _, err := c.Write(page.request); err != nil {
			return err
		}
		for left := page.bytes; left > 0; {
			n, err := c.Read(buf[:min(left, int64(len(buf)))])
			if err != nil {
				return err
			}
			left -= int64(n)
		}
	}
	return nil
}

func command(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// replyReader reads replies slowly and counts their bytes.
type replyReader struct {
	r    *bufio.Reader
	read int64
}

// page reads a reply of XRANGE: how many entries, and the last one's id.
func (r *replyReader) page() (n int, id string, err error) {
	if n, err = r.header('*'); err != nil {
		return 0, "", err
	}
	for range n {
		if _, err = r.header('*'); err != nil {
			return 0, "", err
		}
		if id, err = r.text(); err != nil {
			return 0, "", err
		}
		items, err := r.header('*')
		if err != nil {
			return 0, "", err
		}
		for range items {
			if _, err := r.text(); err != nil {
				return 0, "", err
			}
		}
	}
	return n, id, nil
}

func (r *replyReader) header(mark byte) (int, error) {
	line, err := r.r.ReadString('\n')
	r.read += int64(len(line))
	if err != nil {
		return 0, err
	}
	if line[0] != mark || len(line) < 4 {
		return 0, fmt.Errorf("reply %q", line)
	}
	return strconv.Atoi(line[1 : len(line)-2])
}

func (r *replyReader) text() (string, error) {
	n, err := r.header('$')
	if err != nil {
		return "", err
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(r.r, b)
	r.read += int64(len(b))
	return string(b[:n]), err
}
