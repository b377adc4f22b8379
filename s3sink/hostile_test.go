package s3sink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// mustBeShowable checks that an error is one line that names the object, holds
// no secret and says what to do.
func mustBeShowable(t *testing.T, err error, where string, says ...string) {
	t.Helper()
	for _, want := range append(says, where) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err != nil && (strings.ContainsAny(err.Error(), "\r\n") || strings.Contains(err.Error(), "verysecret") || strings.Contains(err.Error(), "AKID") || len(err.Error()) > 600) {
		t.Errorf("%q is no error to show", err)
	}
}

// Bodies are sections of something that can be read at any place, so that each
// attempt reads its own from the beginning.
//
//fault:network | The connection breaks in the middle of a body | A stub that resets it after some of the body, for a single put and for each part | Each attempt sends all of the same bytes, the object is whole
func TestEveryAttemptSendsTheSameBytes(t *testing.T) {
	body := make([]byte, 11<<20)
	for i := range body {
		body[i] = byte(i >> 10)
	}
	for name, size := range map[string]int{"single": 5 << 20, "parts": len(body)} {
		server := newParts()
		server.obeys = true
		var mu sync.Mutex
		broken := map[string]int{}
		server.before = func(_ http.ResponseWriter, r *http.Request) bool {
			mu.Lock()
			broken[r.URL.String()]++
			n := broken[r.URL.String()]
			mu.Unlock()
			if r.Method == http.MethodPut && n <= 2 {
				_, _ = io.CopyN(io.Discard, r.Body, int64(n)<<20)
				panic(http.ErrAbortHandler)
			}
			return false
		}
		b := newBench(t, Limits{}, server.ServeHTTP)
		b.trustParts()
		if _, err := b.Put(t.Context(), upload("k", body[:size])); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(server.objects["k"], body[:size]) {
			t.Errorf("%s: other bytes arrived", name)
		}
	}
}

// What S3 is sent with a body lets it see that the body is not whole, or not
// the one that was hashed.
//
//fault:network | A body is changed or cut on its way to the store | A stub that looks at the checksums of what arrived, as S3 does | Every body comes with a checksum of its own bytes
func TestEveryBodyHasItsChecksum(t *testing.T) {
	var bad []string
	server := newParts()
	server.obeys = true
	server.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		sum := sha256.Sum256(body)
		crc := (&hasher{hash: newSHA256()})
		want, _ := crc.add(io.NewSectionReader(bytes.NewReader(body), 0, int64(len(body))))
		single := r.Header.Get("X-Amz-Checksum-Sha256") == base64.StdEncoding.EncodeToString(sum[:]) && r.Header.Get("X-Amz-Content-Sha256") == hex.EncodeToString(sum[:])
		part := r.URL.Query().Has("partNumber") && r.Header.Get("X-Amz-Checksum-Crc32c") == want
		if !single && !part {
			bad = append(bad, r.URL.String())
		}
		return false
	}
	b := newBench(t, Limits{}, server.ServeHTTP)
	for name, size := range map[string]int{"single": 1 << 20, "parts": 11 << 20} {
		if _, err := b.Put(t.Context(), upload(name, bytes.Repeat([]byte{'x'}, size))); err != nil {
			t.Fatal(err)
		}
	}
	if len(bad) > 0 {
		t.Errorf("without its checksum came %q", bad)
	}
}

//fault:store | The store answers 500, with and without words, or does not answer at all | A stub that fails four times, then goes on failing | Repeated with growing waits, then an error that names the object and is that of a store that does not work
func TestInternalErrors(t *testing.T) {
	for name, bad := range map[string]http.HandlerFunc{
		"500":      s3Error(500, "InternalError", "We encountered an internal error. Please try again."),
		"bare 500": s3Error(500, "", ""),
		"502":      page(502, "<html>Bad Gateway</html>"),
		"503":      s3Error(503, "ServiceUnavailable", ""),
		"504":      page(504, "<html>Gateway Timeout</html>"),
		"reset":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut head": func(w http.ResponseWriter, _ *http.Request) { hijack(w, "HTTP/1.1 200 O") },
		"no HTTP":  func(w http.ResponseWriter, _ *http.Request) { hijack(w, "SSH-2.0-OpenSSH_9.2\r\n") },
	} {
		b := newBench(t, Limits{}, bad, bad, bad, bad, ok)
		if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil {
			t.Errorf("%s four times: %v", name, err)
		}
		if len(b.retries()) != 4 {
			t.Errorf("%s: events %+v", name, b.retries())
		}
		b = newBench(t, Limits{}, bad)
		_, err := b.Put(t.Context(), upload("k", []byte("body")))
		if ClassOf(err) != ClassUnavailable || len(b.stub.requests()) != 5 {
			t.Errorf("%s for long: after %d attempts: %v", name, len(b.stub.requests()), err)
		}
		mustBeShowable(t, err, "put s3://bucket/root/k: ")
	}
}

