package test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/internal/testkit/stage"
	"korvet-offload/segment"
)

// deadly stands between the worker and its store, and kills the worker at one
// request.
type deadly struct {
	behind http.Handler
	at     string // the request that it dies of; "" = none
	after  bool   // when it has been answered, not when it comes

	mu     sync.Mutex
	worker *stage.Process // nil once it is dead
	killed bool
	count  map[string]int
	seen   []string // the requests, each with its number among its kind
}

func newDeadly(t *testing.T, endpoint string) *deadly {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host // its Host stays: it is signed
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // the worker is dead
	}
	return &deadly{behind: proxy, count: map[string]int{}}
}

func (d *deadly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := d.name(r)
	if name == d.at && !d.after {
		d.kill()
	}
	if name != d.at || !d.after {
		d.behind.ServeHTTP(w, r)
		return
	}
	kept := httptest.NewRecorder()
	d.behind.ServeHTTP(kept, r)
	d.kill()
}

// name names a request by what it does and how many of its kind came before.
func (d *deadly) name(r *http.Request) string {
	kind := r.Method
	for _, word := range []string{"uploads", "partNumber", "uploadId", "delete", "list-type"} {
		if r.URL.Query().Has(word) {
			kind += " " + word
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count[kind]++
	name := fmt.Sprintf("%s %d", kind, d.count[kind])
	d.seen = append(d.seen, name)
	return name
}

func (d *deadly) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.worker != nil {
		d.worker.Kill()
		d.worker, d.killed = nil, true
	}
}

// hunt says which worker is to be killed next.
func (d *deadly) hunt(p *stage.Process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.killed {
		d.worker = p
	}
}

// s3Life is the life of a large segment, which goes up in parts, and of a
// small one, on a real S3 server.
type s3Life struct {
	*stage.Stage
	t     *testing.T
	proxy *deadly
}

// bigBytes is more than the smallest part has.
const bigBytes = 1_100_000

func newS3Life(t *testing.T, s3 *s3server.Server, folder string) *s3Life {
	t.Helper()
	l := &s3Life{t: t, Stage: stage.New(t, faultyProgram(t)), proxy: newDeadly(t, s3.Endpoint)}
	front := httptest.NewServer(l.proxy)
	t.Cleanup(front.Close)
	l.Root = filepath.Join(s3.Dir, folder)
	l.Env = append(l.Env,
		"KORVET_STORAGE_REMOTE_PATH=s3://"+s3.Bucket+"/"+folder,
		"KORVET_STORAGE_S3_ENDPOINT="+front.URL,
		"KORVET_STORAGE_S3_REGION="+s3.Region,
		"KORVET_STORAGE_S3_ACCESS_KEY_ID="+s3.Access,
		"KORVET_STORAGE_S3_SECRET_ACCESS_KEY="+s3.Secret,
		"KORVET_STORAGE_S3_MULTIPART_THRESHOLD=1MB",
		"KORVET_STORAGE_S3_PART_SIZE=5MB",
		"KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0",
		"KORVET_STORAGE_OFFLOAD_DELETE_GRACE=0",
		"KORVET_STORAGE_OFFLOAD_CONCURRENCY=1", // the same requests every time
	)
	return l
}

func s3Parts() []segment.Partition {
	return []segment.Partition{{Topic: "big"}, {Topic: "small"}}
}

func (l *s3Life) run() {
	for _, p := range s3Parts() {
		l.Topic(p.Topic, "segment.ms", "1", "retention.ms", "-1", "local.retention.ms", "-2")
	}
	l.pass(2) // the first segments are there
	l.Pad = bigBytes
	l.MustAppend(s3Parts()[0], l.Layout.SegmentKey(s3Parts()[0], 0), 6)
	l.Pad = 0
	l.MustAppend(s3Parts()[1], l.Layout.SegmentKey(s3Parts()[1], 0), 6)
	l.pass(2) // rolled, copied
	for _, p := range s3Parts() {
		l.Topic(p.Topic, "local.retention.ms", "1")
	}
	l.pass(1) // dropped
	l.Topic("small", "retention.ms", "1")
	l.pass(4) // hidden, deleted
}

// pass makes passes; one whose worker was killed is made again.
func (l *s3Life) pass(n int) {
	l.t.Helper()
	for range n {
		l.Ahead(lifeStep)
		p := l.Start(nil, "run", "--once", "--output", "json")
		l.proxy.hunt(p)
		if !p.Wait(time.Minute) {
			l.t.Fatalf("a pass does not end; its log:\n%s", p.Log())
		}
		if p.Killed() {
			l.FreeLease()
			p = l.Once()
		}
		if p.Code() != 0 {
			l.t.Fatalf("a pass ends with %d; its log:\n%s", p.Code(), p.Log())
		}
	}
}

func (l *s3Life) judge() {
	l.t.Helper()
	may := func(a checker.Ack) string {
		if a.Partition == s3Parts()[1].String() {
			return "expired"
		}
		return ""
	}
	r := l.Judge(s3Parts(), checker.Rules{May: may, Settled: true})
	for _, f := range r.Findings {
		l.t.Errorf("%s", f)
	}
	if big := l.Entry(s3Parts()[0], 0); big.Local != segment.Gone || big.Object.Bytes < 6*bigBytes || r.Tally.OnStore != 6 {
		l.t.Errorf("entry %s, %+v", big.Encode(), r.Tally)
	}
	if small := l.Entry(s3Parts()[1], 0); small.State != "" {
		l.t.Errorf("it did not expire: %s", small.Encode())
	}
}

// Killed at any request to a real S3 server, each part of an upload and its
// completion among them, the worker leaves nothing that stands in the way of
// the next one: not an upload that was begun, not a part, not an object that
// came to be without the worker's knowing.
//
//fault:crash | the worker is killed while it speaks to S3, in the middle of a multipart upload too | a proxy kills it when the n-th request of a kind comes, or when the store has answered it | the next worker copies, drops and deletes the same segments, and no message is lost or doubled
func TestCrashAtEveryRequest(t *testing.T) {
	s3 := s3server.Start(t, s3server.Options{})
	whole := newS3Life(t, s3, "whole")
	whole.run()
	whole.judge()
	for _, want := range []string{"POST uploads 1", "PUT partNumber 2", "POST uploadId 1"} {
		if !slices.Contains(whole.proxy.seen, want) {
			t.Errorf("no request %q among %q", want, whole.proxy.seen)
		}
	}
	t.Run("killed", func(t *testing.T) { // ends before the server does
		for i, request := range whole.proxy.seen {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s after=%t", request, after), func(t *testing.T) {
					t.Parallel()
					l := newS3Life(t, s3, fmt.Sprintf("life-%d-%t", i, after))
					l.proxy.at, l.proxy.after = request, after
					l.run()
					l.judge()
					if !l.proxy.killed {
						t.Error("the worker was not killed")
					}
				})
			}
		}
	})
}
