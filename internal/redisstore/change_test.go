package redisstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// TestChange goes through every kind of change, and every way in which the
// manifest is not what the change expects.
func TestChange(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		for name, c := range map[string]struct {
			is     map[string]string
			change segment.Change
			want   map[string]string // nil = nothing is changed
		}{
			"replace":                  {fields("0", "a"), segment.Change{Old: "a", New: "\x00b\xff"}, fields("0", "\x00b\xff")},
			"replace other bytes":      {fields("0", "a "), segment.Change{Old: "a", New: "b"}, nil},
			"replace what is absent":   {fields("1", "a"), segment.Change{Old: "a", New: "b"}, nil},
			"replace the word nil":     {fields("1", "a"), segment.Change{Old: "nil", New: "b"}, nil},
			"replace the word false":   {fields("1", "a"), segment.Change{Old: "false", New: "b"}, nil},
			"create":                   {fields("1", "a"), segment.Change{New: "b"}, fields("0", "b", "1", "a")},
			"create what is there":     {fields("0", "a"), segment.Change{New: "b"}, nil},
			"create where it is empty": {fields("0", ""), segment.Change{New: "b"}, nil},
			"remove":                   {fields("0", "a", "1", "a"), segment.Change{Old: "a"}, fields("1", "a")},
			"remove other bytes":       {fields("0", "A"), segment.Change{Old: "a"}, nil},
			"remove the last":          {fields("0", "a"), segment.Change{Old: "a"}, fields()},
			"first":                    {fields(), segment.Change{New: "b", First: true}, fields("0", "b")},
			"first beside another":     {fields("owner", "x"), segment.Change{New: "b", First: true}, nil},
			"roll":                     {fields("0", "a"), segment.Change{Old: "a", New: "b", Next: 1, Open: "c"}, fields("0", "b", "1", "c")},
			"roll onto another":        {fields("0", "a", "1", ""), segment.Change{Old: "a", New: "b", Next: 1, Open: "c"}, nil},
			"roll other bytes":         {fields("0", "A"), segment.Change{Old: "a", New: "b", Next: 1, Open: "c"}, nil},
			"roll far":                 {fields("7", "a"), segment.Change{Number: 7, Old: "a", New: "b", Next: 1<<64 - 1, Open: "c"}, fields("7", "b", "18446744073709551615", "c")},
		} {
			exec("DEL", ordersKey())
			for field, value := range c.is {
				exec("HSET", ordersKey(), field, value)
			}
			ok, err := s.Change(t.Context(), orders, c.change)
			if err != nil || ok != (c.want != nil) {
				t.Errorf("%s: %t, %v", name, ok, err)
			}
			want := c.want
			if want == nil {
				want = c.is
			}
			if got, err := contents(t.Context(), s, orders); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %q, %v; want %q", name, got, err, want)
			}
		}
	})
}

