// Package ops is what a person or a machine looks at while the program runs:
// its log, its health, its profiles.
//
// Health follows one rule: liveness fails only when a restart would help,
// that is when a pass hangs, or this instance believes that it leads and can't
// renew its lease.
// Redis or the store being away makes it not ready, and nothing else.
package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// stopTime is how long requests under way may take when the server stops.
const stopTime = 2 * time.Second

// Serve answers on the address of the configuration until ctx ends, and
// returns when nothing is left of it. It calls listening once the port is
// open. An empty address serves nothing.
func Serve(ctx context.Context, c Config, h *Health, listening func(net.Addr)) error {
	if c.Address == "" {
		<-ctx.Done()
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return fmt.Errorf("listen on %s (korvet.storage.offload.http.address): %w; choose another address, or an empty one for no HTTP server", c.Address, err)
	}
	listening(l.Addr())
	s := &http.Server{Handler: Handler(c, h), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	if err := serve(ctx, s, l); err != nil {
		return fmt.Errorf("serve http on %s: %w", c.Address, err)
	}
	return nil
}

// serve runs a server until ctx ends or the listener fails. Requests that are
// still under way after stopTime are cut off.
func serve(ctx context.Context, s *http.Server, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- s.Serve(l)
	}()
	<-ctx.Done()
	limited, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer done()
	if s.Shutdown(limited) != nil {
		_ = s.Close() // the listener is closed already, and the clients had their time
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler answers /livez and /readyz, and /debug/pprof where the
// configuration says so.
func Handler(c Config, h *Health) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if err := h.alive(); err != nil {
			answer(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		answer(w, http.StatusOK, "alive")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := h.reason(); why != "" {
			answer(w, http.StatusServiceUnavailable, "not ready: "+why)
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	if c.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // the client is gone; nobody to tell
}
