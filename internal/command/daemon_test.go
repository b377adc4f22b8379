package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// running is a daemon in this process.
type running struct {
	t    *testing.T
	stop context.CancelFunc
	code chan int

	mu     sync.Mutex
	stderr bytes.Buffer
	said   func() // closes a channel, once
}

// Write takes what the daemon logs.
func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.said()
	return r.stderr.Write(b)
}

func (r *running) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stderr.String()
}

// start runs the daemon until the test ends. It has read its command line when start
// returns: the library does that in variables that all command lines share.
func start(t *testing.T, environ []string, flags ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	said := make(chan struct{})
	r := &running{t: t, stop: stop, code: make(chan int, 1), said: sync.OnceFunc(func() { close(said) })}
	environ = append(environ, "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=127.0.0.1:0", "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=50ms")
	go func() {
		defer r.said()
		r.code <- Main(ctx, Process{Args: append([]string{"korvet-offload", "run"}, flags...), Environ: environ, Stdout: io.Discard, Stderr: r})
	}()
	t.Cleanup(stop)
	<-said
	return r
}

// await polls until the log has a text in it.
func (r *running) await(text string) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(60 * time.Second); !strings.Contains(r.log(), text); <-tick.C {
		if time.Now().After(deadline) {
			r.t.Fatalf("no %q in\n%s", text, r.log())
		}
	}
}

// end waits for the exit code.
func (r *running) end() int {
	r.t.Helper()
	select {
	case code := <-r.code:
		return code
	case <-time.After(60 * time.Second):
		r.t.Fatalf("it does not end:\n%s", r.log())
		return 0
	}
}

// address is where the daemon listens, as it has logged it.
func (r *running) address() (address string) {
	r.t.Helper()
	r.await(`"message":"listening"`)
	for line := range strings.Lines(r.log()) {
		var entry struct{ Message, Address string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			r.t.Fatalf("%v in %q", err, line)
		}
		if entry.Message == "listening" {
			address = entry.Address
		}
	}
	return address
}

// probe asks the daemon without a token.
func (r *running) probe(path string) string {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + r.address() + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

func TestDaemonMovesAndStops(t *testing.T) {
	rig := newRig(t)
	r := start(t, rig.environ)
	r.await(`"message":"segment is remote","segment":"orders:0/1"`)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(60 * time.Second); r.probe("/readyz") != "ready"; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("never ready")
		}
	}
	if got := r.probe("/livez"); got != "alive" {
		t.Errorf("alive: %q", got)
	}
	r.stop()
	if code := r.end(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	log := r.log()
	if !strings.HasSuffix(strings.TrimSpace(log), `"message":"stopped"}`) || strings.Contains(log, `"level":"error"`) {
		t.Errorf("log:\n%s", log)
	}
	if got := rig.server.Exec("EXISTS", "korvet:storage:offload:lease"); got != "0" {
		t.Error("the lease was not given back")
	}
}

func TestDaemonThatIsSwitchedOff(t *testing.T) {
	r := start(t, []string{"KORVET_REDIS_URI=redis://127.0.0.1:1", "KORVET_STORAGE_REMOTE_PATH=file://" + t.TempDir(), "KORVET_STORAGE_OFFLOAD_ENABLED=false"})
	r.await("doing nothing until stopped")
	if got := r.probe("/readyz"); got != "ready" {
		t.Errorf("ready: %q", got)
	}
	r.stop()
	if code := r.end(); code != exitDone {
		t.Errorf("exit %d\n%s", code, r.log())
	}
}

func TestDaemonWaitsForRedis(t *testing.T) {
	r := start(t, []string{"KORVET_REDIS_URI=redis://127.0.0.1:1", "KORVET_STORAGE_REMOTE_PATH=file://" + t.TempDir()})
	r.await("waiting for redis")
	if got, want := r.probe("/readyz"), "not ready: redis CONNECT 127.0.0.1:1: "; !strings.HasPrefix(got, want) {
		t.Errorf("ready: %q, want %q", got, want)
	}
	if got := r.probe("/livez"); got != "alive" { // a restart would not help
		t.Errorf("alive: %q", got)
	}
	r.stop()
	if code := r.end(); code != exitDone {
		t.Errorf("exit %d\n%s", code, r.log())
	}
}

func TestDaemonEndsWhenItsPortIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rig := newRig(t)
	r := start(t, rig.environ, "--set", "korvet.storage.offload.http.address="+l.Addr().String())
	if code := r.end(); code != exitFault || !strings.Contains(r.log(), "korvet-offload: listen on "+l.Addr().String()) {
		t.Errorf("exit %d\n%s", code, r.log())
	}
}

func TestDaemonRefusesAForeignPlace(t *testing.T) {
	rig := newRig(t)
	other := append([]string{"KORVET_NAMESPACE=other"}, rig.environ...)
	if r := call(t, rig.environ, "run", "--once"); r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	r := start(t, other)
	if code := r.end(); code != exitUsage || !strings.Contains(r.log(), "korvet-offload: ") || !strings.Contains(r.log(), "namespace") {
		t.Errorf("exit %d\n%s", code, r.log())
	}
}

func TestNobodyIsDeadBeforeItLeads(t *testing.T) {
	if err := new(daemon).alive(); err != nil {
		t.Error(err)
	}
}

func TestProfile(t *testing.T) {
	rig := newRig(t)
	file := filepath.Join(t.TempDir(), "cpu.prof")
	if r := call(t, rig.environ, "run", "--once", "--cpuprofile", file); r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("%v %+v", err, info)
	}
	r := call(t, rig.environ, "run", "--once", "--cpuprofile", filepath.Join(file, "x"))
	if r.code != exitFault || !strings.HasPrefix(r.stderr, "korvet-offload: create the CPU profile: open "+file) {
		t.Errorf("%+v", r)
	}
}

func TestWarningsOfTheSettingsAreLogged(t *testing.T) {
	rig := newRig(t)
	environ := slices.Concat(rig.environ, []string{"KORVET_STORAGE_SERVICE_HOST=10.0.0.1", "KORVET_STORAGE_SERVICE_PORT=80"})
	r := call(t, environ, "run", "--once")
	if r.code != exitDone || !strings.Contains(r.stderr, `"level":"warn"`) || !strings.Contains(r.stderr, "enableServiceLinks") {
		t.Errorf("%+v", r)
	}
	r = call(t, environ, "config", "check")
	if r.code != exitDone || !strings.HasPrefix(r.stderr, "korvet-offload: warning: ") {
		t.Errorf("%+v", r)
	}
}
