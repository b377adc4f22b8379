package deploy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// shop is a Redis with three topics, of which payments is stuck: a stream of its
// is gone.
type shop struct {
	t     *testing.T
	redis *redisserver.Server
	store string
	now   int64
	cmds  []byte

	address string
	process *exec.Cmd
}

func (s *shop) do(command ...string) { s.cmds = redisserver.AppendCommand(s.cmds, command...) }

// entry writes a manifest entry, with more fields than a segment has by itself.
func (s *shop) entry(p segment.Partition, n int, fields string) {
	s.do("HSET", segment.DefaultLayout().ManifestKey(p), fmt.Sprint(n), `{"v":1,`+fields+`}`)
}

// stream writes the stream of a segment of 50 messages.
func (s *shop) stream(p segment.Partition, n int) {
	for i := range 50 {
		s.do("XADD", segment.DefaultLayout().SegmentKey(p, segment.Number(n)), fmt.Sprintf("%d-%d", s.now, i), "value", strings.Repeat("x", 200))
	}
}

// partition writes a row of segments: a history on the store, three sealed ones,
// and the open one. Of the sealed ones one may have lost its stream.
func (s *shop) partition(p segment.Partition, history, lost int) {
	for n := range history {
		at := s.now - int64(history-n)*3600_000
		s.entry(p, n, fmt.Sprintf(`"state":"SEALED","tier":"REMOTE","local":"GONE","firstId":"%d-0","lastId":"%d-1","count":1000,"sealedAt":%d,`+
			`"object":{"path":"%s/%d.parquet","bytes":40000000,"etag":"","sha256":""}`, at, at, at, segment.DefaultLayout().Folder(p), n))
	}
	for n := history; n < history+3; n++ {
		if n != lost {
			s.stream(p, n)
		}
		s.entry(p, n, fmt.Sprintf(`"state":"SEALED","tier":"LOCAL","firstId":"%d-0","lastId":"%d-49","count":50,"openedAt":%d,"sealedAt":%d`, s.now, s.now, s.now, s.now))
	}
	s.do("XADD", segment.DefaultLayout().SegmentKey(p, segment.Number(history+3)), "*", "value", "still open")
	s.entry(p, history+3, fmt.Sprintf(`"state":"OPEN","tier":"LOCAL","openedAt":%d`, s.now))
}

func (s *shop) topic(name string, partitions, history, lost int) {
	l := segment.DefaultLayout()
	s.do("HSET", l.TopicKey(name), "remote.storage.enable", "true", "partitions", fmt.Sprint(partitions), "retention.ms", "-1")
	s.do("SADD", l.TopicsKey(), name)
	for n := range partitions {
		gone := -1
		if n == partitions-1 {
			gone = lost
		}
		s.partition(segment.Partition{Topic: name, Number: n}, history, gone)
	}
}

func openShop(t *testing.T) *shop {
	s := &shop{t: t, redis: redisserver.Start(t), store: t.TempDir(), now: time.Now().Add(-10 * time.Second).UnixMilli()}
	s.topic("clicks", 6, 800, -1)
	s.topic("orders", 4, 120, -1)
	s.topic("payments", 2, 30, 31)
	s.redis.Pipe(s.cmds)
	// The files of the history are not there: without a marker it would be another root.
	if err := os.WriteFile(filepath.Join(s.store, "_korvet_offload.json"), []byte(`{"v":1,"namespace":"korvet"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.address = "127.0.0.1:" + freePort(t)
	return s
}

// freePort is a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// start runs the program until stop, or the end of the test.
func (s *shop) start() {
	s.t.Helper()
	var log bytes.Buffer
	s.process = exec.Command(program(s.t), "run")
	s.process.Stderr = &log
	s.process.Env = append(os.Environ(), "KORVET_REDIS_URI="+s.redis.URI(), "KORVET_STORAGE_REMOTE_PATH=file://"+s.store,
		"KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS="+s.address, "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=1s", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=10s")
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	await(s.t, "the program has made a pass", time.Minute, func() bool {
		status, err := s.status()
		return err == nil && len(status.Passes) > 0
	})
}

func (s *shop) stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// shopStatus is what the test needs of the JSON.
type shopStatus struct {
	Health struct{ Level string }
	Passes []struct { // the newest first
		StartedAt time.Time `json:"started_at"`
	}
}

func (s *shop) status() (status shopStatus, err error) {
	r, err := http.Get("http://" + s.address + "/api/v1/status")
	if err != nil {
		return status, err
	}
	defer r.Body.Close()
	return status, json.NewDecoder(r.Body).Decode(&status)
}

// obey does what the browser's script asks for.
func (s *shop) obey(order string) {
	switch order {
	case "mend":
		s.cmds = nil
		s.stream(segment.Partition{Topic: "payments", Number: 1}, 31)
		s.redis.Pipe(s.cmds)
	case "wait":
		status, err := s.status()
		if err != nil {
			s.t.Error(err)
		}
		await(s.t, "three more passes are over", time.Minute, func() bool {
			now, err := s.status()
			return err == nil && now.Passes[0].StartedAt.Sub(status.Passes[0].StartedAt) > 2*time.Second
		})
	case "stop":
		s.stop()
	case "start":
		s.start()
	}
}

// The page in a real browser: in both themes, wide and narrow, without script,
// by keyboard, and while things change. PAGE_SHOTS names a folder that keeps the
// screenshots.
func TestPageInABrowser(t *testing.T) {
	for _, name := range []string{"node", "chromium"} {
		tool(t, name)
	}
	if _, err := os.Stat("browser/node_modules/axe-core"); err != nil {
		t.Fatal("test/deploy/browser has no node_modules: run make setup-deploy")
	}
	shots := os.Getenv("PAGE_SHOTS")
	if shots == "" {
		shots = t.TempDir()
	}
	shots, err := filepath.Abs(shots)
	if err != nil {
		t.Fatal(err)
	}
	s := openShop(t)
	s.start()
	defer func() { s.stop() }()
	cmd := exec.Command(tool(t, "node"), "page.mjs", "http://"+s.address, shots)
	cmd.Dir, cmd.Env = "browser", append(os.Environ(), "CHROMIUM="+tool(t, "chromium"))
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		done = lines.Text() == "done"
		s.obey(lines.Text())
		_, _ = io.WriteString(in, "\n") // it may have ended
	}
	if err := cmd.Wait(); err != nil || !done {
		t.Fatalf("%v\n%s", err, said.String())
	}
}
