package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// A reading that hangs is cut off, also of a client of whom the library does not
// see that he is gone: behind his request lies another one.
func TestStopEndsWhatHangs(t *testing.T) {
	w := newWorld(t)
	begun := make(chan struct{})
	w.read = func(ctx context.Context, _ segment.Partition, _ Query, _ func([]byte) error) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	c := DefaultConfig()
	c.Address = "127.0.0.1:0"
	server := newServer(c, Parts{Layout: w.layout, Manifests: w, Directory: w, Messages: w, Files: w}, w.events(listening))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { ended <- server.serve(ctx, 100*time.Millisecond) }()
	conn, err := net.Dial("tcp", (<-listening).String())
	if err != nil {
		t.Fatal(err)
	}
	const ask = "GET /v1/topics/orders/0/messages HTTP/1.1\r\nHost: localhost\r\n\r\n"
	_, _ = io.WriteString(conn, ask)
	<-begun
	_, _ = io.WriteString(conn, ask)
	_ = conn.Close()
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
}

// A connection is closed at once, though its client takes nothing.
func TestNoFarewell(t *testing.T) {
	certFile, keyFile := certificate(t)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, act := range map[string]func(*gate){"makePlace": (*gate).makePlace, "cut": (*gate).cut, "Close": func(g *gate) { _ = g.Close() }} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		g := newGate(l, 1)
		ours, theirs := net.Pipe() // which holds nothing back
		client := make(chan error, 1)
		go func() { client <- tls.Client(theirs, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
		c := tls.Server(ours, &tls.Config{Certificates: []tls.Certificate{pair}, SessionTicketsDisabled: true})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		if err := <-client; err != nil {
			t.Fatal(err)
		}
		g.places <- struct{}{}
		g.track(c, http.StateNew)
		g.track(c, http.StateIdle)
		done := make(chan struct{})
		go func() { act(g); close(done) }()
		select {
		case <-done:
		case <-time.After(3 * time.Second):
			t.Errorf("%s: it waits for the client", name)
			<-done
		}
		if _, err := theirs.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: it is open", name)
		}
		g.track(c, http.StateClosed)
		g.wait()
	}
}

// HTTP/1.0 can't tell an answer that was cut off from a whole one.
func TestMessagesNeedChunks(t *testing.T) {
	w := newWorld(t)
	w.put(orders, 7, bytesOf(10))
	w.read = func(context.Context, segment.Partition, Query, func([]byte) error) error { return nil }
	s := w.start(func(*Config) {})
	if line := s.raw("GET /v1/topics/orders/0/messages HTTP/1.0\r\nHost: localhost\r\n\r\n"); !strings.Contains(line, " 505 ") {
		t.Errorf("messages: %s", line)
	}
	if line := s.raw("GET " + file7 + " HTTP/1.0\r\nHost: localhost\r\n\r\n"); !strings.Contains(line, " 200 ") {
		t.Errorf("a file: %s", line)
	}
}

// sized sees how much is written at once.
type sized struct {
	*httptest.ResponseRecorder
	most, deadlines int
}

func (s *sized) Write(b []byte) (int, error) {
	s.most = max(s.most, len(b))
	return s.ResponseRecorder.Write(b)
}

func (s *sized) SetWriteDeadline(time.Time) error {
	s.deadlines++
	return nil
}

// A message that is huge has a deadline for each of its pieces.
func TestHugeLine(t *testing.T) {
	line := bytesOf(5*pieceSize + 1)
	to := &sized{ResponseRecorder: httptest.NewRecorder()}
	if n, err := newReply(to, time.Minute).Write(line); n != len(line) || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if to.most > pieceSize || to.deadlines < 6 || !bytes.Equal(to.Body.Bytes(), line) {
		t.Errorf("%d bytes at once, %d deadlines", to.most, to.deadlines)
	}
}
