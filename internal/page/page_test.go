package page

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/board"
	"korvet-offload/internal/testkit/scans"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

func start() time.Time { return time.UnixMilli(1_700_000_000_000).UTC() }

// rig is a site that shows the scans of a world.
type rig struct {
	t     *testing.T
	world *scans.World
	board *board.Board
	site  *Site
	paus  *pauser
}

// newRig is a site with topics, each partition in the letters of scans.States. A
// name with a colon is that of a plain stream.
func newRig(t *testing.T, topics map[string][]string) *rig {
	t.Helper()
	r := &rig{t: t, paus: &pauser{}, world: &scans.World{At: start(), Fields: func(p segment.Partition) map[string]string {
		return scans.States(topics[p.Topic][p.Number], start())
	}}}
	for name, parts := range topics {
		if strings.Contains(name, ":") {
			r.world.Plain(name)
		} else {
			r.world.Topic(name, len(parts))
		}
	}
	r.board = board.New(board.Config{Instance: board.Instance{Host: "host-a", Namespace: "korvet", StartedAt: start()}, SLA: time.Hour, Enabled: true}, board.Sources{})
	var err error
	if r.site, err = New(Options{Board: r.board, Tick: time.Minute, Pauser: func() Pauser { return r.paus }}); err != nil {
		t.Fatal(err)
	}
	return r
}

