// Package redisproxy puts something between a client and a Redis that loses
// answers, gives false ones, or falls silent, at requests that a test chooses.
//
// Guarantees: what no rule concerns passes as it is; all connections are closed
// and every goroutine has ended when the test is over.
package redisproxy

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Fate is what becomes of a request. The zero Fate passes it on.
type Fate struct {
	Lose bool            // the server gets it, and the connection is cut when it answers
	Say  func(io.Writer) // the server does not get it; this answers
	Mute bool            // after that nothing passes on this connection any more
}

// Rule is asked about each piece of bytes that a client sends: a request, or
// several that it sent together. It is called from several goroutines.
type Rule func(request []byte) Fate

// Start listens on a port of the loopback address, whose host:port it returns,
// for the length of the test.
func Start(t testing.TB, server string, rule Rule) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	p := proxy{server: server, rule: rule, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		listener.Close()
		p.end()
	})
	p.going.Go(func() { p.accept(listener) })
	return listener.Addr().String()
}

type proxy struct {
	server string
	rule   Rule
	going  sync.WaitGroup

	mu    sync.Mutex
	open  map[net.Conn]bool
	ended bool
}

func (p *proxy) end() {
	p.mu.Lock()
	p.ended = true
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.going.Wait()
}

func (p *proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p.going.Go(func() { p.serve(c) })
	}
}

// keep notes a connection that the end has to close.
func (p *proxy) keep(c net.Conn) (forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		c.Close()
	}
	p.open[c] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		c.Close()
		delete(p.open, c)
	}
}

// serve passes requests on until one of the two hangs up. A server that is
// away hangs up at once.
func (p *proxy) serve(client net.Conn) {
	defer p.keep(client)()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer p.keep(server)()
	var lose atomic.Bool
	p.going.Go(func() { answer(client, server, &lose) })
	request := make([]byte, 64<<10)
	for {
		n, err := client.Read(request)
		if err != nil {
			return
		}
		fate := p.rule(request[:n])
		if fate.Lose {
			lose.Store(true)
		}
		if fate.Say != nil {
			fate.Say(client)
		} else if _, err := server.Write(request[:n]); err != nil {
			return
		}
		if fate.Mute {
			io.Copy(io.Discard, client) //nolint:errcheck // it ends with the connection
		}
	}
}

// answer passes answers on, up to one that is to be lost.
func answer(client, server net.Conn, lose *atomic.Bool) {
	defer client.Close()
	reply := make([]byte, 64<<10)
	for {
		n, err := server.Read(reply)
		if err != nil || lose.Load() {
			return
		}
		if _, err := client.Write(reply[:n]); err != nil {
			return
		}
	}
}
