package s3sink

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// calm is how long a store must not have asked for fewer requests before it
// gets as many as there are again.
const calm = time.Minute

// throttle bounds the requests in flight to a store that has asked for fewer.
// There is no bound until it does. Then half of what was in flight may be; each
// time as many requests as may be in flight were answered, one more; and all
// again once the store has been calm for a while. A store that says how long to
// wait is asked for nothing by anybody meanwhile, but to forget an upload: that
// frees it of work, and can't be put off until whoever would do so has ended.
type throttle struct {
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
	tell  func(limit int) // of a new limit; called with the lock held

	mu       sync.Mutex
	inFlight int
	limit    int           // 0 = none
	answered int           // since the limit changed
	round    int           // how often the limit was halved
	asked    time.Time     // when the store last asked for fewer
	barren   time.Time     // when it did so first since it last served a request; zero = it serves
	until    time.Time     // no request begins before
	freed    chan struct{} // closed when it is worth looking again
}

func newThrottle(o Options) *throttle {
	return &throttle{now: o.Now, sleep: o.Sleep, freed: make(chan struct{}), tell: func(limit int) {
		o.OnEvent(Event{Op: "limit", Class: ClassThrottled, Limit: limit})
	}}
}

// begin waits until one more request may be in flight, or the context ends. An
// urgent one does not wait for the time that the store has named. It returns
// what end wants to know.
func (t *throttle) begin(ctx context.Context, urgent bool) (round int, err error) {
	for {
		round, hold, freed, ok := t.try(urgent)
		if ok {
			return round, nil
		}
		if hold > 0 {
			err = t.sleep(ctx, hold)
		} else {
			select {
			case <-freed:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			return 0, err
		}
	}
}

// try begins a request if it may, and says what to wait for if not.
func (t *throttle) try(urgent bool) (round int, hold time.Duration, freed <-chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.limit > 0 && now.Sub(t.asked) >= calm {
		t.set(0)
	}
	if !urgent {
		hold = t.until.Sub(now)
	}
	ok = hold <= 0 && (t.limit == 0 || t.inFlight < t.limit)
	if ok {
		t.inFlight++
	}
	return t.round, hold, t.freed, ok
}

// end takes what came of a request that has begun.
func (t *throttle) end(round int, err *Error, x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil || !err.Class.retriable():
		t.more()
	case asksForFewer(err):
		t.fewer(round, x.wait())
	}
	t.inFlight--
	if t.limit > 0 {
		t.wake()
	}
}

// fewer halves the limit, but only once for all the requests that were in
// flight together: they tell of the same moment.
func (t *throttle) fewer(round int, wait time.Duration) {
	t.asked = t.now()
	if t.barren.IsZero() {
		t.barren = t.asked
	}
	if until := t.asked.Add(wait); until.After(t.until) {
		t.until = until
	}
	if round == t.round {
		t.round++
		t.set(max(1, t.inFlight/2))
	}
}

func (t *throttle) more() {
	t.barren = time.Time{}
	if t.limit == 0 {
		return
	}
	if t.answered++; t.answered >= t.limit {
		t.set(t.limit + 1)
	}
}

func (t *throttle) set(limit int) {
	t.answered = 0
	if t.limit != limit {
		t.limit = limit
		t.tell(limit)
		t.wake()
	}
}

// servesNobody says whether the store has had no time for anybody for so long.
func (t *throttle) servesNobody(long time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.barren.IsZero() && t.now().Sub(t.barren) >= long
}

// wake lets all who wait look again. There are not many: a request for each
// segment and part that is under way.
func (t *throttle) wake() {
	close(t.freed)
	t.freed = make(chan struct{})
}

// asksForFewer says whether a store has too much to do: by its code, or by the
// status where there is none.
func asksForFewer(err *Error) bool {
	if err.Class == ClassThrottled {
		return true
	}
	a, ok := errors.AsType[*answer](err)
	return ok && a.status == http.StatusServiceUnavailable
}
