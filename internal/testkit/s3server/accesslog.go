package s3server

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// Access is one request as it came over the wire, and its answer.
type Access struct {
	Method string
	Path   string // bucket and key
	Range  string // the header; "" = the whole object
	Status int
	Sent   int64 // bytes of the answer's body
}

// AccessLog tells what a server was asked for, and how much it sent: which the
// server's own log does not.
type AccessLog struct {
	Endpoint string // ask here instead of at the server

	mu    sync.Mutex
	all   []Access
	added chan struct{} // has room for one
}

// LogAccess begins an access log of a server without TLS, for the requests that
// are sent to the log's endpoint. It ends with the test.
func (s *Server) LogAccess(t testing.TB) *AccessLog {
	t.Helper()
	to, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	l := &AccessLog{added: make(chan struct{}, 1)}
	// The host's name is signed, so it goes through as it is.
	transport := new(http.Transport)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &counting{ResponseWriter: w, status: http.StatusOK}
		defer func() { l.add(Access{r.Method, r.URL.Path, r.Header.Get("Range"), c.status, c.sent}) }()
		proxy.ServeHTTP(c, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		transport.CloseIdleConnections()
	})
	l.Endpoint = front.URL
	return l
}

func (l *AccessLog) add(a Access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, a)
	select {
	case l.added <- struct{}{}:
	default:
	}
}

// Wait returns when the log has so many requests that Take has not given yet.
// The end of an answer reaches its reader a moment before the log. One
// goroutine may wait at a time.
func (l *AccessLog) Wait(t testing.TB, n int) {
	t.Helper()
	limit := time.NewTimer(startTimeout)
	defer limit.Stop()
	for l.count() < n {
		select {
		case <-l.added:
		case <-limit.C:
			t.Fatalf("the access log has %d requests, want %d", l.count(), n)
		}
	}
}

func (l *AccessLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// Take gives the requests that have ended since it was last called, in that
// order.
func (l *AccessLog) Take() []Access {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := slices.Clone(l.all)
	l.all = nil
	return taken
}

type counting struct {
	http.ResponseWriter
	status int
	sent   int64
}

func (c *counting) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.sent += int64(n)
	return n, err
}

func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }
