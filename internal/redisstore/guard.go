package redisstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

const (
	maxReply     = 512 << 20            // of the general client: lists of all topics, settings, parts of manifests
	maxPageReply = segment.MaxPageBytes // of pages that it fetches, and of a text in one
)

// guard puts itself between the general client and its connections. The
// client believes every length, and ends the program at a message that nobody
// asked for; here both are an error of that connection. limit is of a reply,
// text of a text in one: what comes takes memory as it comes, and a text when
// it is announced.
func guard(o rueidis.ClientOption, limit, text int64) rueidis.ClientOption {
	inner := o
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		nc, err := inner.DialCtxFn(ctx, addr, d, t)
		if err != nil {
			return nil, err
		}
		return &guarded{Conn: nc, in: frames{limit: limit, text: text}, out: frames{limit: 1 << 62, text: 1 << 62}}, nil
	}
	return o
}

// guarded is a connection on which only answers come, and only such as make
// sense. It is read by one goroutine and written by one.
type guarded struct {
	net.Conn
	in   frames
	out  frames
	sent atomic.Int64 // questions
}

// Read passes on what came. What breaks the protocol is not passed on.
func (g *guarded) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if ferr := g.in.feed(b[:n]); ferr != nil {
		return 0, ferr
	}
	if g.in.whole > g.sent.Load() {
		return 0, fmt.Errorf("%w: an answer to no question", errProtocol)
	}
	return n, err
}

// Write counts questions before they can be answered.
func (g *guarded) Write(b []byte) (int, error) {
	if err := g.out.feed(b); err != nil {
		return 0, err
	}
	g.sent.Store(g.out.whole)
	return g.Conn.Write(b)
}
