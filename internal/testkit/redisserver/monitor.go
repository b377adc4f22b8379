package redisserver

import (
	"bufio"
	"crypto/rand"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Monitor notes the commands that the server runs, those inside scripts among
// them, as MONITOR tells them, one a line. Only lines that keep wants are kept.
type Monitor struct {
	s    *Server
	mark string
	done chan struct{} // the mark was seen, or MONITOR has ended

	mu    sync.Mutex
	lines []string
}

// Monitor begins to note commands, from its return on and until Lines.
func (s *Server) Monitor(keep func(line string) bool) *Monitor {
	s.t.Helper()
	m := &Monitor{s: s, mark: rand.Text(), done: make(chan struct{})}
	cmd := exec.Command("redis-cli", "-s", s.Socket, "monitor")
	cmd.Env = s.cliEnv()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatalf("monitor redis-server: %v", err)
	}
	began := make(chan struct{})
	go func() {
		defer close(m.done)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 64<<20)
		for first := true; scanner.Scan(); first = false {
			if line := scanner.Text(); first {
				close(began)
			} else if strings.Contains(line, m.mark) {
				break
			} else if keep(line) {
				m.add(line)
			}
		}
		cmd.Process.Kill() //nolint:errcheck // it may be gone already
		cmd.Wait()         //nolint:errcheck // it is killed, which is an error
	}()
	s.t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may be gone already
		<-m.done
	})
	select {
	case <-began:
	case <-m.done:
		s.t.Fatal("monitor redis-server: it ended at once")
	case <-time.After(20 * time.Second):
		s.t.Fatal("monitor redis-server: it does not begin")
	}
	return m
}

func (m *Monitor) add(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, line)
}

// Lines ends the noting, with what was run up to this call.
func (m *Monitor) Lines() []string {
	m.s.t.Helper()
	m.s.Exec("ECHO", m.mark)
	select {
	case <-m.done:
	case <-time.After(60 * time.Second):
		m.s.t.Fatal("monitor redis-server: the last command does not come")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lines
}
