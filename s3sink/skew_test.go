package s3sink_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
	"korvet-offload/s3sink/storetest"
)

// skewed puts a real server behind a front whose clock is ahead of this host's,
// and which accepts only what was signed by a clock like its own. What comes
// through is checked by the real server, signature and all.
type skewed struct {
	ahead   time.Duration
	refused int
	cfg     s3sink.Config
}

func newSkewed(t *testing.T, server *s3server.Server, ahead time.Duration) *skewed {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	s := &skewed{ahead: ahead}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = target.Scheme, target.Host, p.In.Host
	}, ModifyResponse: func(res *http.Response) error {
		res.Header.Set("Date", s.date())
		return nil
	}, ErrorLog: log.New(io.Discard, "", 0)}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err == nil && time.Now().Add(s.ahead).Sub(signed).Abs() < 5*time.Minute {
			proxy.ServeHTTP(w, r)
			return
		}
		s.refused++
		w.Header().Set("Date", s.date())
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the current time is too large.</Message></Error>")
	}))
	t.Cleanup(front.Close)
	s.cfg = s3Config(server, "skewed")
	s.cfg.Endpoint = front.URL
	return s
}

func (s *skewed) date() string { return time.Now().Add(s.ahead).UTC().Format(http.TimeFormat) }

// The real server accepts clocks that are off by a quarter of an hour, so that
// ten minutes show what there is to see.
//
//fault:store | This host's clock is wrong and the store answers RequestTimeTooSkewed | A front with a clock of its own before a real server, both ways, then set right | Requests are signed again by the store's clock, once each, and every operation works
func TestWrongClockIsMadeGood(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		front := newSkewed(t, server, ahead)
		front.cfg.URL += fmt.Sprint(ahead.Seconds())
		store := mustOpen(t, front.cfg, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet"}})
		if ok, err := store.CreateOnly(t.Context()); !ok || err != nil {
			t.Fatalf("%s: create-only: %v, %v", ahead, ok, err)
		}
		for _, u := range []s3sink.Upload{storetest.Upload("a b/ü:0", storetest.Body(1, 2<<20)), storetest.Upload("large", storetest.Body(2, 11<<20))} {
			if _, err := store.Put(t.Context(), u); err != nil {
				t.Fatalf("%s: put: %v", ahead, err)
			}
			if info, err := store.Stat(t.Context(), u.Key); err != nil || info.SHA256 != u.SHA256 {
				t.Errorf("%s: stat: %+v, %v", ahead, info, err)
			}
		}
		for _, err := range store.List(t.Context(), "") {
			if err != nil {
				t.Errorf("%s: list: %v", ahead, err)
			}
		}
		if front.refused != 1 {
			t.Errorf("%s: %d requests were refused, want the first one", ahead, front.refused)
		}
		front.ahead = 0 // somebody has set the clock right
		for i, err := range store.Delete(t.Context(), []string{"a b/ü:0", "large"}) {
			if err != nil {
				t.Errorf("%s: delete %d: %v", ahead, i, err)
			}
		}
		if front.refused != 2 {
			t.Errorf("%s: %d requests were refused, want two", ahead, front.refused)
		}
	}
}

//fault:store | The store goes on refusing a request for the clock | A front that refuses every signature and tells a time 20 minutes ahead | Two attempts, then one line with the difference and what to do
func TestClockThatCannotBeMadeGood(t *testing.T) {
	var asked int
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Date", time.Now().Add(20*time.Minute).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>RequestTimeTooSkewed</Code><Message>too large</Message></Error>")
	}))
	defer front.Close()
	store := mustOpen(t, s3sink.Config{URL: "s3://bucket/root", Endpoint: front.URL, Region: "us-east-1", AccessKeyID: "a", SecretAccessKey: "verysecret"},
		s3sink.Options{Limits: s3sink.Limits{BackoffBase: time.Millisecond}})
	_, err := store.Put(t.Context(), storetest.Upload("k", []byte("x")))
	says := strings.Contains(err.Error(), "put s3://bucket/root/k: ") && strings.Contains(err.Error(), "this host's clock is off by -") && strings.Contains(err.Error(), "NTP")
	if s3sink.ClassOf(err) != s3sink.ClassClockSkew || !says || asked != 2 {
		t.Errorf("after %d attempts: %v", asked, err)
	}
}
