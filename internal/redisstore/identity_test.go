package redisstore

import (
	"strings"
	"sync"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
)

func TestClusterID(t *testing.T) {
	for name, options := range map[string][]redisserver.Option{"single": nil, "cluster": {redisserver.Cluster(true)}} {
		t.Run(name, func(t *testing.T) {
			c := config(redisserver.Start(t, options...))
			c.Cluster = name == "cluster"
			s := open(t, c)
			mustID(t, s, "")
			if got, err := s.ClaimClusterID(t.Context(), "one"); err != nil || got != "one" {
				t.Errorf("claim: %q, %v", got, err)
			}
			if got, err := s.ClaimClusterID(t.Context(), "two"); err != nil || got != "one" {
				t.Errorf("claim again: %q, %v", got, err)
			}
			mustID(t, s, "one")
			for _, swap := range []struct {
				old, new string
				want     bool
			}{{"two", "three", false}, {"", "three", false}, {"one", "three", true}} {
				if ok, err := s.SwapClusterID(t.Context(), swap.old, swap.new); err != nil || ok != swap.want {
					t.Errorf("swap %+v: %t, %v", swap, ok, err)
				}
			}
			mustID(t, s, "three")
			if _, err := s.ClaimClusterID(t.Context(), ""); err == nil {
				t.Error("an empty id is claimed")
			}
		})
	}
}

func mustID(t *testing.T, s *Store, want string) {
	t.Helper()
	if got, err := s.ClusterID(t.Context()); err != nil || got != want {
		t.Errorf("the id is %q, %v, want %q", got, err, want)
	}
}

// Of claims at once one wins, and all are told its id.
func TestClusterIDIsClaimedOnce(t *testing.T) {
	s := open(t, config(redisserver.Start(t)))
	got := make([]string, 16)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			id, err := s.ClaimClusterID(t.Context(), strings.Repeat("x", i+1))
			if err != nil {
				t.Error(err)
			}
			got[i] = id
		})
	}
	wg.Wait()
	for _, id := range got {
		if id == "" || id != got[0] {
			t.Errorf("%q", got)
		}
	}
	mustID(t, s, got[0])
}

func TestClusterIDThatMayNotBeRead(t *testing.T) {
	server := redisserver.Start(t, redisserver.Users(defaultUser, "user blind on >pw ~korvet:storage:manifest:* +@all", "user reader on >pw ~korvet:* +@read +ping"))
	c := config(server)
	c.URI = server.UserURI("blind", "pw")
	blind := open(t, c)
	_, errGet := blind.ClusterID(t.Context())
	_, errClaim := blind.ClaimClusterID(t.Context(), "x")
	_, errSwap := blind.SwapClusterID(t.Context(), "x", "y")
	c.URI = server.UserURI("reader", "pw")
	_, errSet := open(t, c).ClaimClusterID(t.Context(), "x")
	for want, err := range map[string]error{"get +get": errGet, "claim +set": errClaim, "swap +set": errSwap, "read only +set": errSet} {
		_, rule, _ := strings.Cut(want, "+")
		if ClassOf(err) != Permission || !strings.Contains(err.Error(), "+"+rule) {
			t.Errorf("%s: class %s, %v", want, ClassOf(err), err)
		}
	}
	server.Exec("LPUSH", c.Layout.ClusterKey(), "x")
	if _, err := open(t, config(server)).ClusterID(t.Context()); ClassOf(err) != WrongType {
		t.Errorf("another type: %v", err)
	}
}
