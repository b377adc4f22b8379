package s3sink_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
	"korvet-offload/s3sink/storetest"
)

// recorder passes requests on to a real server and notes their heads.
type recorder struct {
	cfg   s3sink.Config
	mu    sync.Mutex
	heads []*http.Request
}

func record(t *testing.T, server *s3server.Server) *recorder {
	r := &recorder{}
	r.cfg = forward(t, server, func(p *httputil.ProxyRequest) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.heads = append(r.heads, p.In.Clone(context.WithoutCancel(p.In.Context())))
	}, nil)
	return r
}

func (r *recorder) take() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	heads := r.heads
	r.heads = nil
	return heads
}

func through(t *testing.T, r *recorder) s3sink.Store {
	return mustOpen(t, r.cfg, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet"}, UserAgent: "korvet-offload/1.2.3"})
}

func noneHas(t *testing.T, heads []*http.Request, header string) {
	t.Helper()
	for _, h := range heads {
		if h.Header.Get(header) != "" {
			t.Errorf("%s %s has %s", h.Method, h.URL, header)
		}
	}
}

func wants(t *testing.T, h *http.Request, header, want string) {
	t.Helper()
	if got := h.Header.Get(header); got != want {
		t.Errorf("%s %s: %s is %q, want %q", h.Method, h.URL, header, got, want)
	}
}

func TestSinglePutOnTheWire(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	r := record(t, server)
	store := through(t, r)
	u := storetest.Upload("k", storetest.Body(1, 2<<20))
	u.Meta = map[string]string{"count": "7"}
	if _, err := store.Put(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	heads := r.take()
	if len(heads) != 1 {
		t.Fatalf("%d requests", len(heads))
	}
	h := heads[0]
	wants(t, h, "If-None-Match", "*")
	wants(t, h, "X-Amz-Content-Sha256", u.SHA256)
	wants(t, h, "X-Amz-Meta-Sha256", u.SHA256)
	wants(t, h, "X-Amz-Meta-Count", "7")
	wants(t, h, "Expect", "100-continue")
	noneHas(t, heads, "Content-Md5")
	if h.Header.Get("X-Amz-Checksum-Sha256") == "" || h.ContentLength != u.Size || len(h.TransferEncoding) > 0 {
		t.Errorf("head: %v, length %d", h.Header, h.ContentLength)
	}
	for _, signed := range []string{"if-none-match", "x-amz-checksum-sha256", "x-amz-meta-sha256"} {
		if !strings.Contains(h.Header.Get("Authorization"), signed) {
			t.Errorf("%s is not signed", signed)
		}
	}
	if agent := h.UserAgent(); !strings.HasSuffix(agent, "korvet-offload/1.2.3") {
		t.Errorf("user agent %q", agent)
	}
}

func TestMultipartOnTheWire(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	r := record(t, server)
	store := through(t, r)
	u := storetest.Upload("k", storetest.Body(1, 11<<20))
	if _, err := store.Put(t.Context(), storetest.Upload("first", storetest.Body(2, 7<<20))); err != nil {
		t.Fatal(err) // before it the store is asked whether it obeys the condition
	}
	r.take()
	if _, err := store.Put(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	heads := r.take()
	var parts int
	for _, h := range heads {
		switch q := h.URL.Query(); {
		case q.Has("partNumber"):
			parts++
			if h.Header.Get("X-Amz-Checksum-Crc32c") == "" {
				t.Errorf("part %s has no checksum", q.Get("partNumber"))
			}
		case q.Has("uploads"):
			wants(t, h, "X-Amz-Meta-Sha256", u.SHA256)
		case q.Has("uploadId"):
			wants(t, h, "If-None-Match", "*")
			if h.Header.Get("X-Amz-Checksum-Crc32c") == "" {
				t.Error("the end has no checksum of the whole")
			}
		}
	}
	if parts != 3 || len(heads) != 5 {
		t.Errorf("%d parts in %d requests", parts, len(heads))
	}
	noneHas(t, heads, "Content-Md5")
}

func TestEncryptionOnTheWire(t *testing.T) {
	for _, size := range []int{10, 7 << 20} {
		heads := make(chan http.Header, 100)
		refuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			heads <- r.Header
			w.WriteHeader(http.StatusBadRequest)
		}))
		defer refuse.Close()
		store := mustOpen(t, s3sink.Config{
			URL: "s3://bucket", Endpoint: refuse.URL, Region: "us-east-1", AccessKeyID: "a", SecretAccessKey: "b",
			SSE: s3sink.SSEKMS, SSEKMSKeyID: "alias/mine", StorageClass: "STANDARD_IA",
			MultipartThreshold: 6 << 20, PartSize: s3sink.MinPartSize,
		}, s3sink.Options{})
		if _, err := store.Put(t.Context(), storetest.Upload("k", storetest.Body(1, size))); s3sink.ClassOf(err) != s3sink.ClassInvalid {
			t.Fatal(err)
		}
		h := <-heads
		if h.Get("X-Amz-Server-Side-Encryption") != "aws:kms" || h.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id") != "alias/mine" ||
			h.Get("X-Amz-Storage-Class") != "STANDARD_IA" {
			t.Errorf("%d bytes: %v", size, h)
		}
	}
}

