package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// pausedScopes names what is paused.
func pausedScopes(t *testing.T, s *Store) string {
	t.Helper()
	all, err := s.Paused(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range all.List {
		names = append(names, p.Scope.String())
	}
	return strings.Join(names, ", ")
}

func mustPause(t *testing.T, s *Store, scope segment.Scope, by, reason string) segment.Pause {
	t.Helper()
	p, err := s.Pause(t.Context(), scope, by, reason)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPauseAndResume(t *testing.T) {
	for name, options := range map[string][]redisserver.Option{"single": nil, "cluster": {redisserver.Cluster(true)}} {
		t.Run(name, func(t *testing.T) {
			c := config(redisserver.Start(t, options...))
			c.Cluster = name == "cluster"
			s := open(t, c)
			if got := pausedScopes(t, s); got != "" {
				t.Errorf("paused at first: %s", got)
			}
			orders := segment.Scope{Topic: "orders"}
			before, err := s.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			first := mustPause(t, s, orders, "ada@a", "")
			mustPause(t, s, segment.Scope{Stream: "events:1"}, "ada@a", "x")
			mustPause(t, s, segment.Scope{}, "ada@a", "y")
			if got, want := pausedScopes(t, s), "everything, topic orders, stream events:1"; got != want {
				t.Errorf("paused: %s, want %s", got, want)
			}
			if d := first.Since.Sub(before); d < -time.Millisecond || d > time.Minute {
				t.Errorf("since %s, %s after the call", first.Since, d)
			}
			for range 2 { // resuming twice is as good as once
				if err := s.Resume(t.Context(), segment.Scope{}); err != nil {
					t.Fatal(err)
				}
				if got, want := pausedScopes(t, s), "topic orders, stream events:1"; got != want {
					t.Errorf("paused: %s, want %s", got, want)
				}
			}
		})
	}
}

// TestPauseTwice: the beginning stays, and a person's reason is not lost to a
// call without one.
func TestPauseTwice(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	scope := segment.Scope{Topic: "orders"}
	old := segment.Pause{Scope: scope, Since: time.UnixMilli(1000), By: "ada@a", Reason: "first"}
	server.Exec("HSET", s.cfg.Layout.PausedKey(), scope.Field(), old.Encode())
	if got := mustPause(t, s, scope, "bob@b", ""); got != old {
		t.Errorf("%+v, want %+v", got, old)
	}
	want := segment.Pause{Scope: scope, Since: old.Since, By: "bob@b", Reason: "second"}
	if got := mustPause(t, s, scope, "bob@b", "second"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	all, err := s.Paused(t.Context())
	if got, ok := all.Of(scope); err != nil || !ok || got != want {
		t.Errorf("%+v, %v, want %+v", all, err, want)
	}
	server.Exec("HSET", s.cfg.Layout.PausedKey(), scope.Field(), "?")
	if got := mustPause(t, s, scope, "bob@b", ""); got.Err != nil || got.Since.IsZero() || got.By != "bob@b" {
		t.Errorf("what could not be read stays: %+v", got)
	}
}

func TestWhatCannotBeReadOfThePauses(t *testing.T) {
	server := redisserver.Start(t, redisserver.Users(defaultUser, "user blind on >pw ~other +@all"))
	s := open(t, config(server))
	key := s.cfg.Layout.PausedKey()
	server.Exec("HSET", key, "*", "?", "orders", "?")
	all, err := s.Paused(t.Context())
	if err != nil || len(all.List) != 1 || !all.List[0].Scope.All() || !errors.Is(all.List[0].Err, segment.ErrPause) || len(all.Errs) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	blind := config(server)
	blind.URI = server.UserURI("blind", "pw")
	if _, err := open(t, blind).Paused(t.Context()); ClassOf(err) != Permission || !strings.Contains(err.Error(), "+hgetall") {
		t.Errorf("without the right: %v", err)
	}
	server.Exec("DEL", key)
	server.Exec("SET", key, "x")
	if _, err := s.Paused(t.Context()); ClassOf(err) != WrongType {
		t.Errorf("another type: %v", err)
	}
	if _, err := s.Pause(t.Context(), segment.Scope{}, "", ""); ClassOf(err) != WrongType {
		t.Errorf("another type: %v", err)
	}
	if err := s.Resume(t.Context(), segment.Scope{}); ClassOf(err) != WrongType {
		t.Errorf("another type: %v", err)
	}
}
