package redisstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// conn is a connection of the direct reader. It serves one reader at a time.
type conn struct {
	net.Conn
	addr string
	born time.Time
	rtt  time.Duration // the shortest round trip seen
	used bool          // it has served another reader: the server may have closed it since
	out  []byte
	in   []byte // replies of the handshake
	dec  decoder
}

// dial connects to a node and brings the connection into the state in which
// the general client's are: user, database, name.
func dial(ctx context.Context, o *rueidis.ClientOption, addr string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Dialer.Timeout)
	defer cancel()
	nc, err := dialNet(ctx, o, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, addr: addr, born: time.Now()}
	release := c.guard(ctx, o.Dialer.Timeout)
	err = c.handshake(o)
	if !release() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func dialNet(ctx context.Context, o *rueidis.ClientOption, addr string) (net.Conn, error) {
	if o.DialCtxFn != nil {
		return o.DialCtxFn(ctx, addr, &o.Dialer, o.TLSConfig)
	}
	if o.TLSConfig != nil {
		d := tls.Dialer{NetDialer: &o.Dialer, Config: o.TLSConfig}
		return d.DialContext(ctx, "tcp", addr)
	}
	return o.Dialer.DialContext(ctx, "tcp", addr)
}

// guard sets the deadline of what follows and makes the end of ctx interrupt
// it. The function that it returns ends that, and is false when ctx had ended:
// the connection can't be used any more then.
func (c *conn) guard(ctx context.Context, timeout time.Duration) func() bool {
	c.SetDeadline(time.Now().Add(timeout)) //nolint:errcheck // a closed connection shows at the next use
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { c.SetDeadline(longAgo()) }) //nolint:errcheck // as above
}

// longAgo is a deadline that interrupts at once.
func longAgo() time.Time { return time.Unix(1, 0) }

// handshake also measures the round trip. PING may be forbidden to the user;
// the refusal takes as long.
func (c *conn) handshake(o *rueidis.ClientOption) error {
	hello := []string{"HELLO", "2"}
	user := o.Username
	if user == "" {
		user = "default"
	}
	if o.Username != "" || o.Password != "" {
		hello = append(hello, "AUTH", user, o.Password)
	}
	if err := c.ask(append(hello, "SETNAME", o.ClientName)...); err != nil {
		return hide(err, o.Password)
	}
	if o.SelectDB != 0 {
		if err := c.ask("SELECT", strconv.Itoa(o.SelectDB)); err != nil {
			return err
		}
	}
	if err := c.ask("PING"); err != nil && classify(err) != Permission {
		return err
	}
	return nil
}

// ask sends a command and passes over its reply.
func (c *conn) ask(command ...string) error {
	c.out = appendCommand(c.out[:0], command...)
	sent := time.Now()
	if _, err := c.Write(c.out); err != nil {
		return err
	}
	c.in = c.in[:0]
	for {
		if len(c.in) > maxErrLine {
			return fmt.Errorf("%w: reply to %s is too long", errProtocol, command[0])
		}
		if len(c.in) == cap(c.in) {
			c.in = append(make([]byte, 0, 2*cap(c.in)+1024), c.in...)
		}
		n, err := c.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		switch end := skip(c.in, 0, 8); {
		case end == len(c.in) && n > 0:
			c.saw(time.Since(sent))
			return replyError(c.in)
		case end != short:
			return fmt.Errorf("%w: reply to %s", errProtocol, command[0])
		case err != nil:
			return err
		}
	}
}

func replyError(reply []byte) error {
	if reply[0] == '-' {
		return errReply(strings.TrimSpace(string(reply[1:])))
	}
	return nil
}

func (c *conn) saw(roundTrip time.Duration) {
	if c.rtt == 0 || roundTrip < c.rtt {
		c.rtt = roundTrip
	}
}

