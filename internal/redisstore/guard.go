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
	maxReply     = 64 << 20             // of the general client: lists of topics, settings, parts of manifests
	maxPageReply = segment.MaxPageBytes // of pages that it fetches
)

// guard puts itself between the general client and its connections. The
// client believes every length, and ends the program at a message that nobody
// asked for; here both are an error of that connection.
func guard(o rueidis.ClientOption, limit int64) rueidis.ClientOption {
	inner := o
	asked := o.Sentinel.MasterSet == "" // a sentinel may tell things unasked
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		nc, err := inner.DialCtxFn(ctx, addr, d, t)
		if err != nil {
			return nil, err
		}
		return &guarded{Conn: nc, asked: asked, in: frames{limit: limit}, out: frames{limit: 1 << 62}}, nil
	}
	return o
}

// guarded is a connection on which only answers come, and only such as make
// sense. It is read by one goroutine and written by one.
type guarded struct {
	net.Conn
	asked bool // no more answers than questions
	in    frames
	out   frames
	sent  atomic.Int64 // questions
}

// Read passes on what came. What breaks the protocol is not passed on.
func (g *guarded) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if ferr := g.in.feed(b[:n]); ferr != nil {
		return 0, ferr
	}
	if sent := g.sent.Load(); g.asked && g.in.whole > sent {
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
