package ops

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// get asks a handler.
func get(h http.Handler, method, path string) (status int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// mustAnswer checks an answer of a handler.
func mustAnswer(t *testing.T, h http.Handler, path string, status int, body string) {
	t.Helper()
	if s, b := get(h, http.MethodGet, path); s != status || b != body {
		t.Errorf("%s: %d %q, want %d %q", path, s, b, status, body)
	}
}

func TestHealth(t *testing.T) {
	var dead error
	health := NewHealth(func() error { return dead })
	h := Handler(DefaultConfig(), health, Mounts{})
	mustAnswer(t, h, "/livez", http.StatusOK, "alive")
	mustAnswer(t, h, "/readyz", http.StatusServiceUnavailable, "not ready: starting")
	health.Ready()
	mustAnswer(t, h, "/readyz", http.StatusOK, "ready")
	health.NotReady("redis is away")
	mustAnswer(t, h, "/readyz", http.StatusServiceUnavailable, "not ready: redis is away")
	mustAnswer(t, h, "/livez", http.StatusOK, "alive") // a restart would not help
	dead = errors.New("can't renew")
	mustAnswer(t, h, "/livez", http.StatusServiceUnavailable, "can't renew")
	health.Ready()
	mustAnswer(t, h, "/readyz", http.StatusOK, "ready")
	if status, _ := get(h, http.MethodPost, "/readyz"); status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", status)
	}
	if status, _ := get(h, http.MethodGet, "/"); status != http.StatusNotFound {
		t.Errorf("/: %d", status)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez", nil))
	if got := w.Header(); got.Get("Content-Type") != "text/plain; charset=utf-8" || got.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", got)
	}
}

func TestProfilesOnlyWhenAskedFor(t *testing.T) {
	paths := []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline", "/debug/pprof/symbol"}
	for asked, want := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		c := DefaultConfig()
		c.Pprof = asked
		h := Handler(c, NewHealth(nil), Mounts{})
		for _, path := range paths {
			if status, _ := get(h, http.MethodGet, path); status != want {
				t.Errorf("%s with pprof %t: %d, want %d", path, asked, status, want)
			}
		}
	}
}

// serving runs Serve; the address is its port's, done has its error.
func serving(ctx context.Context, t *testing.T, c Config) (address string, done <-chan error) {
	t.Helper()
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, c, NewHealth(func() error { return nil }), Mounts{}, Events{Listening: func(a net.Addr) { listening <- a }})
	}()
	select {
	case a := <-listening:
		return a.String(), ended
	case err := <-ended:
		t.Fatalf("it ended with %v", err)
		return "", nil
	}
}

// mustEnd waits for Serve's end.
func mustEnd(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestServeUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address, done := serving(ctx, t, Config{Address: "127.0.0.1:0"})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + address + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || string(body) != "alive\n" {
		t.Errorf("%v %q", err, body)
	}
	cancel()
	mustEnd(t, done)
	if _, err := client.Get("http://" + address + "/livez"); err == nil {
		t.Error("it still answers")
	}
}

func TestServeWithoutAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Serve(ctx, Config{}, NewHealth(nil), Mounts{}, Events{Listening: func(net.Addr) { t.Error("it listens") }})
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("it ended before its context: %v", err)
		default:
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestServeOnAPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	err = Serve(t.Context(), Config{Address: address}, NewHealth(nil), Mounts{}, Events{Listening: func(net.Addr) { t.Error("it listens") }})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"listen on " + address, "korvet.storage.offload.http.address", "address already in use", "choose another"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

// broken is a listener that can't accept.
type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, errors.New("out of files") }
func (broken) Close() error              { return nil }

func TestServeEndsWithItsListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		err := Run(t.Context(), &http.Server{}, broken{}, stopTime, nil)
		if err == nil || err.Error() != "out of files" {
			t.Error(err)
		}
	})
}

func TestServeCutsOffRequestsThatTakeTooLong(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Second): // not for ever if it is not cut off
		}
	})
	asked := make(chan error, 1)
	go func() {
		r, err := http.Get("http://" + l.Addr().String())
		if err == nil {
			r.Body.Close()
		}
		asked <- err
	}()
	go func() {
		<-entered
		cancel()
	}()
	begun := time.Now()
	if err := Run(ctx, &http.Server{Handler: h}, l, stopTime, nil); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < stopTime || took > 10*stopTime {
		t.Errorf("it took %s to stop", took)
	}
	if err := <-asked; err == nil {
		t.Error("the request was answered")
	}
}