// lead begins to lead, and scans.
func (r *rig) lead() *rig {
	r.t.Helper()
	cfg := offload.DefaultConfig()
	cfg.Roll = false
	s, plan, err := scans.Scan(r.t.Context(), r.world.Worker(cfg, nil), cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.board.Leads()
	r.board.Scanned(s)
	r.board.Planned(plan)
	return r
}

// ask sends a request.
func (r *rig) ask(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.site.ServeHTTP(w, req)
	return w
}

// get is the text of a page that must be there.
func (r *rig) get(target string) string {
	r.t.Helper()
	w := r.ask(http.MethodGet, target, "")
	if w.Code != http.StatusOK {
		r.t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	return w.Body.String()
}

// must checks that a page has texts, and lacks those that begin with "!".
func (r *rig) must(page string, texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		if lacks, not := strings.CutPrefix(text, "!"); not && strings.Contains(page, lacks) {
			r.t.Errorf("it has %q", lacks)
		} else if !not && !strings.Contains(page, text) {
			r.t.Errorf("it lacks %q", text)
		}
	}
	if r.t.Failed() {
		r.t.Log(page)
	}
}

func TestThePage(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"rrbso", "o"}, "payments": {"rrsso"}, "clicks:raw": {"bo"}}).lead()
	r.board.Passed(offload.Report{Duration: time.Second, Phases: []offload.PhaseTime{{Phase: offload.PhaseScan, Duration: time.Second}},
		Outcomes: []offload.Outcome{{Result: offload.Copied, BytesOut: 2048}}}, nil)
	r.board.SetSettings([]board.Setting{{Name: "korvet.namespace", Value: "<korvet>", Source: "flag", From: "--namespace"}})
	page := r.get("/")
	r.must(page, "<title>Healthy · korvet-offload · host-a</title>", "All is well: 3 segments wait", `<a href="/partition?topic=orders&amp;n=1">orders:1</a>`,
		`<a href="/partition?stream=clicks%3Araw">clicks:raw</a>`, `aria-label="oldest to newest: 2 remote only, 1 both tiers, 1 waiting, 1 open"`,
		"1 copied", "2.0 KiB", "&lt;korvet&gt;", `<noscript><meta http-equiv="refresh"`, "!What is stuck", "!Log out")
	r.must(r.get("/partition?topic=orders&n=0"), "<h1>orders:0</h1>", "0–1", "2023-11-14 22:08:20 UTC", `href="/api/v1/partitions/orders/0"`)
	r.must(r.get("/partition?stream=clicks%3Araw"), "<h1>clicks:raw</h1>", "plain stream", `href="/api/v1/streams?key=clicks%3Araw"`)
	for _, path := range []string{"/partition?topic=orders&n=9", "/partition?topic=orders&n=x9", "/partition", "/partition?stream=orders"} {
		if w := r.ask(http.MethodGet, path, ""); w.Code != http.StatusNotFound && !strings.Contains(path, "x9") || strings.Contains(w.Body.String(), "<no value>") {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestWhatIsStuckSaysWhatToDo(t *testing.T) {
	r := newRig(t, map[string][]string{"payments": {"rsso"}}).lead()
	for n := range 14 {
		r.board.Failed(offload.Problem{Topic: "payments", Partition: 0, Segment: fmt.Sprint(n), Reason: offload.ReasonSourceMissing, Err: errors.New("no entries in <b>")})
	}
	page := r.get("/")
	r.must(page, "<title>Trouble", `id="reason-source_missing"`, "the manifest says LOCAL, and the stream has no entries", "<code>DEL</code>",
		`<a href="/partition?topic=payments&amp;n=0">segment payments:0/3</a>`, "no entries in &lt;b&gt;", "… and 4 more", "14 · data seems lost", "4 stuck")
	r.must(r.get("/partition?topic=payments&n=0"), "<code>source_missing</code>", "data seems lost")
}

// Every reason that the program can give has its line in the documentation.
func TestReasonsAreExplained(t *testing.T) {
	r := newRig(t, nil)
	for _, name := range offload.Reasons() {
		if w := r.site.reasons[string(name)]; len(w.means) == 0 || len(w.do) == 0 {
			t.Errorf("%s: %v", name, w)
		}
	}
	if got := r.site.reasons["short_stream"].do[0].Text; got == "as above" || got != r.site.reasons["source_missing"].do[0].Text {
		t.Errorf("what to do about short_stream: %q", got)
	}
}

// hostile are names that somebody may choose to do harm.
func hostile() []string {
	return []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, "javascript:alert(1)", "a\x00b\r\nSet-Cookie: x=1",
		"\u202egnp.exe", "{{.}}", "</title></style><b>", strings.Repeat("n", 5000), "../../etc/passwd", "\xff\xfe", "a b&c=d#e%00"}
}

func TestHostileNames(t *testing.T) {
	topics := map[string][]string{}
	for _, name := range hostile() {
		topics[name+":"] = []string{"rso"} // a plain stream may have any name
	}
	r := newRig(t, topics).lead()
	for _, name := range hostile() {
		r.board.Failed(offload.Problem{Topic: name + ":", Plain: true, Segment: name, Reason: offload.Reason(name), Err: errors.New(name)})
		r.board.SetMembers([]board.Member{{ID: name, Host: name, Version: name, Address: name, Shards: []int{0}}})
		r.board.SetSettings([]board.Setting{{Name: name, Value: name, From: name}})
		r.board.SetPaused(segment.Pauses{List: []segment.Pause{{Scope: segment.Scope{Stream: name + ":"}, By: name, Reason: name}}})
		at := url.QueryEscape(name + ":")
		for _, path := range []string{"/", "/?q=" + url.QueryEscape(name), "/?sort=" + url.QueryEscape(name) + "&only=" + url.QueryEscape(name), "/partition?stream=" + at, "/partition?topic=" + at, "/partition?stream=none" + at} {
			mustBeHarmless(t, path, r.ask(http.MethodGet, path, ""))
		}
		if w := r.ask(http.MethodGet, "/api/v1/streams?key="+at, ""); w.Code != http.StatusOK && !strings.Contains(name, "\xff") {
			t.Errorf("%q: %d %s", name, w.Code, w.Body)
		}
	}
}

var markup = regexp.MustCompile(`(?s)<(script|img|style)[^>]*>`)

// mustBeHarmless checks that nothing in a page comes from a name.
func mustBeHarmless(t *testing.T, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	body := w.Body.String()
	for _, tag := range markup.FindAllString(body, -1) {
		if tag != `<script src="/static/live.js" defer>` {
			t.Errorf("%.60q: it has %q", path, tag)
		}
	}
	if n := strings.Count(body, "<b>") - strings.Count(body, "</b>"); n != 0 {
		t.Errorf("%.60q: %d open <b>", path, n)
	}
	for _, bad := range []string{`href="javascript:`, "onerror=alert(1)>", "' onmouseover='"} {
		if strings.Contains(body, bad) {
			t.Errorf("%.60q: it has %q", path, bad)
		}
	}
	if w.Header().Get("Set-Cookie") != "" {
		t.Errorf("%.60q: %v", path, w.Header())
	}
}

func TestHeaders(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"o"}}).lead()
	for _, path := range []string{"/", "/partition?topic=orders&n=0", "/nothing", "/static/style.css", "/static/live.js", "/api/v1/status", "/api/v1/nothing"} {
		h := r.ask(http.MethodGet, path, "").Header()
		if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") == "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	for path, kind := range map[string]string{"/static/style.css": "text/css; charset=utf-8", "/static/live.js": "text/javascript; charset=utf-8", "/static/icon.svg": "image/svg+xml", "/": "text/html; charset=utf-8"} {
		if got := r.ask(http.MethodGet, path, "").Header().Get("Content-Type"); got != kind {
			t.Errorf("%s: %s, want %s", path, got, kind)
		}
	}
	for _, path := range []string{"/static/", "/static/../page.go", "/template/home.html"} {
		if w := r.ask(http.MethodGet, path, ""); w.Code == http.StatusOK {
			t.Errorf("%s is served", path)
		}
	}
	if w := r.ask(http.MethodPost, "/", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %d", w.Code)
	}
	if strings.Contains(r.get("/"), "style=") || regexp.MustCompile(`\son[a-z]+=`).MatchString(r.get("/")) {
		t.Error("the page has what its own policy refuses")
	}
}

