package ops

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const secret = "a long token that nobody guesses"

// site says which path was asked for.
func site() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "site "+r.Method+" "+r.URL.Path)
	})
}

// form is a login form, in short.
func form(w http.ResponseWriter, _ *http.Request, next string, wrong bool) {
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = fmt.Fprintf(w, "form next=%s wrong=%t", next, wrong)
}

func guarded(token string) http.Handler {
	c := DefaultConfig()
	c.Token, c.Pprof = token, true
	return Handler(c, NewHealth(func() error { return nil }), Mounts{Metrics: site(), Site: site(), Login: form})
}

// ask sends a request with headers, in pairs.
func ask(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWhoMayAsk(t *testing.T) {
	const bearer = "Bearer " + secret
	for _, tt := range []struct {
		token, method, path string
		headers             []string
		want                int
	}{
		{"", "GET", "/", nil, 200},
		{"", "GET", "/metrics", nil, 200},
		{"", "HEAD", "/api/v1/status", nil, 200},
		{"", "POST", "/api/v1/pause", nil, 403},
		{"", "POST", "/api/v1/pause", []string{"Authorization", bearer}, 403},
		{"", "DELETE", "/", nil, 403},
		{"", "POST", "/login", nil, 403},
		{secret, "GET", "/livez", nil, 200},
		{secret, "GET", "/static/style.css", nil, 200},
		{secret, "POST", "/static/style.css", nil, 401},
		{secret, "GET", "/metrics", nil, 401},
		{secret, "GET", "/", nil, 401},
		{secret, "GET", "/debug/pprof/cmdline", nil, 401},
		{secret, "GET", "/debug/pprof/cmdline", []string{"Authorization", bearer}, 200},
		{secret, "GET", "/metrics", []string{"Authorization", bearer}, 200},
		{secret, "GET", "/metrics", []string{"Authorization", "bearer  " + secret}, 200},
		{secret, "GET", "/metrics", []string{"Authorization", secret}, 401},
		{secret, "GET", "/metrics", []string{"Authorization", "Basic " + secret}, 401},
		{secret, "GET", "/metrics", []string{"Authorization", bearer + "x"}, 401},
		{secret, "GET", "/metrics", []string{"Authorization", bearer[:len(bearer)-1]}, 401},
		{secret, "GET", "/metrics", []string{"Authorization", "Bearer"}, 401},
		{secret, "GET", "/metrics?token=" + url.QueryEscape(secret), nil, 401},
		{secret, "POST", "/api/v1/pause", nil, 401},
		{secret, "POST", "/api/v1/pause", []string{"Authorization", bearer}, 200},
		{secret, "GET", "//metrics", nil, 307}, // to /metrics, which asks for it
		{secret, "GET", "/static/../metrics", nil, 307},
	} {
		path := strings.Split(tt.path, "?")[0]
		if w := ask(guarded(tt.token), tt.method, tt.path, "", tt.headers...); w.Code != tt.want {
			t.Errorf("%s %s with token %t and %q: %d, want %d (%s)", tt.method, path, tt.token != "", tt.headers, w.Code, tt.want, w.Body)
		}
	}
	w := ask(guarded(secret), "GET", "/metrics", "")
	if !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer ") || strings.Contains(w.Body.String(), secret) {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
}

// login shows a token as a browser does.
func login(h http.Handler, token, next string, headers ...string) *httptest.ResponseRecorder {
	body := url.Values{"token": {token}, "next": {next}}.Encode()
	return ask(h, "POST", "/login", body, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

func TestLoginOfABrowser(t *testing.T) {
	const site = "Sec-Fetch-Site"
	h := guarded(secret)
	if w := ask(h, "GET", "/partition?n=1", "", "Accept", "text/html,*/*"); w.Code != 401 || w.Body.String() != "form next=/partition?n=1 wrong=false" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/login", ""); w.Code != 401 || w.Body.String() != "form next=/ wrong=false" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := login(h, "wrong", "/x", site, "same-origin"); w.Code != 401 || w.Body.String() != "form next=/x wrong=true" || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	if w := login(h, secret, "/", site, "cross-site"); w.Code != 403 || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("from another site: %d %v", w.Code, w.Header())
	}
	w := login(h, secret, "/?q=x", site, "same-origin")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/?q=x" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	set := w.Header().Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie lacks %s: %s", want, set)
		}
	}
	if strings.Contains(set, secret) || strings.Contains(set, "Secure") {
		t.Errorf("the cookie is %s", set)
	}
	cookie, _, _ := strings.Cut(set, ";")
	for _, tt := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/", nil, 200},
		{"GET", "/metrics", nil, 200},
		{"POST", "/api/v1/pause", []string{site, "same-origin"}, 200},
		{"POST", "/api/v1/pause", []string{"Origin", "http://example.com"}, 200}, // the host of the request
		{"POST", "/api/v1/pause", []string{"Origin", "http://evil.example"}, 403},
		{"POST", "/api/v1/pause", []string{"Origin", "null"}, 403},
		{"POST", "/api/v1/pause", []string{site, "cross-site"}, 403},
		{"POST", "/api/v1/pause", []string{site, "same-site"}, 403},
		{"POST", "/api/v1/pause", nil, 403},
	} {
		if w := ask(h, tt.method, tt.path, "", append([]string{"Cookie", cookie}, tt.headers...)...); w.Code != tt.want {
			t.Errorf("%s %s with %q: %d, want %d", tt.method, tt.path, tt.headers, w.Code, tt.want)
		}
	}
	if w := ask(guarded("another token"), "GET", "/", "", "Cookie", cookie); w.Code != 401 {
		t.Errorf("a cookie of another token: %d", w.Code)
	}
	w = ask(h, "POST", "/logout", "", "Cookie", cookie, site, "same-origin")
	if w.Code != http.StatusSeeOther || !strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(h, "GET", "/logout", "", "Cookie", cookie); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET /logout: %d", w.Code)
	}
}