// hijack writes to the connection itself and closes it.
func hijack(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}

// The store stores what it answers 503 to, and shows it later. The attempts
// that follow meet it, or put the same bytes; either way there is one object.
//
//fault:store | The store stores an object, answers 503, and shows it 2 s later | A stub on whose clock the object appears after 2 s, with and without a put that is repeated meanwhile | The put ends in success or in ErrExists, the look shows the very object, nothing is put twice at another key
func TestStoredButAnswered503AndShownLater(t *testing.T) {
	for name, waits := range map[string]time.Duration{"the next attempt comes before": time.Millisecond, "and after": 5 * time.Second} {
		var b *bench
		var stored time.Time
		puts := 0
		b = newBench(t, Limits{BackoffBase: waits, BackoffCap: waits}, func(w http.ResponseWriter, r *http.Request) {
			shown := !stored.IsZero() && b.now().Sub(stored) >= 2*time.Second
			switch {
			case r.Method == http.MethodPut && stored.IsZero():
				stored = b.now()
				s3Error(503, "ServiceUnavailable", "", "Retry-After", map[bool]string{true: "5", false: ""}[waits > time.Second])(w, r)
			case r.Method == http.MethodPut && shown:
				s3Error(412, "PreconditionFailed", "")(w, r)
			case r.Method == http.MethodPut:
				puts++
				ok(w, r)
			case !shown:
				s3Error(404, "NoSuchKey", "")(w, r)
			default:
				ok(w, r)
			}
		})
		_, err := b.Put(t.Context(), upload("k", []byte("body")))
		if early := waits < time.Second; early && err != nil || !early && !errors.Is(err, ErrExists) {
			t.Errorf("%s: put: %v", name, err)
		}
		// Four waits that are drawn from up to a minute are two seconds together but
		// once in twenty million times.
		b.opt.Limits.BackoffBase, b.opt.Limits.BackoffCap = time.Minute, time.Minute
		if _, err := b.Stat(t.Context(), "k"); err != nil {
			t.Errorf("%s: stat: %v", name, err)
		}
	}
}

//fault:store | A listing repeats a page, goes back, or ends in the middle of its XML | Stubs that tell the same page for ever, keys that do not ascend, a cut page | The listing ends with an error, and is not taken for a whole one
func TestListingThatIsNone(t *testing.T) {
	listing := func(more bool, keys ...string) string {
		var s strings.Builder
		fmt.Fprintf(&s, "<ListBucketResult><IsTruncated>%v</IsTruncated><NextContinuationToken>t</NextContinuationToken>", more)
		for _, key := range keys {
			fmt.Fprintf(&s, "<Contents><Key>root/%s</Key><LastModified>2024-02-26T14:59:49Z</LastModified></Contents>", key)
		}
		return s.String() + "</ListBucketResult>"
	}
	thousand := make([]string, pageSize)
	for i := range thousand {
		thousand[i] = fmt.Sprintf("k%04d", i)
	}
	for name, c := range map[string]struct {
		page  string
		class Class
		keys  int
	}{
		"the same for ever": {listing(true, thousand...), ClassOther, pageSize},
		"it goes back":      {listing(false, "b", "a"), ClassOther, 1},
		"twice the same":    {listing(false, "a", "a"), ClassOther, 1},
		"nothing for ever":  {listing(true), ClassTimeout, 0},
		"cut":               {listing(false, thousand...)[:5000], ClassUnavailable, 0},
	} {
		b := newBench(t, Limits{Attempts: 2, Request: 200 * time.Millisecond}, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, c.page)
		})
		keys, err := 0, error(nil)
		for _, e := range b.List(t.Context(), "") {
			if err = e; e == nil {
				keys++
			}
		}
		if ClassOf(err) != c.class || keys != c.keys {
			t.Errorf("%s: %d keys, then %v", name, keys, err)
		}
		mustBeShowable(t, err, "list s3://bucket")
	}
}

