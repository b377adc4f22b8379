// Package test runs the built program against a real Redis and a real S3
// server, loaded by redis-cli, or by what plays the broker, and not by this
// program.
package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/segment"
)

// program is the built program.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "korvet-offload-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "korvet-offload")
		if out, err := exec.Command("go", "build", "-o", program, "..").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// rig is a Redis, an S3 server, and what was written to the one and ought to
// be found on the other.
type rig struct {
	t      *testing.T
	redis  *redisserver.Server
	s3     *s3server.Server
	layout segment.Layout
	env    []string // beside the variables that every program gets
	ledger map[string]written
	files  string // the folder that is the object store; "" = the S3 server is
}

// root is the folder of the objects.
func (r *rig) root() string {
	if r.files != "" {
		return r.files
	}
	return filepath.Join(r.s3.Dir, "korvet")
}

// newFileRig is a rig with a folder for object store.
func newFileRig(t *testing.T) *rig {
	t.Helper()
	return &rig{t: t, redis: redisserver.Start(t, redisserver.Args("--enable-debug-command", "local")), layout: segment.DefaultLayout(), ledger: map[string]written{}, files: t.TempDir()}
}

// written is one segment that was loaded.
type written struct {
	partition segment.Partition
	number    segment.Number
	seed      uint64
	count     int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{t: t, redis: redisserver.Start(t, redisserver.Args("--enable-debug-command", "local")), s3: s3server.Start(t, s3server.Options{}), layout: segment.DefaultLayout(), ledger: map[string]written{}}
}

// topic registers a topic the way the broker's older releases do. The rig's
// messages have dates of their own, so it keeps them for ever, or as the
// settings say.
func (r *rig) topic(name string, partitions int, settings ...string) {
	r.redis.Exec(append([]string{"HSET", r.layout.TopicKey(name), "remote.storage.enable", "true", "partitions", fmt.Sprint(partitions),
		"retention.ms", "-1"}, settings...)...)
	r.redis.Exec("SADD", r.layout.TopicsKey(), name)
}

// sealed loads a sealed segment through redis-cli --pipe.
func (r *rig) sealed(p segment.Partition, n segment.Number, count int) {
	r.t.Helper()
	w := written{p, n, uint64(len(r.ledger) + 1), count}
	key, messages := r.layout.SegmentKey(p, n), dataset.New(w.seed, 100)
	var cmds []byte
	var first, last segment.ID
	for i := range count {
		m := messages.Next()
		if i == 0 {
			first = m.ID
		}
		last = m.ID
		args := []string{"XADD", key, m.ID.String()}
		for _, f := range m.Fields() {
			args = append(args, string(f))
		}
		cmds = redisserver.AppendCommand(cmds, args...)
	}
	r.redis.Pipe(cmds)
	r.redis.Exec("HSET", r.layout.ManifestKey(p), n.String(), fmt.Sprintf(
		`{"v":1,"state":"SEALED","tier":"LOCAL","firstId":"%s","lastId":"%s","count":%d,"openedAt":%d,"sealedAt":%d,"broker":{"epoch":3}}`,
		first, last, count, dataset.FirstMs, time.Now().Add(-time.Hour).UnixMilli()))
	r.ledger[key] = w
}

// open loads an open segment.
func (r *rig) open(p segment.Partition, n segment.Number) {
	r.redis.Exec("XADD", r.layout.SegmentKey(p, n), "*", "value", "still open")
	r.redis.Exec("HSET", r.layout.ManifestKey(p), n.String(), `{"v":1,"state":"OPEN","tier":"LOCAL"}`)
}

// orders loads topic orders: 4 partitions with 3 sealed segments and an open
// one each.
func (r *rig) orders(messages int) {
	r.topic("orders", 4)
	for p := range 4 {
		for n := range segment.Number(3) {
			r.sealed(segment.Partition{Topic: "orders", Number: p}, n, messages)
		}
		r.open(segment.Partition{Topic: "orders", Number: p}, 3)
	}
}

// environ is the settings of every program of the rig.
func (r *rig) environ() []string {
	store := []string{"KORVET_STORAGE_REMOTE_PATH=file://" + r.files}
	if r.files == "" {
		store = []string{
			"KORVET_STORAGE_REMOTE_PATH=s3://" + r.s3.Bucket + "/korvet",
			"KORVET_STORAGE_S3_ENDPOINT=" + r.s3.Endpoint,
			"KORVET_STORAGE_S3_REGION=" + r.s3.Region,
			"KORVET_STORAGE_S3_ACCESS_KEY_ID=" + r.s3.Access,
			"KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + r.s3.Secret,
		}
	}
	return append(append(append(os.Environ(), store...),
		"KORVET_REDIS_URI="+r.redis.URI(),
		"KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=",
		// Other packages' tests keep the CPUs busy, and leases here are short.
		"KORVET_STORAGE_OFFLOAD_LOW_PRIORITY=false",
	), r.env...)
}

