package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// edgeCases are entries that something along the way might spoil.
func edgeCases() []entry {
	var every strings.Builder
	for i := range 256 {
		every.WriteByte(byte(i))
	}
	entries := []entry{
		{"1-0", []string{"f", ""}},
		{"7-9", []string{"a", "1", "b", "2", "a", "3"}},
		{"7-10", []string{"", "empty name"}},
		{"7-11", []string{every.String(), every.String()}},
		{"8-0", []string{"f", "\r\n$3\r\nfoo\r\n*2\r\n-ERR\r\n"}},
		{"9-0", []string{"f", strings.Repeat("long", 100_000)}},
	}
	for i := range 3000 {
		entries = append(entries, entry{fmt.Sprintf("10-%d", i), []string{"value", strconv.Itoa(i), "key", "k"}})
	}
	return append(entries, entry{"18446744073709551615-18446744073709551614", []string{"f", "v"}},
		entry{"18446744073709551615-18446744073709551615", []string{"f", "the last id that there is"}})
}

func adds(key string, entries []entry) []byte {
	var b []byte
	for _, e := range entries {
		b = redisserver.AppendCommand(b, append([]string{"XADD", key, e.id}, e.fields...)...)
	}
	return b
}

func wantAll(t *testing.T, s *Store, key string, want []entry) (pages int) {
	t.Helper()
	got, pages, err := readAll(t.Context(), s, key)
	if err != nil {
		t.Fatalf("read %s: %v", key, err)
	}
	if len(got) != len(want) {
		t.Fatalf("read %s: %d entries, want %d", key, len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("read %s: entry %d is %.200q, want %.200q", key, i, got[i], want[i])
		}
	}
	return pages
}

func TestPagesHoldWhatTheStreamHolds(t *testing.T) {
	server := redisserver.Start(t)
	entries := edgeCases()
	server.Pipe(adds("edge", entries))
	server.Pipe(adds("holes", entries))
	server.Exec("XDEL", "holes", "1-0", "10-500", "10-2999", "7-10")
	var holes []entry
	for _, e := range entries {
		if e.id != "1-0" && e.id != "10-500" && e.id != "10-2999" && e.id != "7-10" {
			holes = append(holes, e)
		}
	}
	server.Exec("XADD", "emptied", "1-0", "f", "v")
	server.Exec("XDEL", "emptied", "1-0")
	readers(t, func(t *testing.T, reader string) {
		for _, pageSize := range []int{1, 7, 10_000} {
			c := config(server)
			c.PageSize = pageSize
			s := openReader(t, c, reader)
			wantAll(t, s, "edge", entries)
			wantAll(t, s, "holes", holes)
			wantAll(t, s, "emptied", nil)
			wantAll(t, s, "absent", nil)
		}
	})
}

func TestPagesOfMiniredis(t *testing.T) {
	m := miniredis.RunT(t)
	entries := edgeCases()[:100]
	for _, e := range entries {
		if _, err := m.XAdd("s", e.id, e.fields); err != nil {
			t.Fatal(err)
		}
	}
	readers(t, func(t *testing.T, reader string) {
		c := Config{URI: "redis://" + m.Addr(), Layout: segment.DefaultLayout(), PageSize: 50}
		wantAll(t, openReader(t, c, reader), "s", entries)
	})
}

func TestPagesOfBounds(t *testing.T) {
	server := redisserver.Start(t)
	server.Pipe(adds("s", edgeCases()[6:3006])) // 10-0 to 10-2999
	readers(t, func(t *testing.T, reader string) {
		s := openReader(t, config(server), reader)
		seq := func(n uint64) segment.ID { return segment.ID{Ms: 10, Seq: n} }
		for _, c := range []struct {
			from, to segment.ID
			want     int
		}{
			{seq(100), seq(1099), 1000}, {seq(100), segment.ID{}, 2900}, {segment.ID{}, seq(99), 100}, {segment.ID{}, segment.ID{}, 3000},
			{seq(7), seq(7), 1}, {seq(8), seq(7), 0}, {segment.ID{Ms: 11}, segment.MaxID(), 0}, {segment.ID{Ms: 1}, segment.ID{Ms: 9}, 0},
		} {
			r := s.Pages("s", c.from, c.to)
			n, _, err := drain(t.Context(), r)
			if err = errors.Join(err, r.Close()); err != nil || n != c.want {
				t.Errorf("from %s to %s: %d entries, %v; want %d", c.from, c.to, n, err, c.want)
			}
		}
	})
}