func fields(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func TestChangeHasOneWinner(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	server.Exec("HSET", ordersKey(), "0", sealed)
	for name, change := range map[string]func(i int) segment.Change{
		"roll": func(i int) segment.Change {
			return segment.Change{Old: sealed, New: fmt.Sprint(i), Next: 1, Open: fmt.Sprint(i)}
		},
		"create": func(i int) segment.Change { return segment.Change{Number: 2, New: fmt.Sprint(i)} },
	} {
		var wg sync.WaitGroup
		won := make(chan int, 20)
		for i := range 20 {
			wg.Go(func() {
				ok, err := s.Change(t.Context(), orders, change(i))
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
			t.Fatalf("%s: %d writers won", name, len(won))
		}
		winner := fmt.Sprint(<-won)
		for _, field := range map[string][]string{"roll": {"0", "1"}, "create": {"2"}}[name] {
			if got := server.Exec("HGET", ordersKey(), field); got != winner {
				t.Errorf("%s: entry %s = %q, want %q", name, field, got, winner)
			}
		}
	}
	server.Exec("SCRIPT", "FLUSH")
	if ok, err := swap(t.Context(), s, 1, server.Exec("HGET", ordersKey(), "1"), sealed); err != nil || !ok {
		t.Errorf("after SCRIPT FLUSH: %t, %v", ok, err)
	}
}

func TestChangeSaysWhyItFailed(t *testing.T) {
	server := redisserver.Start(t)
	c := config(server)
	c.WaitReplicas = 1
	s := open(t, c)
	server.Exec("HSET", ordersKey(), "0", sealed)
	for _, durable := range []bool{false, true} {
		change := func() (bool, error) {
			return s.Change(t.Context(), orders, segment.Change{Old: sealed, New: "x", Durable: durable})
		}
		for _, c := range []struct {
			name  string
			set   []string
			unset []string
			class Class
		}{
			{"replica", []string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}, Unavailable},
			{"no replicas", []string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}, Unavailable},
		} {
			server.Exec(c.set...)
			ok, err := change()
			if ok || ClassOf(err) != c.class || !strings.Contains(err.Error(), ordersKey()) || errors.Is(err, ErrNotReplicated) {
				t.Errorf("%s: %t, class %s, %v", c.name, ok, ClassOf(err), err)
			}
			server.Exec(c.unset...)
		}
		server.Exec("RENAME", ordersKey(), "kept")
		server.Exec("SET", ordersKey(), "text")
		if _, err := change(); ClassOf(err) != WrongType || errors.Is(err, segment.ErrWrongType) {
			t.Errorf("in a text: class %s, %v", ClassOf(err), err)
		}
		server.Exec("RENAME", "kept", ordersKey())
	}
}

// A server that is full refuses what takes memory. Changes of a manifest lead
// to memory being freed, and must go on; a field that looks like the one they
// begin with is somebody's, and stays.
//
//fault:redis | Redis has reached maxmemory and may evict nothing | maxmemory 1 at a real server, every kind of change and removal | each is done all the same, since it frees memory
func TestChangesOnAFullServer(t *testing.T) {
	server := redisserver.Start(t)
	c := config(server)
	c.WaitReplicas, c.Timeout = 1, time.Second
	s := open(t, c)
	server.Exec("HSET", ordersKey(), "0", sealed, "", "alien", " ", "alien")
	server.Exec("XADD", "s", "1-0", "f", "v")
	info, err := s.StreamInfo(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	server.Exec("CONFIG", "SET", "maxmemory", "1")
	for i, change := range []segment.Change{
		{Number: 0, Old: sealed, New: sealed}, {Number: 1, New: "x"}, {Number: 1, Old: "x", New: "y", Next: 2, Open: "z"},
	} {
		if ok, err := s.Change(t.Context(), orders, change); !ok || err != nil {
			t.Errorf("change %d: %t, %v", i, ok, err)
		}
	}
	if ok, err := s.Change(t.Context(), orders, segment.Change{Number: 2, Old: "z", New: "w", Durable: true}); !ok || !errors.Is(err, ErrNotReplicated) {
		t.Errorf("durable: %t, %v", ok, err)
	}
	if ok, err := s.SwapKnown(t.Context(), "orders", "", "record"); !ok || err != nil {
		t.Errorf("record: %t, %v", ok, err)
	}
	if ok, err := s.Remove(t.Context(), "s", info); !ok || err != nil {
		t.Errorf("remove: %t, %v", ok, err)
	}
	if got := server.Exec("HGET", ordersKey(), "") + server.Exec("HGET", ordersKey(), " "); got != "alienalien" {
		t.Errorf("fields of somebody else: %q", got)
	}
}

// TestAChangeIsSentOnce: the server makes the change and dies before it has
// answered. A second try would say that somebody else was faster.
//
//fault:network | the answer to a change is lost | a server that hangs up instead of answering EVALSHA | the change is not sent again, and the error says that it may have been done
func TestAChangeIsSentOnce(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, Config{URI: "redis://" + m.Addr(), Layout: segment.DefaultLayout()})
	m.HSet(ordersKey(), "0", sealed)
	if ok, err := swap(t.Context(), s, 0, sealed, sealed); !ok || err != nil { // the script is known now
		t.Fatalf("%t, %v", ok, err)
	}
	sent := hangUpOn(m, "EVALSHA")
	if ok, err := swap(t.Context(), s, 0, sealed, "x"); ok || ClassOf(err) != Unavailable {
		t.Errorf("%t, class %s, %v", ok, ClassOf(err), err)
	}
	if n := sent(); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestKnown(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		if known, err := s.Known(t.Context()); err != nil || len(known) != 0 {
			t.Fatalf("%v, %v", known, err)
		}
		for _, c := range []struct {
			topic, old, new string
			want            bool
		}{
			{"a", "x", "1", false}, {"a", "", "1", true}, {"a", "", "2", false}, {"a", "1", "2", true}, {"b\xff", "", "3", true},
			{"b\xff", "1", "", false}, {"c", "", "4", true}, {"c", "4", "", true},
		} {
			ok, err := s.SwapKnown(t.Context(), c.topic, c.old, c.new)
			if err != nil || ok != c.want {
				t.Errorf("%q from %q to %q: %t, %v", c.topic, c.old, c.new, ok, err)
			}
		}
		if known, err := s.Known(t.Context()); err != nil || !reflect.DeepEqual(known, fields("a", "2", "b\xff", "3")) {
			t.Errorf("%q, %v", known, err)
		}
		exec("DEL", "korvet:storage:offload:topics")
		exec("SET", "korvet:storage:offload:topics", "text")
		_, err := s.Known(t.Context())
		if _, serr := s.SwapKnown(t.Context(), "a", "", "1"); ClassOf(err) != WrongType || ClassOf(serr) != WrongType {
			t.Errorf("of a text: %v; %v", err, serr)
		}
	})
}

