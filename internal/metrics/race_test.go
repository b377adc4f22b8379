package metrics

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Passes, stores and scrapes do not wait for one another: the race detector
// looks at this one.
func TestAllAtOnce(t *testing.T) {
	r := New(Options{Topics: true, MaxTopics: 2, SLA: time.Minute, Shards: 1})
	p := plan(named("a"), named("b"), named("c"))
	for n := range segment.Number(50) {
		waits(&p, "a", n, time.Minute, 10)
	}
	var all sync.WaitGroup
	many := func(do func(i int)) {
		all.Go(func() {
			for i := range 50 {
				do(i)
			}
		})
	}
	many(func(int) {
		r.LoopObserver().Leads()
		r.Observer().Planned(p)
		r.LoopObserver().Passed(offload.Report{Plan: p}, nil)
		r.LoopObserver().Follows()
	})
	many(func(i int) { r.Observer().Finished(copied("a", segment.Number(i))) })
	many(func(int) {
		r.Observer().Failed(offload.Problem{Topic: "b", Action: offload.Copy, Reason: offload.ReasonStore})
	})
	many(func(i int) { r.SetMemory("n", int64(i), 100) })
	b := &bench{Registry: r, t: t}
	many(func(int) { store(b) })
	many(func(int) {
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
	all.Wait()
}
