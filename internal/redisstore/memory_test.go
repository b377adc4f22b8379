package redisstore

import (
	"errors"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
)

func TestMemory(t *testing.T) {
	server := redisserver.Start(t, redisserver.Args("--maxmemory", "100mb"))
	s := open(t, config(server))
	before, err := s.Memory(t.Context())
	if err != nil || before.Node != server.Addr || before.Max != 100<<20 || before.Used <= 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	server.Exec("EVAL", "redis.call('SET', KEYS[1], string.rep('x', 1048576))", "1", "k")
	server.Exec("CONFIG", "SET", "maxmemory", "0")
	after, err := s.Memory(t.Context())
	if err != nil || after.Max != 0 || after.Used < before.Used+1<<20 {
		t.Errorf("%+v, %v; before %+v", after, err, before)
	}
}

func TestMemoryThatMayNotBeAskedFor(t *testing.T) {
	server := redisserver.Start(t, redisserver.Users(defaultUser, "user u on >pw ~* +@all -info"))
	c := config(server)
	c.URI = server.UserURI("u", "pw")
	if m, err := open(t, c).Memory(t.Context()); ClassOf(err) != Permission || !strings.Contains(err.Error(), "+info") {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestReadMemory(t *testing.T) {
	for text, want := range map[string]Memory{
		"used_memory:5\r\nmaxmemory:10\r\n":   {Used: 5, Max: 10},
		"used_memory:5\r\nmaxmemory:many\r\n": {Used: 5},
		"used_memory:5\r\nmaxmemory:-1\r\n":   {Used: 5},
		"used_memory:5\r\n":                   {Used: 5},
	} {
		if m, err := readMemory(infoLines(text)); err != nil || m != want {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
	for _, text := range []string{"", "used_memory:\r\n", "used_memory:much\r\n", "used_memory:-1\r\n", "maxmemory:10\r\n"} {
		if m, err := readMemory(infoLines(text)); !errors.Is(err, errProtocol) {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
}

func TestTheFullestNode(t *testing.T) {
	for _, tt := range []struct {
		a, b Memory
		want bool // a is shown rather than b
	}{
		{Memory{Used: 9, Max: 10}, Memory{Used: 50, Max: 100}, true},
		{Memory{Used: 1, Max: 10}, Memory{Used: 50}, true},
		{Memory{Used: 50}, Memory{Used: 49}, true},
		{Memory{Used: 49}, Memory{Used: 50}, false},
	} {
		if got := tt.a.fuller(tt.b); got != tt.want {
			t.Errorf("%+v before %+v: %t", tt.a, tt.b, got)
		}
	}
}
