package s3sink

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// parts is an S3 server with multipart uploads that obeys the condition of
// single puts, and that of multipart uploads if it is told to.
type parts struct {
	obeys   bool
	refuses http.HandlerFunc                              // answers to conditional ends of multipart uploads; nil = nothing
	before  func(http.ResponseWriter, *http.Request) bool // true = it has answered; nil = nothing

	mu      sync.Mutex
	objects map[string][]byte
	uploads map[string]map[string][]byte // id -> part number -> bytes
	ways    []string                     // by which way objects came
}

func newParts() *parts {
	return &parts{objects: map[string][]byte{}, uploads: map[string]map[string][]byte{}}
}

func (p *parts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.before != nil && p.before(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key, q := strings.TrimPrefix(r.URL.Path, "/bucket/root/"), r.URL.Query()
	upload, known := p.uploads[q.Get("uploadId")]
	switch {
	case q.Has("uploads"):
		id := fmt.Sprintf("id%d", len(p.uploads))
		p.uploads[id] = map[string][]byte{}
		fmt.Fprintf(w, `<InitiateMultipartUploadResult><Bucket>bucket</Bucket><UploadId>%s</UploadId></InitiateMultipartUploadResult>`, id)
	case q.Has("uploadId") && !known:
		s3Error(404, "NoSuchUpload", "")(w, r)
	case q.Has("partNumber"):
		upload[q.Get("partNumber")] = body
		w.Header().Set("ETag", `"part"`)
	case r.Method == http.MethodDelete && known:
		delete(p.uploads, q.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost:
		p.complete(w, r, key, upload)
	case r.Method == http.MethodPut:
		p.single(w, r, key, body)
	default:
		p.look(w, r, key)
	}
}

func (p *parts) complete(w http.ResponseWriter, r *http.Request, key string, upload map[string][]byte) {
	conditional := r.Header.Get("If-None-Match") == "*"
	switch _, taken := p.objects[key]; {
	case conditional && p.refuses != nil:
		p.refuses(w, r)
	case taken && conditional && p.obeys:
		s3Error(412, "PreconditionFailed", "")(w, r)
	default:
		var whole []byte
		for _, n := range slices.Sorted(maps.Keys(upload)) {
			whole = append(whole, upload[n]...)
		}
		p.objects[key] = whole
		p.ways = append(p.ways, "parts "+key)
		delete(p.uploads, r.URL.Query().Get("uploadId"))
		fmt.Fprintf(w, `<CompleteMultipartUploadResult><Bucket>bucket</Bucket><Key>root/%s</Key><ETag>"whole"</ETag></CompleteMultipartUploadResult>`, key)
	}
}

func (p *parts) single(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	if _, taken := p.objects[key]; taken && r.Header.Get("If-None-Match") == "*" {
		s3Error(412, "PreconditionFailed", "")(w, r)
		return
	}
	p.objects[key] = body
	p.ways = append(p.ways, "single "+key)
	ok(w, r)
}

func (p *parts) look(w http.ResponseWriter, r *http.Request, key string) {
	body, there := p.objects[key]
	if !there {
		s3Error(404, "NoSuchKey", "")(w, r)
		return
	}
	sum := sha256.Sum256(body)
	w.Header().Set("X-Amz-Meta-Sha256", hex.EncodeToString(sum[:]))
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.Header().Set("ETag", `"whole"`)
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

// large is a body that goes in several parts.
func large(fill byte) []byte { return bytes.Repeat([]byte{fill}, 11<<20) }

// An upload that was begun before the key was taken, and ends after it, must
// not replace what is there: it may be the only copy of messages by then.
//
//fault:leaders | A store obeys the condition of single puts and ignores that of multipart uploads | Stubs that ignore it or answer 501 or 400, a large object at a key that is taken | It is found out by the owner marker, large objects go by single puts, nothing is replaced
func TestConditionOfPartsIgnored(t *testing.T) {
	for name, refuses := range map[string]http.HandlerFunc{
		"ignored": nil, "obeyed": nil, "501": s3Error(501, "NotImplemented", ""), "400": s3Error(400, "InvalidArgument", "If-None-Match"),
	} {
		server := newParts()
		server.refuses, server.obeys = refuses, name == "obeyed"
		b := newBench(t, Limits{}, server.ServeHTTP)
		if good, err := b.CreateOnly(t.Context()); !good || err != nil {
			t.Fatalf("%s: create-only: %v, %v", name, good, err)
		}
		marker := server.objects[MarkerKey]
		server.objects["taken"] = []byte("the only copy")
		if _, err := b.Put(t.Context(), upload("taken", large('x'))); !errors.Is(err, ErrExists) {
			t.Errorf("%s: put of a key that is taken: %v", name, err)
		}
		if _, err := b.Put(t.Context(), upload("free", large('y'))); err != nil {
			t.Errorf("%s: put: %v", name, err)
		}
		if got := server.objects; string(got["taken"]) != "the only copy" || !bytes.Equal(got["free"], large('y')) || !bytes.Equal(got[MarkerKey], marker) {
			t.Errorf("%s: an object is not what it was, or not what was put", name)
		}
		want := "single " + MarkerKey + map[string]string{"ignored": ",parts " + MarkerKey, "obeyed": ",parts free"}[name]
		if !server.obeys {
			want += ",single free"
		}
		if got := strings.Join(server.ways, ","); got != want || len(server.uploads) != 0 {
			t.Errorf("%s: objects came as %s, want %s; %d uploads are left", name, got, want, len(server.uploads))
		}
	}
}

func TestTooLargeForASinglePut(t *testing.T) {
	server := newParts()
	b := newBench(t, Limits{}, server.ServeHTTP)
	u := upload("k", nil)
	u.Body, u.Size = bytes.NewReader(nil), MaxPartSize+1
	_, err := b.Put(t.Context(), u)
	if ClassOf(err) != ClassUnsupported || !strings.Contains(err.Error(), "put s3://bucket/root/k: ") || !strings.Contains(err.Error(), "segment.bytes") {
		t.Errorf("got %v", err)
	}
}

// A look at the store that fails is no answer: it is asked again with the next
// object.
func TestConditionOfPartsIsAskedAgain(t *testing.T) {
	server := newParts()
	server.obeys = true
	down := true
	server.before = func(w http.ResponseWriter, r *http.Request) bool {
		if down && r.Method == http.MethodPost {
			s3Error(500, "InternalError", "")(w, r)
		}
		return down && r.Method == http.MethodPost
	}
	b := newBench(t, Limits{Attempts: 1}, server.ServeHTTP)
	if _, err := b.Put(t.Context(), upload("k", large('x'))); ClassOf(err) != ClassUnavailable {
		t.Errorf("got %v", err)
	}
	down = false
	if _, err := b.Put(t.Context(), upload("k", large('x'))); err != nil || server.ways[len(server.ways)-1] != "parts k" {
		t.Errorf("objects came as %q, %v", server.ways, err)
	}
}
