package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"korvet-offload/s3sink"
)

func missing(t *testing.T, s Suite) {
	store := s.open(t)
	for range 2 { // before there is anything, and after
		for _, key := range []string{"no", "no/such/object", "there/below"} {
			_, err := store.Stat(t.Context(), key)
			mustBe(t, err, s3sink.ErrMissing)
			_, err = store.Open(t.Context(), key)
			mustBe(t, err, s3sink.ErrMissing)
			_, err = store.OpenRange(t.Context(), key, 0, 0)
			mustBe(t, err, s3sink.ErrMissing)
		}
		_, _ = store.Put(t.Context(), Upload("there", []byte("x")))
	}
}

func ranges(t *testing.T, s Suite) {
	store := s.open(t)
	whole := Body(3, 1000)
	mustPut(t, store, Upload("a", whole))
	for _, r := range []struct{ offset, n, from, to int64 }{
		{0, 1000, 0, 1000}, {0, 1, 0, 1}, {999, 1, 999, 1000}, {500, 100, 500, 600},
		{990, 100, 990, 1000}, {1000, 1, 0, 0}, {2000, 5, 0, 0}, {0, 0, 0, 0}, {5, 0, 0, 0},
	} {
		body, err := store.OpenRange(t.Context(), "a", r.offset, r.n)
		if got := readAll(t, body, err); !bytes.Equal(got, whole[r.from:r.to]) {
			t.Errorf("%d bytes from %d: got %d bytes", r.n, r.offset, len(got))
		}
	}
	for _, r := range [][2]int64{{-1, 5}, {0, -1}} {
		_, err := store.OpenRange(t.Context(), "a", r[0], r[1])
		mustBeInvalid(t, "negative range", err)
	}
}

func list(t *testing.T, s Suite) {
	store := s.open(t)
	all := []string{"a-b", "a/b", "a/c/d", "a0", "b/1", "b/10", "b/2"}
	for _, key := range all {
		mustPut(t, store, Upload(key, []byte(key)))
	}
	if _, err := store.CreateOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		prefix string
		want   []string
	}{
		{"", all},
		{"a/", []string{"a/b", "a/c/d"}},
		{"a", []string{"a-b", "a/b", "a/c/d", "a0"}},
		{"a/c", []string{"a/c/d"}},
		{"b/1", []string{"b/1", "b/10"}},
		{"nothing", nil},
	} {
		if got := keys(t, store, c.prefix); !slices.Equal(got, c.want) {
			t.Errorf("list %q gives %q, want %q", c.prefix, got, c.want)
		}
	}
	for info, err := range store.List(t.Context(), "b/10") {
		if err != nil || info.Size != 4 || info.ModTime.IsZero() {
			t.Errorf("list says %+v, %v", info, err)
		}
	}
}

func listStops(t *testing.T, s Suite) {
	store := s.open(t)
	for _, key := range []string{"a", "b", "c"} {
		mustPut(t, store, Upload(key, nil))
	}
	for info, err := range store.List(t.Context(), "") {
		if err != nil || info.Key != "a" {
			t.Fatalf("first is %+v, %v", info, err)
		}
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for info, err := range store.List(ctx, "") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled list gives %+v, %v", info, err)
		}
	}
}