// skip is the offset behind the reply that begins at i; depth bounds how
// deep it may be nested.
func skip(b []byte, i, depth int) int {
	if i >= len(b) {
		return short
	}
	if depth == 0 {
		return illegal
	}
	switch b[i] {
	case '+', '-', ':':
		if end := bytes.IndexByte(b[i:], '\n'); end > 0 {
			return i + end + 1
		}
		return short
	case '$':
		if bytes.HasPrefix(b[i:], []byte("$-1\r\n")) {
			return i + 5
		}
		_, _, next := bulk(b, i)
		return next
	case '*':
		n, next := header(b, i, '*')
		for ; n > 0 && next > 0; n-- {
			next = skip(b, next, depth-1)
		}
		return next
	}
	return illegal
}

func appendCommand(b []byte, args ...string) []byte {
	b = appendHeader(b, '*', len(args))
	for _, a := range args {
		b = appendHeader(b, '$', len(a))
		b = append(append(b, a...), '\r', '\n')
	}
	return b
}

func appendHeader(b []byte, mark byte, n int) []byte {
	return append(strconv.AppendInt(append(b, mark), int64(n), 10), '\r', '\n')
}

// directSource keeps the connections that no reader uses.
type directSource struct {
	option rueidis.ClientOption
	nodes  func() []string // of a cluster; nil without one

	mu     sync.Mutex
	idle   []*conn
	closed bool
}

// maxIdle bounds the connections kept for later readers.
const maxIdle = 16

func newDirectSource(o rueidis.ClientOption, nodes func() []string) *directSource {
	return &directSource{option: o, nodes: nodes}
}

func (s *directSource) session() session { return &directSession{from: s} }

func (s *directSource) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		c.Close()
	}
	s.idle, s.closed = nil, true
}

// get is a connection to a node: where addr is "", to the first that answers
// of those in the settings, and then of those that the cluster is known to have.
func (s *directSource) get(ctx context.Context, addr string) (*conn, error) {
	if c := s.take(addr); c != nil {
		return c, nil
	}
	if addr != "" {
		return dial(ctx, &s.option, addr)
	}
	addrs := s.option.InitAddress
	if s.nodes != nil {
		addrs = slices.Concat(addrs, s.nodes())
	}
	var first error
	for _, addr := range addrs {
		c, err := dial(ctx, &s.option, addr)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (s *directSource) take(addr string) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = slices.DeleteFunc(s.idle, func(c *conn) bool {
		old := c.old(s.option.ConnLifetime)
		if old {
			c.Close()
		}
		return old
	})
	for i := len(s.idle) - 1; i >= 0; i-- { // the one that was used last is the most likely to be alive
		if c := s.idle[i]; addr == "" || c.addr == addr {
			s.idle = append(s.idle[:i], s.idle[i+1:]...)
			c.used = true
			return c
		}
	}
	return nil
}

// put keeps a connection that is between two replies, unless it is old or
// there are enough.
func (s *directSource) put(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.idle) == maxIdle || c.old(s.option.ConnLifetime) {
		c.Close()
		return
	}
	s.idle = append(s.idle, c)
}

func (c *conn) old(lifetime time.Duration) bool { return time.Since(c.born) >= lifetime }

// appendRange appends the command of a request.
func appendRange(b []byte, r request) []byte {
	b = appendHeader(b, '*', 6)
	b = append(b, "$6\r\nXRANGE\r\n"...)
	b = append(append(appendHeader(b, '$', len(r.key)), r.key...), '\r', '\n')
	b = appendID(b, r.after, r.from)
	b = appendID(b, false, r.to)
	b = append(b, "$5\r\nCOUNT\r\n"...)
	var digits [20]byte
	n := strconv.AppendInt(digits[:0], int64(r.count), 10)
	return append(append(appendHeader(b, '$', len(n)), n...), '\r', '\n')
}

func appendID(b []byte, exclusive bool, id segment.ID) []byte {
	var room [42]byte
	text := room[:0]
	if exclusive {
		text = append(text, '(')
	}
	text = id.Append(text)
	return append(append(appendHeader(b, '$', len(text)), text...), '\r', '\n')
}
