// Package s3server runs a real S3 server (versitygw, over a temporary folder)
// for tests, with or without TLS, and can tell which requests it got.
package s3server

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options of a server.
type Options struct {
	TLS    bool   // with a certificate of its own, see Server.CAFile
	Region string // "" = us-east-1
	Users  bool   // others than the owner can be added
}

// Server is a running server with one empty bucket.
type Server struct {
	Endpoint string // http://127.0.0.1:port or https://...
	Bucket   string
	Access   string
	Secret   string
	Region   string
	CAFile   string // PEM of the authority of its certificate; "" without TLS
	Dir      string // the bucket's folder: the objects are files in it

	log  string
	stop func()
}

const (
	startTimeout = 20 * time.Second
	portTries    = 5
)

// Start runs a server until the test ends. A machine where it can't be built
// or started fails the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatalf("start S3 server: %v", err)
	}
	for range portTries {
		s, err := start(t, bin, o)
		if err == nil {
			t.Cleanup(s.stop)
			return s
		}
		if !errors.Is(err, errPortTaken) {
			t.Fatalf("start S3 server: %v", err)
		}
	}
	t.Fatal("start S3 server: every port that was free was taken a moment later")
	return nil
}

// Stop ends the server before the test does.
func (s *Server) Stop() { s.stop() }

// AddBucket makes another bucket.
func (s *Server) AddBucket(t testing.TB, name string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(filepath.Dir(s.Dir), name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Requests counts the requests so far, by operation as the server names it
// (PutObject, HeadObject, ...).
func (s *Server) Requests(t testing.TB) map[string]int {
	t.Helper()
	log, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(log)) {
		for field := range strings.FieldsSeq(line) {
			if op, ok := strings.CutPrefix(field, "s3_"); ok {
				count[op]++
				break
			}
		}
	}
	return count
}

var errPortTaken = errors.New("port is taken")

func start(t testing.TB, bin string, o Options) (*Server, error) {
	data, port := t.TempDir(), freePort(t)
	s := &Server{
		Bucket: "bucket", Access: "TESTACCESSKEY", Secret: "test-secret-key-0123456789", Region: o.Region,
		Dir: filepath.Join(data, "root", "bucket"), log: filepath.Join(data, "access.log"),
		Endpoint: "http://" + port,
	}
	if s.Region == "" {
		s.Region = "us-east-1"
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	args := []string{"--port", port, "--access", s.Access, "--secret", s.Secret, "--region", s.Region,
		"--access-log", s.log, "--keep-alive", "--quiet"}
	if o.Users {
		iam := filepath.Join(data, "iam")
		if err := os.Mkdir(iam, 0o755); err != nil {
			return nil, err
		}
		args = append(args, "--iam-dir", iam, "--iam-cache-disable")
	}
	if o.TLS {
		cert, key := selfSigned(t, data)
		args = append(args, "--cert", cert, "--key", key)
		s.CAFile, s.Endpoint = cert, "https://"+port
	}
	return s, s.run(exec.Command(bin, append(args, "posix", filepath.Join(data, "root"))...))
}

// run starts the process and waits until it answers, or has ended.
func (s *Server) run(cmd *exec.Cmd) error {
	health := "/health-" + rand.Text() // nobody else's server on this port has it
	cmd.Args = slices.Insert(cmd.Args, 1, "--health", health)
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	dieWithParent(cmd)
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // the kernel kills the child when the thread that started it ends
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	if err := waitFor(s.Endpoint+health, ended); err != nil {
		s.stop()
		if strings.Contains(out.String(), "address already in use") {
			return errPortTaken
		}
		return fmt.Errorf("%w: %s", err, out.String())
	}
	return nil
}

// waitFor asks for a page until it is there. Whose certificate it is does not
// matter: the page's name is a secret of this server.
func waitFor(url string, ended <-chan struct{}) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: time.Second}
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if res, err := client.Get(url); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ended:
			return errors.New("it ended at once")
		case <-deadline.C:
			return fmt.Errorf("it does not answer after %s", startTimeout)
		case <-tick.C:
		}
	}
}

func freePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// output collects what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
