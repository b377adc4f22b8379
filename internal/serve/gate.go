package serve

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// gate bounds connections. It gives them out as they are: a wrapper around one
// would keep the kernel from sending files.
type gate struct {
	net.Listener
	places  chan struct{}
	closing chan struct{}
	once    sync.Once

	mu    sync.Mutex
	open  map[net.Conn]time.Time // since when it is idle; zero = it is not
	ends  bool                   // none may stay idle any more
	waits bool                   // one that came waits for a place
}

func newGate(l net.Listener, n int) *gate {
	return &gate{Listener: l, places: make(chan struct{}, n), closing: make(chan struct{}), open: map[net.Conn]time.Time{}}
}

// Accept implements net.Listener. When all places are taken it closes the
// connection that has been idle for longest, or waits until one ends.
func (g *gate) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case g.places <- struct{}{}:
		return c, nil
	default:
		g.makePlace()
	}
	defer g.placed()
	select {
	case g.places <- struct{}{}:
		return c, nil
	case <-g.closing:
		_ = c.Close() // nothing was said on it
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It closes idle connections, too, which the
// library would do one after the other.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closing) })
	g.mu.Lock()
	g.ends = true
	for c, since := range g.open {
		if !since.IsZero() {
			shut(c)
		}
	}
	g.mu.Unlock()
	return g.Listener.Close()
}

// cut closes all connections, whatever is done on them.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		shut(c)
	}
}

// shut closes a connection at once. Over TLS a farewell would be sent, for which a
// client that takes nothing could have us wait 5 s.
func shut(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close() // its goroutine gives the place back
}

// track is what http.Server.ConnState calls.
func (g *gate) track(c net.Conn, s http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch s {
	case http.StateNew, http.StateActive:
		g.open[c] = time.Time{}
	case http.StateIdle:
		g.open[c] = time.Now()
		switch {
		case g.ends:
			shut(c)
		case g.waits:
			g.closeIdle()
		}
	case http.StateClosed, http.StateHijacked:
		delete(g.open, c)
		<-g.places
	}
}

// makePlace closes an idle connection, now or as soon as there is one.
func (g *gate) makePlace() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits = true
	g.closeIdle()
}

func (g *gate) placed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits = false
}

// closeIdle closes the connection that has been idle for longest, if there is one.
// It is called with the lock held.
func (g *gate) closeIdle() {
	var oldest net.Conn
	for c, since := range g.open {
		if !since.IsZero() && (oldest == nil || since.Before(g.open[oldest])) {
			oldest = c
		}
	}
	if oldest != nil {
		g.waits = false
		g.open[oldest] = time.Time{} // it goes
		shut(oldest)
	}
}

// wait returns when no connection is left, and so nobody works on a request. Call
// it once no other will come.
func (g *gate) wait() {
	for range cap(g.places) {
		g.places <- struct{}{}
	}
}