// A Redis that was emptied since its records were read gets none: it would look as
// if it had not been.
//
//fault:redis | Redis is emptied in the middle of a pass that has seen a new topic | FLUSHALL between the reading of the records of topics and the writing of one | nothing is written, and the next pass finds out that Redis was emptied
func TestAnEmptiedRedisRemembersNothing(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		put := func(topic string, want bool) {
			t.Helper()
			if ok, err := s.SwapKnown(t.Context(), topic, "", "1"); ok != want || err != nil {
				t.Errorf("%s: %t, %v", topic, ok, err)
			}
		}
		read := func() {
			t.Helper()
			if _, err := s.Known(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		read()
		put("a", true) // the first one
		read()
		put("b", true)
		exec("FLUSHALL")
		put("c", false)
		if n := exec("EXISTS", "korvet:storage:offload:topics"); n != "0" {
			t.Errorf("EXISTS = %s", n)
		}
		read() // it is known now, and somebody else's matter
		put("c", true)
	})
}

// everyKind makes each kind of question and change once, with the keys of a
// partition, as a user s; admin may write streams.
func everyKind(t *testing.T, s, admin *Store, p segment.Partition) {
	t.Helper()
	ctx := t.Context()
	stream, manifest := s.cfg.Layout.SegmentKey(p, 0), s.cfg.Layout.ManifestKey(p)
	admin.client.Do(ctx, admin.client.B().Del().Key(stream).Build())
	admin.client.Do(ctx, admin.client.B().Del().Key(manifest).Build())
	for i := range 3 {
		addEntryTo(ctx, t, admin, stream, fmt.Sprintf("%d-0", i+1))
	}
	admin.client.Do(ctx, admin.client.B().XgroupCreate().Key(stream).Group("g").Id("0").Build())
	for i, c := range []segment.Change{
		{New: sealed, First: true}, {Old: sealed, New: "b", Next: 1, Open: "c", Durable: true}, {Number: 1, Old: "c"},
	} {
		if ok, err := s.Change(ctx, p, c); !ok || err != nil && !errors.Is(err, ErrNotReplicated) {
			t.Errorf("%s: change %d: %t, %v", p, i, ok, err)
		}
	}
	if m, err := contents(ctx, s, p); err != nil || !reflect.DeepEqual(m, fields("0", "b")) {
		t.Errorf("%s: %q, %v", p, m, err)
	}
	peeked, err := s.Peek(ctx, []segment.Peek{{Partition: p, Numbers: []segment.Number{0}}})
	if err != nil || peeked[0].Err != nil || peeked[0].Raw[0] != "b" || peeked[0].Fields != 1 {
		t.Errorf("%s: %+v, %v", p, peeked, err)
	}
	sizes, err := s.Sizes(ctx, []segment.SizeQuery{{Key: stream, Memory: true}})
	if err != nil || sizes[0].Err != nil || sizes[0].Length != 3 || sizes[0].Bytes < 100 {
		t.Errorf("%s: %+v, %v", p, sizes, err)
	}
	if groups, err := s.Groups(ctx, stream); err != nil || len(groups) != 1 || groups[0].Name != "g" {
		t.Errorf("%s: %+v, %v", p, groups, err)
	}
	known, err := s.SwapKnown(ctx, p.Topic, "", "x")
	gone, gerr := s.SwapKnown(ctx, p.Topic, "x", "")
	if _, kerr := s.Known(ctx); !known || !gone || errors.Join(err, gerr, kerr) != nil {
		t.Errorf("%s: known: %t, %t, %v", p, known, gone, errors.Join(err, gerr, kerr))
	}
	if p.Plain {
		if ok, err := s.Trim(ctx, stream, segment.Piece{First: segment.ID{Ms: 1}, Last: segment.ID{Ms: 2}, Count: 2}); !ok || err != nil {
			t.Errorf("%s: trim: %t, %v", p, ok, err)
		}
		return
	}
	info, err := s.StreamInfo(ctx, stream)
	if ok, rerr := s.Remove(ctx, stream, info); !ok || errors.Join(err, rerr) != nil {
		t.Errorf("%s: remove: %t, %v, %v", p, ok, err, rerr)
	}
}

func addEntryTo(ctx context.Context, t *testing.T, s *Store, key, id string) {
	t.Helper()
	if err := s.client.Do(ctx, s.client.B().Xadd().Key(key).Id(id).FieldValue().FieldValue("f", "v").Build()).Error(); err != nil {
		t.Fatalf("add to %s: %v", key, err)
	}
}