// TestIdleRunWritesNothing: what runs before the first upload only reads.
func TestIdleRunWritesNothing(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	store := openS3(t, server, "idle", "korvet")
	if err := store.CheckOwner(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.Check(t.Context())
	for op, n := range server.Requests(t) {
		if !slices.Contains([]string{"HeadBucket", "HeadObject", "GetObject", "ListObjectsV2"}, op) {
			t.Errorf("%d requests %s", n, op)
		}
	}
	if got := server.Requests(t)["HeadBucket"]; got == 0 {
		t.Errorf("requests: %v", server.Requests(t))
	}
}

// forward puts a proxy before a server and returns the settings to use it.
func forward(t testing.TB, server *s3server.Server, request func(*httputil.ProxyRequest), response func(*http.Response) error) s3sink.Config {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL.Scheme, p.Out.URL.Host = target.Scheme, target.Host
		p.Out.Host = p.In.Host // it is signed
		request(p)
	}, ModifyResponse: response, ErrorLog: log.New(io.Discard, "", 0)})
	t.Cleanup(front.Close)
	cfg := s3Config(server, "front")
	cfg.Endpoint = front.URL
	return cfg
}

func TestListOverPages(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	root := filepath.Join(server.Dir, "pages", "d")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	const n = 2000
	for i := range n {
		name := filepath.Join(root, fmt.Sprintf("%03d-%d", i/10, i%10))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for info, err := range openS3(t, server, "pages", "korvet").List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if len(got) != n || !slices.IsSorted(got) || len(slices.Compact(got)) != n {
		t.Errorf("%d keys", len(got))
	}
	if calls := server.Requests(t)["ListObjectsV2"]; calls != 3 {
		t.Errorf("%d list requests", calls)
	}
}

//fault:store | Bucket, keys, region, certificate, scheme or address are wrong | A real server, with each setting wrong in turn | One line that names the setting
func TestRealServerSays(t *testing.T) {
	plain, secure := s3server.Start(t, s3server.Options{}), s3server.Start(t, s3server.Options{TLS: true})
	for name, c := range map[string]struct {
		server *s3server.Server
		change func(*s3sink.Config)
		class  s3sink.Class
		says   string
	}{
		"no bucket":      {plain, func(c *s3sink.Config) { c.URL = "s3://other/x" }, s3sink.ClassNoBucket, "create the bucket"},
		"wrong secret":   {plain, func(c *s3sink.Config) { c.SecretAccessKey = "wrong" }, s3sink.ClassCredentials, "s3.secret-access-key"},
		"wrong key":      {plain, func(c *s3sink.Config) { c.AccessKeyID = "NOBODY" }, s3sink.ClassCredentials, "s3.access-key-id"},
		"wrong region":   {plain, func(c *s3sink.Config) { c.Region = "eu-west-1" }, s3sink.ClassWrongRegion, "s3.region"},
		"no CA":          {secure, func(c *s3sink.Config) { c.CAFile = "" }, s3sink.ClassInvalid, "s3.ca-file"},
		"TLS to plain":   {plain, func(c *s3sink.Config) { c.Endpoint = "https" + strings.TrimPrefix(c.Endpoint, "http") }, s3sink.ClassInvalid, "http://"},
		"nobody listens": {plain, func(c *s3sink.Config) { c.Endpoint = "http://127.0.0.1:1" }, s3sink.ClassUnavailable, "connection refused"},
		"no such host":   {plain, func(c *s3sink.Config) { c.Endpoint = "http://nohost.invalid" }, s3sink.ClassUnavailable, "s3.endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := s3Config(c.server, "says")
			c.change(&cfg)
			store := mustOpen(t, cfg, s3sink.Options{Limits: s3sink.Limits{Attempts: 1, Request: 5 * time.Second}})
			_, err := store.Put(t.Context(), storetest.Upload("k", []byte("x")))
			if s3sink.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) {
				t.Errorf("put: class %q: %v", s3sink.ClassOf(err), err)
			}
			problems := store.Check(t.Context())
			if len(problems) == 0 || problems[0].Warning {
				t.Errorf("check: %+v", problems)
			}
		})
	}
}

// TestRegionIsAsked: without a region in the settings or the environment, the
// bucket says where it is.
func TestRegionIsAsked(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	server := s3server.Start(t, s3server.Options{Region: "eu-central-1"})
	cfg := s3Config(server, "region")
	cfg.Region = ""
	store := mustOpen(t, cfg, s3sink.Options{})
	if _, err := store.Put(t.Context(), storetest.Upload("k", []byte("x"))); err != nil {
		t.Error(err)
	}
}
