package test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// front stands before the S3 server of a rig and misbehaves as a test says.
// Both may be called by several requests at once, with the lock held.
type front struct {
	rig   *rig
	proxy *httputil.ReverseProxy

	mu     sync.Mutex
	before func(w http.ResponseWriter, r *http.Request) bool // true = it has answered
	after  func(res *http.Response)                          // changes what the server says
	count  map[string]int                                    // requests by what they are; see kind
}

// newFront puts a front before the rig's server, and the program behind it.
func newFront(t *testing.T, r *rig) *front {
	t.Helper()
	target, err := url.Parse(r.s3.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{rig: r, count: map[string]int{}}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = target.Scheme, target.Host, p.In.Host // which is signed
		},
		ModifyResponse: f.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	server := httptest.NewServer(f)
	server.Config.ErrorLog = f.proxy.ErrorLog
	t.Cleanup(server.Close)
	r.env = append(r.env, "KORVET_STORAGE_S3_ENDPOINT="+server.URL)
	return f
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.misbehaves(w, r) {
		return
	}
	f.proxy.ServeHTTP(w, r)
}

func (f *front) misbehaves(w http.ResponseWriter, r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[kind(r)]++
	return f.before != nil && f.before(w, r)
}

func (f *front) answered(res *http.Response) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.after != nil {
		f.after(res)
	}
	return nil
}

// set changes how the store answers from now on.
func (f *front) set(before func(http.ResponseWriter, *http.Request) bool) {
	f.change(func(f *front) { f.before = before })
}

// change calls do with the lock held.
func (f *front) change(do func(*front)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f)
}

// behave lets the server be seen as it is.
func (f *front) behave() { f.before, f.after = nil, nil }

// seen says how many requests of a kind there were.
func (f *front) seen(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[kind]
}

// kind is a request's method, and "file" if it is about a Parquet file.
func kind(r *http.Request) string {
	if strings.HasSuffix(r.URL.Path, ".parquet") {
		return r.Method + " file"
	}
	return r.Method
}

// refuse answers as S3 does.
func refuse(w http.ResponseWriter, r *http.Request, status int, code string) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>m</Message></Error>")
	}
}

// file is where the server keeps the object of a request.
func (f *front) file(r *http.Request) string {
	return filepath.Join(filepath.Dir(f.rig.s3.Dir), filepath.FromSlash(r.URL.Path))
}

// times lets the first n requests about each path be told from the others.
type times map[string]int

func (t times) first(n int, path string) bool {
	t[path]++
	return t[path] <= n
}

// keepHalf is a store that loses the second half of what it is sent.
func (f *front) keepHalf(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(f.file(r)), 0o755)
	}
	if err == nil {
		err = os.WriteFile(f.file(r), body[:len(body)/2], 0o600)
	}
	if err != nil {
		refuse(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("ETag", `"half"`)
}

// again returns what does a request again, behind the client's back.
func (f *front) again(r *http.Request) (func(), error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	ghost := r.Clone(r.Context())
	return func() {
		ghost = ghost.WithContext(f.rig.t.Context())
		ghost.Body = io.NopCloser(bytes.NewReader(body))
		f.proxy.ServeHTTP(httptest.NewRecorder(), ghost)
	}, nil
}

// mustNotPutTwice checks that no segment has a second object.
func (r *rig) mustNotPutTwice() {
	r.t.Helper()
	for _, path := range r.objects() {
		if strings.Contains(filepath.Base(path), "-") {
			r.t.Errorf("a second copy was put: %s", path)
		}
	}
}

// quick are settings of a daemon that passes over the segments several times
// a second.
func (r *rig) quick(address string) {
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS="+address,
		"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=300ms", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=2s")
}
