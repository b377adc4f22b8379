package s3sink

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

//fault:store | The store has no batch deletes | Stubs that say so in seven ways | Objects go singly, and batches are not tried again
func TestStoreWithoutBatches(t *testing.T) {
	for name, no := range map[string]http.HandlerFunc{
		"501":      s3Error(501, "NotImplemented", "A header you provided implies functionality that is not implemented."),
		"501 bare": s3Error(501, "", ""),
		"405":      s3Error(405, "MethodNotAllowed", "The specified method is not allowed against this resource."),
		"400 XML":  s3Error(400, "MalformedXML", ""),
		"400 says": s3Error(400, "InvalidArgument", "Multi-object delete is not supported"),
		"400 bare": s3Error(400, "", ""),
		"form":     s3Error(412, "PreconditionFailed", "Bucket POST must be of the enclosure-type multipart/form-data"),
	} {
		d := &trash{}
		b := newBench(t, Limits{}, no, d.ServeHTTP)
		mustAnswer(t, b, 1500, "")
		mustAnswer(t, b, 3, "")
		if got := d.ways(); got != "[] 1503" {
			t.Errorf("%s: it went as %s", name, got)
		}
	}
	d := &trash{}
	b := newBench(t, Limits{}, s3Error(400, "BadDigest", ""), d.ServeHTTP)
	mustAnswer(t, b, 2, "k0:invalid k1:invalid")
	if mustAnswer(t, b, 2, ""); d.ways() != "[2] 0" {
		t.Errorf("after a batch that was damaged on its way it went as %s", d.ways())
	}
	if !isGoogle("https://storage.googleapis.com") || isGoogle("") {
		t.Error("the store of Google has no batches, AWS has")
	}
}

func TestEightSingleDeletesAtOnce(t *testing.T) {
	var mu sync.Mutex
	var now, most int
	all := make(chan struct{})
	b := newBench(t, Limits{}, s3Error(501, "NotImplemented", ""), func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		if most = max(most, now); now == deletesAtOnce && most == deletesAtOnce {
			select {
			case <-all:
			default:
				close(all)
			}
		}
		mu.Unlock()
		<-all
		mu.Lock()
		now--
		mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	})
	mustAnswer(t, b, 100, "")
	if most != deletesAtOnce {
		t.Errorf("%d at once", most)
	}
}

// TestStoreFails: when it is not the single object, asking on is no use.
//
//fault:store | The store fails in the middle of thousands of deletions | Stubs for each way | It is not asked for every key, and every key has the error
func TestStoreFails(t *testing.T) {
	for name, c := range map[string]struct {
		batch, single http.HandlerFunc
		class         Class
		most          int
	}{
		"batch":     {s3Error(404, "NoSuchBucket", ""), nil, ClassNoBucket, 1},
		"bare 404":  {s3Error(404, "", ""), nil, ClassNoBucket, 1},
		"denied":    {s3Error(403, "AccessDenied", "Access Denied"), nil, ClassDenied, 1},
		"no bucket": {s3Error(501, "", ""), s3Error(404, "NoSuchBucket", ""), ClassNoBucket, 1 + deletesAtOnce},
		"slow":      {s3Error(501, "", ""), s3Error(503, "SlowDown", "", "Retry-After", "30"), ClassThrottled, 1 + 2*deletesAtOnce},
		"down":      {s3Error(501, "", ""), s3Error(500, "", ""), ClassUnavailable, 1 + 2*2*deletesAtOnce},
	} {
		b := newBench(t, Limits{Attempts: 2}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				c.batch(w, r)
				return
			}
			c.single(w, r)
		})
		errs := b.Delete(t.Context(), numbered(2500))
		if i := slices.IndexFunc(errs, func(err error) bool { return ClassOf(err) != c.class }); i >= 0 {
			t.Errorf("%s: key %d: %v", name, i, errs[i])
		}
		if n := len(b.stub.requests()); n > c.most {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

// TestMissingOrNoBucket: 404 without more is the answer to both.
//
//fault:store | Deletions are answered 404 | A stub with and without a bucket | Gone if the bucket is there, an error if it is not
func TestMissingOrNoBucket(t *testing.T) {
	for status, want := range map[int]string{200: "", 404: "k0:no-bucket k1:no-bucket", 403: "k0:denied k1:denied"} {
		var heads int
		b := newBench(t, Limits{}, s3Error(501, "", ""), func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				heads++
				w.WriteHeader(status)
				return
			}
			w.WriteHeader(http.StatusNotFound)
		})
		errs := mustAnswer(t, b, 2, want)
		if err := errs[0]; err != nil && !strings.HasPrefix(err.Error(), "delete s3://bucket/root/k0: ") || heads != 1 {
			t.Errorf("%d looks: %v", heads, err)
		}
	}
}

