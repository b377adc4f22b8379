package scrub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// opening is a store that is asked for objects in another way.
type opening struct {
	storeAdapter
	open func(path string) (io.ReadCloser, error) // nil, nil = as usual
}

func (o opening) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if body, err := o.open(path); body != nil || err != nil {
		return body, err
	}
	return o.storeAdapter.Open(ctx, path)
}

type breaking struct{ io.Reader }

func (breaking) Close() error { return nil }

// An object that can't be read does not keep the others from being looked at, and
// nothing is said of it but that.
func TestOneObjectThatCantBeRead(t *testing.T) {
	w := newWorld(t, false)
	cold := w.topic("cold", "local.retention.ms", "1")
	w.fill(cold, 4)
	w.remove(path(cold, 3))
	for what, broken := range map[string]func() (io.ReadCloser, error){
		"refused": func() (io.ReadCloser, error) { return nil, errInjected },
		"breaks off": func() (io.ReadCloser, error) {
			return breaking{io.MultiReader(strings.NewReader("PAR1"), failing{})}, nil
		},
	} {
		ports := w.ports()
		ports.Store = opening{w.store, func(at string) (io.ReadCloser, error) {
			if at == path(cold, 1) {
				return broken()
			}
			return nil, nil //nolint:nilnil // this one is opened as ever
		}}
		s, r, err := w.tryScrub(ports, Options{Deep: true})
		w.want("findings", s.findings, "missing_object cold:0/3 "+path(cold, 3))
		if !errors.Is(err, errInjected) || !strings.Contains(err.Error(), path(cold, 1)) || r.Unread == 0 || r.Read != 2 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errInjected }

func TestAnOutageEndsIt(t *testing.T) {
	w := newWorld(t, false)
	cold := w.topic("cold", "local.retention.ms", "1")
	w.fill(cold, 3)
	ports, opened := w.ports(), 0
	ports.Store = opening{w.store, func(string) (io.ReadCloser, error) {
		opened++
		return nil, fmt.Errorf("%w: %w", offload.ErrStoreDown, errInjected)
	}}
	s, _, err := w.tryScrub(ports, Options{Deep: true})
	w.want("findings", s.findings)
	if !errors.Is(err, errInjected) || opened != 1 {
		t.Errorf("%d objects: %v", opened, err)
	}
	w.server.Stop()
	if _, _, err := w.tryScrub(w.ports(), Options{}); err == nil {
		t.Error("it goes without redis")
	}
}

func TestItEndsWithItsContext(t *testing.T) {
	w := newWorld(t, false)
	cold := w.topic("cold", "local.retention.ms", "1")
	w.fill(cold, 3)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := New(w.ports(), segment.DefaultLayout(), Options{Deep: true, Progress: func(p Progress) {
		if p.Read > 0 {
			cancel()
		}
	}}).Run(ctx, func(f Finding) { t.Error(line(f)) })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWhatIsLookedAt(t *testing.T) {
	w := newWorld(t, false)
	a, b := w.topic("a", "local.retention.ms", "1"), w.topic("b", "local.retention.ms", "1")
	w.fill(a, 2)
	w.fill(b, 3)
	w.remove(path(a, 0))
	w.remove(path(b, 0))
	w.write("Back Up/x", nil)
	for _, tt := range []struct {
		o    Options
		want string
		r    Report
	}{
		{Options{}, "ab", Report{Partitions: 3, Segments: 7, Objects: 4}}, // and the plain stream that is declared
		{Options{Partitions: []segment.Partition{b}}, "b", Report{Partitions: 1, Segments: 4, Objects: 2}},
		{Options{Only: func(p segment.Partition) bool { return p == a }}, "a", Report{Partitions: 1, Segments: 3, Objects: 4}},
		{Options{PassOver: func(p segment.Partition) bool { return p == b }}, "a", Report{Partitions: 2, Segments: 3, Objects: 4, Skipped: 1}},
	} {
		s, r := w.scrub(tt.o)
		got := ""
		for _, f := range s.findings {
			got += strings.TrimPrefix(strings.SplitN(f, ":", 2)[0], "missing_object ")
		}
		if got != tt.want || r.Partitions != tt.r.Partitions || r.Segments != tt.r.Segments || r.Objects != tt.r.Objects || r.Skipped != tt.r.Skipped {
			t.Errorf("%q %+v, want %q %+v", got, r, tt.want, tt.r)
		}
	}
}
