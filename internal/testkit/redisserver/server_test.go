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

// What the tests read is what a person would see.
func TestExecPrintsAsRedisCliDoes(t *testing.T) {
	s := Start(t, Password("p@ss"))
	s.Exec("HSET", "h", "a", "x\r\ny\n", "b", "")
	s.Exec("XADD", "s", "1-1", "f", "v", "f", "w")
	for _, command := range [][]string{
		{"HGETALL", "h"}, {"HGET", "h", "a"}, {"HGET", "h", "no"}, {"HLEN", "h"}, {"XRANGE", "s", "-", "+"}, {"XINFO", "STREAM", "s"},
		{"KEYS", "no*"}, {"DUMP", "s"}, {"EVAL", "return {1, {}, {'a', {'b', false}}, redis.status_reply('OK')}", "0"}, {"ACL", "WHOAMI"},
	} {
		want, err := s.cli(append([]string{"-s", s.Socket, "-e"}, command...)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Exec(command...); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	if _, err := s.TryExec("XADD", "h", "*", "a", "b"); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("an error: %v", err)
	}
	if got := s.Exec("-n", "3", "CLIENT", "INFO"); !strings.Contains(got, " db=3 ") {
		t.Errorf("an option of redis-cli: %q", got)
	}
}
