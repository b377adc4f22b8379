package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"korvet-offload/segment"
)

// directSession fetches pages over a connection of its own and decodes them
// where they lie.
type directSession struct {
	from *directSource
	c    *conn  // nil until the first page, and after a fault
	addr string // of the node that the cluster has sent us to; "" = any
}

// maxRedirects bounds the redirects of one page.
const maxRedirects = 8

func (s *directSession) close() {
	if s.c != nil {
		s.from.put(s.c)
		s.c = nil
	}
}

// confirm makes sure that every page came from one server, which has been the
// primary all the time. In a cluster a node says so with every page.
func (s *directSession) confirm(ctx context.Context, origin string) error {
	if s.from.nodes != nil || origin == "" {
		return nil
	}
	if s.c == nil {
		c, err := s.from.get(ctx, "")
		if err != nil {
			return err
		}
		s.c = c
	}
	if s.c.origin != origin {
		return errChanged
	}
	release := s.c.guard(ctx, pageTimeout)
	err := s.from.primary.confirm(s.c)
	if !release() || err != nil {
		s.drop()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if isLost(err) {
		err = &errCut{err: err}
	}
	return err
}

// drop ends a connection that is not between two replies.
func (s *directSession) drop() {
	s.c.Close()
	s.c = nil
}

func (s *directSession) fetch(ctx context.Context, r request, into *segment.Page) (sample, error) {
	for range maxRedirects {
		got, err := s.fetchOnce(ctx, r, into, false)
		var reply errReply
		if !errors.As(err, &reply) || s.from.nodes == nil {
			return got, err
		}
		if s.c == nil { // it came from the handshake
			return got, err
		}
		switch word, addr := redirect(string(reply), s.c.addr); word {
		case "MOVED":
			s.close()
			s.addr = addr
		case "ASK":
			return s.fetchAsking(ctx, r, into, addr)
		default:
			return got, err
		}
	}
	return sample{}, fmt.Errorf("%w: %d redirects in a row", errProtocol, maxRedirects)
}

// fetchAsking fetches one page from the node that a slot is moving to. The
// slot still belongs to the other node, so the next page is asked for there.
func (s *directSession) fetchAsking(ctx context.Context, r request, into *segment.Page, addr string) (sample, error) {
	there := directSession{from: s.from, addr: addr}
	defer there.close()
	return there.fetchOnce(ctx, r, into, true)
}

// redirect reads "MOVED <slot> <host>:<port>" and the like; an empty host is
// the one that answered.
func redirect(reply, from string) (word, addr string) {
	parts := strings.Fields(reply)
	if len(parts) != 3 {
		return "", ""
	}
	addr = parts[2]
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return "", ""
	}
	host, port := strings.Trim(addr[:i], "[]"), addr[i+1:]
	if host == "" {
		host, _, _ = net.SplitHostPort(from) // an address that was dialled
	}
	return parts[0], net.JoinHostPort(host, port)
}

// fetchOnce asks one node. Afterwards the connection is between two replies,
// or gone.
func (s *directSession) fetchOnce(ctx context.Context, r request, into *segment.Page, asking bool) (sample, error) {
	if s.c == nil {
		c, err := s.from.get(ctx, s.addr)
		if err != nil {
			s.addr = "" // the node may be gone from the cluster
			return sample{}, err
		}
		s.c = c
	}
	c := s.c
	release := c.guard(ctx, pageTimeout)
	if asking {
		if err := c.ask("ASKING"); err != nil {
			release()
			s.drop()
			return sample{}, err
		}
	}
	got, err := c.page(ctx, r, into)
	if !release() || got.left > 0 || err != nil && !errors.As(err, new(errReply)) {
		s.drop()
	}
	if ctx.Err() != nil {
		return sample{}, ctx.Err()
	}
	return got, err
}

// page sends the request and reads the reply.
func (c *conn) page(ctx context.Context, r request, into *segment.Page) (sample, error) {
	c.out = appendRange(c.out[:0], r)
	var got sample
	sent := time.Now()
	_, err := c.Write(c.out)
	if err == nil {
		var left bool
		left, err = c.dec.read(c, into, r.count, maxPage, func(total int) {
			if got.bytes == 0 {
				got.wait = time.Since(sent)
			}
			if total/maxPage > got.bytes/maxPage { // a large entry gets more time as it comes in
				c.extend(ctx)
			}
			got.bytes = total
		})
		if left {
			got.left = c.dec.largest
		}
	}
	if err != nil {
		if isLost(err) {
			err = &errCut{err: err, stale: c.used && got.bytes == 0}
		}
		return got, err
	}
	c.used = false
	c.saw(got.wait)
	got.rtt, got.origin = c.rtt, c.origin
	return got, nil
}

// extend moves the deadline of guard on, unless ctx has ended: guard's
// interruption would be undone.
func (c *conn) extend(ctx context.Context) {
	c.SetDeadline(time.Now().Add(pageTimeout)) //nolint:errcheck // a closed connection shows at the next read
	if ctx.Err() != nil {
		c.SetDeadline(longAgo()) //nolint:errcheck // as above
	}
}
