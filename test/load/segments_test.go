package load

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// content says what the messages of a segment hold: of each the fields, name
// and value in turn. The same number gives the same fields again.
type content struct {
	count  int
	fields func(i int) []string
}

const firstMs = 1_700_000_000_000

// idOf is the id of message i: several share a millisecond.
func idOf(i int) segment.ID {
	return segment.ID{Ms: firstMs + uint64(i)/8, Seq: uint64(i) % 8} //nolint:gosec // a count
}

// noise is text that can't be compressed.
func noise(seed uint64, bytes int) string {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	b := make([]byte, bytes)
	_, _ = rand.NewChaCha8(key).Read(b) // it never fails
	return string(b)
}

// pipeline sends commands without waiting for their replies.
type pipeline struct {
	t    testing.TB
	conn net.Conn
	out  *bufio.Writer
	read chan error
	buf  []byte
}

func (r *rig) pipeline() *pipeline {
	r.t.Helper()
	conn, err := net.Dial("unix", r.redis.Socket)
	if err != nil {
		r.t.Fatal(err)
	}
	p := &pipeline{t: r.t, conn: conn, out: bufio.NewWriterSize(conn, mib), read: make(chan error, 1)}
	go func() { p.read <- p.replies() }()
	return p
}

// replies reads to the reply of the last command, or to the first error.
func (p *pipeline) replies() error {
	for lines := bufio.NewReader(p.conn); ; {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil:
			return err
		case line[0] == '-':
			p.conn.Close() //nolint:errcheck // so that the sender ends too
			return fmt.Errorf("redis-server: %s", line)
		case line == "+PONG\r\n":
			return nil
		}
	}
}

func (p *pipeline) send(args ...string) {
	p.buf = redisserver.AppendCommand(p.buf[:0], args...)
	_, _ = p.out.Write(p.buf) // end tells
}

// end waits for all replies.
func (p *pipeline) end() {
	p.t.Helper()
	p.send("PING")
	_ = p.out.Flush() // or the replies end early
	err := <-p.read
	p.conn.Close() //nolint:errcheck // all has come
	if err != nil {
		p.t.Fatalf("load redis-server: %v", err)
	}
}

// sealed loads a sealed segment.
func (r *rig) sealed(p segment.Partition, n segment.Number, c content) {
	r.t.Helper()
	pipe := r.pipeline()
	r.send(pipe, p, n, c)
	pipe.end()
}

// send loads a sealed segment through a pipeline.
func (r *rig) send(pipe *pipeline, p segment.Partition, n segment.Number, c content) {
	key := r.layout.SegmentKey(p, n)
	for i := range c.count {
		pipe.send(append([]string{"XADD", key, idOf(i).String()}, c.fields(i)...)...)
	}
	pipe.send("HSET", r.layout.ManifestKey(p), n.String(), fmt.Sprintf(`{"v":1,"state":"SEALED","tier":"LOCAL","firstId":"%s","lastId":"%s","count":%d,"sealedAt":%d}`,
		idOf(0), idOf(c.count-1), c.count, time.Now().Add(-time.Hour).UnixMilli()))
}

// entry reads a manifest entry.
func (r *rig) entry(p segment.Partition, n segment.Number) segment.Entry {
	r.t.Helper()
	raw := strings.TrimSpace(r.redis.Exec("HGET", r.layout.ManifestKey(p), n.String()))
	e, err := segment.ParseEntry([]byte(raw))
	if err != nil {
		r.t.Fatalf("entry of %s/%s: %v: %s", p, n, err, raw)
	}
	return e
}

// path is where the object of a segment lies.
func (r *rig) path(p segment.Partition, n segment.Number) string {
	return filepath.Join(r.root, segment.ObjectPath(r.layout.Folder(p), n, 0, ""))
}

// mustHold checks that the entry of a segment is REMOTE and says what the
// segment holds, and that its object holds it, message by message.
func (r *rig) mustHold(p segment.Partition, n segment.Number, c content) {
	r.t.Helper()
	e := r.entry(p, n)
	if e.Tier != segment.Remote || e.Count != int64(c.count) || e.FirstID != idOf(0) || e.LastID != idOf(c.count-1) {
		r.t.Fatalf("the entry of %s/%s is %s; want it REMOTE with %d messages from %s to %s", p, n, e.Encode(), c.count, idOf(0), idOf(c.count-1))
	}
	body, err := os.Open(r.path(p, n))
	if err != nil {
		r.t.Fatal(err)
	}
	defer body.Close()
	info, err := body.Stat()
	if err != nil {
		r.t.Fatal(err)
	}
	file, err := parquetfile.Open(body, info.Size())
	if err != nil {
		r.t.Fatalf("object of %s/%s: %v", p, n, err)
	}
	next := 0
	err = file.Read(context.Background(), func(page *segment.Page) error {
		for i := range page.Len() {
			if err := same(page, i, idOf(next), c.fields(next)); err != nil {
				return err
			}
			next++
		}
		return nil
	})
	if err != nil || next != c.count {
		r.t.Fatalf("object of %s/%s: %d of %d messages: %v", p, n, next, c.count, err)
	}
}

// same says where entry i of a page differs from what was loaded.
func same(page *segment.Page, i int, id segment.ID, want []string) error {
	lo, hi := page.Fields(i)
	if page.ID(i) != id || hi-lo != len(want)/2 {
		return fmt.Errorf("entry %s with %d fields, want %s with %d", page.ID(i), hi-lo, id, len(want)/2)
	}
	for j := lo; j < hi; j++ {
		name, value := want[2*(j-lo)], want[2*(j-lo)+1]
		if string(page.Name(j)) != name || string(page.Value(j)) != value {
			return fmt.Errorf("entry %s, field %d: a name of %d bytes and a value of %d that are not the %d and %d that were loaded", id, j-lo,
				len(page.Name(j)), len(page.Value(j)), len(name), len(value))
		}
	}
	return nil
}
