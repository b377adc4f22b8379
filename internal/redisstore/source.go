package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// directSource keeps the connections that no reader uses.
type directSource struct {
	primary *primary
	nodes   func() []string // of a cluster; nil without one

	mu     sync.Mutex
	idle   []*conn
	closed bool
}

// maxIdle bounds the connections kept for later readers.
const maxIdle = 16

func newDirectSource(p *primary, nodes func() []string) *directSource {
	return &directSource{primary: p, nodes: nodes}
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

// get is a connection to a node: where addr is "", to the primary, or of a
// cluster to the first that answers of those in the settings, and then of those
// that the cluster is known to have.
func (s *directSource) get(ctx context.Context, addr string) (*conn, error) {
	if c := s.take(addr); c != nil {
		return c, nil
	}
	if addr != "" || s.nodes == nil {
		return s.primary.connect(ctx, addr)
	}
	var first error
	for _, addr := range slices.Concat(s.primary.option.InitAddress, s.nodes()) {
		c, err := s.primary.connect(ctx, addr)
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
		old := c.old(s.primary.option.ConnLifetime)
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
	if s.closed || len(s.idle) == maxIdle || c.old(s.primary.option.ConnLifetime) {
		c.Close()
		return
	}
	s.idle = append(s.idle, c)
}

// old says whether a connection has served long enough, or was ended by others.
func (c *conn) old(lifetime time.Duration) bool {
	w, ok := c.Conn.(*wire)
	return time.Since(c.born) >= lifetime || ok && w.closed.Load()
}
