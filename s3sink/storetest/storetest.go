// Package storetest is the conformance suite of s3sink.Store: what holds for
// every store is tested here, on the real ones and on the fake alike.
package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"korvet-offload/s3sink"
)

// Suite says how a store is made, and what is special about it.
type Suite struct {
	// Open makes a store over the root of the given name, the same for the same
	// name, that belongs to the given namespace.
	Open func(t testing.TB, root, namespace string) s3sink.Store
	// Lose removes an object of a root behind the stores' back.
	Lose func(t testing.TB, root, key string)
	// NoMeta says that metadata is not kept.
	NoMeta bool
	// LateHash says that a body that is not what was announced shows at Stat.
	LateHash bool
	// Large is the size of an object that goes the store's way for large ones,
	// in bytes.
	Large int
}

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	for name, test := range map[string]func(*testing.T, Suite){
		"PutStatOpen":       putStatOpen,
		"Keys":              oddKeys,
		"BadKeys":           badKeys,
		"BadUploads":        badUploads,
		"WrongHash":         wrongHash,
		"ShortBody":         shortBody,
		"Exists":            exists,
		"Unconditional":     unconditional,
		"Missing":           missing,
		"Ranges":            ranges,
		"List":              list,
		"ListStops":         listStops,
		"Delete":            remove,
		"DeleteOdd":         removeOddKeys,
		"DeleteMany":        removeMany,
		"DeleteRefused":     removeRefused,
		"DeleteCanceled":    removeCanceled,
		"Canceled":          canceled,
		"SixteenWriters":    func(t *testing.T, s Suite) { writers(t, s, 1000) },
		"SixteenLargeOnes":  func(t *testing.T, s Suite) { writers(t, s, s.Large) },
		"Owner":             owner,
		"ForeignMarker":     foreignMarker,
		"CheckIsReadOnly":   checkIsReadOnly,
		"CreateOnlyIsAsked": createOnlyOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func (s Suite) open(t testing.TB) s3sink.Store {
	return s.Open(t, rootOf(t), "korvet")
}

// rootOf is the name of the root that open uses.
func rootOf(t testing.TB) string { return strings.ReplaceAll(t.Name(), "/", "-") }

// Upload makes an upload of a body.
func Upload(key string, body []byte) s3sink.Upload {
	sum := sha256.Sum256(body)
	return s3sink.Upload{Key: key, Body: bytes.NewReader(body), Size: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}
}

// Body makes n bytes that differ with the seed.
func Body(seed uint64, n int) []byte {
	body := make([]byte, n)
	chacha := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = chacha.Read(body) // never fails
	return body
}

func mustPut(t *testing.T, store s3sink.Store, u s3sink.Upload) s3sink.Info {
	t.Helper()
	info, err := store.Put(t.Context(), u)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	return info
}

func readAll(t *testing.T, body io.ReadCloser, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if err := body.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return content
}

func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

func mustBeInvalid(t *testing.T, what string, err error) {
	t.Helper()
	if s3sink.ClassOf(err) != s3sink.ClassInvalid {
		t.Errorf("%s: got %v, want class invalid", what, err)
	}
}

func keys(t *testing.T, store s3sink.Store, prefix string) []string {
	t.Helper()
	var got []string
	for info, err := range store.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		got = append(got, info.Key)
	}
	return got
}
