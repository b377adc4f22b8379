package redisstore

import (
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
)

//fault:redis | The server may evict any key when its memory is full | each maxmemory-policy that there is, at a real server | policies that can take a stream are told from those that take the lease alone or nothing
func TestEvictionOfEveryPolicy(t *testing.T) {
	server := redisserver.Start(t, redisserver.Args("--maxmemory", "100mb"))
	s := open(t, config(server))
	for policy, want := range map[string]EvictionRisk{
		"noeviction": EvictsNothing, "volatile-lru": EvictsLease, "volatile-lfu": EvictsLease, "volatile-random": EvictsLease, "volatile-ttl": EvictsLease,
		"allkeys-lru": EvictsStreams, "allkeys-lfu": EvictsStreams, "allkeys-random": EvictsStreams,
	} {
		server.Exec("CONFIG", "SET", "maxmemory-policy", policy)
		e, err := s.Eviction(t.Context())
		if err != nil || e.Risk() != want || e.Policy != policy || e.MaxMemory != 100<<20 || e.Node != server.Addr {
			t.Errorf("%s: %s, %+v, %v", policy, e.Risk(), e, err)
		}
		f := s.checkEviction(t.Context())
		if f.OK != (want != EvictsStreams) || !strings.Contains(f.Detail, policy) || strings.Contains(f.Detail, "lease") != (want == EvictsLease) {
			t.Errorf("%s: %s", policy, f)
		}
		if (e.Advice() != "") != (want == EvictsStreams) {
			t.Errorf("%s: advice %q", policy, e.Advice())
		}
	}
	server.Exec("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "0")
	if e, err := s.Eviction(t.Context()); err != nil || e.Risk() != EvictsNothing {
		t.Errorf("without a limit: %+v, %v", e, err)
	}
}

func TestReadEviction(t *testing.T) {
	for text, want := range map[string]EvictionRisk{
		"":                                  EvictionUnknown,
		"maxmemory:100":                     EvictionUnknown,
		"maxmemory_policy:allkeys-new":      EvictsStreams, // a limit that is not told is taken for one
		"maxmemory_policy:of-later\n":       EvictsStreams,
		"maxmemory_policy:volatile-new\r\n": EvictsLease,
		"maxmemory_policy:noeviction\r\nmaxmemory:100\r\n":   EvictsNothing,
		"maxmemory_policy:allkeys-lru\r\nmaxmemory:0\r\n":    EvictsNothing,
		"maxmemory_policy:allkeys-lru\r\nmaxmemory:many\r\n": EvictsStreams,
	} {
		if e := readEviction(infoLines(text)); e.Risk() != want {
			t.Errorf("%q: %s, want %s", text, e.Risk(), want)
		}
	}
}

//fault:redis | The user may not ask what the server evicts | a user without INFO | an error that names the command
func TestEvictionThatMayNotBeAskedFor(t *testing.T) {
	server := redisserver.Start(t, redisserver.Users(defaultUser, "user u on >pw ~* +@all -info"))
	c := config(server)
	c.URI = server.UserURI("u", "pw")
	if e, err := open(t, c).Eviction(t.Context()); ClassOf(err) != Permission || !strings.Contains(err.Error(), "+info") {
		t.Errorf("%+v, %v", e, err)
	}
}
