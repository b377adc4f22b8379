// Package ops is what a person or a machine looks at while the program runs:
// its log, its health, its profiles, and the HTTP server of all that.
//
// Health follows one rule: liveness fails only when a restart would help,
// that is when a pass hangs, or this instance believes that it leads and can't
// renew its lease.
// Redis or the store being away makes it not ready, and nothing else.
//
// The server's probes answer everybody. Where a token is configured, everything
// else wants it; where none is, nothing can be changed through it. A browser that
// has shown the token gets a cookie that other sites can't use. The server bounds
// what a client can keep it busy with: time, headers, bodies, and requests at
// once; the probes have a way of their own past the last of these.
package ops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"go.uber.org/zap"
)

const (
	// stopTime is how long requests under way may take when the server stops.
	stopTime = 2 * time.Second
	// headerTime, requestTime and answerTime are how long a client may take.
	headerTime  = 5 * time.Second
	requestTime = 10 * time.Second
	answerTime  = 30 * time.Second
	idleTime    = time.Minute

	maxHeader = 16 << 10 // bytes
	maxBody   = 64 << 10
	// maxAtOnce is how many requests are worked on at once, probes not counted.
	maxAtOnce = 32
	// maxLogins is how many logins are, beside these: whoever logs in has not shown
	// the token yet, and must not take the place of those who have.
	maxLogins = 4
)

// Mounts are what others serve, beside the probes and the profiles. What is nil
// is not found.
type Mounts struct {
	Metrics http.Handler // /metrics
	Site    http.Handler // everything else: the page and the API
	// Login answers a browser that has not shown the token, at a path that it
	// will want to come back to. The form posts the fields token and next to
	// /login. Wrong says that a token was shown, and was not the right one.
	Login func(w http.ResponseWriter, r *http.Request, next string, wrong bool)
}

// Events are what the server tells while it runs. All are set.
type Events struct {
	Listening func(net.Addr) // the port is open
	// BadCertificate: the files of the certificate have changed, and can't be
	// used; the server goes on with the one it has. Told once for each cause.
	BadCertificate func(error)
}

// Serve answers on the address of the configuration until ctx ends, and
// returns when nothing is left of it. An empty address serves nothing.
func Serve(ctx context.Context, c Config, h *Health, m Mounts, e Events) error {
	if c.Address == "" {
		<-ctx.Done()
		return nil
	}
	s := &http.Server{Handler: Handler(c, h, m), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		// The library's log says what clients do, who may be anybody, as often as they like.
		ErrorLog: zap.NewStdLog(zap.NewNop())}
	if c.CertFile != "" {
		cert, err := OpenCertificate(c.CertFile, c.KeyFile, "korvet.storage.offload.http.cert-file, .key-file", e.BadCertificate)
		if err != nil {
			return err
		}
		s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.Get}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return fmt.Errorf("listen on %s (korvet.storage.offload.http.address): %w; choose another address, or an empty one for no HTTP server", c.Address, err)
	}
	e.Listening(l.Addr())
	if err := Run(ctx, s, l, stopTime, nil); err != nil {
		return fmt.Errorf("serve http on %s: %w", c.Address, err)
	}
	return nil
}

// Run runs a server until ctx ends or the listener fails, and returns when nothing
// is left of it but connections that are being closed. Requests that are still under
// way when they have had the time to stop are cut off: cut, which may be nil, then
// ends what they wait for, since the library does not see that a connection is
// closed while more than the request lies in it.
func Run(ctx context.Context, h *http.Server, l net.Listener, stop time.Duration, cut func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel()
		if h.TLSConfig != nil {
			served <- h.ServeTLS(l, "", "")
			return
		}
		served <- h.Serve(l)
	}()
	<-ctx.Done()
	limited, done := context.WithTimeout(context.WithoutCancel(ctx), stop)
	defer done()
	if h.Shutdown(limited) != nil {
		if cut != nil {
			cut()
		}
		_ = h.Close() // the listener is closed already, and the clients had their time
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler answers /livez and /readyz, /debug/pprof where the configuration says
// so, and what is mounted.
func Handler(c Config, h *Health, m Mounts) http.Handler {
	open := http.NewServeMux()
	open.HandleFunc("/livez", probe(func(w http.ResponseWriter) {
		if err := h.alive(); err != nil {
			answer(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		answer(w, http.StatusOK, "alive")
	}))
	open.HandleFunc("/readyz", probe(func(w http.ResponseWriter) {
		if why := h.reason(); why != "" {
			answer(w, http.StatusServiceUnavailable, "not ready: "+why)
			return
		}
		answer(w, http.StatusOK, "ready")
	}))
	closed := http.NewServeMux()
	if m.Metrics != nil {
		closed.Handle("GET /metrics", m.Metrics)
	}
	if m.Site != nil {
		closed.Handle("/", m.Site)
	}
	if c.Pprof {
		profiles(closed)
	}
	g := newGuard(c, m.Login)
	open.Handle("/", g.protect(limited(maxAtOnce, closed)))
	return timed(open)
}

// probe answers who only asks.
func probe(tell func(http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if changes(r) {
			w.Header().Set("Allow", "GET, HEAD")
			answer(w, http.StatusMethodNotAllowed, "use GET")
			return
		}
		tell(w)
	}
}

func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", untimed(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/cmdline", untimed(pprof.Cmdline))
	mux.HandleFunc("GET /debug/pprof/profile", untimed(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/symbol", untimed(pprof.Symbol))
	mux.HandleFunc("GET /debug/pprof/trace", untimed(pprof.Trace))
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // the client is gone; nobody to tell
}
