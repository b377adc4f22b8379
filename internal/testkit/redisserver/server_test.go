package redisserver

import (
	"strings"
	"sync"
	"testing"
)

func TestServersStartTogether(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := Start(t).Exec("PING"); got != "PONG" {
				t.Errorf("PING = %q", got)
			}
		})
	}
	wg.Wait()
}

func TestOptionsReachTheServer(t *testing.T) {
	s := Start(t, Password("p@ss"), Args("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"), TLS())
	if got := s.Exec("CONFIG", "GET", "maxmemory-policy"); !strings.Contains(got, "allkeys-lru") {
		t.Errorf("maxmemory-policy = %q", got)
	}
	if want := "rediss://:p%40ss@" + s.Addr; s.URI() != want {
		t.Errorf("URI = %q, want %q", s.URI(), want)
	}
	users := Start(t, Users("user default on nopass ~* &* +@all", "user u on >pw ~a* +get"))
	if got := users.Exec("ACL", "LIST"); !strings.Contains(got, "user u on") {
		t.Errorf("ACL LIST = %q", got)
	}
	if got := Start(t, Cluster(true)).Exec("SET", "a", "b"); got != "OK" {
		t.Errorf("SET on a cluster node = %q", got)
	}
}

func TestRestartKeepsTheAddressAndNothingElse(t *testing.T) {
	s := Start(t)
	s.Exec("SET", "a", "b")
	addr := s.Addr
	s.Restart()
	if got := s.Exec("GET", "a"); got != "" || s.Addr != addr {
		t.Errorf("after a restart at %s (was %s): a = %q", s.Addr, addr, got)
	}
	s.Stop()
	if _, err := s.TryExec("PING"); err == nil {
		t.Error("a stopped server answers")
	}
	s.Stop()
}

func TestPipeLoads(t *testing.T) {
	s := Start(t)
	var b []byte
	for range 1000 {
		b = AppendCommand(b, "XADD", "s", "*", "f", "\x00\xff\r\n")
	}
	s.Pipe(b)
	if got := s.Exec("XLEN", "s"); got != "1000" {
		t.Errorf("XLEN = %s", got)
	}
}

func TestMonitorSeesScripts(t *testing.T) {
	s := Start(t)
	m := s.Monitor(func(line string) bool { return strings.Contains(line, `"SET"`) })
	s.Exec("GET", "a")
	s.Exec("SET", "a", "1")
	s.Exec("EVAL", "return redis.call('SET', 'a', '2')", "0")
	got := m.Lines()
	s.Exec("SET", "a", "3")
	if len(got) != 2 || !strings.Contains(got[0], `"a" "1"`) || !strings.Contains(got[1], " lua]") {
		t.Errorf("%q", got)
	}
}
