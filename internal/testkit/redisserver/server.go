// Package redisserver starts real redis-server processes for tests.
//
// Guarantees: a server listens on the loopback address only, keeps its files
// in the test's temporary folder, answers PING when Start returns, and is
// dead when the test is over. A machine without redis-server fails the test
// with a line that says what to install; nothing is skipped.
//
// Non-guarantees: nothing survives a Restart but what was told to: a server
// keeps nothing on disk unless the test asks for it.
package redisserver

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a running redis-server. Its methods may be called from any
// goroutine; those that fail do so through the test.
type Server struct {
	Addr     string // host:port
	Port     int
	Password string // of the default user; "" when it needs none
	Socket   string // path of its unix socket
	CAFile   string // PEM certificate that its TLS port shows; "" without TLS
	CertFile string // PEM certificate that it takes of clients, with KeyFile; "" = it wants none
	KeyFile  string
	Dir      string // its folder
	BusPort  int    // of a cluster node
	tls      bool
	cluster  bool   // it is a node of a cluster
	alone    bool   // and serves every slot
	file     string // a sentinel's configuration; "" = it is none

	t    testing.TB
	args []string

	mu  sync.Mutex
	cmd *exec.Cmd
	end chan struct{} // closed when the process has been waited for
}

// Option changes how a server is started.
type Option func(t testing.TB, s *Server)

// Password sets requirepass.
func Password(password string) Option {
	return func(_ testing.TB, s *Server) {
		s.Password = password
		s.args = append(s.args, "--requirepass", password)
	}
}

// Users gives the server an ACL file of these lines ("user NAME on ...").
func Users(lines ...string) Option {
	return func(t testing.TB, s *Server) {
		file := filepath.Join(s.Dir, "users.acl")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatalf("write ACL file %s: %v", file, err)
		}
		s.args = append(s.args, "--aclfile", file)
	}
}

// Cluster starts a node of a Redis Cluster: one that serves every slot, or
// one that knows no other node and serves none yet.
func Cluster(everySlot bool) Option {
	return func(_ testing.TB, s *Server) { s.cluster, s.alone = true, everySlot }
}

// Args adds command line arguments.
func Args(args ...string) Option {
	return func(_ testing.TB, s *Server) { s.args = append(s.args, args...) }
}

// attempts bounds the tries to get a free port: it is free when it is
// chosen, and another process may be faster to take it.
const attempts = 10

// Start runs a redis-server for the length of the test.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("redis-server is not on the PATH; install it: apt-get install redis-server")
	}
	s := &Server{t: t, Dir: t.TempDir()}
	s.Socket = filepath.Join(socketDir(t), "s")
	for _, o := range options {
		o(t, s)
	}
	t.Cleanup(s.Stop)
	for range attempts {
		s.Port, s.BusPort = freePort(t), 0
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
		err := s.launch()
		if err == nil {
			s.coverSlots()
			return s
		}
		if !strings.Contains(err.Error(), "Address already in use") {
			t.Fatalf("start redis-server: %v", err)
		}
	}
	t.Fatalf("start redis-server: no free port in %d tries", attempts)
	return nil
}

// socketDir is short: a socket's path may have 107 bytes only, which the
// test's own folder can exceed.
func socketDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "rs")
	if err != nil {
		t.Fatalf("make folder for the socket: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func freePort(t testing.TB) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (s *Server) launch() error {
	args := []string{"--bind", "127.0.0.1", "--dir", s.Dir, "--save", "", "--appendonly", "no",
		"--unixsocket", s.Socket, "--daemonize", "no", "--loglevel", "notice"}
	if s.tls {
		args = append(args, "--tls-port", strconv.Itoa(s.Port), "--port", "0")
	} else {
		args = append(args, "--port", strconv.Itoa(s.Port))
	}
	if s.cluster { // the usual bus port, 10000 above, need not exist
		if s.BusPort == 0 {
			s.BusPort = freePort(s.t)
		}
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(s.BusPort))
	}
	if s.file != "" {
		args = []string{s.file, "--sentinel", "--bind", "127.0.0.1", "--dir", s.Dir, "--port", strconv.Itoa(s.Port), "--unixsocket", s.Socket}
	}
	cmd := exec.Command("redis-server", append(args, s.args...)...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return err
	}
	end := make(chan struct{})
	go func() {
		cmd.Wait() //nolint:errcheck // it is killed, which is an error
		close(end)
	}()
	s.mu.Lock()
	s.cmd, s.end = cmd, end
	s.mu.Unlock()
	if err := s.awaitReady(end); err != nil {
		s.Stop()
		return fmt.Errorf("%w: %s", err, lastLines(log.String())) // the process is gone: nobody writes
	}
	return nil
}

// awaitReady goes over the unix socket, which is this server's own: behind
// the port another server might answer.
func (s *Server) awaitReady(end <-chan struct{}) error {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		select {
		case <-end:
			return errors.New("redis-server ended")
		case <-time.After(5 * time.Millisecond):
		}
		if reply, err := s.ping(); err == nil && !strings.HasPrefix(reply, "-LOADING") {
			return nil
		}
	}
	return errors.New("redis-server does not answer")
}

func (s *Server) ping() (string, error) {
	c, err := net.Dial("unix", s.Socket)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second)) //nolint:errcheck // a new connection
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return "", err
	}
	reply := make([]byte, 128)
	n, err := c.Read(reply)
	return string(reply[:n]), err
}

func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// coverSlots makes a lone cluster node serve every slot.
func (s *Server) coverSlots() {
	if s.alone {
		s.Exec("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
		s.AwaitCluster()
	}
}

// AwaitCluster waits until a cluster node serves its slots.
func (s *Server) AwaitCluster() {
	s.t.Helper()
	s.await("cluster state ok", func() bool {
		return strings.Contains(s.Exec("CLUSTER", "INFO"), "cluster_state:ok")
	})
}

// await polls until the condition holds.
func (s *Server) await(what string, condition func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("redis-server at %s: no %s within a minute", s.Addr, what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// Stop kills the server and waits for its end. It may be called again.
func (s *Server) Stop() {
	s.mu.Lock()
	cmd, end := s.cmd, s.end
	s.cmd = nil
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	cmd.Process.Kill() //nolint:errcheck // it may be gone already
	<-end
}

// Up says whether the server runs.
func (s *Server) Up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil
}

// Restart stops the server and starts it again at the same address.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.Relaunch()
}

// Relaunch starts a server that was stopped again, at the same address.
func (s *Server) Relaunch() {
	s.t.Helper()
	if err := s.launch(); err != nil {
		s.t.Fatalf("start redis-server at %s again: %v", s.Addr, err)
	}
}

// Freeze stops the server in its tracks: connections stay open and nothing
// answers, until Thaw.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("send %s to redis-server: %v", sig, err)
	}
}
