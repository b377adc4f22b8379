package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"korvet-offload/segment"
)

// Clients that take nothing don't keep others from reading.
//
//fault:network | Clients of serve take messages so slowly that they hold all places | sixteen connections that read nothing, and another one that asks | it gets its answer, and one of the sixteen is cut off
func TestSlowReadersGiveWay(t *testing.T) {
	w := newWorld(t)
	begun := make(chan struct{}, readingsAtOnce)
	w.read = func(_ context.Context, p segment.Partition, _ Query, line func([]byte) error) error {
		if p.Number > 0 {
			return line([]byte("{}\n"))
		}
		begun <- struct{}{}
		for {
			if err := line(bytes.Repeat([]byte("x"), lineBuffer)); err != nil {
				return err
			}
		}
	}
	s := w.start(func(c *Config) { c.Rate = 0 }, func(s *server) { s.readings.giveWay = 50 * time.Millisecond })
	for range readingsAtOnce {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		_, _ = io.WriteString(c, "GET /v1/topics/orders/0/messages HTTP/1.1\r\nHost: localhost\r\n\r\n")
		<-begun
	}
	for deadline := time.Now().Add(50 * time.Second); ; {
		a := s.get("/v1/topics/orders/1/messages")
		if a.status == 200 && a.err == nil {
			break
		}
		if a.status != 503 || time.Now().After(deadline) {
			t.Fatalf("%d %s, %v", a.status, a.body, a.err)
		}
	}
}

// A place is taken only from the slowest, only if it is slow, and only once.
func TestWhoGivesWay(t *testing.T) {
	p := newPlaces(2)
	reply := func(waited time.Duration) (*reply, func()) {
		w := newReply(httptest.NewRecorder(), time.Minute)
		w.waited = waited
		leave, err := p.take(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return w, leave
	}
	quick, _ := reply(giveWay - time.Second)
	slow, leave := reply(giveWay - time.Second)
	other := newReply(httptest.NewRecorder(), time.Minute)
	if _, err := p.take(t.Context(), other); err == nil || quick.ended || slow.ended {
		t.Fatalf("nobody is slow: %v, %t, %t", err, quick.ended, slow.ended)
	}
	quick.waited, slow.waited = giveWay, 2*giveWay
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.take(gone, other); err == nil || quick.ended || !slow.ended {
		t.Fatalf("who waits is gone: %v, %t, %t", err, quick.ended, slow.ended)
	}
	if _, err := slow.Write([]byte("x")); !errors.Is(err, errEnded) {
		t.Errorf("who was cut off gets more: %v", err)
	}
	quick.waited = 0
	if _, err := p.take(t.Context(), other); err == nil || quick.ended {
		t.Fatalf("the slow one has been cut off before: %v, %t", err, quick.ended)
	}
	leave()
	if _, err := p.take(t.Context(), other); err != nil || quick.ended {
		t.Fatalf("a place is free: %v, %t", err, quick.ended)
	}
}

// What a client had us wait counts until it has taken a whole piece, and while it
// has us wait.
func TestHowLongAClientHadUsWait(t *testing.T) {
	w := newReply(httptest.NewRecorder(), time.Minute)
	w.waited = time.Hour
	_, _ = w.Write(bytesOf(pieceSize - 1))
	if waits := w.waits(time.Now()); waits < time.Hour {
		t.Errorf("in the middle of a piece: %s", waits)
	}
	_ = w.begin()
	if waits := w.waits(time.Now().Add(time.Hour)); waits < 2*time.Hour {
		t.Errorf("while it has us wait: %s", waits)
	}
	if w.took(1); w.waits(time.Now()) != 0 {
		t.Errorf("after a piece: %s", w.waits(time.Now()))
	}
}

// The end of an answer has its time, whenever something was written before.
func TestTheEndHasItsTime(t *testing.T) {
	to := &sized{ResponseRecorder: httptest.NewRecorder()}
	w := newReply(to, time.Minute)
	w.WriteHeader(http.StatusNotModified)
	if w.finish(); to.deadlines != 1 {
		t.Errorf("%d deadlines", to.deadlines)
	}
	w.end()
	if w.finish(); to.deadlines != 2 {
		t.Error("who was cut off has time again")
	}
}
