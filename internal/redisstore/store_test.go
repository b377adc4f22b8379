package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// backends runs a test against the real server and against miniredis, for
// what that is faithful in. exec runs a command and returns its reply as
// text.
func backends(t *testing.T, test func(t *testing.T, s *Store, exec func(...string) string)) {
	t.Run("redis-server", func(t *testing.T) {
		server := redisserver.Start(t)
		test(t, open(t, config(server)), server.Exec)
	})
	t.Run("miniredis", func(t *testing.T) {
		m := miniredis.RunT(t)
		s := open(t, Config{URI: "redis://" + m.Addr(), Layout: segment.DefaultLayout()})
		test(t, s, func(args ...string) string {
			cmd := s.client.B().Arbitrary(args...).Build()
			reply, err := s.client.Do(t.Context(), cmd).ToAny()
			if err != nil && !rueidis.IsRedisNil(err) {
				t.Fatalf("%q: %v", args, err)
			}
			return fmt.Sprint(reply)
		})
	})
}

var orders = segment.Partition{Topic: "orders", Number: 3}

func ordersKey() string { return segment.DefaultLayout().ManifestKey(orders) }

const sealed = `{"v":1,"state":"SEALED","tier":"LOCAL","count":7}`

func TestStreamInfo(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		if info, err := s.StreamInfo(t.Context(), "absent"); err != nil || info != (segment.StreamInfo{}) {
			t.Errorf("absent stream: %+v, %v", info, err)
		}
		exec("XADD", "s", "5-9", "f", "v")
		exec("XADD", "s", "5-10", "f", "v")
		info, err := s.StreamInfo(t.Context(), "s")
		if err != nil || !info.Exists || info.Length != 2 || info.LastID != (segment.ID{Ms: 5, Seq: 10}) {
			t.Errorf("stream: %+v, %v", info, err)
		}
		exec("SET", "text", "x")
		if _, err := s.StreamInfo(t.Context(), "text"); !errors.Is(err, segment.ErrWrongType) || !strings.Contains(err.Error(), "text: key is not a stream: WRONGTYPE it is a string") {
			t.Errorf("text: %v", err)
		}
	})
}

func TestStreamInfoOfANewServer(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	for _, id := range []string{"1-1", "1-2", "1-3"} {
		server.Exec("XADD", "s", id, "f", "v")
	}
	server.Exec("XDEL", "s", "1-2")
	want := segment.StreamInfo{Exists: true, Length: 2, FirstID: segment.ID{Ms: 1, Seq: 1}, LastID: segment.ID{Ms: 1, Seq: 3}, EntriesAdded: 3, MaxDeletedID: segment.ID{Ms: 1, Seq: 2}}
	if info, err := s.StreamInfo(t.Context(), "s"); err != nil || info != want {
		t.Errorf("%+v, %v; want %+v", info, err, want)
	}
	server.Exec("XTRIM", "s", "MAXLEN", "0")
	if info, err := s.StreamInfo(t.Context(), "s"); err != nil || !info.Exists || info.Length != 0 || !info.FirstID.IsZero() || info.LastID != want.LastID {
		t.Errorf("emptied: %+v, %v", info, err)
	}
}

func TestNow(t *testing.T) {
	server := redisserver.Start(t)
	now, err := open(t, config(server)).Now(t.Context())
	if err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("%s, %v", now, err)
	}
}

//fault:redis | the server is gone and comes back | redis-server is stopped and started again | calls fail at once, and work afterwards
func TestCallsFailAtOnceOnAServerThatIsGoneAndWorkAfterwards(t *testing.T) {
	server := redisserver.Start(t)
	c := config(server)
	s := open(t, c)
	c.WaitReplicas = 1
	durable := open(t, c)
	if _, err := s.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Restart() // the connection is stale: a read is sent again
	if _, err := s.Now(t.Context()); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	server.Stop()
	start := time.Now()
	calls := map[string]func() error{
		"Now":        func() error { _, err := s.Now(t.Context()); return err },
		"Each":       func() error { _, err := contents(t.Context(), s, orders); return err },
		"Peek":       func() error { _, err := s.Peek(t.Context(), []segment.Peek{{Partition: orders}}); return err },
		"Sizes":      func() error { _, err := s.Sizes(t.Context(), []segment.SizeQuery{{Key: "s"}}); return err },
		"Groups":     func() error { _, err := s.Groups(t.Context(), "s"); return err },
		"Remove":     func() error { _, err := s.Remove(t.Context(), "s", segment.StreamInfo{}); return err },
		"Trim":       func() error { _, err := s.Trim(t.Context(), "s", segment.Piece{Count: 1}); return err },
		"Known":      func() error { _, err := s.Known(t.Context()); return err },
		"Topics":     func() error { _, err := s.Topics(t.Context()); return err },
		"StreamInfo": func() error { _, err := s.StreamInfo(t.Context(), "s"); return err },
		"Change":     func() error { _, err := swap(t.Context(), s, 0, "a", "b"); return err },
		"Durable": func() error {
			_, err := durable.Change(t.Context(), orders, segment.Change{Old: "a", Durable: true})
			return err
		},
	}
	for name, call := range calls {
		if err := call(); ClassOf(err) != Unavailable || errors.Is(err, io.EOF) {
			t.Errorf("%s: class %s, %v", name, ClassOf(err), err)
		}
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("the refused calls took %s", took)
	}
	server.Relaunch()
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s after the restart: %v", name, err)
		}
	}
}

//fault:redis | the server hangs | SIGSTOP of redis-server | calls end with their context
func TestCallsEndWithTheirContextOnAServerThatHangs(t *testing.T) {
	server := redisserver.Start(t)
	c := config(server)
	c.Timeout = 300 * time.Millisecond
	s := open(t, c)
	server.Freeze()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	if _, err := contents(ctx, s, orders); !errors.Is(err, context.Canceled) || time.Since(start) > 250*time.Millisecond {
		t.Errorf("%v after %s", err, time.Since(start))
	}
	if _, err := contents(t.Context(), s, orders); ClassOf(err) != Unavailable || !strings.Contains(err.Error(), "in time") {
		t.Errorf("class %s, %v", ClassOf(err), err)
	}
	server.Thaw()
	eventually(t, "an answer", func() bool { _, err := s.Now(t.Context()); return err == nil })
}

// TestStreamInfoOfLargeEntries: the first and the last entry are no part of it.
//
//fault:redis | The server cuts even the description of a stream, which holds its first and its last entry | client-output-buffer-limit of 100 KB and entries of 1 MiB | the description comes, and the stream can be removed by it
func TestStreamInfoOfLargeEntries(t *testing.T) {
	server := redisserver.Start(t)
	value := strings.Repeat("x", 1<<20)
	server.Pipe(adds("s", []entry{{"1-1", []string{"f", value}}, {"2-2", []string{"f", value}}}))
	server.Exec("CONFIG", "SET", "client-output-buffer-limit", "normal 100kb 0 0")
	s := open(t, config(server))
	info, err := s.StreamInfo(t.Context(), "s")
	if want := (segment.StreamInfo{Exists: true, Length: 2, FirstID: at(1, 1), LastID: at(2, 2), EntriesAdded: 2}); err != nil || info != want {
		t.Errorf("%+v, %v", info, err)
	}
	if ok, err := s.Remove(t.Context(), "s", info); !ok || err != nil {
		t.Errorf("remove: %t, %v", ok, err)
	}
}
