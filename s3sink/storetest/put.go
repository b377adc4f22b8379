package storetest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"korvet-offload/s3sink"
)

func putStatOpen(t *testing.T, s Suite) {
	store := s.open(t)
	for _, size := range []int{0, 1, 100_000, s.Large} {
		u := Upload(fmt.Sprintf("dir/%d.parquet", size), Body(1, size))
		u.Meta = map[string]string{"stream": "korvet:storage:local:orders:0", "odd": " 100% grün\n", "count": "7"}
		put := mustPut(t, store, u)
		if put.Size != u.Size || put.SHA256 != u.SHA256 || put.Key != u.Key {
			t.Errorf("put of %d bytes says %+v", size, put)
		}
		got, err := store.Stat(t.Context(), u.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got.Size != u.Size || got.SHA256 != u.SHA256 || got.Key != u.Key || got.ETag != put.ETag || got.ModTime.IsZero() {
			t.Errorf("stat of %d bytes says %+v, put said %+v", size, got, put)
		}
		if want := u.Meta; !s.NoMeta && !maps.Equal(got.Meta, want) || s.NoMeta && got.Meta != nil {
			t.Errorf("metadata %q, want %q", got.Meta, want)
		}
		body, err := store.Open(t.Context(), u.Key)
		if content := readAll(t, body, err); !bytes.Equal(content, Body(1, size)) {
			t.Errorf("%d bytes came back as %d others", size, len(content))
		}
	}
}

func oddKeys(t *testing.T, s Suite) {
	store := s.open(t)
	odd := []string{
		"korvet:storage:local:orders:0/7.parquet", "korvet:storage:local:orders:0/7-1.parquet",
		"a b/c+d&e=f?g#h%20i", "grün/日本/🙂.parquet", "~/'quoted\" (x)/[y]{z}!*", ".hidden/..x", "UPPER/lower",
	}
	for _, key := range odd {
		mustPut(t, store, Upload(key, []byte(key)))
	}
	for _, key := range odd {
		body, err := store.Open(t.Context(), key)
		if got := readAll(t, body, err); string(got) != key {
			t.Errorf("key %q holds %q", key, got)
		}
		if info, err := store.Stat(t.Context(), key); err != nil || info.Size != int64(len(key)) {
			t.Errorf("stat %q: %+v, %v", key, info, err)
		}
	}
	slices.Sort(odd)
	if got := keys(t, store, ""); !slices.Equal(got, odd) {
		t.Errorf("list gives %q, want %q", got, odd)
	}
}

func badKeys(t *testing.T, s Suite) {
	store := s.open(t)
	for _, key := range []string{
		"", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/..", ".", "./a", "a\\b", "a\x00b", "a\nb", "\xff", strings.Repeat("k", 1025),
	} {
		_, err := store.Put(t.Context(), Upload(key, []byte("x")))
		mustBeInvalid(t, fmt.Sprintf("put %q", key), err)
		_, err = store.Stat(t.Context(), key)
		mustBeInvalid(t, fmt.Sprintf("stat %q", key), err)
		_, err = store.Open(t.Context(), key)
		mustBeInvalid(t, fmt.Sprintf("open %q", key), err)
		mustBeInvalid(t, fmt.Sprintf("delete %q", key), store.Delete(t.Context(), []string{key})[0])
	}
	if got := keys(t, store, ""); len(got) > 0 {
		t.Errorf("refused keys are there: %q", got)
	}
}

func badUploads(t *testing.T, s Suite) {
	store := s.open(t)
	for name, spoil := range map[string]func(*s3sink.Upload){
		"no hash":            func(u *s3sink.Upload) { u.SHA256 = "" },
		"upper-case hash":    func(u *s3sink.Upload) { u.SHA256 = strings.ToUpper(u.SHA256) },
		"negative size":      func(u *s3sink.Upload) { u.Size = -1 },
		"no body":            func(u *s3sink.Upload) { u.Body = nil },
		"bad metadata name":  func(u *s3sink.Upload) { u.Meta = map[string]string{"A b": "c"} },
		"reserved name":      func(u *s3sink.Upload) { u.Meta = map[string]string{"sha256": "c"} },
		"too much metadata":  func(u *s3sink.Upload) { u.Meta = map[string]string{"a": strings.Repeat("b", 2048)} },
		"too much, escaped":  func(u *s3sink.Upload) { u.Meta = map[string]string{"a": strings.Repeat("\n", 700)} },
		"empty metadata key": func(u *s3sink.Upload) { u.Meta = map[string]string{"": "b"} },
	} {
		u := Upload("a", []byte("body"))
		spoil(&u)
		_, err := store.Put(t.Context(), u)
		mustBeInvalid(t, name, err)
	}
	if got := keys(t, store, ""); len(got) > 0 {
		t.Errorf("refused uploads are there: %q", got)
	}
}

// wrongHash: a body that changed after it was hashed must not pass for good.
func wrongHash(t *testing.T, s Suite) {
	store := s.open(t)
	for _, size := range []int{1000, s.Large} {
		u := Upload(fmt.Sprint(size), Body(1, size))
		u.SHA256 = Upload("", Body(2, size)).SHA256
		_, err := store.Put(t.Context(), u)
		if !s.LateHash {
			mustBeInvalid(t, "put", err)
			_, err = store.Stat(t.Context(), u.Key)
			mustBe(t, err, s3sink.ErrMissing)
			continue
		}
		if info, err := store.Stat(t.Context(), u.Key); err != nil || info.SHA256 == u.SHA256 {
			t.Errorf("stat of a damaged file: %+v, %v", info, err)
		}
	}
}

func shortBody(t *testing.T, s Suite) {
	store := s.open(t)
	for _, size := range []int{1000, s.Large} {
		u := Upload(fmt.Sprint(size), Body(1, size))
		u.Size++
		_, err := store.Put(t.Context(), u)
		mustBeInvalid(t, "put", err)
		_, err = store.Stat(t.Context(), u.Key)
		mustBe(t, err, s3sink.ErrMissing)
	}
}

func exists(t *testing.T, s Suite) {
	store := s.open(t)
	for _, size := range []int{1000, s.Large} {
		key := fmt.Sprintf("a/%d", size)
		mustPut(t, store, Upload(key, Body(1, size)))
		before, err := store.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for _, again := range [][]byte{Body(1, size), Body(2, size), nil} {
			_, err := store.Put(t.Context(), Upload(key, again))
			mustBe(t, err, s3sink.ErrExists)
		}
		after, err := store.Stat(t.Context(), key)
		if err != nil || after.SHA256 != before.SHA256 || !after.ModTime.Equal(before.ModTime) {
			t.Errorf("it was %+v and is %+v, %v", before, after, err)
		}
	}
}

func unconditional(t *testing.T, s Suite) {
	store := s.open(t)
	u := Upload("a", []byte("one"))
	u.Unconditional = true
	mustPut(t, store, u)
	u = Upload("a", []byte("two"))
	u.Unconditional = true
	_, err := store.Put(t.Context(), u)
	mustBe(t, err, s3sink.ErrExists)
}

// cancelingBody ends a context when it is read from behind its middle.
type cancelingBody struct {
	*bytes.Reader
	cancel context.CancelFunc
}

func (b cancelingBody) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > b.Size()/2 {
		b.cancel()
	}
	return b.Reader.ReadAt(p, at)
}

