package ops

import (
	"net/http"
	"time"
)

// timed bounds how long a body takes to come and an answer to be taken, and how
// large a body is. A connection that is used again keeps its times from the
// request before, so they are always set.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, now := http.NewResponseController(w), time.Now()
		_, _ = c.SetReadDeadline(now.Add(requestTime)), c.SetWriteDeadline(now.Add(answerTime)) // a recorder has none
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// untimed is for answers that take as long as they are asked to. Only who may
// have them gets this far.
func untimed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_, _ = c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})
		next(w, r)
	}
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
