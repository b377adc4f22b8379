package s3sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// An owner marker is put by other programs' versions too, and by mistake.
//
//fault:store | The owner marker's object holds anything | fuzzing | it is refused in one line, unless it is a marker of version 1 of this very namespace
func FuzzMarker(f *testing.F) {
	f.Add([]byte(`{"v":1,"namespace":"korvet","created":"2026-01-02T03:04:05Z"}`), "korvet")
	f.Add([]byte(`{"V":1,"NAMESPACE":"korvet"}`), "korvet")
	f.Add([]byte(`{"v":2,"namespace":"a\nb"}`), "a\nb")
	f.Add([]byte(`null`), "")
	f.Fuzz(func(t *testing.T, content []byte, namespace string) {
		o := Owner{Namespace: namespace}
		err := o.accepts(content)
		var m marker
		mine := json.Unmarshal(content, &m) == nil && m.V == 1 && m.Namespace == namespace && namespace != ""
		if mine != (err == nil) {
			t.Fatalf("%q for namespace %q: %v", content, namespace, err)
		}
		if err != nil && (ClassOf(err) != ClassInvalid || strings.Contains(err.Error(), "\n")) {
			t.Fatalf("%q for namespace %q: class %s, %q", content, namespace, ClassOf(err), err)
		}
	})
}

// The agent beside a container answers with secrets, or with anything else.
//
//fault:store | The container's credentials agent answers nonsense | fuzzing of its answer | credentials as they were written, or an error that shows nothing of the answer
func FuzzAgent(f *testing.F) {
	f.Add([]byte(`{"AccessKeyId":"AKID","SecretAccessKey":"Zq8hidden","Token":"t","Expiration":"2030-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"AccessKeyId":7,"SecretAccessKey":"Zq8hidden"}`))
	f.Add([]byte(`"Zq8hidden"`))
	f.Add([]byte(`{"Expiration":"0001-01-01T00:00:00Z","SecretAccessKey":"Zq8hidden"} x`))
	var answer []byte
	client := &http.Client{Transport: answering(func() *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(answer)), Header: http.Header{}}
	})}
	f.Fuzz(func(t *testing.T, body []byte) {
		answer = body
		p := &containerProvider{client: client, url: "http://127.0.0.1/"}
		v, err := p.RetrieveWithCredContext(&credentials.CredContext{})
		if err != nil {
			if len(body) > 8 && strings.Contains(err.Error(), string(body)) || strings.Contains(err.Error(), "Zq8") {
				t.Fatalf("%q: the error shows it: %v", body, err)
			}
			return
		}
		var want struct{ AccessKeyID, SecretAccessKey, Token string }
		if json.Unmarshal(body, &want) != nil || v.AccessKeyID != want.AccessKeyID || v.SecretAccessKey != want.SecretAccessKey || v.SessionToken != want.Token {
			t.Fatalf("%q gives other credentials than it holds", body)
		}
	})
}

// answering is a transport that needs no network.
type answering func() *http.Response

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a(), nil }

// Any answer of a store, or of a proxy before it, to each kind of request.
//
//fault:store | The store answers with any status, headers and body | fuzzing of answers to put, stat, get, list and delete, from a stub | an error of one line with a class, no crash, no secret in it, and no more than the attempts that are allowed
func FuzzReplies(f *testing.F) {
	for i, body := range []string{
		`<Error><Code>SlowDown</Code><Message>a` + "\n" + `b verysecret</Message></Error>`, `<Error><Code>AccessDenied</Code><Message>object lock</Message></Error>`,
		`<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>root/k</Key><Size>-5</Size></Contents></ListBucketResult>`,
		`<DeleteResult><Deleted><Key>root/k</Key></Deleted><Error><Key>root/l</Key><Code>InternalError</Code></Error></DeleteResult>`,
		`<html>proxy</html>`, "", `<Error><Code>` + strings.Repeat("x", 3000), `<Error><Region>eu-west-1&#10;x</Region><Code>AuthorizationHeaderMalformed</Code></Error>`,
	} {
		for _, status := range []uint16{200, 204, 301, 400, 403, 404, 409, 412, 416, 500, 501, 503} {
			f.Add(uint8(i*5+int(status)%5), status-200, body, "7", `"etag"`)
		}
	}
	s := &fuzzed{}
	server := httptest.NewServer(s)
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, op uint8, status uint16, body, retryAfter, etag string) {
		s.answer = func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", retryAfter)
			w.Header().Set("ETag", etag)
			w.Header().Set("X-Amz-Bucket-Region", etag)
			w.WriteHeader(200 + int(status)%400)
			_, _ = io.WriteString(w, body) // to HEAD there is none
		}
		s.asked.Store(0)
		for _, err := range s.ask(t, server.URL, op) {
			e, ok := errors.AsType[*Error](err)
			if err != nil && (!ok || e.Class == "" || strings.ContainsAny(err.Error(), "\n\r") || strings.Contains(err.Error(), "verysecret") || len(err.Error()) > 8000) {
				t.Fatalf("call %d, status %d with %q: class %q, %q", op%32, 200+int(status)%400, body, ClassOf(err), err)
			}
		}
		if n := s.asked.Load(); n >= enough {
			t.Fatalf("call %d, status %d with %q: %d requests", op%32, 200+int(status)%400, body, n)
		}
	})
}

// enough is more requests than any call makes of a store that says nothing
// new. Then the stub says that all is forbidden.
const enough = 40

// fuzzed is a stub that answers what the fuzzer says.
type fuzzed struct {
	answer func(http.ResponseWriter)
	asked  atomic.Int32
}

func (s *fuzzed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if s.asked.Add(1) > enough {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	s.answer(w)
}

// ask makes one call of a store that has just been opened, whose waits take no
// time but on its own clock.
func (s *fuzzed) ask(t *testing.T, url string, op uint8) []error {
	t.Helper()
	var ahead atomic.Int64
	store, err := Open(Config{URL: "s3://bucket/root", Endpoint: url, Region: "us-east-1", AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "verysecret"}, Options{
		Owner: Owner{Namespace: "korvet"}, Limits: Limits{Attempts: 2},
		Now:   func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Sleep: func(ctx context.Context, d time.Duration) error { ahead.Add(int64(d)); return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx := t.Context()
	switch op % 32 { // after a put that has failed the library waits for up to a second
	case 0:
		_, err = store.Put(ctx, upload("k", []byte("body")))
		return []error{err}
	case 31:
		_, err = store.CreateOnly(ctx)
		return []error{err}
	}
	switch op % 5 {
	case 0:
		err = store.CheckOwner(ctx)
	case 1:
		_, err = store.Stat(ctx, "k")
	case 2:
		_, err = readObject(ctx, store)
	case 3:
		for _, e := range store.List(ctx, "") {
			err = e
		}
	case 4:
		return store.Delete(ctx, []string{"k", "l"})
	}
	return []error{err}
}

func readObject(ctx context.Context, s Store) (int64, error) {
	body, err := s.Open(ctx, "k")
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return io.Copy(io.Discard, body)
}
