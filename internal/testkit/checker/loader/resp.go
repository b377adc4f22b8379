package loader

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"korvet-offload/internal/testkit/redisserver"
)

// client talks to a server, and to other nodes of its cluster where it is
// sent to.
type client struct {
	nodes    map[string]*conn // by address; "" = the server itself
	password string
}

// conn is one connection.
type conn struct {
	net.Conn
	in *bufio.Reader
}

// patience is how long a command may take.
const patience = 30 * time.Second

func connect(ctx context.Context, s *redisserver.Server) (*client, error) {
	c := &client{nodes: map[string]*conn{}, password: s.Password}
	if _, err := c.dial(ctx, "", "unix", s.Socket); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *client) dial(ctx context.Context, name, network, address string) (*conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to redis-server: %w", err)
	}
	node := &conn{raw, bufio.NewReaderSize(raw, 1<<16)}
	c.nodes[name] = node
	if c.password != "" {
		if _, err := node.do("AUTH", c.password); err != nil {
			return nil, err
		}
	}
	return node, nil
}

func (c *client) close() {
	for _, n := range c.nodes {
		_ = n.Close()
	}
}

// do runs a command, on another node if the server says so. The reply is a
// string, an int64, nil or a list of these.
func (c *client) do(ctx context.Context, args ...string) (any, error) {
	reply, err := c.nodes[""].do(args...)
	said, refused := err.(redisserver.ReplyError) //nolint:errorlint // it is not wrapped
	moved, to, _ := strings.Cut(string(said), " ")
	_, address, _ := strings.Cut(to, " ")
	if !refused || moved != "MOVED" {
		return reply, err
	}
	node := c.nodes[address]
	if node == nil {
		if node, err = c.dial(ctx, address, "tcp", address); err != nil {
			return nil, err
		}
	}
	return node.do(args...)
}

func (n *conn) do(args ...string) (any, error) {
	if err := n.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := n.Write(redisserver.AppendCommand(nil, args...)); err != nil {
		return nil, fmt.Errorf("send %s: %w", args[0], err)
	}
	reply, err := redisserver.ReadReply(n.in)
	if refused, is := reply.(redisserver.ReplyError); is {
		return nil, refused
	}
	return reply, err
}

// texts makes texts of a reply that is a list of them.
func texts(reply any) ([]string, error) {
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("redis-server answered %v, no list", reply)
	}
	all := make([]string, len(list))
	for i, v := range list {
		if all[i], ok = v.(string); !ok {
			return nil, fmt.Errorf("redis-server answered %v, no text", v)
		}
	}
	return all, nil
}