// canceled: what is canceled on the way is there as a whole or not at all.
func canceled(t *testing.T, s Suite) {
	store := s.open(t)
	for _, size := range []int{4 << 20, s.Large} {
		ctx, cancel := context.WithCancel(t.Context())
		u := Upload(fmt.Sprint(size), Body(1, size))
		u.Body = cancelingBody{bytes.NewReader(Body(1, size)), cancel}
		_, err := store.Put(ctx, u)
		cancel()
		if err != nil {
			mustBe(t, err, context.Canceled)
		}
		if info, err := store.Stat(t.Context(), u.Key); err == nil && info.SHA256 != u.SHA256 {
			t.Errorf("half an object is there: %+v", info)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := store.Put(ctx, Upload("b", nil))
	mustBe(t, err, context.Canceled)
	_, err = store.Stat(t.Context(), "b")
	mustBe(t, err, s3sink.ErrMissing)
}

// writers: of many that put different objects under one key, one wins and
// the others learn that they lost.
func writers(t *testing.T, s Suite, size int) {
	const n = 16
	store := s.open(t)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, errs[i] = store.Put(t.Context(), Upload("contended", Body(uint64(i), size))) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("writers %d and %d both won", winner, i)
		case err == nil:
			winner = i
		default:
			mustBe(t, err, s3sink.ErrExists)
		}
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	body, err := store.Open(t.Context(), "contended")
	if got := readAll(t, body, err); !bytes.Equal(got, Body(uint64(winner), size)) {
		t.Errorf("it does not hold what writer %d put", winner)
	}
}
