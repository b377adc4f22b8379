package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(s *redisserver.Server) Config {
	return Config{URI: s.URI(), CAFile: s.CAFile, Layout: segment.DefaultLayout(), PageSize: 10_000, Timeout: 5 * time.Second}
}

func open(t testing.TB, c Config, patterns ...segment.TopicPattern) *Store {
	t.Helper()
	s, err := Open(t.Context(), c, patterns, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// readers runs a test with both ways to read pages.
func readers(t *testing.T, test func(t *testing.T, reader string)) {
	for _, reader := range []string{ReaderDirect, ReaderClient} {
		t.Run(reader, func(t *testing.T) { test(t, reader) })
	}
}

func openReader(t testing.TB, c Config, reader string) *Store {
	t.Helper()
	c.Reader = reader
	return open(t, c)
}

// entry is a stream entry as a test wants it.
type entry struct {
	id     string
	fields []string
}

// entriesOf copies a page.
func entriesOf(p *segment.Page) []entry {
	var out []entry
	for i := range p.Len() {
		e := entry{id: p.ID(i).String()}
		for lo, hi := p.Fields(i); lo < hi; lo++ {
			e.fields = append(e.fields, string(p.Name(lo)), string(p.Value(lo)))
		}
		out = append(out, e)
	}
	return out
}

// readAll reads a stream to its end and says in how many pages it came.
func readAll(ctx context.Context, s *Store, key string) (all []entry, pages int, err error) {
	r := s.Pages(key, segment.ID{}, segment.ID{})
	defer r.Close()
	var p segment.Page
	for {
		switch err := r.Next(ctx, &p); {
		case errors.Is(err, io.EOF):
			return all, pages, nil
		case err != nil:
			return all, pages, err
		}
		all = append(all, entriesOf(&p)...)
		pages++
	}
}

// contents reads a manifest and checks that it came whole.
func contents(ctx context.Context, s *Store, p segment.Partition) (map[string]string, error) {
	m := map[string]string{}
	n, err := s.Each(ctx, p, func(field, value string) { m[field] = value })
	if err == nil && int64(len(m)) < n {
		err = fmt.Errorf("%d of %d fields", len(m), n)
	}
	return m, err
}

// swap replaces an entry of the manifest of orders.
func swap(ctx context.Context, s *Store, n segment.Number, old, new string) (bool, error) {
	return s.Change(ctx, orders, segment.Change{Number: n, Old: old, New: new})
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// messages are n XADDs of 100 bytes of payload in an envelope of four fields.
func messages(key string, n int) []byte {
	var b []byte
	for i := range n {
		b = redisserver.AppendCommand(b, "XADD", key, fmt.Sprintf("%d-%d", 1_700_000_000_000+i/10, i%10),
			"value", fmt.Sprintf("%064d", i), "key", fmt.Sprintf("key-%012d", i%1000),
			"headers", "{}", "timestamp", fmt.Sprint(1_700_000_000_000+i/10))
	}
	return b
}
