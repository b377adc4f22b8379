package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
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

	mode   string // of the server: standalone, cluster or sentinel; "" = it does not say
	role   string // of the server when it was asked: master, or another word
	origin string // the server's history: its replication id; "" where that is not looked at
	out    []byte
	in     []byte // replies of the handshake
	dec    decoder
}

// newConn connects to a server and sets the connection up.
func newConn(ctx context.Context, o *rueidis.ClientOption, addr string, setUp func(*conn, *rueidis.ClientOption) error) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Dialer.Timeout)
	defer cancel()
	w, err := dialNet(ctx, o, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: w, addr: addr, born: time.Now()}
	release := c.guard(ctx, o.Dialer.Timeout)
	err = setUp(c, o)
	if !release() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		w.Close()
		return nil, w.explain(addr, err)
	}
	return c, nil
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

// hello says who we are, and takes what the server says of itself.
func (c *conn) hello(o *rueidis.ClientOption) error {
	hello := []string{"HELLO", "2"}
	user := o.Username
	if user == "" {
		user = "default"
	}
	if o.Username != "" || o.Password != "" {
		hello = append(hello, "AUTH", user, o.Password)
	}
	reply, err := c.question(append(hello, "SETNAME", o.ClientName)...)
	if err != nil {
		return hide(err, o.Password)
	}
	c.mode, c.role = following(reply, "mode"), following(reply, "role")
	return nil
}

// handshake brings the connection into the state in which the general client's
// are: user, name, database. It also measures the round trip. PING may be
// forbidden to the user; the refusal takes as long.
func (c *conn) handshake(o *rueidis.ClientOption) error {
	if err := c.hello(o); err != nil {
		return err
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
	_, err := c.question(command...)
	return err
}

// question sends a command and returns its reply as it came, which is good
// until the next one.
func (c *conn) question(command ...string) ([]byte, error) {
	c.out = appendCommand(c.out[:0], command...)
	sent := time.Now()
	if _, err := c.Write(c.out); err != nil {
		return nil, err
	}
	c.in = c.in[:0]
	for {
		if len(c.in) > maxErrLine {
			return nil, fmt.Errorf("%w: reply to %s is too long", errProtocol, command[0])
		}
		if len(c.in) == cap(c.in) {
			c.in = append(make([]byte, 0, 2*cap(c.in)+1024), c.in...)
		}
		n, err := c.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		switch end := skip(c.in, 0, 8); {
		case end == len(c.in) && n > 0:
			c.saw(time.Since(sent))
			return c.in, replyError(c.in)
		case end != short:
			return nil, fmt.Errorf("%w: reply to %s", errProtocol, command[0])
		case err != nil:
			return nil, err
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
		if len(b) > i+1 && b[i+1] == '-' {
			return skipNone(b, i)
		}
		n, next := header(b, i, '*')
		for ; n > 0 && next > 0; n-- {
			next = skip(b, next, depth-1)
		}
		return next
	}
	return illegal
}

// skipNone is the offset behind an array that is not there.
func skipNone(b []byte, i int) int {
	const none = "*-1\r\n"
	switch rest := b[i:]; {
	case bytes.HasPrefix(rest, []byte(none)):
		return i + len(none)
	case strings.HasPrefix(none, string(rest)):
		return short
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
