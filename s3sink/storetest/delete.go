package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"korvet-offload/s3sink"
)

// mustDelete deletes keys, each of which must be answered by success.
func mustDelete(t *testing.T, store s3sink.Store, keys ...string) {
	t.Helper()
	errs := store.Delete(t.Context(), keys)
	if len(errs) != len(keys) {
		t.Fatalf("%d answers for %d keys", len(errs), len(keys))
	}
	for i, err := range errs {
		if err != nil {
			t.Fatalf("delete %q: %v", keys[i], err)
		}
	}
}

func mustKeep(t *testing.T, store s3sink.Store, want ...string) {
	t.Helper()
	if got := keys(t, store, ""); !slices.Equal(got, want) {
		t.Errorf("left is %q, want %q", got, want)
	}
}

func remove(t *testing.T, s Suite) {
	store := s.open(t)
	all := []string{"a/b", "a/c", "a/d", "e", "f/g/h", "i"}
	for _, key := range all {
		mustPut(t, store, Upload(key, []byte(key)))
	}
	mustDelete(t, store)
	mustKeep(t, store, all...)
	mustDelete(t, store, "a/b")
	mustDelete(t, store, "a/b")
	_, err := store.Stat(t.Context(), "a/b")
	mustBe(t, err, s3sink.ErrMissing)
	mustDelete(t, store, "e", "never/there", "a/c")
	mustDelete(t, store, "f/g/h", "f/g/h", "never/there", "f/g/h", "never/there")
	mustDelete(t, store, "f/g", "a") // beginnings of keys are no objects
	mustDelete(t, store, "i/below")  // nor is what looks like an end of one
	mustKeep(t, store, "a/d", "i")
	mustPut(t, store, Upload("a/b", []byte("again")))
}

func removeOddKeys(t *testing.T, s Suite) {
	store := s.open(t)
	odd := []string{
		"korvet:storage:local:orders:0/7.parquet", "a b/c+d&e=f?g#h%20i", "a b/ c ", "<key>&amp;\"'</key>", "grün/日本/🙂.parquet",
		"~/'quoted\" (x)/[y]{z}!*", ".hidden/..x", "UPPER/lower", "100%", "%2F", "+", "]]>",
	}
	for _, key := range odd {
		mustPut(t, store, Upload(key, []byte(key)))
		mustPut(t, store, Upload("kept/"+key, []byte(key)))
	}
	mustDelete(t, store, odd[:3]...)
	mustDelete(t, store, odd[3])
	mustDelete(t, store, odd[4:]...)
	for i, key := range odd {
		odd[i] = "kept/" + key
	}
	slices.Sort(odd)
	mustKeep(t, store, odd...)
}

// removeMany: more than S3 takes at once.
func removeMany(t *testing.T, s Suite) {
	const n = 2500
	store := s.open(t)
	all := make([]string, n)
	var puts errgroup.Group
	puts.SetLimit(16)
	for i := range all {
		all[i] = fmt.Sprintf("dir-%d/%04d.parquet", i%3, i)
		puts.Go(func() error {
			_, err := store.Put(t.Context(), Upload(all[i], nil))
			return err
		})
	}
	if err := puts.Wait(); err != nil {
		t.Fatal(err)
	}
	mustPut(t, store, Upload("kept", nil))
	mustDelete(t, store, all...)
	mustKeep(t, store, "kept")
}

// removeRefused: what must not be deleted keeps nothing else from it.
func removeRefused(t *testing.T, s Suite) {
	store := s.open(t)
	if _, err := store.CreateOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	nested := "deeper/" + s3sink.MarkerKey
	for _, key := range []string{"a", "b", nested} {
		mustPut(t, store, Upload(key, []byte("x")))
	}
	bad := []string{s3sink.MarkerKey, nested, "", ".", "/", "../other", "a/..", "a/../" + s3sink.MarkerKey, "./" + s3sink.MarkerKey, "\xff"}
	batch := append([]string{"a"}, bad...)
	errs := store.Delete(t.Context(), append(batch, "b"))
	for i, key := range bad {
		mustBeInvalid(t, fmt.Sprintf("delete %q", key), errs[i+1])
		mustBeInvalid(t, fmt.Sprintf("delete %q alone", key), store.Delete(t.Context(), []string{key})[0])
	}
	if first, last := errs[0], errs[len(errs)-1]; first != nil || last != nil {
		t.Errorf("delete the others: %v, %v", first, last)
	}
	mustKeep(t, store, nested)
	if _, err := store.Stat(t.Context(), s3sink.MarkerKey); err != nil {
		t.Errorf("marker: %v", err)
	}
}

func removeCanceled(t *testing.T, s Suite) {
	store := s.open(t)
	for _, key := range []string{"a", "b", "c"} {
		mustPut(t, store, Upload(key, nil))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, batch := range [][]string{{}, {"a"}, {"a", "b", "never-there", "b"}} {
		errs := store.Delete(ctx, batch)
		if len(errs) != len(batch) {
			t.Errorf("%d answers for %d keys", len(errs), len(batch))
		}
		for i, err := range errs {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("delete %q: %v", batch[i], err)
			}
		}
	}
	mustKeep(t, store, "a", "b", "c")
}