// A certificate for *.example.com covers bucket.example.com, and not
// my.bucket.example.com; so the bucket goes into the path, and if it is told
// not to, the error says which setting it is.
//
//fault:store | A bucket's name has dots, and the store is asked over https | A TLS server whose certificate is for example.com, by both styles | Path style is chosen and works, the other style fails with the setting that is wrong
func TestDottedBucketOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(ok))
	defer server.Close()
	put := func(style *bool) error {
		store, err := Open(Config{URL: "s3://my.bucket/root", Endpoint: "https://example.com", Region: "us-east-1", AccessKeyID: "a", SecretAccessKey: "b", PathStyle: style},
			Options{Limits: Limits{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		b := store.(*bucket)
		transport := server.Client().Transport.(*http.Transport).Clone()
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		}
		defer transport.CloseIdleConnections()
		b.http = observer{next: transport, signer: b.signer}
		if _, err := b.use("us-east-1"); err != nil {
			t.Fatal(err)
		}
		_, err = b.Put(t.Context(), upload("k", []byte("body")))
		return err
	}
	if err := put(nil); err != nil {
		t.Errorf("by the style that was chosen: %v", err)
	}
	hosts := false
	err := put(&hosts)
	if ClassOf(err) != ClassInvalid {
		t.Errorf("by the other style: %v", err)
	}
	mustBeShowable(t, err, "put s3://my.bucket/root/k: ", "s3.path-style-access")
}

//fault:store | The bucket is in another region | 301, 307 and 400 as AWS answers them, with the region in a header or in the body, to a PUT and to a HEAD | The error names the region and the setting, and is not repeated
func TestWrongRegionNamesTheRightOne(t *testing.T) {
	region := []string{"X-Amz-Bucket-Region", "eu-west-1"}
	malformed := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is wrong; expecting 'eu-west-1'</Message><Region>eu-west-1</Region></Error>")
	}
	for name, answer := range map[string]http.HandlerFunc{
		"301": s3Error(301, "PermanentRedirect", "use another endpoint", region...), "307": s3Error(307, "TemporaryRedirect", "wait", region...),
		"400": malformed, "bare 301": s3Error(301, "", "", region...), "bare 400": s3Error(400, "", "", region...),
	} {
		b := newBench(t, Limits{}, answer)
		_, put := b.Put(t.Context(), upload("k", []byte("body")))
		_, stat := b.Stat(t.Context(), "k")
		for what, err := range map[string]error{"put": put, "stat": stat} {
			if name == "400" && what == "stat" {
				continue // a HEAD gets no body, and this answer has the region nowhere else
			}
			if ClassOf(err) != ClassWrongRegion {
				t.Errorf("%s: %v", name, err)
			}
			mustBeShowable(t, err, what+" s3://bucket/root/k: ", "eu-west-1", "s3.region")
		}
	}
}

// A long listing of what is asked of a store that answers 403 for a while, and
// then works: nothing is kept from the time before.
//
//fault:store | The store answers 403 to everything for a while | A stub that refuses and is mended, with a claim, a put, a look and a deletion tried meanwhile | Each says what right is missing, none is remembered, all work afterwards without a restart
func TestDeniedForAWhile(t *testing.T) {
	server := newParts()
	server.obeys = true
	denied := true
	server.before = func(w http.ResponseWriter, r *http.Request) bool {
		if denied {
			s3Error(403, "AccessDenied", "Access Denied")(w, r)
		}
		return denied
	}
	b := newBench(t, Limits{}, server.ServeHTTP)
	errs := map[string]error{"delete": b.Delete(t.Context(), []string{"k"})[0]}
	_, errs["claim"] = b.CreateOnly(t.Context())
	_, errs["put"] = b.Put(t.Context(), upload("k", []byte("body")))
	_, errs["parts"] = b.Put(t.Context(), upload("k", large('x')))
	_, errs["stat"] = b.Stat(t.Context(), "k")
	for what, err := range errs {
		if ClassOf(err) != ClassDenied {
			t.Errorf("%s: %v", what, err)
		}
		mustBeShowable(t, err, " s3://bucket/root/", "allow s3:")
	}
	if len(b.retries()) != 0 {
		t.Errorf("repeated: %+v", b.retries())
	}
	denied = false
	if good, err := b.CreateOnly(t.Context()); !good || err != nil {
		t.Errorf("afterwards: create-only: %v, %v", good, err)
	}
	if _, err := b.Put(t.Context(), upload("k", large('x'))); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if !slices.Contains(server.ways, "parts k") {
		t.Errorf("objects came as %v", server.ways)
	}
}
