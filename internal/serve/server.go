package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/ops"
	"korvet-offload/segment"
)

const (
	// stopTime is how long answers under way may take when the server stops. The
	// process has 20 s, with what is to be closed behind.
	stopTime = 15 * time.Second
	// headerTime and idleTime are how long a client may take before it asks.
	headerTime = 5 * time.Second
	idleTime   = time.Minute
	maxHeader  = 16 << 10 // bytes

	// readingsAtOnce is how many requests read messages at once, listingsAtOnce
	// how many read manifests whole.
	readingsAtOnce = 16
	listingsAtOnce = 4

	// partitionsAge is how old the list of all partitions may be.
	partitionsAge = 5 * time.Second
)

// server is what the requests share.
type server struct {
	config     Config
	parts      Parts
	events     Events
	stall      time.Duration
	rates      *rates
	partitions *Recent[struct{}, []segment.Partition]
	readings   *places
	listings   *places
}

func newServer(c Config, p Parts, e Events) *server {
	return &server{config: c, parts: p, events: e, stall: stallTime, rates: newRates(c.Rate, time.Now),
		partitions: NewRecent(partitionsAge, 1, func(ctx context.Context, _ struct{}) ([]segment.Partition, error) {
			return p.Directory.Partitions(ctx)
		}),
		readings: newPlaces(readingsAtOnce), listings: newPlaces(listingsAtOnce)}
}

// Serve answers on the address of the configuration until ctx ends, then gives
// answers under way 15 seconds, and returns when nothing is left of it.
func Serve(ctx context.Context, c Config, p Parts, e Events) error {
	return newServer(c, p, e).serve(ctx, stopTime)
}

func (s *server) serve(ctx context.Context, stop time.Duration) error {
	h := &http.Server{Handler: s.handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		Protocols: new(http.Protocols),
		// The library's log says what clients do, who may be anybody, as often as they like.
		ErrorLog: zap.NewStdLog(zap.NewNop())}
	h.Protocols.SetHTTP1(true) // one request at once of a connection, so that connections bound requests
	if s.config.CertFile != "" {
		cert, err := ops.OpenCertificate(s.config.CertFile, s.config.KeyFile, "korvet.storage.offload.serve.cert-file, .key-file", s.events.BadCertificate)
		if err != nil {
			return err
		}
		h.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.Get}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.config.Address)
	if err != nil {
		return fmt.Errorf("listen on %s (korvet.storage.offload.serve.address): %w; choose another address", s.config.Address, err)
	}
	g := newGate(l, s.config.Connections)
	h.ConnState = g.track
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	h.BaseContext = func(net.Listener) context.Context { return base }
	s.events.Listening(l.Addr())
	err = ops.Run(ctx, h, g, stop, func() { cut(); g.cut() })
	g.wait()
	if err != nil {
		return fmt.Errorf("serve http on %s: %w", s.config.Address, err)
	}
	return nil
}

// handler answers all requests.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, "ok")
	})
	closed := s.routes()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if status, text := s.guard(r); status != 0 {
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="korvet-offload"`)
			}
			w.(*reply).refuse(status, text) //nolint:forcetypeassert // watched has made it
			return
		}
		closed.ServeHTTP(w, r)
	})
	return s.watched(mux)
}

// watched makes the reply, refuses what nobody may send, and tells what came of
// the request.
func (s *server) watched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, reply := time.Now(), newReply(w, s.stall)
		defer func() {
			s.events.Answered(Answered{r.Method, r.URL.Path, r.RemoteAddr, reply.status, reply.bytes, time.Since(begun)})
		}()
		reply.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			reply.Header().Set("Allow", "GET, HEAD")
			s.leave(reply, http.StatusMethodNotAllowed, "nothing can be changed here: use GET or HEAD")
		case r.ContentLength != 0: // -1 where its length is not told
			s.leave(reply, http.StatusRequestEntityTooLarge, "a request has no body here")
		default:
			next.ServeHTTP(reply, r)
		}
		reply.finish()
	})
}

// leave refuses a request whose body nobody wants to read.
func (s *server) leave(w *reply, status int, text string) {
	_ = w.control.SetReadDeadline(time.Now().Add(headerTime)) // a recorder has none
	w.Header().Set("Connection", "close")
	w.refuse(status, text)
}

// guard says why a request is refused; 0 lets it through.
func (s *server) guard(r *http.Request) (status int, text string) {
	switch {
	case !s.rates.take(r.RemoteAddr):
		return http.StatusTooManyRequests, "too many requests from this address; try again"
	case s.config.Token == "" && ops.Rebound(r):
		return http.StatusMisdirectedRequest, "this server is asked for by a name that is not its own: use 127.0.0.1 or localhost, or configure a token (korvet.storage.offload.serve.token)"
	case s.config.Token != "" && !ops.Bearer(r, s.config.Token):
		return http.StatusUnauthorized, "show the token (korvet.storage.offload.serve.token): Authorization: Bearer ..."
	}
	return 0, ""
}

// refused is an error that is an answer.
type refused struct {
	status int
	text   string
}

func (r refused) Error() string { return r.text }

// fail answers with an error.
func (s *server) fail(w *reply, r *http.Request, err error) {
	answer, ok := errors.AsType[refused](err)
	switch {
	case ok:
	case r.Context().Err() != nil, errors.Is(err, errStop): // the client is gone, or the server stops
		w.status = statusGone
		panic(http.ErrAbortHandler)
	case errors.Is(err, ErrQuestion):
		answer = refused{http.StatusBadRequest, strings.TrimSuffix(err.Error(), ": "+ErrQuestion.Error())}
	case errors.Is(err, ErrNoPartition):
		answer = refused{http.StatusNotFound, err.Error()}
	case errors.Is(err, ErrDamaged):
		s.events.Failed(r.URL.Path, err)
		answer = refused{http.StatusBadGateway, "the segment can't be read: it is damaged or not there; the server's log says more"}
	default:
		s.events.Failed(r.URL.Path, err)
		answer = refused{http.StatusServiceUnavailable, "redis or the store can't be read now; the server's log says why"}
	}
	if w.sent { // half an answer must not look like a whole one
		panic(http.ErrAbortHandler)
	}
	w.refuse(answer.status, answer.text)
}

// statusGone stands in the log for an answer that nobody waited for.
const statusGone = 499
