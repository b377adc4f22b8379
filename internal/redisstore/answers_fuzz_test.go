package redisstore

import (
	"context"
	"io"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"korvet-offload/internal/testkit/redisproxy"
	"korvet-offload/segment"
)

// said is what the proxy answers to the commands that hold a word, so many
// times: a page, or a part of a manifest, is asked for again.
type said struct {
	word, reply string
	times       atomic.Int32
}

// call is one question, and the word by which the proxy knows its command.
type call struct {
	word string
	ask  func(context.Context, *Store) error
}

func calls() []call {
	return []call{
		{"EVALSHA", func(ctx context.Context, s *Store) error { _, err := s.StreamInfo(ctx, "s"); return err }},
		{"XINFO", func(ctx context.Context, s *Store) error { _, err := s.Groups(ctx, "s"); return err }},
		{"XPENDING", func(ctx context.Context, s *Store) error { _, err := s.Groups(ctx, "s"); return err }},
		{"MEMORY", func(ctx context.Context, s *Store) error {
			_, err := s.Sizes(ctx, []segment.SizeQuery{{Key: "s", Memory: true}})
			return err
		}},
		{"TIME", func(ctx context.Context, s *Store) error { _, err := s.Now(ctx); return err }},
		{"SMEMBERS", func(ctx context.Context, s *Store) error { _, err := s.Topics(ctx); return err }},
		{"HSCAN", func(ctx context.Context, s *Store) error { _, err := contents(ctx, s, orders); return err }},
		{"HMGET", func(ctx context.Context, s *Store) error {
			_, err := s.Peek(ctx, []segment.Peek{{Partition: orders, Numbers: []segment.Number{0}}})
			return err
		}},
		{"XRANGE", func(ctx context.Context, s *Store) error { _, _, err := readAll(ctx, s, "s"); return err }},
		{"INFO", func(ctx context.Context, s *Store) error { _, err := s.Eviction(ctx); return err }},
	}
}

// Any bytes in the place of any reply, through the client library, which ends
// the program at some things that it does not expect.
//
//fault:redis | A server answers a command with any bytes | fuzzing of the reply to each command that is used, through a proxy, which then hangs up | an error of one line within the timeout, no crash, and later commands get their own answers
func FuzzAnswers(f *testing.F) {
	// A process beside the fuzzer's would outlive it, and keep it waiting.
	real := miniredis.RunT(f)
	var now atomic.Pointer[said]
	addr := redisproxy.Start(f, real.Addr(), func(request []byte) redisproxy.Fate {
		lie := now.Load()
		if lie == nil || !strings.Contains(string(request), lie.word) || lie.times.Add(-1) < 0 {
			return redisproxy.Fate{}
		}
		return redisproxy.Fate{Say: func(w io.Writer) {
			io.WriteString(w, lie.reply) //nolint:errcheck // a test's connection
			w.(net.Conn).Close()         //nolint:errcheck // as above
		}}
	})
	s := open(f, Config{URI: "redis://" + addr, Layout: segment.DefaultLayout(), PageSize: 100, Timeout: 2 * time.Second, Reader: ReaderClient})
	for _, command := range []string{"XADD s 5-1 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g me STREAMS s >", "HSET " + ordersKey() + " 0 " + sealed} {
		if err := s.client.Do(f.Context(), s.client.B().Arbitrary(strings.Fields(command)...).Build()).Error(); err != nil {
			f.Fatalf("%s: %v", command, err)
		}
	}
	want, err := s.StreamInfo(f.Context(), "s")
	if err != nil {
		f.Fatal(err)
	}
	for i := range calls() {
		for _, reply := range []string{"*10\r\n+length\r\n:1\r\n+last-generated-id\r\n$3\r\n5-1\r\n+entries-added\r\n:-1\r\n+first-entry\r\n$3\r\n5-1\r\n+x\r\n_\r\n",
			"*1\r\n*8\r\n+name\r\n+g\r\n+pending\r\n:1\r\n", "*4\r\n:1\r\n$3\r\n5-1\r\n$3\r\n5-1\r\n*1\r\n*2\r\n+me\r\n$1\r\n1\r\n", "*2\r\n$1\r\n7\r\n*2\r\n$1\r\n0\r\n$1\r\nx\r\n", ":5\r\n",
			"$24\r\n# Memory\r\nmaxmemory:-1x\r\n\r\n", "*1\r\n*2\r\n$3\r\n5-1\r\n*2\r\n+f\r\n+v\r\n", "-LOADING x\r\n", "%1\r\n+length\r\n*0\r\n",
			">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"} {
			f.Add(uint8(i), reply)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, reply string) {
		c := calls()[int(which)%len(calls())]
		lie := &said{word: c.word, reply: reply}
		lie.times.Store(1 + int32(which)/128)
		now.Store(lie)
		start := time.Now()
		err := c.ask(t.Context(), s)
		now.Store(nil)
		if err != nil && (strings.ContainsAny(err.Error(), "\n\r") || ClassOf(err) == "") {
			t.Fatalf("%s answered with %q gives class %q, %q", c.word, reply, ClassOf(err), err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Fatalf("%s answered with %q took %s", c.word, reply, took)
		}
		if got, err := s.StreamInfo(t.Context(), "s"); err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("after %s answered with %q another command has got %+v, want %+v", c.word, reply, got, want)
		}
	})
}