func TestPagesGoOnBehindWhatWasAppended(t *testing.T) {
	server := redisserver.Start(t)
	server.Exec("XADD", "s", "1-0", "f", "v")
	readers(t, func(t *testing.T, reader string) {
		s := openReader(t, config(server), reader)
		r := s.Pages("s", segment.ID{}, segment.ID{})
		var p segment.Page
		if err := r.Next(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		id := server.Exec("XADD", "s", "*", "f", "late")
		if err := r.Next(t.Context(), &p); err != nil || p.Len() != 1 || p.ID(0).String() != id {
			t.Errorf("after an append of %s: %d entries, %v", id, p.Len(), err)
		}
		for range 2 {
			if err := r.Next(t.Context(), &p); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		}
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Error(err)
		}
		server.Exec("XDEL", "s", id)
	})
}

//fault:input | the key of a segment holds something that is no stream | a Hash at the key | an error that names key and type
func TestPagesOfAnotherType(t *testing.T) {
	server := redisserver.Start(t)
	server.Exec("HSET", "h", "f", "v")
	readers(t, func(t *testing.T, reader string) {
		s := openReader(t, config(server), reader)
		_, _, err := readAll(t.Context(), s, "h")
		if !errors.Is(err, segment.ErrWrongType) || ClassOf(err) != WrongType || !strings.Contains(err.Error(), "XRANGE h") {
			t.Errorf("read a hash: %v", err)
		}
		server.Exec("XADD", reader, "*", "f", "v")
		if got, _, err := readAll(t.Context(), s, reader); err != nil || len(got) != 1 {
			t.Errorf("the reader after it: %d entries, %v", len(got), err)
		}
	})
}

//fault:redis | The server cuts replies beyond client-output-buffer-limit | a limit of 1 MiB and of 500 KB with entries of 600 KiB, both readers | COUNT halves from the same id, no entry twice or missing, and where COUNT 1 does not pass the error names the limit
func TestPagesWhenTheServerCutsReplies(t *testing.T) {
	server := redisserver.Start(t)
	value := strings.Repeat("x", 600<<10)
	var want []entry
	for i := range 40 {
		want = append(want, entry{fmt.Sprintf("1-%d", i), []string{"f", "tiny"}})
	}
	for i := range 20 {
		want = append(want, entry{fmt.Sprintf("2-%d", i), []string{"f", value}})
	}
	server.Pipe(adds("s", want))
	server.Exec("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0")
	readers(t, func(t *testing.T, reader string) {
		wantAll(t, openReader(t, config(server), reader), "s", want)
	})
	server.Exec("CONFIG", "SET", "client-output-buffer-limit", "normal 500kb 0 0")
	readers(t, func(t *testing.T, reader string) {
		got, _, err := readAll(t.Context(), openReader(t, config(server), reader), "s")
		if ClassOf(err) != OutputLimit || len(got) != 40 {
			t.Fatalf("%d entries, class %s, %v", len(got), ClassOf(err), err)
		}
		for _, word := range []string{"XRANGE s", "behind 1-39", "client-output-buffer-limit"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %s", err, word)
			}
		}
	})
}