func TestPages(t *testing.T) {
	topics := map[string][]string{}
	for i := range 120 {
		topics[fmt.Sprintf("topic%03d", i)] = []string{"o"}
	}
	r := newRig(t, topics).lead()
	page := r.get("/?q=topic&p=2&tp=2&sort=lag")
	r.must(page, "topic050:0", "topic099:0", "!topic049:0", "!topic100:0", ">topic025<", "51–100 of 120", "26–50 of 120",
		`href="/?p=3&amp;q=topic&amp;sort=lag&amp;tp=2#partitions" rel="next"`, `href="/?p=1&amp;q=topic&amp;sort=lag&amp;tp=2#partitions"`,
		`href="/?p=2&amp;q=topic&amp;sort=lag&amp;tp=5#topics"`, `aria-sort="descending"`, `value="topic"`)
	for _, q := range []string{"p=0", "p=-1", "p=99999999999999999999", "p=x", "tp=-3", "p=1000000&tp=1000000"} {
		r.get("/?" + q)
	}
	r.must(r.get("/?q=none"), "No topic has that in its name", "Show all")
}

func TestTheInstanceThatLeads(t *testing.T) {
	r := newRig(t, nil)
	r.board.Follows()
	r.board.SetMembers([]board.Member{
		{ID: "a-1", Host: "host-a", Self: true, Of: 1, SeenAt: start(), StartedAt: start()},
		{ID: "b-2", Host: "host-b", Address: ":9477", Shards: []int{0}, Of: 1, SeenAt: start(), StartedAt: start()},
	})
	r.must(r.get("/"), "Another instance leads", `<a href="http://host-b:9477/">host-b</a> leads`, "!<h2 id=\"partitions\"", "!SLA</dt>")
}

func TestWhereThePageOfAnotherInstanceIs(t *testing.T) {
	for _, tt := range []struct {
		host, address string
		tls           bool
		want          string
	}{
		{"h", "", false, ""},
		{"h", ":9477", false, "http://h:9477/"},
		{"h", "0.0.0.0:9477", true, "https://h:9477/"},
		{"h", "[::]:9477", false, "http://h:9477/"},
		{"h", "10.1.2.3:80", false, "http://10.1.2.3:80/"},
		{"h", "[fd00::1]:80", false, "http://[fd00::1]:80/"},
		{"h", "https://pod-1.svc:9477/x?y", false, "https://pod-1.svc:9477/"},
		{"h", "127.0.0.1:9477", false, ""},
		{"h", "[::1]:9477", false, ""},
		{"h", "localhost:9477", false, ""},
		{"h", "javascript:alert(1)", false, ""},
		{"h", "x:99999", false, ""},
		{"", ":9477", false, ""},
		{`h"><script>`, ":9477", false, ""},
		{"user@evil", ":9477", false, ""},
		{"h", "a/b:1", false, ""},
	} {
		if got := pageOf(board.Member{Host: tt.host, Address: tt.address}, tt.tls); got != tt.want {
			t.Errorf("%q at %q: %q, want %q", tt.address, tt.host, got, tt.want)
		}
	}
}

