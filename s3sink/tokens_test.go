package s3sink

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tokens hands out session tokens by web identity or as a container's agent
// does, each good as long as the file beside it says so.
type tokens struct {
	file   string
	issued atomic.Int64
	bad    atomic.Int64 // requests with a file's content that is no longer good
}

func (k *tokens) good() string {
	content, err := os.ReadFile(k.file)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(content))
}

func (k *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	token := r.Header.Get("Authorization") + r.Form.Get("WebIdentityToken")
	if token != k.good() {
		k.bad.Add(1)
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	n, until := k.issued.Add(1), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	if r.Form.Get("WebIdentityToken") != "" {
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
			<AccessKeyId>KEY</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>token%d</SessionToken><Expiration>%s</Expiration>
			</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, n, until)
		return
	}
	fmt.Fprintf(w, `{"AccessKeyId":"KEY","SecretAccessKey":"s","Token":"token%d","Expiration":%q}`, n, until)
}

// rotate puts another file in the place of the one that is there.
func (k *tokens) rotate(t *testing.T) {
	if err := os.Rename(writeFile(t, k.file+".new", "second"), k.file); err != nil {
		t.Error(err)
	}
}

// newTokens sets the environment up for one of the two ways.
func newTokens(t *testing.T, way string) *tokens {
	t.Helper()
	cleanEnv(t)
	k := &tokens{file: filepath.Join(t.TempDir(), "token")}
	writeFile(t, k.file, "first\n")
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	if way == "web identity" {
		t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", k.file)
		t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
		t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
		writeFile(t, k.file, "first") // the library sends it as it is
	} else {
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL)
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", k.file)
	}
	return k
}

// expires makes a server refuse a session token once it has served so many
// requests with it, in the way that S3 does: a HEAD gets no words.
func expires(server *parts, token string, after int64) {
	var used atomic.Int64
	server.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Amz-Security-Token") != token || used.Add(1) <= after {
			return false
		}
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusBadRequest)
			return true
		}
		s3Error(400, "ExpiredToken", "The provided token has expired.")(w, r)
		return true
	}
}

func openWithTokens(t *testing.T, server *parts) *bucket {
	t.Helper()
	front := newStub(t, server.ServeHTTP)
	store, err := Open(Config{URL: "s3://bucket/root", Endpoint: front.URL, Region: "us-east-1", MultipartThreshold: 6 << 20, PartSize: MinPartSize},
		Options{Limits: Limits{BackoffBase: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store.(*bucket)
}

// The token expires before any request of an upload in parts, and of the look
// that follows. The file that the next one is asked for with has been rotated.
//
//fault:store | The session token expires in the middle of an upload in parts, the token file has been rotated meanwhile | A stub that refuses the token at each request in turn, credentials by web identity and from a container's agent | The upload goes on with new credentials, the object is whole and made by one upload
func TestTokenExpiresInMidUpload(t *testing.T) {
	body := bytes.Join([][]byte{bytes.Repeat([]byte{'a'}, MinPartSize), bytes.Repeat([]byte{'b'}, MinPartSize), []byte("c")}, nil)
	for _, way := range []string{"web identity", "container"} {
		for after := range int64(6) {
			k, server := newTokens(t, way), newParts()
			expires(server, "token1", after)
			store := openWithTokens(t, server)
			if after > 0 {
				if _, err := store.creds.GetWithContext(nil); err != nil {
					t.Fatal(err)
				}
			}
			refuse := server.before
			var rotate sync.Once
			server.before = func(w http.ResponseWriter, r *http.Request) bool {
				refused := refuse(w, r)
				if refused {
					rotate.Do(func() { k.rotate(t) })
				}
				return refused
			}
			if _, err := store.Put(t.Context(), upload("k", body)); err != nil {
				t.Errorf("%s, after %d requests: put: %v", way, after, err)
			}
			if _, err := store.Stat(t.Context(), "k"); err != nil {
				t.Errorf("%s, after %d requests: stat: %v", way, after, err)
			}
			if !bytes.Equal(server.objects["k"], body) || len(server.ways) != 1 || len(server.uploads) != 0 {
				t.Errorf("%s, after %d requests: %d bytes by %v, %d uploads left", way, after, len(server.objects["k"]), server.ways, len(server.uploads))
			}
			if k.issued.Load() < 2 || k.bad.Load() != 0 {
				t.Errorf("%s, after %d requests: %d tokens were issued, %d requests had an old file", way, after, k.issued.Load(), k.bad.Load())
			}
		}
	}
}

// No new credentials can be had: the upload fails and says so, and the next one
// begins anew and mixes nothing.
//
//fault:store | The token expires in mid-upload and no other can be had for a while | A stub that refuses the token, a token file that is no longer good, mended later | The upload fails with one line that names the source, the next one begins anew and is whole
func TestTokenExpiresForLong(t *testing.T) {
	k, server := newTokens(t, "container"), newParts()
	expires(server, "token1", 2)
	store := openWithTokens(t, server)
	if _, err := store.creds.GetWithContext(nil); err != nil {
		t.Fatal(err)
	}
	good := k.file
	k.file = writeFile(t, filepath.Join(t.TempDir(), "rotated"), "second")
	_, err := store.Put(t.Context(), upload("k", large('x')))
	if ClassOf(err) != ClassCredentials || !strings.Contains(err.Error(), "put s3://bucket/root/k: ") || !strings.Contains(err.Error(), "container's credentials agent") || strings.Contains(err.Error(), "token1") {
		t.Errorf("put: %v", err)
	}
	writeFile(t, good, "second")
	if _, err := store.Put(t.Context(), upload("k", large('y'))); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(server.objects["k"], large('y')) || len(server.ways) != 1 {
		t.Errorf("%d bytes by %v", len(server.objects["k"]), server.ways)
	}
}

// A HEAD that is answered 400 has no words; so it is said what it may be.
func TestBareAnswerToAHead(t *testing.T) {
	b := newBench(t, Limits{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	_, err := b.Stat(t.Context(), "k")
	if ClassOf(err) != ClassCredentials || !strings.Contains(err.Error(), "stat s3://bucket/root/k: (HTTP 400)") || !strings.Contains(err.Error(), "s3.access-key-id") {
		t.Errorf("got %v", err)
	}
	if n := len(b.stub.requests()); n != 2 {
		t.Errorf("asked %d times", n)
	}
}
