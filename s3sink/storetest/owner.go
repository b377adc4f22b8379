package storetest

import (
	"strings"
	"testing"

	"korvet-offload/s3sink"
)

func owner(t *testing.T, s Suite) {
	root := "owner-" + strings.ReplaceAll(t.Name(), "/", "-")
	mine, other := s.Open(t, root, "korvet"), s.Open(t, root, "staging")
	if err := mine.CheckOwner(t.Context()); err != nil {
		t.Fatalf("a root without a marker: %v", err)
	}
	if got, err := mine.CreateOnly(t.Context()); err != nil || !got {
		t.Fatalf("create-only: %v, %v", got, err)
	}
	for name, err := range map[string]error{
		"check": other.CheckOwner(t.Context()), "create-only": second(other.CreateOnly(t.Context())),
	} {
		if err == nil || !strings.Contains(err.Error(), `"korvet"`) || !strings.Contains(err.Error(), `"staging"`) {
			t.Errorf("%s in a foreign root: %v", name, err)
		}
	}
	again := s.Open(t, root, "korvet")
	if err := again.CheckOwner(t.Context()); err != nil {
		t.Errorf("in its own root: %v", err)
	}
	if got, err := again.CreateOnly(t.Context()); err != nil || !got {
		t.Errorf("create-only in its own root: %v, %v", got, err)
	}
}

func second(_ bool, err error) error { return err }

func foreignMarker(t *testing.T, s Suite) {
	for name, content := range map[string]string{
		"not JSON": "hello", "empty": "", "other JSON": `{"a":1}`, "newer": `{"v":2,"namespace":"korvet"}`,
	} {
		root := strings.ReplaceAll(t.Name()+name, "/", "-")
		store := s.Open(t, root, "korvet")
		mustPut(t, store, Upload(s3sink.MarkerKey, []byte(content)))
		if err := store.CheckOwner(t.Context()); s3sink.ClassOf(err) != s3sink.ClassInvalid {
			t.Errorf("%s: check says %v", name, err)
		}
		if _, err := store.CreateOnly(t.Context()); s3sink.ClassOf(err) != s3sink.ClassInvalid {
			t.Errorf("%s: create-only says %v", name, err)
		}
	}
}

func checkIsReadOnly(t *testing.T, s Suite) {
	store := s.open(t)
	for _, p := range store.Check(t.Context()) {
		if !p.Warning {
			t.Errorf("%s: %v", p.Tried, p.Err)
		}
	}
	if err := store.CheckOwner(t.Context()); err != nil {
		t.Error(err)
	}
	_, err := store.Stat(t.Context(), s3sink.MarkerKey)
	mustBe(t, err, s3sink.ErrMissing)
}

func createOnlyOnce(t *testing.T, s Suite) {
	store := s.open(t)
	for range 3 {
		if got, err := store.CreateOnly(t.Context()); err != nil || !got {
			t.Fatalf("create-only: %v, %v", got, err)
		}
	}
	s.Lose(t, rootOf(t), s3sink.MarkerKey)
	if got, err := store.CreateOnly(t.Context()); err != nil || !got {
		t.Fatalf("create-only: %v, %v", got, err)
	}
	_, err := store.Stat(t.Context(), s3sink.MarkerKey)
	mustBe(t, err, s3sink.ErrMissing)
}