func TestLogin(t *testing.T) {
	r := newRig(t, nil)
	for _, wrong := range []bool{false, true} {
		w := httptest.NewRecorder()
		r.site.Login(w, httptest.NewRequest(http.MethodGet, "/", nil), `/?q="><script>`, wrong)
		page := w.Body.String()
		if w.Code != http.StatusUnauthorized || strings.Contains(page, "That is not the token") != wrong || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%d %s", w.Code, page)
		}
		if strings.Contains(page, "<script") || !strings.Contains(page, html.EscapeString(`/?q="><script>`)) {
			t.Error(page)
		}
	}
}

// pauser keeps what it is told.
type pauser struct {
	all segment.Pauses
	err error
}

func (p *pauser) Pause(_ context.Context, scope segment.Scope, by, reason string) (segment.Pause, error) {
	one := segment.Pause{Scope: scope, By: by, Reason: reason, Since: start()}
	if p.err == nil {
		p.all.List = append(p.all.List, one)
	}
	return one, p.err
}

func (p *pauser) Resume(_ context.Context, scope segment.Scope) error {
	var rest []segment.Pause
	for _, one := range p.all.List {
		if one.Scope != scope {
			rest = append(rest, one)
		}
	}
	p.all.List = rest
	return p.err
}

func (p *pauser) Paused(context.Context) (segment.Pauses, error) { return p.all, p.err }

// What is not known is not shown as 0, and one message is one.
func TestAPartitionInWords(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"rso"}})
	r.world.Fields = func(segment.Partition) map[string]string {
		f := scans.States("rso", start())
		f["0"] = strings.Replace(f["0"], `"count":10`, `"count":1`, 1)
		return f
	}
	page := r.lead().get("/partition?topic=orders&n=0")
	opened := start().Add(-time.Minute).UTC().Format(time.RFC3339)
	r.must(page, ">1 message<", "!1 messages", `<td>2</td><td class="num">1</td><td class="num">?</td>`, `<td>1</td><td class="num">1</td><td class="num">10</td>`)
	if n := strings.Count(page, `<time datetime="`+opened); n != 1 {
		t.Errorf("when the open segment was opened stands there %d times", n)
	}
}

func TestProgressAndPauses(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"so"}}).lead()
	r.board.Advanced(1, 3<<20)
	var all segment.Pauses
	for i := range 150 {
		all.List = append(all.List, segment.Pause{Scope: segment.Scope{Topic: fmt.Sprintf("t%03d", i)}})
	}
	r.board.SetPaused(all)
	var page string
	store := r.board.Ports(offload.Ports{Store: putting(func() { page = r.get("/") })}).Store
	_, _ = store.Put(t.Context(), offload.Upload{Path: "a/0.parquet", Body: strings.NewReader("x"), Size: 2 << 20})
	r.must(page, "0 of 1 steps, 3.0 MiB read.", "1 object being uploaded: <code>a/0.parquet</code> 0 B of 2.0 MiB for ", "150 pauses in all; the first 100 are shown.", "<dd>150<", ">topic t099<", "!>topic t100<")
}

// putting is a store in the middle of an upload.
type putting func()

func (p putting) Put(context.Context, offload.Upload) (offload.ObjectInfo, error) {
	p()
	return offload.ObjectInfo{}, nil
}
func (putting) Stat(context.Context, string) (offload.ObjectInfo, error) {
	return offload.ObjectInfo{}, nil
}
func (putting) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}
func (putting) Delete(context.Context, []string) []error { return nil }
func (putting) CreateOnly(context.Context) (bool, error) { return true, nil }

func TestThePageFollowsTheTick(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"so"}}).lead()
	r.must(r.get("/"), `data-every="6"`)
	r.site.SetTick(time.Second)
	r.must(r.get("/"), `data-every="2"`)
	r.must(r.get("/partition?topic=orders&n=0"), `data-every="2"`)
}