//fault:store | Deletions are refused for a lock or a missing right | Stubs with the words of several stores | The two are told apart
func TestLockedOrDenied(t *testing.T) {
	for _, c := range []struct {
		status        int
		code, message string
		class         Class
	}{
		{403, "AccessDenied", "Access Denied because object protected by object lock.", ClassLocked},
		{403, "AccessDenied", "forbidden by object lock", ClassLocked},
		{400, "InvalidRequest", "Object is WORM protected and cannot be overwritten", ClassLocked},
		{403, "AccessDenied", "The object is under legal hold", ClassLocked},
		{403, "AccessDenied", "Object is subject to the bucket's retention policy", ClassLocked},
		{403, "ObjectUnderActiveHold", "", ClassLocked},
		{409, "FileImmutable", "The object you specified is immutable.", ClassLocked},
		{403, "AccessDenied", "Access Denied", ClassDenied},
		{403, "AccessDenied", "User: u is not authorized to perform: s3:DeleteObject on resource: arn:aws:s3:::bucket/legal-hold/x", ClassDenied},
		{403, "AccessDenied", "no access to bucket/root/worm/retention", ClassDenied},
		{400, "InvalidRequest", "Missing header", ClassInvalid},
	} {
		b := newBench(t, Limits{}, s3Error(c.status, c.code, c.message))
		err := b.Delete(t.Context(), []string{"worm/retention"})[0]
		if ClassOf(err) != c.class || errors.Is(err, ErrLocked) != (c.class == ClassLocked) || len(b.stub.requests()) != 1 {
			t.Errorf("after %d requests: class %s, want %s: %v", len(b.stub.requests()), ClassOf(err), c.class, err)
		}
	}
	// A store that refuses a batch for the sake of one object is asked for each.
	b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost || strings.HasSuffix(r.URL.Path, "/k1") {
			s3Error(403, "AccessDenied", "Access Denied because object protected by object lock.")(w, r)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mustAnswer(t, b, 3, "k1:locked")
	mustAnswer(t, b, 3, "k1:locked")
	if n := len(b.stub.requests()); n != 8 {
		t.Errorf("%d requests: a lock says nothing against batches", n)
	}
}

// TestContextEndsWithinABatch: every key has an answer.
//
//fault:time | The program is told to stop in the middle of a deletion | The context ends during a batch, between single ones and while it waits | Every key has an answer
func TestContextEndsWithinABatch(t *testing.T) {
	for name, c := range map[string]struct {
		no http.HandlerFunc
		at int // which request the context does not outlive
	}{"batch": {nil, 2}, "single": {s3Error(501, "", ""), 50}} {
		ctx, cancel := context.WithCancel(t.Context())
		d := &trash{}
		var seen int
		b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
			if c.no != nil && r.Method == http.MethodPost {
				c.no(w, r)
				return
			}
			d.ServeHTTP(w, r)
			d.mu.Lock()
			defer d.mu.Unlock()
			if seen++; seen == c.at {
				cancel()
			}
		})
		errs := b.Delete(ctx, numbered(2500))
		cancel()
		var gone int
		for _, err := range errs {
			switch {
			case err == nil:
				gone++
			case !errors.Is(err, context.Canceled):
				t.Fatalf("%s: %v", name, err)
			}
		}
		if len(errs) != 2500 || gone == 0 || gone > 2000 {
			t.Errorf("%s: %d of %d keys are gone", name, gone, len(errs))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, Limits{}, (&trash{refuse: func(string) (string, string) { return "SlowDown", "" }}).ServeHTTP)
	b.opt.Sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return sleep(ctx, time.Hour)
	}
	for _, err := range b.Delete(ctx, numbered(3)) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("while it waits: %v", err)
		}
	}
}

func TestKeyAndPrefixAreTooLong(t *testing.T) {
	d := &trash{}
	b := newBench(t, Limits{}, d.ServeHTTP)
	errs := b.Delete(t.Context(), []string{"a", strings.Repeat("k", 1020), "b"})
	if errs[0] != nil || errs[2] != nil || ClassOf(errs[1]) != ClassInvalid || d.ways() != "[2] 0" {
		t.Errorf("%v by %s", errs, d.ways())
	}
}
