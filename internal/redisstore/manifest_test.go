package redisstore

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func TestEach(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		if m, err := contents(t.Context(), s, orders); err != nil || len(m) != 0 {
			t.Fatalf("absent manifest: %v, %v", m, err)
		}
		exec("HSET", ordersKey(), "0", sealed, "10", "not JSON", "owner", "\xff\r\n")
		want := map[string]string{"0": sealed, "10": "not JSON", "owner": "\xff\r\n"}
		if m, err := contents(t.Context(), s, orders); err != nil || !reflect.DeepEqual(m, want) {
			t.Errorf("manifest: %q, %v", m, err)
		}
		plain := segment.Partition{Topic: "events", Plain: true}
		exec("HSET", "korvet:storage:stream-manifest:events", "0", sealed)
		if m, err := contents(t.Context(), s, plain); err != nil || m["0"] != sealed {
			t.Errorf("manifest of a plain stream: %q, %v", m, err)
		}
	})
}

func TestEachOfAnotherType(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	server.Exec("SET", ordersKey(), "text")
	if _, err := contents(t.Context(), s, orders); ClassOf(err) != WrongType || !strings.Contains(err.Error(), ordersKey()) {
		t.Errorf("read a text as manifest: class %s, %v", ClassOf(err), err)
	}
}

// fill makes a manifest of n fields with a value of so many bytes.
func fill(server *redisserver.Server, key string, n, bytes int) {
	const step = 50_000
	for from := 0; from < n; from += step {
		server.Exec("EVAL", `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do redis.call('HSET', KEYS[1], string.format('%d', i), ARGV[3]) end`,
			"1", key, fmt.Sprint(from), fmt.Sprint(min(from+step, n)), strings.Repeat("x", bytes))
	}
}

func TestEachOfALargeManifestIsWhole(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	const n = 5_000
	fill(server, ordersKey(), n, 50)
	value := strings.Repeat("x", 50)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // entries that change, and come and go, while it is scanned
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := swap(t.Context(), s, segment.Number(i%n), value, value); err != nil {
				t.Error(err)
				return
			}
			s.client.Do(t.Context(), s.client.B().Hset().Key(ordersKey()).FieldValue().FieldValue(fmt.Sprintf("x%d", i%7), "").Build())
			s.client.Do(t.Context(), s.client.B().Hdel().Key(ordersKey()).Field(fmt.Sprintf("x%d", (i+3)%7)).Build())
		}
	})
	for range 5 {
		came := map[string]bool{}
		fields, err := s.Each(t.Context(), orders, func(field, _ string) {
			if field[0] != 'x' {
				came[field] = true
			}
		})
		if err != nil || len(came) != n || fields < n || fields > n+7 {
			t.Fatalf("%d entries of %d fields, %v; want %d", len(came), fields, err, n)
		}
	}
	close(stop)
	wg.Wait()
}

// TestEachTellsHowManyMustHaveCome: the smaller number counts, at whichever
// end of the scan it was.
func TestEachTellsHowManyMustHaveCome(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	const n = 3_000
	for name, c := range map[string]struct {
		meanwhile []string
		want      int64
	}{
		"as many":          {[]string{"PING"}, n},
		"more at the end":  {[]string{"HSET", ordersKey(), "a", "", "b", ""}, n},
		"fewer at the end": {[]string{"HDEL", ordersKey(), "0", "1", "2"}, n - 3},
		"none at the end":  {[]string{"UNLINK", ordersKey()}, 0},
	} {
		server.Exec("DEL", ordersKey())
		fill(server, ordersKey(), n, 10)
		calls := 0
		fields, err := s.Each(t.Context(), orders, func(string, string) {
			if calls++; calls == 1200 { // in the third reply or so
				server.Exec(c.meanwhile...)
			}
		})
		if err != nil || fields != c.want {
			t.Errorf("%s: %d fields, %v; want %d", name, fields, err, c.want)
		}
	}
}

func TestEachHoldsOneReplyAtATime(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	const n, bytes = 100_000, 400
	fill(server, ordersKey(), n, bytes)
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	before, most, calls := mem.HeapAlloc, uint64(0), 0
	fields, err := s.Each(t.Context(), orders, func(string, string) {
		if calls++; calls%10_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&mem)
			most = max(most, mem.HeapAlloc)
		}
	})
	if err != nil || fields != n || calls < n {
		t.Fatalf("%d fields, %d came, %v", fields, calls, err)
	}
	if most > before+4<<20 {
		t.Errorf("the heap has grown from %d to %d bytes over a manifest of %d", before, most, n*bytes)
	}
}

func TestPeek(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		key := func(n int) string { return s.cfg.Layout.ManifestKey(segment.Partition{Topic: "t", Number: n}) }
		exec("HSET", key(0), "7", sealed, "8", "b", "9", "\xff\r\n")
		exec("SET", key(1), "text")
		exec("HSET", key(3), "0", "c")
		q := []segment.Peek{
			{Partition: segment.Partition{Topic: "t", Number: 0}, Numbers: []segment.Number{9, 7, 10}},
			{Partition: segment.Partition{Topic: "t", Number: 1}, Numbers: []segment.Number{0}},
			{Partition: segment.Partition{Topic: "t", Number: 2}, Numbers: []segment.Number{0}},
			{Partition: segment.Partition{Topic: "t", Number: 3}},
		}
		got, err := s.Peek(t.Context(), q)
		if err != nil || len(got) != len(q) {
			t.Fatalf("%d answers, %v", len(got), err)
		}
		if ClassOf(got[1].Err) != WrongType || !strings.Contains(got[1].Err.Error(), key(1)) || got[1].Raw != nil {
			t.Errorf("of a text: %+v", got[1])
		}
		got[1] = segment.Peeked{}
		want := []segment.Peeked{{Raw: []string{"\xff\r\n", sealed, ""}, Fields: 3}, {}, {Raw: []string{""}}, {Fields: 1}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got, err := s.Peek(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("of nothing: %v, %v", got, err)
		}
	})
}

// TestPeekOfManyKeepsTheirOrder: more than one batch, and more than are under
// way together.
func TestPeekOfManyKeepsTheirOrder(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	const n = batchSize*(batchesAtOnce+2) + 1
	q := make([]segment.Peek, n)
	var load []byte
	for i := range q {
		q[i] = segment.Peek{Partition: segment.Partition{Topic: "t", Number: i}, Numbers: []segment.Number{1, segment.Number(i)}}
		load = redisserver.AppendCommand(load, "HSET", s.cfg.Layout.ManifestKey(q[i].Partition), fmt.Sprint(i), fmt.Sprintf("value %d", i))
	}
	server.Pipe(load)
	got, err := s.Peek(t.Context(), q)
	if err != nil || len(got) != n {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	for i, a := range got {
		if a.Err != nil || a.Fields != 1 || a.Raw[1] != fmt.Sprintf("value %d", i) {
			t.Fatalf("answer %d: %+v", i, a)
		}
	}
	server.Stop()
	if got, err := s.Peek(t.Context(), q); got != nil || ClassOf(err) != Unavailable {
		t.Errorf("of a server that is gone: %d answers, class %s, %v", len(got), ClassOf(err), err)
	}
}
