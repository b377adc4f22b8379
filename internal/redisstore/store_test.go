package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
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

func TestManifestAndSwap(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		m, err := s.Manifest(t.Context(), orders)
		if err != nil || len(m.Entries) != 0 || m.Partition != orders {
			t.Fatalf("absent manifest: %+v, %v", m, err)
		}
		exec("HSET", ordersKey(), "0", sealed, "10", "not JSON", "9", sealed, "owner", "x")
		m, err = s.Manifest(t.Context(), orders)
		if err != nil || len(m.Entries) != 3 || m.Entries[1].Number != 9 || m.Entries[2].Err == nil || len(m.Alien) != 1 {
			t.Fatalf("manifest: %+v, %v", m, err)
		}
		for _, c := range []struct {
			n        segment.Number
			old, new string
			want     bool
		}{
			{0, sealed + " ", "x", false}, {1, "", "x", false}, {1, "nil", "x", false}, {0, sealed, "\x00new\xff", true},
			{0, sealed, "x", false}, {0, "\x00new\xff", sealed, true},
		} {
			got, err := s.Swap(t.Context(), orders, c.n, c.old, c.new)
			if err != nil || got != c.want {
				t.Errorf("swap %d from %q to %q: %t, %v; want %t", c.n, c.old, c.new, got, err, c.want)
			}
		}
		if got := exec("HGET", ordersKey(), "0"); got != sealed {
			t.Errorf("entry 0 = %q", got)
		}
		if got := exec("HLEN", ordersKey()); got != "4" {
			t.Errorf("%s fields, want 4: a swap that was lost made one", got)
		}
	})
}

func TestSwapHasOneWinner(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	server.Exec("HSET", ordersKey(), "0", sealed)
	var wg sync.WaitGroup
	won := make(chan int, 20)
	for i := range 20 {
		wg.Go(func() {
			ok, err := s.Swap(t.Context(), orders, 0, sealed, fmt.Sprintf("writer %d", i))
			if err != nil {
				t.Error(err)
			}
			if ok {
				won <- i
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d writers won", len(won))
	}
	if got, want := server.Exec("HGET", ordersKey(), "0"), fmt.Sprintf("writer %d", <-won); got != want {
		t.Errorf("entry = %q, want %q", got, want)
	}
	server.Exec("SCRIPT", "FLUSH")
	if ok, err := s.Swap(t.Context(), orders, 0, server.Exec("HGET", ordersKey(), "0"), sealed); err != nil || !ok {
		t.Errorf("swap after SCRIPT FLUSH: %t, %v", ok, err)
	}
}

func TestSwapSaysWhyItFailed(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	server.Exec("HSET", ordersKey(), "0", sealed)
	for _, c := range []struct {
		name  string
		set   []string
		unset []string
		class Class
	}{
		{"replica", []string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}, Unavailable},
		{"no memory", []string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}, NoMemory},
		{"no replicas", []string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}, Unavailable},
	} {
		server.Exec(c.set...)
		ok, err := s.Swap(t.Context(), orders, 0, sealed, "x")
		if ok || ClassOf(err) != c.class || !strings.Contains(err.Error(), ordersKey()) {
			t.Errorf("%s: %t, class %s, %v", c.name, ok, ClassOf(err), err)
		}
		server.Exec(c.unset...)
	}
	server.Exec("DEL", ordersKey())
	server.Exec("SET", ordersKey(), "text")
	if _, err := s.Swap(t.Context(), orders, 0, sealed, "x"); ClassOf(err) != WrongType || errors.Is(err, segment.ErrWrongType) {
		t.Errorf("swap in a text: class %s, %v", ClassOf(err), err)
	}
	if _, err := s.Manifest(t.Context(), orders); ClassOf(err) != WrongType || !strings.Contains(err.Error(), ordersKey()) {
		t.Errorf("read a text as manifest: class %s, %v", ClassOf(err), err)
	}
}

func TestLargeManifestIsWhole(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	const n = 5_000
	var b []byte
	for i := range n {
		b = redisserver.AppendCommand(b, "HSET", ordersKey(), fmt.Sprint(i), sealed)
	}
	server.Pipe(b)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // entries that change, and come and go, while it is scanned
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Swap(t.Context(), orders, segment.Number(i%n), sealed, sealed); err != nil {
				t.Error(err)
				return
			}
			s.client.Do(t.Context(), s.client.B().Hset().Key(ordersKey()).FieldValue().FieldValue(fmt.Sprintf("x%d", i%7), "").Build())
			s.client.Do(t.Context(), s.client.B().Hdel().Key(ordersKey()).Field(fmt.Sprintf("x%d", (i+3)%7)).Build())
		}
	})
	for range 5 {
		m, err := s.Manifest(t.Context(), orders)
		if err != nil || len(m.Entries) != n {
			t.Fatalf("%d entries, %v; want %d", len(m.Entries), err, n)
		}
	}
	close(stop)
	wg.Wait()
}

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
	want := segment.StreamInfo{Exists: true, Length: 2, LastID: segment.ID{Ms: 1, Seq: 3}, EntriesAdded: 3, MaxDeletedID: segment.ID{Ms: 1, Seq: 2}}
	if info, err := s.StreamInfo(t.Context(), "s"); err != nil || info != want {
		t.Errorf("%+v, %v; want %+v", info, err, want)
	}
	server.Exec("XTRIM", "s", "MAXLEN", "0")
	if info, err := s.StreamInfo(t.Context(), "s"); err != nil || !info.Exists || info.Length != 0 || info.LastID != want.LastID {
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

func TestCallsFailAtOnceOnAServerThatIsGoneAndWorkAfterwards(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
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
		"Manifest":   func() error { _, err := s.Manifest(t.Context(), orders); return err },
		"Topics":     func() error { _, err := s.Topics(t.Context()); return err },
		"StreamInfo": func() error { _, err := s.StreamInfo(t.Context(), "s"); return err },
		"Swap":       func() error { _, err := s.Swap(t.Context(), orders, 0, "a", "b"); return err },
	}
	for name, call := range calls {
		if err := call(); ClassOf(err) != Unavailable || errors.Is(err, io.EOF) {
			t.Errorf("%s: class %s, %v", name, ClassOf(err), err)
		}
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("five refused calls took %s", took)
	}
	server.Relaunch()
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s after the restart: %v", name, err)
		}
	}
}

func TestCallsEndWithTheirContextOnAServerThatHangs(t *testing.T) {
	server := redisserver.Start(t)
	c := config(server)
	c.Timeout = 300 * time.Millisecond
	s := open(t, c)
	server.Freeze()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	if _, err := s.Manifest(ctx, orders); !errors.Is(err, context.Canceled) || time.Since(start) > 250*time.Millisecond {
		t.Errorf("%v after %s", err, time.Since(start))
	}
	if _, err := s.Manifest(t.Context(), orders); ClassOf(err) != Unavailable || !strings.Contains(err.Error(), "in time") {
		t.Errorf("class %s, %v", ClassOf(err), err)
	}
	server.Thaw()
	eventually(t, "an answer", func() bool { _, err := s.Now(t.Context()); return err == nil })
}
