package redisstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func streamPatterns() []segment.StreamPattern {
	return []segment.StreamPattern{
		{Key: "declared", Settings: map[string]string{"segment-entries": "7"}},
		{Key: "events/*", Settings: map[string]string{"retention-time": "5000", "local-retention-time": "5000"}},
		{Key: "korvet:*"},
		{Key: "both"},
	}
}

func TestTopicsAndPlainStreams(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		s.patterns, s.streams = patterns(), streamPatterns()
		exec("SADD", "korvet:topics", "orders", "zebra")
		exec("HSET", "korvet:topic:orders", "partitions", "2")
		exec("SADD", "korvet:streams", "events/b/c", "events/a", "other", "both", "korvet:topics")
		topics, err := s.Topics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, topic := range topics {
			name := topic.Name
			if topic.Plain {
				name += " plain"
			}
			if topic.Declared {
				name += " declared"
			}
			if topic.Bare {
				name += " bare"
			}
			names = append(names, name)
		}
		want := "declared declared bare, orders, zebra bare, both plain, declared plain declared, events/a plain, events/b/c plain, korvet:topics plain"
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("%s; want %s", got, want)
		}
		if d := topics[4].Settings; d.SegmentEntries != 7 || !d.RemoteStorage || d.RetentionMs != -1 {
			t.Errorf("declared: %+v", d)
		}
		if e := topics[5]; e.Err != nil || e.Settings.RetentionMs != 5000 {
			t.Errorf("events/a: %+v", e)
		}
		if !errors.Is(topics[7].Err, segment.ErrStreamKey) {
			t.Errorf("a key of the namespace: %v", topics[7].Err)
		}
	})
}

func TestASetOfStreamsOfAnotherTypeStopsNoTopic(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		exec("SADD", "korvet:topics", "orders")
		exec("HSET", "korvet:streams", "a", "b")
		if topics, err := s.Topics(t.Context()); err != nil || len(topics) != 1 {
			t.Errorf("without a pattern it is not asked for: %v, %v", topics, err)
		}
		s.streams = streamPatterns()
		topics, err := s.Topics(t.Context())
		if err != nil || len(topics) < 2 || topics[0].Name != "orders" || topics[0].Err != nil {
			t.Fatalf("%v, %v", topics, err)
		}
		broken := topics[1]
		if !broken.Plain || ClassOf(broken.Err) != WrongType || !strings.Contains(broken.Err.Error(), "korvet:streams") || !strings.Contains(broken.Err.Error(), "want a set") {
			t.Errorf("%+v", broken)
		}
	})
}

func TestTopicsNeverSearchTheKeyspace(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	s.patterns, s.streams = patterns(), streamPatterns()
	server.Exec("SADD", "korvet:streams", "events/a")
	if _, err := s.Topics(t.Context()); err != nil {
		t.Fatal(err)
	}
	stats := server.Exec("INFO", "commandstats")
	for _, command := range []string{"cmdstat_keys:", "cmdstat_scan:"} {
		if strings.Contains(stats, command) {
			t.Errorf("%s was used", command)
		}
	}
}

// TestADurableChangeThatIsSentAway: the answer names a node that the
// client has not heard of, or the same node again and again.
func TestADurableChangeThatIsSentAway(t *testing.T) {
	m := miniredis.RunT(t)
	c := Config{URI: "redis://" + m.Addr(), Layout: segment.DefaultLayout()}
	s := open(t, c)
	s.cfg.Cluster, s.cfg.WaitReplicas = true, 1
	for addr, want := range map[string]struct {
		class Class
		says  string
	}{"127.0.0.1:1": {Unavailable, "nothing was changed"}, m.Addr(): {Protocol, "redirects in a row"}} {
		redirect := answerTo(m, "EVAL", "MOVED 1 "+addr)
		ok, err := durable(t.Context(), s, "", "1")
		if ok || ClassOf(err) != want.class || !strings.Contains(err.Error(), want.says) || strings.Contains(err.Error(), "korvet.redis.cluster") {
			t.Errorf("to %s: %t, class %s, %v", addr, ok, ClassOf(err), err)
		}
		if redirect() == 0 {
			t.Errorf("to %s: nothing was sent", addr)
		}
	}
}
