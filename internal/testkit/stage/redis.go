package stage

import (
	"bufio"
	"fmt"
	"net"
	"time"

	"korvet-offload/internal/testkit/redisserver"
)

// replyTime is how long a server may take to answer.
const replyTime = 10 * time.Second

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
// that is an error is a redisserver.ReplyError. After any other error nobody knows whether
// the command was carried out.
func (c *Conn) Do(args ...string) (any, error) {
	replies, err := c.Pipe([][]string{args})
	if err != nil {
		return nil, fmt.Errorf("redis %q: %w", args, err)
	}
	if refused, is := replies[0].(redisserver.ReplyError); is {
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
		r, err := redisserver.ReadReply(c.in)
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
