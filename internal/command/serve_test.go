package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/serve"
	"korvet-offload/internal/tieredlog"
	"korvet-offload/segment"
)

// serving is the verb, at work until the test ends.
type serving struct {
	t       *testing.T
	address string
	stderr  *lockedBuffer
	stop    func() int
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var servingAt = regexp.MustCompile(`"address":"([^"]+)"`)

// startServing runs the verb in this process.
func startServing(t *testing.T, environ []string, args ...string) *serving {
	t.Helper()
	s := &serving{t: t, stderr: new(lockedBuffer)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, Process{Args: append([]string{"korvet-offload", "serve", "--serve-address", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug"}, args...),
			Environ: environ, Stdout: io.Discard, Stderr: s.stderr})
	}()
	var once sync.Once
	code := -1
	s.stop = func() int {
		once.Do(func() { cancel(); code = <-ended })
		return code
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if c := s.stop(); c != exitDone {
			t.Errorf("exit code %d: %s", c, s.stderr)
		}
	})
	for deadline := time.After(30 * time.Second); s.address == ""; {
		if m := servingAt.FindStringSubmatch(s.stderr.String()); m != nil {
			s.address = m[1]
			break
		}
		select {
		case code = <-ended:
			t.Fatalf("exit code %d: %s", code, s.stderr)
		case <-deadline:
			t.Fatal("it does not listen: ", s.stderr)
		case <-time.After(time.Millisecond):
		}
	}
	return s
}

func (s *serving) get(path string) (int, string) {
	s.t.Helper()
	r, err := http.Get("http://" + s.address + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// servedRig is a rig whose sealed segments have been copied, and the folder that they
// are in.
func servedRig(t *testing.T) (rig, string) {
	t.Helper()
	r := newRig(t)
	if done := call(t, r.environ, "run", "--once"); done.code != exitDone {
		t.Fatalf("%+v", done)
	}
	return r, strings.TrimPrefix(r.environ[1], "KORVET_STORAGE_REMOTE_PATH=file://")
}

func TestServe(t *testing.T) {
	r, dir := servedRig(t)
	file, err := os.ReadFile(filepath.Join(dir, "korvet:storage:local:orders:0/1.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(file)
	for _, args := range [][]string{nil, {"--from-store"}, {"--zero-copy=false"}} {
		s := startServing(t, r.environ, args...)
		if code, body := s.get("/v1/topics"); code != 200 || body != `{"topics":[{"name":"orders","partitions":[0]}]}`+"\n" {
			t.Errorf("%v: %d %s", args, code, body)
		}
		if code, body := s.get("/v1/streams"); code != 200 || body != `{"streams":[]}`+"\n" {
			t.Errorf("%v: %d %s", args, code, body)
		}
		code, body := s.get("/v1/topics/orders/0/segments")
		var list struct {
			Segments []struct {
				Segment int
				SHA256  string
				Bytes   int
				File    string
			}
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil || code != 200 || len(list.Segments) < 2 || list.Segments[1].Bytes != len(file) {
			t.Errorf("%v: %d %v %s", args, code, err, body)
			continue
		}
		if got := list.Segments[1].SHA256; len(args) == 0 && got != hex.EncodeToString(sum[:]) {
			t.Errorf("%v: SHA-256 %s", args, got)
		}
		if code, body := s.get(list.Segments[1].File); code != 200 || body != string(file) {
			t.Errorf("%v: %d, %d bytes of %d", args, code, len(body), len(file))
		}
		// What the server gives is what cat prints.
		tier := "remote"
		code, body = s.get("/v1/topics/orders/0/messages")
		catArgs := []string{"cat", "orders:0", "--tier", tier}
		want := call(t, r.environ, catArgs...)
		if code != 200 || body != want.stdout || strings.Count(body, "\n") != 20 {
			t.Errorf("%v: %d, %d lines; cat prints %d (%s)", args, code, strings.Count(body, "\n"), strings.Count(want.stdout, "\n"), want.stderr)
		}
		first, _, _ := strings.Cut(body, "\n")
		if code, one := s.get("/v1/topics/orders/0/messages?limit=1&envelope=true"); code != 200 || strings.Count(one, "\n") != 1 || one == first+"\n" {
			t.Errorf("%v: %d %s", args, code, one)
		}
		code, both := s.get("/v1/topics/orders/0/messages?tier=both")
		if fromStore := len(args) == 1 && args[0] == "--from-store"; fromStore && code != 400 || !fromStore && (code != 200 || strings.Count(both, "\n") != 30) {
			t.Errorf("%v: both tiers: %d, %d lines", args, code, strings.Count(both, "\n"))
		}
		for path, want := range map[string]int{
			"/v1/topics/orders/0/messages?decompress=rot13": 400, "/v1/topics/orders/0/messages?decompress=zstd": 502,
			"/v1/topics/orders/1/messages": 404, "/v1/topics/orders/1/segments": 404, "/v1/streams/orders/messages": 404, "/healthz": 200,
		} {
			if code, body := s.get(path); code != want {
				t.Errorf("%v %s: %d %s", args, path, code, body)
			}
		}
		if code := s.stop(); code != exitDone || !strings.Contains(s.stderr.String(), `"message":"stopped"`) || !strings.Contains(s.stderr.String(), `"status":404`) {
			t.Errorf("%v: exit code %d: %s", args, code, s.stderr)
		}
	}
}

// A file is not served any more once its entry is gone, or hidden.
func TestServeFollowsTheManifest(t *testing.T) {
	r, _ := servedRig(t)
	s := startServing(t, r.environ)
	const path = "/v1/topics/orders/0/segments/0.parquet"
	if code, _ := s.get(path); code != 200 {
		t.Fatal(code)
	}
	r.server.Exec("HDEL", segment.DefaultLayout().ManifestKey(segment.Partition{Topic: "orders"}), "0")
	if code, _ := s.get(path); code != 404 {
		t.Errorf("%d after its entry went", code)
	}
	r.server.Stop()
	if code, body := s.get("/v1/topics/orders/0/segments/1.parquet"); code != 503 {
		t.Errorf("%d %s without Redis", code, body)
	}
}

func TestServeRefusesToStart(t *testing.T) {
	r, dir := servedRig(t)
	for name, tt := range map[string]struct {
		environ []string
		args    string
		want    string
		code    int
	}{
		"short token":       {append(r.environ[:2:2], "KORVET_STORAGE_OFFLOAD_SERVE_TOKEN=tiny"), "", "it is shorter than 16 characters", exitUsage},
		"another namespace": {append(r.environ[:2:2], "KORVET_NAMESPACE=other"), "", "belongs to", exitUsage},
		"no redis":          {[]string{"KORVET_REDIS_URI=redis://127.0.0.1:1", "KORVET_STORAGE_REMOTE_PATH=file://" + dir}, "", "127.0.0.1:1", exitFault},
		"no store":          {r.environ[:1], "", "remote-path", exitUsage},
		"bad address":       {r.environ, "--serve-address=nowhere", "serve.address", exitUsage},
		"argument":          {r.environ, "orders", "unexpected argument", exitUsage},
	} {
		args := []string{"serve"}
		if tt.args != "" {
			args = append(args, tt.args)
		}
		if got := call(t, tt.environ, args...); got.code != tt.code || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The topics that are served are those that are offloaded, and those that were.
func TestServedPartitions(t *testing.T) {
	topics := []segment.Topic{
		{Name: "grown", Settings: segment.TopicSettings{RemoteStorage: true, Partitions: 3}},
		{Name: "plain/one", Plain: true},
		{Name: "switched-off", Settings: segment.TopicSettings{Partitions: 1}},
		{Name: "never", Settings: segment.TopicSettings{Partitions: 9}},
	}
	known := map[string]string{
		"grown": `{"v":1,"settings":{"partitions":2}}`, "removed": `{"v":1,"settings":{"partitions":1},"removedAt":5}`,
		"switched-off": `{"v":1,"settings":{"partitions":2}}`, "bad": "x", "../x": `{"settings":{"partitions":1}}`,
	}
	if got := fmt.Sprint(candidates(topics, known)); got != `[grown:0 grown:1 grown:2 removed:0 switched-off:0 switched-off:1 "plain/one"]` {
		t.Error(got)
	}
}

// An outage of the store is not called damage.
func TestReadError(t *testing.T) {
	of := func(err error) error { return fmt.Errorf("read: %w", &tieredlog.SegmentError{Number: 7, Err: err}) }
	for _, tt := range []struct {
		err       error
		isDamaged bool
	}{
		{of(tieredlog.ErrMissing), true},
		{of(fmt.Errorf("object x: %w", parquetfile.ErrDamaged)), true},
		{of(errors.New("connection refused")), false},
		{errors.New("connection refused"), false},
	} {
		if err := readError(tt.err); errors.Is(err, serve.ErrDamaged) != tt.isDamaged || !errors.Is(err, tt.err) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
	if err := readError(of(tieredlog.ErrNoPartition)); !errors.Is(err, serve.ErrNoPartition) {
		t.Error(err)
	}
}