func TestCookiesThatAreNotGood(t *testing.T) {
	g := newGuard(Config{Token: secret, CertFile: "x"}, form)
	g.now = func() time.Time { return time.Unix(1000, 0) }
	good := g.seal(time.Unix(2000, 0))
	for _, tt := range []struct {
		value string
		want  bool
	}{
		{good, true}, {g.seal(time.Unix(1000, 0)), false}, {"", false}, {"9999", false}, {"9999." + strings.Repeat("0", 64), false},
		{strings.Replace(good, "2000", "3000", 1), false}, {strings.Replace(good, "2000", "02000", 1), false}, {good + "0", false}, {"x" + good, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: cookieName, Value: tt.value})
		if got := g.cookie(r); got != tt.want {
			t.Errorf("%q: %t", tt.value, got)
		}
	}
	w := httptest.NewRecorder()
	if g.setCookie(w, "x", 1); !strings.Contains(w.Header().Get("Set-Cookie"), "Secure") {
		t.Errorf("with TLS: %v", w.Header())
	}
}

func TestWhereABrowserIsSent(t *testing.T) {
	for next, want := range map[string]string{"/": "/", "/?q=a%20b#topics": "/?q=a%20b#topics", "": "/", "x": "/", "//evil.example": "/", "https://evil.example": "/",
		`/\evil.example`: "/", "/\t/evil.example": "/", "javascript:alert(1)": "/", "/%zz": "/", "/\r\nSet-Cookie: x=1": "/"} {
		if got := ownPath(next); got != want {
			t.Errorf("%q: %q, want %q", next, got, want)
		}
	}
}

func TestBodiesAndRequestsAreBounded(t *testing.T) {
	read := make(chan error, 1)
	h := Handler(Config{Token: secret}, NewHealth(func() error { return nil }), Mounts{Site: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := fmt.Fscan(r.Body, new(string))
		read <- err
	})})
	ask(h, "POST", "/", strings.Repeat("x", maxBody+1), "Authorization", "Bearer "+secret)
	if err := <-read; err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a body of %d bytes: %v", maxBody+1, err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	h = Handler(Config{}, NewHealth(func() error { return nil }), Mounts{Site: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})})
	done := make(chan int)
	for range maxAtOnce {
		go func() { done <- ask(h, "GET", "/", "").Code }()
		<-entered
	}
	if w := ask(h, "GET", "/", ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d %v", w.Code, w.Header())
	}
	if w := ask(h, "GET", "/livez", ""); w.Code != http.StatusOK {
		t.Errorf("a probe meanwhile: %d", w.Code)
	}
	close(leave)
	for range maxAtOnce {
		if code := <-done; code != http.StatusOK {
			t.Error(code)
		}
	}
}

// stuck is a body that says when it is waited for, and comes when it may.
type stuck struct{ waited, comes chan struct{} }

func (s stuck) Read([]byte) (int, error) {
	s.waited <- struct{}{}
	<-s.comes
	return 0, io.EOF
}

// Who has not shown the token takes no place of those who have.
func TestLoginsHaveTheirOwnPlaces(t *testing.T) {
	h := guarded(secret)
	body, done := stuck{make(chan struct{}), make(chan struct{})}, make(chan struct{})
	logIn := func() int {
		r := httptest.NewRequest(http.MethodPost, "/login", body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for range maxLogins {
		go func() { logIn(); done <- struct{}{} }()
		<-body.waited
	}
	if code := logIn(); code != http.StatusServiceUnavailable {
		t.Errorf("one more login: %d", code)
	}
	for range maxAtOnce {
		if w := ask(h, "GET", "/metrics", "", "Authorization", "Bearer "+secret); w.Code != http.StatusOK {
			t.Errorf("with the token: %d", w.Code)
		}
	}
	close(body.comes)
	for range maxLogins {
		<-done
	}
}

// A body that does not come, and an answer that is not taken, do not hold a
// request for ever; profiles take as long as who may have them asks.
func TestRequestsHaveTheirTime(t *testing.T) {
	c := DefaultConfig()
	c.Token, c.Pprof = secret, true
	h := Handler(c, NewHealth(nil), Mounts{})
	for _, tt := range []struct {
		path, shown string
		want        bool
	}{
		{"/", secret, true}, {"/metrics", secret, true}, {"/debug/pprof/cmdline", secret, false},
		{"/debug/pprof/cmdline", "", true}, {"/debug/pprof/none", "", true}, {"/debug/pprof/x/../../..", "", true},
	} {
		w := &clocked{ResponseRecorder: httptest.NewRecorder(), read: time.Now(), write: time.Now()}
		r := httptest.NewRequest(http.MethodGet, tt.path, nil)
		r.Header.Set("Authorization", "Bearer "+tt.shown)
		h.ServeHTTP(w, r)
		read, write := time.Until(w.read), time.Until(w.write)
		if w.read.IsZero() == tt.want || w.write.IsZero() == tt.want || tt.want && (read > requestTime || read < 0 || write > answerTime || write < 0) {
			t.Errorf("%s with token %q: %s to read, %s to write", tt.path, tt.shown, read, write)
		}
	}
}

// clocked keeps the times that it is given.
type clocked struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (c *clocked) SetReadDeadline(t time.Time) error {
	c.read = t
	return nil
}

func (c *clocked) SetWriteDeadline(t time.Time) error {
	c.write = t
	return nil
}
