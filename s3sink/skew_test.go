package s3sink_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
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

//fault:store | The store goes on refusing a request for the clock | A front that refuses every signature and tells a time 20 minutes ahead | Three attempts, then one line with the difference and what to do
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
	if s3sink.ClassOf(err) != s3sink.ClassClockSkew || !says || asked != 3 {
		t.Errorf("after %d attempts: %v", asked, err)
	}
}

// clocks is a store without a memory whose clock for signatures and whose Date
// are apart. It says why it refuses a signature, but to a HEAD.
type clocks struct {
	signed, dated time.Duration // ahead of this host's
	together      int           // how many refusals wait for one another; 0 = none does
	late          int           // how many requests count as signed long ago, whatever they say

	mu      sync.Mutex
	arrived *sync.WaitGroup
	refused int
	asked   int
}

func (c *clocks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	w.Header().Set("Date", time.Now().Add(c.dated).UTC().Format(http.TimeFormat))
	good := err == nil && time.Now().Add(c.signed).Sub(signed).Abs() < 5*time.Minute
	good, wait := c.note(good)
	if wait != nil {
		wait.Done()
		wait.Wait()
	}
	if !good {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>RequestTimeTooSkewed</Code><Message>too large</Message></Error>")
		return
	}
	w.Header().Set("ETag", `"x"`)
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
}

// note counts a request, and says whether it is served and what it has to wait
// for before its answer.
func (c *clocks) note(good bool) (bool, *sync.WaitGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if good && c.asked > c.late {
		return true, nil
	}
	if c.refused++; c.refused > c.together {
		return false, nil
	}
	return false, c.arrived
}

// set lets the store go by other clocks and counts anew.
func (c *clocks) set(signed, dated time.Duration, together int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signed, c.dated, c.together, c.late, c.asked, c.refused = signed, dated, together, 0, 0, 0
	c.arrived = new(sync.WaitGroup)
	c.arrived.Add(together)
}

func (c *clocks) open(t *testing.T) s3sink.Store {
	t.Helper()
	front := httptest.NewServer(c)
	t.Cleanup(front.Close)
	return mustOpen(t, s3sink.Config{URL: "s3://bucket/root", Endpoint: front.URL, Region: "us-east-1", AccessKeyID: "a", SecretAccessKey: "verysecret"},
		s3sink.Options{Limits: s3sink.Limits{BackoffBase: time.Millisecond}})
}

// Each of them is told of the same clock, and only the first one has to set it.
//
//fault:store | The clock is proved wrong to several requests in flight at once | A stub that refuses four together, 20 minutes ahead, then 20 behind, then by this host's clock | Each is signed again and goes through
func TestWrongClockOfManyAtOnce(t *testing.T) {
	const n = 4
	var front clocks
	store := front.open(t)
	for _, ahead := range []time.Duration{20 * time.Minute, -20 * time.Minute, 0} {
		front.set(ahead, ahead, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if _, err := store.Put(t.Context(), storetest.Upload(fmt.Sprint("k", i), []byte("x"))); err != nil {
					t.Errorf("%s: %v", ahead, err)
				}
			})
		}
		wg.Wait()
		front.set(ahead, ahead, 0)
		if _, err := store.Put(t.Context(), storetest.Upload("k", []byte("x"))); err != nil || front.asked != 1 {
			t.Errorf("%s: afterwards: %v after %d requests", ahead, err, front.asked)
		}
	}
}

