package serve

import (
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
	idle  map[net.Conn]time.Time // since when
	waits bool                   // one that came waits for a place
}

func newGate(l net.Listener, n int) *gate {
	return &gate{Listener: l, places: make(chan struct{}, n), closing: make(chan struct{}), idle: map[net.Conn]time.Time{}}
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

// Close implements net.Listener.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closing) })
	return g.Listener.Close()
}

// track is what http.Server.ConnState calls.
func (g *gate) track(c net.Conn, s http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.idle, c)
	switch s {
	case http.StateIdle:
		if g.idle[c] = time.Now(); g.waits {
			g.closeIdle()
		}
	case http.StateClosed, http.StateHijacked:
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
	for c, since := range g.idle {
		if oldest == nil || since.Before(g.idle[oldest]) {
			oldest = c
		}
	}
	if oldest != nil {
		g.waits = false
		delete(g.idle, oldest)
		_ = oldest.Close() // its goroutine gives the place back
	}
}

// wait returns when no connection is left, and so nobody works on a request. Call
// it once no other will come.
func (g *gate) wait() {
	for range cap(g.places) {
		g.places <- struct{}{}
	}
}
