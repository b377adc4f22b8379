package ops

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	cookieName = "korvet-offload"
	// sessionTime is how long a browser need not show the token again.
	sessionTime = 12 * time.Hour
)

// guard lets through who has the token.
type guard struct {
	token  string
	secure bool // the server speaks TLS, so the cookie is for TLS only
	login  func(w http.ResponseWriter, r *http.Request, next string, wrong bool)
	now    func() time.Time
	cross  *http.CrossOriginProtection
}

func newGuard(c Config, login func(http.ResponseWriter, *http.Request, string, bool)) *guard {
	return &guard{token: c.Token, secure: c.CertFile != "", login: login, now: time.Now, cross: http.NewCrossOriginProtection()}
}

// protect lets requests with the token through. Without a configured one it lets
// all through that change nothing.
func (g *guard) protect(next http.Handler) http.Handler {
	session := limited(maxLogins, http.HandlerFunc(g.session))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.token == "" && changes(r):
			answer(w, http.StatusForbidden, "nothing can be changed: no token is configured (korvet.storage.offload.http.token)")
		case g.token == "" && Rebound(r):
			answer(w, http.StatusMisdirectedRequest, "this server is asked for by a name that is not its own: use 127.0.0.1 or localhost, or configure a token (korvet.storage.offload.http.token)")
		case g.token == "":
			next.ServeHTTP(w, r)
		case r.URL.Path == "/login" || r.URL.Path == "/logout":
			session.ServeHTTP(w, r)
		case isStatic(r), g.bearer(r):
			next.ServeHTTP(w, r)
		case g.cookie(r) && changes(r) && !g.sameSite(r):
			answer(w, http.StatusForbidden, "refused: the request comes from another site")
		case g.cookie(r):
			next.ServeHTTP(w, r)
		default:
			g.refuse(w, r)
		}
	})
}

// Rebound says whether a request came over the loopback interface for a name that
// means another host. A web page could have made a browser send it, by a name of
// its own that it has let point here, and read the answer.
func Rebound(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return host != "" && !strings.EqualFold(host, "localhost") && net.ParseIP(host) == nil
}

// isStatic says whether a request is for what is the same in every program of
// this version: the login form needs it.
func isStatic(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/static/") && !changes(r)
}

// changes says whether a request may change something.
func changes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// bearer says whether a request shows the token.
func (g *guard) bearer(r *http.Request) bool { return Bearer(r, g.token) }

func (g *guard) isToken(shown string) bool { return sameText(shown, g.token) }

// Bearer says whether a request shows a token.
func Bearer(r *http.Request, token string) bool {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && sameText(strings.TrimSpace(shown), token)
}

// sameText compares in a time that says nothing, not even of the length.
func sameText(shown, token string) bool {
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// refuse answers a request without the token: people get a form.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request) {
	if g.forPeople(r) {
		g.login(w, r, r.URL.RequestURI(), false)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="korvet-offload"`)
	answer(w, http.StatusUnauthorized, "show the token (korvet.storage.offload.http.token): Authorization: Bearer ...")
}

func (g *guard) forPeople(r *http.Request) bool {
	return g.login != nil && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// session begins and ends what a browser has instead of the token.
func (g *guard) session(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/login" && g.login != nil:
		g.login(w, r, "/", false)
	case r.Method != http.MethodPost || g.login == nil:
		answer(w, http.StatusMethodNotAllowed, "use POST")
	case !g.sameSite(r):
		answer(w, http.StatusForbidden, "refused: the request comes from another site")
	case r.URL.Path == "/logout":
		g.setCookie(w, "", -1)
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	case !g.isToken(r.PostFormValue("token")):
		g.login(w, r, ownPath(r.PostFormValue("next")), true)
	default:
		g.setCookie(w, g.seal(g.now().Add(sessionTime)), int(sessionTime.Seconds()))
		http.Redirect(w, r, ownPath(r.PostFormValue("next")), http.StatusSeeOther) //nolint:gosec // ownPath leads nowhere else
	}
}

// sameSite says whether a browser says that a request comes from a page of this
// server. What says nothing is no browser of today, and has no cookie.
func (g *guard) sameSite(r *http.Request) bool {
	says := r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
	return says && g.cross.Check(r) == nil
}

func (g *guard) setCookie(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // without TLS, a browser would not send a secure one
		Name: cookieName, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: g.secure, SameSite: http.SameSiteStrictMode})
}

// seal is the value of a cookie that is good until a time. Who has it does not
// have the token; another token makes it worthless.
func (g *guard) seal(until time.Time) string {
	text := strconv.FormatInt(until.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(g.token))
	mac.Write([]byte("korvet-offload session until " + text))
	return text + "." + hex.EncodeToString(mac.Sum(nil))
}

// cookie says whether a request has a cookie that is still good.
func (g *guard) cookie(r *http.Request) bool {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return false
	}
	text, _, _ := strings.Cut(c.Value, ".")
	unix, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !g.now().Before(time.Unix(unix, 0)) {
		return false
	}
	return hmac.Equal([]byte(c.Value), []byte(g.seal(time.Unix(unix, 0))))
}

// ownPath is where a browser may be sent: a path of this server, or "/".
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
