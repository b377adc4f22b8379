package s3sink

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// late is an S3 server that shows its only object so many looks too late.
type late struct {
	taken bool // by a put
	looks int  // that find nothing, counting down
	puts  int
}

func (l *late) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/bucket/":
		ok(w, r)
	case r.Method == http.MethodPut && l.taken:
		l.puts++
		s3Error(412, "PreconditionFailed", "")(w, r)
	case r.Method == http.MethodPut:
		l.taken = true
		l.puts++
		ok(w, r)
	case r.Method == http.MethodDelete:
		l.taken = false
		w.WriteHeader(http.StatusNoContent)
	case !l.taken || l.looks > 0:
		l.looks--
		s3Error(404, "NoSuchKey", "")(w, r)
	default:
		ok(w, r)
	}
}

//fault:store | A look just after the put finds nothing | A stub that answers 404 to the first looks after a put, or after a put that it refused with 412 | The look is repeated and does not say that the object is missing
func TestLookIsLate(t *testing.T) {
	for name, before := range map[string]bool{"put now": false, "put before": true} {
		l := &late{looks: 3, taken: before}
		b := newBench(t, Limits{}, l.ServeHTTP)
		if _, err := b.Put(t.Context(), upload("k", []byte("body"))); before != errors.Is(err, ErrExists) || !before && err != nil {
			t.Fatalf("%s: put: %v", name, err)
		}
		if _, err := b.Stat(t.Context(), "k"); err != nil || l.looks != 0 {
			t.Errorf("%s: %d looks left: %v", name, l.looks, err)
		}
		l.looks = 1 // it was seen: what is missing from now on is missing
		if _, err := b.Stat(t.Context(), "k"); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: gone after it was seen: %v", name, err)
		}
	}
}

//fault:store | Looks find nothing for minutes after the put | A stub that answers 404 to every look | The error says so and is that of a store that does not work, after ten minutes the object is taken for missing
func TestLookIsLateForLong(t *testing.T) {
	l := &late{looks: 1 << 30}
	b := newBench(t, Limits{}, l.ServeHTTP)
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil {
		t.Fatal(err)
	}
	_, err := b.Stat(t.Context(), "k")
	if ClassOf(err) != ClassUnavailable || errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "stat s3://bucket/root/k: the store said that it has this object") {
		t.Errorf("stat: %v", err)
	}
	if _, err := b.Open(t.Context(), "k"); ClassOf(err) != ClassUnavailable {
		t.Errorf("open: %v", err)
	}
	b.mu.Lock()
	b.ahead += promiseTime + time.Second
	b.mu.Unlock()
	if _, err := b.Stat(t.Context(), "k"); !errors.Is(err, ErrMissing) {
		t.Errorf("after ten minutes: %v", err)
	}
}

// What was deleted is not late, and what was never put neither; and of a bucket
// that is gone nothing is late.
func TestNotLateButMissing(t *testing.T) {
	l := &late{}
	b := newBench(t, Limits{}, l.ServeHTTP)
	if _, err := b.Stat(t.Context(), "k"); !errors.Is(err, ErrMissing) {
		t.Errorf("before the put: %v", err)
	}
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), []string{"k"})[0]; err != nil {
		t.Fatal(err)
	}
	if _, err := b.Stat(t.Context(), "k"); !errors.Is(err, ErrMissing) {
		t.Errorf("after the deletion: %v", err)
	}
	b = newBench(t, Limits{}, ok, s3Error(404, "", ""))
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Stat(t.Context(), "k"); ClassOf(err) != ClassNoBucket {
		t.Errorf("in a bucket that is gone: %v", err)
	}
}
