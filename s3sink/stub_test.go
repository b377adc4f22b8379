package s3sink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// stub is an S3 server that answers what a test says, in turn; the last answer
// stays. It notes what it was asked.
type stub struct {
	*httptest.Server
	mu      sync.Mutex
	answers []http.HandlerFunc
	got     []*http.Request
}

func newStub(t *testing.T, answers ...http.HandlerFunc) *stub {
	s := &stub{answers: answers}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.got = append(s.got, r)
	answer := s.answers[min(len(s.got), len(s.answers))-1]
	s.mu.Unlock()
	answer(w, r)
}

func (s *stub) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// ok takes the body and says that it is stored.
func ok(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("ETag", `"etag"`)
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
}

// s3Error takes the body and answers as S3 does.
func s3Error(status int, code, message string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		if code != "" && r.Method != http.MethodHead {
			fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, message)
		}
	}
}

// bench is a store over a stub whose waits take no time but on its own clock.
type bench struct {
	*bucket
	stub   *stub
	mu     sync.Mutex
	ahead  time.Duration // of its clock
	waits  []time.Duration
	events []Event
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Add(b.ahead)
}

// trustParts lets multipart uploads go without asking whether the store obeys
// their condition.
func (b *bench) trustParts() { b.probe.done, b.probe.obeys = true, true }

// retries are the events of attempts that were repeated.
func (b *bench) retries() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.events), func(e Event) bool { return e.Op == "limit" })
}

// limits are the limits that the store was given, one after the other.
func (b *bench) limits() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []int
	for _, e := range b.events {
		if e.Op == "limit" {
			all = append(all, e.Limit)
		}
	}
	return all
}

func newBench(t *testing.T, limits Limits, answers ...http.HandlerFunc) *bench {
	t.Helper()
	b := &bench{stub: newStub(t, answers...)}
	cfg := Config{
		URL: "s3://bucket/root", Endpoint: b.stub.URL, Region: "us-east-1", AccessKeyID: "AKIDEXAMPLE",
		SecretAccessKey: "verysecret", MultipartThreshold: 6 << 20, PartSize: MinPartSize,
	}
	store, err := Open(cfg, Options{
		Owner: Owner{Namespace: "korvet"}, Limits: limits, Now: b.now,
		Sleep: func(ctx context.Context, d time.Duration) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.waits = append(b.waits, d)
			b.ahead += d
			return ctx.Err()
		},
		OnEvent: func(e Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events = append(b.events, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	b.bucket = store.(*bucket)
	return b
}

func upload(key string, body []byte) Upload {
	sum := sha256.Sum256(body)
	return Upload{Key: key, Body: bytes.NewReader(body), Size: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}
}
