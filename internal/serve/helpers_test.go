package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is what a server under test serves. Its fields are set before it runs, or
// under its lock.
type world struct {
	t      *testing.T
	dir    string
	layout segment.Layout

	mu        sync.Mutex
	manifests map[segment.Partition]map[string]string
	down      error // of the manifests
	away      bool  // the files are not on this machine
	opened    []string
	read      func(ctx context.Context, p segment.Partition, q Query, line func([]byte) error) error
	failed    []error
	answered  []Answered
	cut       int64 // bytes after which a body from the store ends; 0 = never
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), layout: segment.DefaultLayout(), manifests: map[segment.Partition]map[string]string{}}
}

// put writes the file of a segment and its entry.
func (w *world) put(p segment.Partition, n segment.Number, content []byte) segment.Object {
	w.t.Helper()
	sum := sha256.Sum256(content)
	o := segment.Object{Path: segment.ObjectPath(w.layout.Folder(p), n, 0, ""), Bytes: int64(len(content)), ETag: "x", SHA256: hex.EncodeToString(sum[:])}
	file := filepath.Join(w.dir, o.Path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.enter(p, n, segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, FirstID: segment.ID{Ms: 1, Seq: 1}, LastID: segment.ID{Ms: 2, Seq: 10}, Count: 7, RemoteAt: 1_700_000_000_123, Object: &o})
	return o
}

func (w *world) enter(p segment.Partition, n segment.Number, e segment.Entry) {
	w.raw(p, n.String(), string(e.Encode()))
}

func (w *world) raw(p segment.Partition, field, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.manifests[p] == nil {
		w.manifests[p] = map[string]string{}
	}
	w.manifests[p][field] = value
}

// Each implements Manifests.
func (w *world) Each(_ context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for field, value := range w.manifests[p] {
		take(field, value)
	}
	return int64(len(w.manifests[p])), w.down
}

// Peek implements Manifests.
func (w *world) Peek(_ context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []segment.Peeked{{Raw: []string{w.manifests[q[0].Partition][q[0].Numbers[0].String()]}}}, w.down
}

// Partitions implements Directory.
func (w *world) Partitions(context.Context) ([]segment.Partition, error) {
	return []segment.Partition{{Topic: "a", Number: 0}, {Topic: "a", Number: 3}, {Topic: "b"}, {Topic: "s/1", Plain: true}}, w.down
}

// Read implements Messages.
func (w *world) Read(ctx context.Context, p segment.Partition, q Query, line func([]byte) error) error {
	return w.read(ctx, p, q, line)
}

// Local implements Files.
func (w *world) Local(_ context.Context, o segment.Object) (*os.File, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = append(w.opened, o.Path)
	if w.away {
		return nil, false, nil
	}
	file, err := os.Open(filepath.Join(w.dir, o.Path))
	return file, err == nil, missing(err)
}

func missing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return err
}

// OpenRange implements Files.
func (w *world) OpenRange(_ context.Context, o segment.Object, offset, n int64) (io.ReadCloser, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = append(w.opened, fmt.Sprintf("%s %d+%d", o.Path, offset, n))
	file, err := os.Open(filepath.Join(w.dir, o.Path))
	if err != nil {
		return nil, missing(err)
	}
	if w.cut > 0 {
		n = min(n, w.cut)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(file, offset, n), file}, nil
}

func (w *world) failures() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.failed)
}

// events keep what the server tells.
func (w *world) events(listening chan<- net.Addr) Events {
	return Events{
		Listening:      func(a net.Addr) { listening <- a },
		BadCertificate: func(err error) { w.t.Errorf("bad certificate: %v", err) },
		Answered: func(a Answered) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.answered = append(w.answered, a)
		},
		Failed: func(_ string, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failed = append(w.failed, err)
		},
	}
}

// site is a server that runs.
type site struct {
	*world
	server  *server
	address string
	client  *http.Client
	stop    context.CancelFunc
	ended   chan error
}

// start runs a server until the test ends.
func (w *world) start(change func(*Config), tune ...func(*server)) *site {
	w.t.Helper()
	c := DefaultConfig()
	c.Address, c.Rate = "127.0.0.1:0", 0
	change(&c)
	if errs := c.Validate(); len(errs) > 0 {
		w.t.Fatal(errs)
	}
	listening := make(chan net.Addr, 1)
	s := &site{world: w, ended: make(chan error, 1), client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	s.server = newServer(c, Parts{Layout: w.layout, Manifests: w, Directory: w, Messages: w, Files: w}, w.events(listening))
	for _, t := range tune {
		t(s.server)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	s.stop = cancel
	go func() { s.ended <- s.server.serve(ctx, 10*time.Second) }()
	select {
	case a := <-listening:
		s.address = a.String()
	case err := <-s.ended:
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		s.client.CloseIdleConnections()
		cancel()
		if err := <-s.ended; err != nil {
			w.t.Error(err)
		}
		s.ended <- nil
	})
	return s
}

// answer of a request, read to its end.
type got struct {
	status int
	header http.Header
	body   []byte
	err    error // of reading the body
}

// ask sends a request; headers are "Name: value".
func (s *site) ask(method, path string, headers ...string) got {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.address+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := bytes.Cut([]byte(h), []byte(": "))
		r.Header.Set(string(name), string(value))
		if string(name) == "Host" {
			r.Host = string(value)
		}
	}
	a, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	return got{a.StatusCode, a.Header, body, err}
}

func (s *site) get(path string, headers ...string) got {
	s.t.Helper()
	return s.ask(http.MethodGet, path, headers...)
}

// bytesOf are so many bytes that do not repeat soon.
func bytesOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + i>>16*29)
	}
	return b
}

var orders = segment.Partition{Topic: "orders"}
