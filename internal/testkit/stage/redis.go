package stage

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"korvet-offload/internal/testkit/redisserver"
)

// replyTime is how long a server may take to answer.
const replyTime = 10 * time.Second

// ReplyError is what the server has refused a command with.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// Conn speaks to a server over its unix socket, and connects anew after an
// error. A test that sends thousands of commands can't start redis-cli for each.
type Conn struct {
	socket string
	conn   net.Conn
	in     *bufio.Reader
}

// NewConn makes a connection; it is made when it is needed.
func NewConn(socket string) *Conn { return &Conn{socket: socket} }

// Close ends the connection. The next command makes another.
func (c *Conn) Close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// Do sends one command. The reply is a string, an int64, a []any or nil; one
// that is an error is a ReplyError. After any other error nobody knows whether
// the command was carried out.
func (c *Conn) Do(args ...string) (any, error) {
	replies, err := c.Pipe([][]string{args})
	if err != nil {
		return nil, fmt.Errorf("redis %q: %w", args, err)
	}
	if refused, is := replies[0].(ReplyError); is {
		return nil, fmt.Errorf("redis %q: %w", args, refused)
	}
	return replies[0], nil
}

// Pipe sends several commands in one go and returns as many replies as came:
// fewer than commands only together with an error.
func (c *Conn) Pipe(commands [][]string) ([]any, error) {
	if err := c.send(commands); err != nil {
		c.Close()
		return nil, err
	}
	var replies []any
	for range commands {
		r, err := c.reply()
		if err != nil {
			c.Close()
			return replies, err
		}
		replies = append(replies, r)
	}
	return replies, nil
}

func (c *Conn) send(commands [][]string) error {
	if c.conn == nil {
		conn, err := net.Dial("unix", c.socket)
		if err != nil {
			return err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	var out []byte
	for _, args := range commands {
		out = redisserver.AppendCommand(out, args...)
	}
	if err := c.conn.SetDeadline(time.Now().Add(replyTime)); err != nil {
		return err
	}
	_, err := c.conn.Write(out)
	return err
}

func (c *Conn) reply() (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(line[1:], "\r\n")
	switch line[0] {
	case '+':
		return text, nil
	case '-':
		return ReplyError(text), nil
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case '$':
		return c.bulk(text)
	case '*':
		return c.list(text)
	}
	return nil, fmt.Errorf("reply %q", line)
}

func (c *Conn) bulk(length string) (any, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return nil, err
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(c.in, b)
	return string(b[:n]), err
}

func (c *Conn) list(length string) (any, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return nil, err
	}
	items := make([]any, 0, n)
	for range n {
		item, err := c.reply()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
