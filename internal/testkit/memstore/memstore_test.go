package memstore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"korvet-offload/internal/testkit/memstore"
	"korvet-offload/s3sink"
)

var errInjected = errors.New("injected")

func upload(key, body string) s3sink.Upload {
	sum := sha256.Sum256([]byte(body))
	return s3sink.Upload{Key: key, Body: bytes.NewReader([]byte(body)), Size: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}
}

func TestFaults(t *testing.T) {
	s := memstore.New(s3sink.Owner{Namespace: "korvet"})
	s.FailNth(memstore.Put, 1, errInjected)
	s.HalfNth(memstore.Put, 2, errInjected)
	s.HangNth(memstore.Stat, 2)

	if _, err := s.Put(t.Context(), upload("failed", "x")); !errors.Is(err, errInjected) {
		t.Errorf("first put: %v", err)
	}
	if _, err := s.Put(t.Context(), upload("half", "x")); !errors.Is(err, errInjected) {
		t.Errorf("second put: %v", err)
	}
	if _, err := s.Put(t.Context(), upload("half", "x")); !errors.Is(err, s3sink.ErrExists) {
		t.Errorf("third put: %v", err)
	}
	if got := s.Keys(); !slices.Equal(got, []string{"half"}) || s.Calls(memstore.Put) != 3 {
		t.Errorf("%d puts left %q", s.Calls(memstore.Put), got)
	}

	if _, err := s.Stat(t.Context(), "half"); err != nil {
		t.Errorf("first stat: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Stat(ctx, "half")
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("second stat: %v", err)
	}
}

func TestRefuseDelete(t *testing.T) {
	s := memstore.New(s3sink.Owner{})
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		if _, err := s.Put(t.Context(), upload(key, "x")); err != nil {
			t.Fatal(err)
		}
	}
	s.RefuseDelete("b", errInjected)
	s.FailNth(memstore.Delete, 1, errInjected)
	s.HalfNth(memstore.Delete, 4, errInjected)
	for i, c := range []struct{ failed, left []string }{
		{keys, keys}, {[]string{"b"}, []string{"b"}}, {nil, []string{}}, {keys, []string{}},
	} {
		var failed []string
		for k, err := range s.Delete(t.Context(), keys) {
			if errors.Is(err, errInjected) {
				failed = append(failed, keys[k])
			}
		}
		if !slices.Equal(failed, c.failed) || !slices.Equal(s.Keys(), c.left) {
			t.Errorf("call %d: %q failed, %q are left", i+1, failed, s.Keys())
		}
		if i == 1 {
			s.RefuseDelete("b", nil)
		}
	}
	if s.Calls(memstore.Delete) != 4 {
		t.Errorf("%d calls", s.Calls(memstore.Delete))
	}
}

func TestWithoutConditions(t *testing.T) {
	s := memstore.New(s3sink.Owner{Namespace: "korvet"})
	s.WithoutConditions()
	if got, err := s.CreateOnly(t.Context()); got || err != nil {
		t.Errorf("create-only: %v, %v", got, err)
	}
	for _, body := range []string{"one", "two"} {
		if _, err := s.Put(t.Context(), upload("k", body)); err != nil {
			t.Errorf("put %s: %v", body, err)
		}
	}
	u := upload("k", "three")
	u.Unconditional = true
	if _, err := s.Put(t.Context(), u); !errors.Is(err, s3sink.ErrExists) {
		t.Errorf("unconditional put looks first: %v", err)
	}
}

func TestCorrupt(t *testing.T) {
	s := memstore.New(s3sink.Owner{})
	if _, err := s.Put(t.Context(), upload("k", "body")); err != nil {
		t.Fatal(err)
	}
	s.Corrupt("k")
	body, err := s.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if _, err := got.ReadFrom(body); err != nil || got.String() == "body" || got.Len() != 4 {
		t.Errorf("got %q, %v", got.String(), err)
	}
}