//fault:network | connections are lost between and in the middle of pages | CLIENT KILL after every twentieth page | no entry twice or missing
func TestPagesSurviveLostConnections(t *testing.T) {
	server := redisserver.Start(t)
	server.Pipe(messages("s", 20_000))
	readers(t, func(t *testing.T, reader string) {
		s := openReader(t, config(server), reader)
		r := s.Pages("s", segment.ID{}, segment.ID{})
		defer r.Close()
		n := 0
		for p, i := (segment.Page{}), 0; ; i++ {
			err := r.Next(t.Context(), &p)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n += p.Len()
			if i%20 == 0 {
				server.Exec("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			}
		}
		if n != 20_000 {
			t.Errorf("%d entries, want 20000", n)
		}
	})
}

func TestPagesUseIdleConnectionsAgain(t *testing.T) {
	server := redisserver.Start(t)
	server.Exec("XADD", "s", "1-0", "f", "v")
	s := openReader(t, config(server), ReaderDirect)
	for range 10 {
		if got, _, err := readAll(t.Context(), s, "s"); err != nil || len(got) != 1 {
			t.Fatalf("%d entries, %v", len(got), err)
		}
	}
	if n := strings.Count(server.Exec("CLIENT", "LIST"), "cmd=info"); n != 1 {
		t.Errorf("%d connections for 10 readers, one after the other", n)
	}
	server.Exec("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	if got, _, err := readAll(t.Context(), s, "s"); err != nil || len(got) != 1 {
		t.Errorf("after the idle connection was closed: %d entries, %v", len(got), err)
	}
}

//fault:redis | the server is gone while a stream is read, and comes back | redis-server is stopped and started again | an error within the context, and the same reader works afterwards
func TestPagesOfAServerThatIsGone(t *testing.T) {
	server := redisserver.Start(t)
	server.Pipe(messages("s", 5_000))
	stores := map[string]*Store{}
	for _, reader := range []string{ReaderDirect, ReaderClient} {
		stores[reader] = openReader(t, config(server), reader)
	}
	server.Stop()
	for reader, s := range stores {
		_, _, err := readAll(t.Context(), s, "s")
		if ClassOf(err) != Unavailable || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v, class %s", reader, err, ClassOf(err))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		start := time.Now()
		if _, _, err := readAll(ctx, s, "s"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
			t.Errorf("%s: with a context of 100 ms: %v after %s", reader, err, time.Since(start))
		}
		cancel()
	}
	server.Relaunch()
	for reader, s := range stores {
		if _, _, err := readAll(t.Context(), s, "s"); err != nil {
			t.Errorf("%s after the restart: %v", reader, err)
		}
	}
}

//fault:redis | the server hangs in the middle of a stream | SIGSTOP of redis-server, then SIGCONT | the end of the context interrupts at once, and another reader works afterwards
func TestPagesCancelInterruptsAtOnce(t *testing.T) {
	server := redisserver.Start(t)
	server.Pipe(messages("s", 5_000))
	readers(t, func(t *testing.T, reader string) {
		s := openReader(t, config(server), reader)
		r := s.Pages("s", segment.ID{}, segment.ID{})
		var p segment.Page
		if err := r.Next(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		server.Freeze()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		start := time.Now()
		if err := r.Next(ctx, &p); !errors.Is(err, context.Canceled) || time.Since(start) > time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		server.Thaw()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got, _, err := readAll(t.Context(), s, "s"); err != nil || len(got) != 5_000 {
			t.Errorf("another reader afterwards: %d entries, %v", len(got), err)
		}
	})
}

// TestConnectionsAreRenewed: after a failover that moved the name, none stays
// with a server that was the primary once.
func TestConnectionsAreRenewed(t *testing.T) {
	server := redisserver.Start(t)
	server.Exec("XADD", "s", "1-0", "f", "v")
	c := config(server)
	p, err := c.connections()
	if err != nil {
		t.Fatal(err)
	}
	p.option.ConnLifetime = 20 * time.Millisecond
	source := newDirectSource(p, nil)
	defer source.close()
	read := func() *conn {
		t.Helper()
		r := newPages(source, "s", segment.ID{}, segment.MaxID(), 10)
		defer r.Close()
		if n, _, err := drain(t.Context(), r); err != nil || n != 1 {
			t.Fatalf("%d entries, %v", n, err)
		}
		return r.session.(*directSession).c
	}
	first := read()
	eventually(t, "another connection", func() bool { return read() != first })
}

// TestPagesLeaveTheServerToOthers holds the reader to its rule by the
// server's own measure.
func TestPagesLeaveTheServerToOthers(t *testing.T) {
	server := redisserver.Start(t)
	server.Pipe(messages("s", 200_000))
	s := openReader(t, config(server), ReaderDirect)
	server.Exec("CONFIG", "RESETSTAT")
	pages := 0
	for range 3 {
		r := s.Pages("s", segment.ID{}, segment.ID{})
		_, n, err := drain(t.Context(), r)
		if err = errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		pages += n
	}
	usec := usecPerCall(t, server, "xrange")
	t.Logf("%d pages of %d entries, %.0f us of the server's time each", pages, 600_000/pages, usec)
	if usec > 4000 {
		t.Errorf("a page holds the server for %.0f us, want about 2000 at most", usec)
	}
}