// A refusal that passes must not leave a clock behind that was measured against
// a proxy's.
//
//fault:store | A request is refused for the clock, and the Date of the answer is a proxy's and an hour off | A stub that calls one request late, that no clock suits for a while, and whose Date is right for a while | The clock of the Date is tried and dropped, what was refused once goes through, and so does all that follows
func TestClockOfTheDateIsNotTheStores(t *testing.T) {
	var front clocks
	store := front.open(t)
	put := func(key string) error {
		_, err := store.Put(t.Context(), storetest.Upload(key, []byte("x")))
		return err
	}
	front.set(0, time.Hour, 0)
	front.late = 1
	if err := put("late"); err != nil || front.asked != 3 {
		t.Errorf("late once: %v after %d requests", err, front.asked)
	}
	front.set(2*time.Hour, time.Hour, 0) // no clock is right
	if err := put("a"); s3sink.ClassOf(err) != s3sink.ClassClockSkew || front.asked != 3 {
		t.Errorf("after %d requests: %v", front.asked, err)
	}
	front.set(0, time.Hour, 0)
	if err := put("b"); err != nil || front.asked != 1 {
		t.Errorf("afterwards: %v after %d requests", err, front.asked)
	}
	front.set(time.Hour, time.Hour, 0) // the Date is the store's, for once
	if err := put("c"); err != nil || front.asked != 2 {
		t.Errorf("by the clock of the Date: %v after %d requests", err, front.asked)
	}
	front.set(0, time.Hour, 0)
	for _, asked := range []int{2, 1} {
		front.asked = 0
		if err := put("d"); err != nil || front.asked != asked {
			t.Errorf("by this host's clock again: %v after %d requests, want %d", err, front.asked, asked)
		}
	}
}

// A HEAD has no words for why it is refused; what it hints at is for itself.
//
//fault:store | This host's clock is wrong and a HEAD is answered 403 without a word | A stub 20 minutes ahead | The HEAD is repeated by the clock of the Date, no other request is until one was refused by the code
func TestWrongClockOfAHead(t *testing.T) {
	var front clocks
	store := front.open(t)
	front.set(20*time.Minute, 20*time.Minute, 0)
	for range 2 {
		front.asked = 0
		if _, err := store.Stat(t.Context(), "k"); err != nil || front.asked != 2 {
			t.Errorf("stat: %v after %d requests", err, front.asked)
		}
	}
	front.asked = 0
	if _, err := store.Put(t.Context(), storetest.Upload("k", []byte("x"))); err != nil || front.asked != 2 {
		t.Errorf("put: %v after %d requests", err, front.asked)
	}
	front.asked = 0
	if _, err := store.Stat(t.Context(), "k"); err != nil || front.asked != 1 {
		t.Errorf("stat by the clock that is known: %v after %d requests", err, front.asked)
	}
}

// A real server behind a proxy that writes its own Date, which is wrong, while
// the server's clock is right.
//
//fault:store | A proxy before the store dates its answers an hour off, and one HEAD is refused | A real server behind such a front, which answers one look with 403 | The look is denied and says what may be the matter, everything else goes on
func TestDateOfAProxy(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	var mu sync.Mutex
	heads := 0
	front := forward(t, server, func(*httputil.ProxyRequest) {}, func(res *http.Response) error {
		res.Header.Set("Date", time.Now().Add(time.Hour+30*time.Second).UTC().Format(http.TimeFormat))
		if res.Request.Method == http.MethodHead && strings.HasSuffix(res.Request.URL.Path, "/not-mine") {
			res.StatusCode = http.StatusForbidden
			mu.Lock()
			defer mu.Unlock()
			heads++
		}
		return nil
	})
	store := mustOpen(t, front, s3sink.Options{})
	_, err := store.Stat(t.Context(), "not-mine")
	if !errors.Is(err, s3sink.ErrUnknown) || !strings.Contains(err.Error(), "allow s3:GetObject") || !strings.Contains(err.Error(), "this host's clock is wrong: it is off by -1h0m") {
		t.Errorf("stat: %v", err)
	}
	if heads != 4 { // with and without the checksum, by either clock
		t.Errorf("%d looks, want 4", heads)
	}
	for _, key := range []string{"a", "b"} {
		if _, err := store.Put(t.Context(), storetest.Upload(key, []byte("x"))); err != nil {
			t.Errorf("put: %v", err)
		}
	}
	if _, err := store.Stat(t.Context(), "a"); err != nil {
		t.Errorf("stat of what is there: %v", err)
	}
}