// process is a running program.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	stdout bytes.Buffer

	mu     sync.Mutex
	stderr bytes.Buffer
}

// Write takes what the program writes to stderr.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(b)
}

// log is what the program has written to stderr so far.
func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// start runs the program in the background until the test ends.
func (r *rig) start(args ...string) *process {
	r.t.Helper()
	lookAtSources(r.t)
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = r.environ(), &p.stdout, p
	if err := p.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	r.t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// wait returns the exit code, -1 after a signal.
func (p *process) wait(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("still running after %s; its log:\n%s", within, p.log())
		return 0
	}
}

// run runs the program to its end.
func (r *rig) run(args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	p := r.start(args...)
	code = p.wait(r.t, time.Minute)
	return p.stdout.String(), p.log(), code
}

// entries reads all manifest entries, by stream key.
func (r *rig) entries() map[string]segment.Entry {
	r.t.Helper()
	all := map[string]segment.Entry{}
	for _, w := range r.ledger {
		raw := strings.TrimSpace(r.redis.Exec("HGET", r.layout.ManifestKey(w.partition), w.number.String()))
		e, err := segment.ParseEntry([]byte(raw))
		if err != nil {
			r.t.Fatalf("entry of %s/%s: %v: %s", w.partition, w.number, err, raw)
		}
		all[r.layout.SegmentKey(w.partition, w.number)] = e
	}
	return all
}

// objects lists the Parquet files of the bucket, by path below the root.
func (r *rig) objects() []string {
	r.t.Helper()
	root := r.root()
	var paths []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".parquet") {
			rel, _ := filepath.Rel(root, path)
			paths = append(paths, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

// mustBeDone checks that every segment of the ledger is REMOTE, that its
// object holds what was loaded, message by message, that the stream is still
// there, and that no other objects are.
func (r *rig) mustBeDone() {
	r.t.Helper()
	var want []string
	for key, e := range r.entries() {
		if e.Tier != segment.Remote || e.Local != segment.Present || e.Object == nil {
			r.t.Errorf("%s: %+v", key, e)
			continue
		}
		want = append(want, e.Object.Path)
		r.mustHold(r.ledger[key], e)
		r.mustBeInRedis(r.ledger[key])
	}
	slices.Sort(want)
	if got := r.objects(); !slices.Equal(got, want) {
		r.t.Errorf("objects  %q\nentries name %q", got, want)
	}
}

// mustHold checks that the object of an entry holds what was loaded.
func (r *rig) mustHold(w written, e segment.Entry) {
	r.t.Helper()
	body, err := os.ReadFile(filepath.Join(r.root(), e.Object.Path))
	if err != nil {
		r.t.Fatal(err)
	}
	file, err := parquetfile.Open(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	messages, n := dataset.New(w.seed, 100), 0
	err = file.Read(context.Background(), func(p *segment.Page) error {
		for i := range p.Len() {
			want := messages.Next()
			n++
			if err := sameMessage(p, i, want); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || n != w.count || e.Count != int64(n) || e.Object.Bytes != int64(len(body)) {
		r.t.Errorf("%s: %d messages, %v; loaded %d; entry %+v", e.Object.Path, n, err, w.count, e)
	}
}

// mustBeInRedis checks that the stream of a segment is as long as it was
// loaded.
func (r *rig) mustBeInRedis(w written) {
	r.t.Helper()
	if got := strings.TrimSpace(r.redis.Exec("XLEN", r.layout.SegmentKey(w.partition, w.number))); got != fmt.Sprint(w.count) {
		r.t.Errorf("stream of %s/%s has %s entries, want %d", w.partition, w.number, got, w.count)
	}
}

func sameMessage(p *segment.Page, i int, want dataset.Message) error {
	lo, hi := p.Fields(i)
	fields := want.Fields()
	if p.ID(i) != want.ID || hi-lo != len(fields)/2 {
		return fmt.Errorf("entry %d is %s with %d fields, want %s", i, p.ID(i), hi-lo, want.ID)
	}
	for j := range fields {
		got := p.Name(lo + j/2)
		if j%2 == 1 {
			got = p.Value(lo + j/2)
		}
		if !bytes.Equal(got, fields[j]) {
			return fmt.Errorf("entry %s: %q, want %q", want.ID, got, fields[j])
		}
	}
	return nil
}

// await polls until a condition holds.
func await(t *testing.T, what string, within time.Duration, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
		<-tick.C
	}
}

// decode reads JSON that the program printed.
func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}

// get asks a program's HTTP server; the status is 0 when it does not answer.
func get(address, path string) (status int, body string) {
	client := &http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}
