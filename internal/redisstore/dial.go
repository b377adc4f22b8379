package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// wire is a connection as the network gives it.
type wire struct {
	net.Conn
	asked  bool // the server wants a client certificate, or would take one
	shown  bool // and one was shown
	closed atomic.Bool
	onEnd  func(*wire) // called when it is closed; nil = nobody wants to know
}

// Close ends the connection. It may be called again.
func (w *wire) Close() error {
	if w.closed.Swap(true) {
		return nil
	}
	if w.onEnd != nil {
		w.onEnd(w)
	}
	return w.Conn.Close()
}

// dialNet connects to host:port, over TLS where the options say so, or to a
// socket, whose path begins with a slash.
func dialNet(ctx context.Context, o *rueidis.ClientOption, addr string) (*wire, error) {
	w := &wire{}
	var err error
	switch {
	case strings.HasPrefix(addr, "/"):
		w.Conn, err = o.Dialer.DialContext(ctx, "unix", addr)
	case o.TLSConfig != nil:
		d := tls.Dialer{NetDialer: &o.Dialer, Config: w.noting(o.TLSConfig)}
		w.Conn, err = d.DialContext(ctx, "tcp", addr)
	default:
		w.Conn, err = o.Dialer.DialContext(ctx, "tcp", addr)
	}
	if err != nil {
		return nil, w.explain(addr, err)
	}
	return w, nil
}

// noting is a TLS configuration that notes what the server wants of us: it
// asks before it refuses.
func (w *wire) noting(c *tls.Config) *tls.Config {
	c = c.Clone()
	give := c.GetClientCertificate
	c.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		w.asked = true
		if give == nil {
			return &tls.Certificate{}, nil // none
		}
		w.shown = true
		return give(r)
	}
	return c
}

// explain names the client certificate where that may be what the server has
// hung up for. Some servers say so, and some of those have closed the
// connection before it can be read.
func (w *wire) explain(addr string, err error) error {
	var alert *net.OpError
	told := errors.As(err, &alert) && alert.Op == "remote error"
	if !told && (!w.asked || !isLost(err)) {
		return err
	}
	class := Unavailable
	if told {
		class = TLS
	}
	switch {
	case w.asked && !w.shown:
		err = fmt.Errorf("the server asks for a client certificate, and there is none: set korvet.redis.cert-file and korvet.redis.key-file: %w", err)
	case w.shown:
		err = fmt.Errorf("the server does not take the client certificate of korvet.redis.cert-file: it wants one of an authority that it trusts: %w", err)
	}
	return &Error{Op: opConnect, Key: addr, Class: class, Err: advised{err}}
}
