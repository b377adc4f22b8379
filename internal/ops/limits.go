package ops

import (
	"net/http"
	"strings"
	"time"
)

// timed bounds how long a body takes to come and an answer to be taken, and how
// large a body is. Profiles take as long as they are asked to. A connection that
// is used again keeps its times from the request before, so they are always set.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body, taken time.Time // none
		if !strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			body, taken = time.Now().Add(requestTime), time.Now().Add(answerTime)
		}
		c := http.NewResponseController(w)
		_, _ = c.SetReadDeadline(body), c.SetWriteDeadline(taken) // a recorder has none
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// limited works on so many requests at once, and sends the others away.
func limited(n int, next http.Handler) http.Handler {
	places := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			answer(w, http.StatusServiceUnavailable, "too many requests at once; try again")
		}
	})
}
