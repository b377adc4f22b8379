// Package page is what a person or a program sees over HTTP: the page at /, the
// JSON below /api/v1, and the verbs pause and resume.
//
// The page is made on the server, works without script, and needs nothing but
// its own three files. Its script only puts a newer page in the place of the
// older one, and keeps what the reader does. All that is shown may have been
// named by others; it is escaped by the template, and no answer lets a browser
// run, load or send anything that does not come from here.
//
// Who may ask is decided in front of this package. It adds one rule: what the
// API changes has to come as JSON, which no form of another site can send.
package page

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"sync/atomic"
	"time"

	"korvet-offload/docs"
	"korvet-offload/internal/board"
	"korvet-offload/segment"
)

//go:embed template/*.html
var templates embed.FS

//go:embed static
var static embed.FS

// Board is what is shown.
type Board interface {
	Status(q board.Query) board.Status
	Overview() board.Status
	Partition(id segment.Partition) (board.Partition, []board.Problem, bool)
	SetPaused(all segment.Pauses)
}

// Pauser pauses and resumes, for every instance.
type Pauser interface {
	// Pause pauses a scope; one that is paused already stays so.
	Pause(ctx context.Context, scope segment.Scope, by, reason string) (segment.Pause, error)
	// Resume ends the pause of a scope, if there is one.
	Resume(ctx context.Context, scope segment.Scope) error
	// Paused is all that is paused.
	Paused(ctx context.Context) (segment.Pauses, error)
}

// Options of a Site.
type Options struct {
	Board Board
	// Pauser gives what pauses; nil as long as there is none, because Redis has
	// not answered yet.
	Pauser func() Pauser
	Tick   time.Duration // of the instance; the page looks more often
	Token  bool          // one is configured, so a reader can log out
	TLS    bool          // so other instances probably have it too
}

// Site answers requests for the page and the API. Safe for concurrent use.
type Site struct {
	o       Options
	mux     *http.ServeMux
	pages   *template.Template
	reasons map[string]reason
	now     func() time.Time
	tick    atomic.Int64 // as Options.Tick, until SetTick
}

// New makes a site. It fails only if the program was built wrong.
func New(o Options) (*Site, error) {
	s := &Site{o: o, mux: http.NewServeMux(), reasons: parseReasons(docs.Reasons()), now: time.Now}
	s.SetTick(o.Tick)
	var err error
	if s.pages, err = template.New("").Funcs(functions()).ParseFS(templates, "template/*.html"); err != nil {
		return nil, fmt.Errorf("parse the page: %w", err)
	}
	files, err := fs.Sub(static, "static")
	if err != nil {
		return nil, fmt.Errorf("open the page's files: %w", err)
	}
	s.mux.HandleFunc("GET /{$}", s.home)
	s.mux.HandleFunc("GET /partition", s.partition)
	s.mux.Handle("GET /static/", cached(http.StripPrefix("/static/", http.FileServerFS(files))))
	s.mux.HandleFunc("GET /api/v1/status", s.apiStatus)
	s.mux.HandleFunc("GET /api/v1/partitions/{topic}/{number}", s.apiPartition)
	s.mux.HandleFunc("GET /api/v1/streams", s.apiStream)
	s.mux.HandleFunc("POST /api/v1/pause", s.apiPause)
	s.mux.HandleFunc("POST /api/v1/resume", s.apiResume)
	return s, nil
}

// SetTick changes how often the instance works, and with it how often a page that
// is opened from now on looks.
func (s *Site) SetTick(tick time.Duration) { s.tick.Store(int64(tick)) }

// Tick is how often the instance works.
func (s *Site) Tick() time.Duration { return time.Duration(s.tick.Load()) }

// policy is what a browser may do with an answer.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guarded(w)
	s.mux.ServeHTTP(w, r)
}

func guarded(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// cached lets a browser keep a file if it asks whether it is still the same:
// another version of the program has other files under the same names.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/static/" { // no list of files
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

// write answers with a page, whole or not at all.
func (s *Site) write(w http.ResponseWriter, status int, name string, data any) {
	var out bytes.Buffer
	if err := s.pages.ExecuteTemplate(&out, name, data); err != nil {
		http.Error(w, "the page can't be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = out.WriteTo(w) // the client is gone; nobody to tell
}

// Login answers with a form that asks for the token. The form posts the fields
// token and next to /login.
func (s *Site) Login(w http.ResponseWriter, _ *http.Request, next string, wrong bool) {
	guarded(w)
	s.write(w, http.StatusUnauthorized, "login.html", loginPage{Next: next, Wrong: wrong})
}

type loginPage struct {
	Next  string
	Wrong bool
}
