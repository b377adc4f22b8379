package network

import (
	"io"
	"net"
	"sync"
	"testing"
)

// deadZone is a proxy of its own kind: what a firewall does that forgets its
// connections. Those that are there at that moment swallow all that is sent, in
// both directions, and are never closed; new ones work.
type deadZone struct {
	listener net.Listener
	upstream string

	mu    sync.Mutex
	lines []*line
	going sync.WaitGroup
}

// line is one connection through a deadZone.
type line struct {
	near, far net.Conn
	mu        sync.Mutex
	dead      bool
}

func newDeadZone(t *testing.T, upstream string) *deadZone {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &deadZone{listener: l, upstream: upstream}
	z.going.Go(z.serve)
	t.Cleanup(z.close)
	return z
}

func (z *deadZone) addr() string { return z.listener.Addr().String() }

func (z *deadZone) serve() {
	for {
		near, err := z.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", z.upstream)
		if err != nil {
			_ = near.Close()
			continue
		}
		n := &line{near: near, far: far}
		z.mu.Lock()
		z.lines = append(z.lines, n)
		z.mu.Unlock()
		z.going.Go(func() { n.pass(far, near) })
		z.going.Go(func() { n.pass(near, far) })
	}
}

// pass copies until one end closes or the line is dead; then it reads on, and
// passes nothing on, not even the end.
func (n *line) pass(to io.WriteCloser, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		got, err := from.Read(buf)
		n.mu.Lock()
		dead := n.dead
		n.mu.Unlock()
		switch {
		case dead && err != nil:
			return
		case dead:
		case err != nil:
			_ = to.Close()
			return
		default:
			if _, err := to.Write(buf[:got]); err != nil {
				return
			}
		}
	}
}

// forget makes all connections that there are dead, and says how many.
func (z *deadZone) forget() (n int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, l := range z.lines {
		l.mu.Lock()
		l.dead = true
		l.mu.Unlock()
	}
	return len(z.lines)
}

func (z *deadZone) close() {
	_ = z.listener.Close()
	z.mu.Lock()
	for _, l := range z.lines {
		_ = l.near.Close()
		_ = l.far.Close()
	}
	z.mu.Unlock()
	z.going.Wait()
}
