package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// slowly is a store and a stream whose every call takes a second.
type slowly struct {
	offload.Store
	offload.Streams
	b    *bench
	err  error
	body io.Reader
}

func (s slowly) Put(context.Context, offload.Upload) (offload.ObjectInfo, error) {
	s.b.now = s.b.now.Add(time.Second)
	return offload.ObjectInfo{}, s.err
}

func (s slowly) Open(context.Context, string) (io.ReadCloser, error) {
	s.b.now = s.b.now.Add(time.Second)
	return io.NopCloser(s), s.err
}

func (s slowly) Read(p []byte) (int, error) {
	s.b.now = s.b.now.Add(time.Second)
	return s.body.Read(p)
}

func (s slowly) Pages(string, segment.ID, segment.ID) offload.PageReader { return s }

func (s slowly) Next(context.Context, *segment.Page) error {
	s.b.now = s.b.now.Add(time.Second)
	return s.err
}

func (slowly) Close() error { return nil }

func (b *bench) slow(err error, body io.Reader) offload.Ports {
	s := slowly{b: b, err: err, body: body}
	return b.Ports(offload.Ports{Store: s, Streams: s})
}

func TestTimesOfPorts(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		do   func(context.Context, offload.Ports)
		want string // the only series that has counted
		sum  string
	}{
		{"page", nil, next, `read_seconds_sum{result="success",tier="local"}`, "1"},
		{"page that fails", errors.New("x"), next, `read_seconds_sum{result="failure",tier="local"}`, "1"},
		{"end of a stream", io.EOF, next, "", ""},
		{"object", nil, readAll, `read_seconds_sum{result="success",tier="remote"}`, "3"},
		{"object that can't be opened", errors.New("x"), readAll, `read_seconds_sum{result="failure",tier="remote"}`, "1"},
		{"put", nil, put, `write_seconds_sum{result="success",tier="remote"}`, "1"},
		{"put that fails", errors.New("x"), put, `write_seconds_sum{result="failure",tier="remote"}`, "1"},
		{"put at a path that is taken", fmt.Errorf("%w: x", offload.ErrObjectExists), put, `write_seconds_sum{result="rejected",tier="remote"}`, "1"},
	} {
		b := newBench(t)
		tt.do(t.Context(), b.slow(tt.err, strings.NewReader("body")))
		b.mustTime(tt.name, tt.want, tt.sum)
		ended, end := context.WithCancel(t.Context())
		end()
		b = newBench(t)
		tt.do(ended, b.slow(tt.err, strings.NewReader("body")))
		if tt.err != nil && !errors.Is(tt.err, offload.ErrObjectExists) { // an end that was asked for is no failure
			b.mustTime(tt.name+", ended", "", "")
		}
	}
}

func next(ctx context.Context, p offload.Ports) {
	_ = p.Streams.Pages("k", segment.ID{}, segment.ID{}).Next(ctx, nil)
}

func put(ctx context.Context, p offload.Ports) { _, _ = p.Store.Put(ctx, offload.Upload{Size: 7}) }

func readAll(ctx context.Context, p offload.Ports) {
	if body, err := p.Store.Open(ctx, "o"); err == nil {
		_, _ = io.Copy(io.Discard, body)
		_, _ = body.Read(nil) // behind the end it is not counted again
	}
}

// mustTime checks that a single series has counted time.
func (b *bench) mustTime(name, series, sum string) {
	b.t.Helper()
	for got, value := range b.scrape() {
		got = strings.TrimPrefix(got, "korvet_storage_")
		if !strings.Contains(got, "_seconds_sum{") || !strings.HasPrefix(got, "read_") && !strings.HasPrefix(got, "write_") {
			continue
		}
		if want := map[bool]string{true: sum, false: "0"}[got == series]; value != want {
			b.t.Errorf("%s: %s is %s, want %s", name, got, value, want)
		}
	}
}

func TestAnObjectThatBreaksOff(t *testing.T) {
	b := newBench(t)
	readAll(t.Context(), b.slow(nil, iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("body")))))
	b.mustTime("broken off", `read_seconds_sum{result="failure",tier="remote"}`, "3")
	b = newBench(t)
	body, err := b.slow(nil, strings.NewReader("body")).Store.Open(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
	b.mustTime("closed before its end", "", "")
}

func TestGuards(t *testing.T) {
	b := newBench(t)
	ports(b)
	want := map[string]string{"upload_bytes_total": "7"}
	for _, guard := range []string{guardManifest, guardRemove, guardTrim, guardKnown, guardReplicas, guardObject} {
		want[fmt.Sprintf("guard_rejections_total{guard=%q}", guard)] = "1"
	}
	b.must(want)
}

// A page is read thousands of times in a pass.
func TestAPageCostsNoMemory(t *testing.T) {
	r := New(Options{MaxTopics: 1})
	pages := r.Ports(answering(nil)).Streams.Pages("k", segment.ID{}, segment.ID{})
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _ = pages.Next(ctx, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	o := r.Observer()
	if n := testing.AllocsPerRun(100, func() { o.Advanced(1000, 1<<20) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What is not watched is passed on as it is.
func TestOtherPortsStay(t *testing.T) {
	p := offload.Ports{Clock: clock{}, Gate: gate{}, Known: known{answers{errors.New("asked")}}}
	got := New(Options{MaxTopics: 1}).Ports(p)
	if got.Clock != p.Clock || got.Gate != p.Gate || got.Registry != nil || got.Encoding != nil {
		t.Errorf("%+v", got)
	}
	if _, err := got.Known.Known(t.Context()); err == nil || err.Error() != "asked" {
		t.Error(err)
	}
}

type clock struct{ offload.Clock }
type gate struct{ offload.Gate }
