package s3sink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// busy is an S3 server that answers SlowDown to the first requests, once so
// many of them are under way together, and serves the others without haste.
type busy struct {
	together int

	arrived sync.WaitGroup
	mu      sync.Mutex
	seen    int
	now     int // of the others
	most    int // of the others, at once
}

func newBusy(together int) *busy {
	b := &busy{together: together}
	b.arrived.Add(together)
	return b
}

func (b *busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.seen++
	early := b.seen <= b.together
	if !early {
		b.now++
		b.most = max(b.most, b.now)
	}
	b.mu.Unlock()
	if early {
		b.arrived.Done()
		b.arrived.Wait()
		slowDown(w, r)
		return
	}
	select {
	case <-time.After(20 * time.Millisecond): // so that those that are together meet
	case <-r.Context().Done():
	}
	ok(w, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now--
}

// putAtOnce puts so many objects, each by a goroutine of its own.
func putAtOnce(t *testing.T, b *bench, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := b.Put(t.Context(), upload(fmt.Sprintf("k%d", i), []byte("body"))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

//fault:store | The store answers 503 SlowDown to sixteen requests at once | A stub that refuses the first sixteen together | The requests at once are halved, more come back one by one, every put goes through
func TestConcurrencyHalvesAndRecovers(t *testing.T) {
	server := newBusy(16)
	b := newBench(t, Limits{}, server.ServeHTTP)
	putAtOnce(t, b, 16)
	if server.most > 9 {
		t.Errorf("%d requests at once after the store asked for fewer than 16", server.most)
	}
	if got := b.limits(); !slices.Equal(got, []int{8, 9}) {
		t.Errorf("limits: %v", got)
	}
	for _, e := range b.retries() {
		if e.Class != ClassThrottled {
			t.Errorf("not counted as throttling: %+v", e)
		}
	}
	b.mu.Lock()
	b.ahead += calm
	b.mu.Unlock()
	server.most = 0
	putAtOnce(t, b, 16)
	if got := b.limits(); got[len(got)-1] != 0 {
		t.Errorf("limits after a calm minute: %v", got)
	}
}

// The store names a time, and all that is asked of it waits for so long, not
// only the request that was told so.
//
//fault:store | 503 SlowDown with Retry-After | A stub that names 7 s to one request, which is then given up | Nothing else is asked of the store for 7 s
func TestRetryAfterHoldsAllBack(t *testing.T) {
	b := newBench(t, Limits{}, s3Error(503, "SlowDown", "", "Retry-After", "7"), ok)
	b.opt.Sleep = func(context.Context, time.Duration) error { return context.Canceled }
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := b.Stat(t.Context(), "other"); err != nil {
		t.Error(err)
	}
	if len(b.waits) != 1 || b.waits[0] < 6*time.Second {
		t.Errorf("waits: %v", b.waits)
	}
}

// Who cleans up after an upload that failed has less time than a store may ask
// for, and nobody does it later.
//
//fault:store | An upload in parts fails while the store asks for nothing for some time | A stub that names 7 s, then is asked to abort an upload | The abort is sent at once
func TestAbortsAreNotHeldBack(t *testing.T) {
	b := newBench(t, Limits{}, s3Error(503, "SlowDown", "", "Retry-After", "7"), s3Error(404, "NoSuchUpload", ""))
	b.opt.Sleep = func(context.Context, time.Duration) error { return context.Canceled }
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.abortParts(t.Context(), request{op: "put", key: "k"}, "id")
	if asked := b.stub.requests(); len(asked) != 2 || asked[1].Method != http.MethodDelete || len(b.waits) != 0 {
		t.Errorf("after waits of %v, asked %d times", b.waits, len(asked))
	}
}

// throttled is what a request comes to that the store has no time for.
func throttled() *Error { return &Error{Class: ClassThrottled, Err: errors.New("slow down")} }

// limiter is a throttle on the clock of a bubble, and what it told.
type limiter struct {
	*throttle
	told []int
}

func newLimiter() *limiter {
	l := &limiter{}
	l.throttle = newThrottle(Options{OnEvent: func(e Event) { l.told = append(l.told, e.Limit) }}.withDefaults())
	return l
}

// beginN begins so many requests, which must not have to wait, and returns the
// round they are of.
func (l *limiter) beginN(t *testing.T, n int) (round int) {
	t.Helper()
	for range n {
		got, _, _, ok := l.try(false)
		if !ok {
			t.Fatalf("%d in flight, limit %d: it has to wait", l.inFlight, l.limit)
		}
		round = got
	}
	return round
}

func (l *limiter) endN(n, round int, err *Error, wait time.Duration) {
	for range n {
		l.end(round, err, &exchange{retryAfter: wait})
	}
}

func TestThrottleOfOneRoundCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		l.endN(20, l.beginN(t, 20), throttled(), 0)
		l.endN(10, l.beginN(t, 10), throttled(), 0)
		if want := []int{10, 5}; !slices.Equal(l.told, want) {
			t.Errorf("limits %v, want %v", l.told, want)
		}
		for range 5 { // one request at a time stays possible, whatever comes
			l.endN(1, l.beginN(t, 1), throttled(), 0)
		}
		if l.limit != 1 {
			t.Errorf("limit %d", l.limit)
		}
	})
}

func TestThrottleGrowsByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		l.endN(4, l.beginN(t, 4), throttled(), 0)
		l.endN(2, l.beginN(t, 2), nil, 0)
		l.endN(3, l.beginN(t, 3), &Error{Class: ClassMissing}, 0) // an answer, too
		l.endN(1, l.beginN(t, 1), &Error{Class: ClassUnavailable, Err: errors.New("reset")}, 0)
		if want := []int{2, 3, 4}; !slices.Equal(l.told, want) {
			t.Errorf("limits %v, want %v", l.told, want)
		}
		l.beginN(t, 4)
		if _, _, _, ok := l.try(false); ok {
			t.Error("five in flight with a limit of four")
		}
		time.Sleep(calm) // of the bubble
		l.beginN(t, 1)
		if l.limit != 0 {
			t.Errorf("limit %d after a calm minute", l.limit)
		}
	})
}

func TestThrottleLetsTheNextOneIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		l.endN(2, l.beginN(t, 2), throttled(), 0)
		round := l.beginN(t, 1)
		var waiting sync.WaitGroup
		begun := make(chan int, 3)
		for range 3 {
			waiting.Go(func() {
				round, err := l.begin(t.Context(), false)
				if err != nil {
					t.Error(err)
				}
				begun <- round
			})
		}
		synctest.Wait()
		if len(begun) != 0 {
			t.Fatal("two in flight with a limit of one")
		}
		for range 3 {
			l.end(round, &Error{Class: ClassUnavailable, Err: errors.New("reset")}, new(exchange))
			synctest.Wait()
			if len(begun) != 1 {
				t.Fatalf("%d began when one ended", len(begun))
			}
			round = <-begun
		}
		waiting.Wait()
	})
}

func TestThrottleHoldsBackUntilTheTimeNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		start := time.Now()
		round := l.beginN(t, 2)
		l.endN(1, round, throttled(), 7*time.Second)
		l.endN(1, round, throttled(), time.Second) // says less; the longer time counts
		if _, err := l.begin(t.Context(), false); err != nil || time.Since(start) != 7*time.Second {
			t.Errorf("begun after %s, %v", time.Since(start), err)
		}
	})
}

func TestThrottleWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, wait := range map[string]time.Duration{"for a slot": 0, "for a time": time.Minute} {
			l := newLimiter()
			l.endN(1, l.beginN(t, 1), throttled(), wait)
			if wait == 0 {
				l.beginN(t, 1)
			}
			before := l.inFlight
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := l.begin(ctx, false); !errors.Is(err, context.DeadlineExceeded) || l.inFlight != before {
				t.Errorf("%s: %v, %d in flight", name, err, l.inFlight)
			}
			cancel()
		}
	})
}

// A request that the store has no time for is repeated for some time, however
// often that is, and not given up after a few attempts.
//
//fault:store | 503 SlowDown to one request again and again | A stub that answers so twenty times in a row | The request waits its turn and is done, nothing fails
func TestPatience(t *testing.T) {
	answers := slices.Repeat([]http.HandlerFunc{slowDown}, 20)
	b := newBench(t, Limits{Attempts: 2, BackoffCap: 400 * time.Millisecond}, append(answers, ok)...)
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil {
		t.Error(err)
	}
	b = newBench(t, Limits{}, slowDown)
	begun := b.now()
	_, err := b.Put(t.Context(), upload("k", []byte("body")))
	if took := b.now().Sub(begun); ClassOf(err) != ClassThrottled || took < 30*time.Second || took > 50*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
	asked := len(b.stub.requests())
	if _, err := b.Stat(t.Context(), "k"); ClassOf(err) != ClassThrottled || len(b.stub.requests())-asked != 5 {
		t.Errorf("after %d attempts, of a store that serves nobody: %v", len(b.stub.requests())-asked, err)
	}
}

// A HEAD that the store has no time for says so by its status alone.
func TestThrottledWithoutWords(t *testing.T) {
	b := newBench(t, Limits{}, s3Error(503, "", "", "Retry-After", "3"), ok)
	if _, err := b.Stat(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	if got := b.limits(); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("limits: %v", got)
	}
}
