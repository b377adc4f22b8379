package network

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// program is the built program.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests mostly wait, each for servers of its own.
	if err := flag.Set("test.parallel", "20"); err != nil {
		panic(err)
	}
	zerolog.SetGlobalLevel(zerolog.Disabled) // the proxy's
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "korvet-offload-network-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "korvet-offload")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// process is a running program.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string // of its probes
	ended   chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// launch runs the program until the test ends.
func launch(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, args...), address: freeAddress(t), ended: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), environ...), "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS="+p.address)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("the log of %s:\n%s", p.address, p.log())
		}
	})
	return p
}

// Write takes what the program writes.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// log is what the program has written so far.
func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// said says whether the program has written a text so far.
func (p *process) said(text string) func() bool {
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return bytes.Contains(p.out.Bytes(), []byte(text))
	}
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// wait returns the exit code, -1 after a signal, and how long it took to end.
func (p *process) wait(within time.Duration) (code int, took time.Duration) {
	p.t.Helper()
	begun := time.Now()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), time.Since(begun)
	case <-time.After(within):
		p.t.Fatalf("still running after %s", within)
		return 0, 0
	}
}

// probe asks one of the probes; the status is 0 when nobody answers.
func (p *process) probe(path string) (status int, body string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + p.address + path)
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

// ready says whether the program is ready, or is not.
func (p *process) ready(want bool) func() bool {
	return func() bool {
		status, _ := p.probe("/readyz")
		return (status == http.StatusOK) == want && status != 0
	}
}

// mustLive checks that the program is alive.
func (p *process) mustLive(when string) {
	p.t.Helper()
	if status, body := p.probe("/livez"); status != http.StatusOK {
		p.t.Errorf("%s: liveness %d %s", when, status, body)
	}
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
