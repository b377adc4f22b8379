package lease

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeRedis keeps one key by the clock of the test, and can be told how to
// misbehave.
type fakeRedis struct {
	mu     sync.Mutex
	token  string
	until  time.Time
	renews []time.Time

	answer error         // of every call; the command is carried out all the same
	refuse error         // of every call; nothing is carried out
	delay  time.Duration // before the answer comes
	hang   bool          // renewals ignore even their context
	thaw   chan struct{} // lets those go on
}

func (f *fakeRedis) begin(ctx context.Context) error {
	f.mu.Lock()
	delay, refuse := f.delay, f.refuse
	f.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return refuse
}

func (f *fakeRedis) acquire(ctx context.Context, _, token string, d time.Duration) (bool, time.Duration, error) {
	if err := f.begin(ctx); err != nil {
		return false, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token != "" && f.token != token && time.Now().Before(f.until) {
		return false, time.Until(f.until), f.answer
	}
	f.token, f.until = token, time.Now().Add(d)
	return true, 0, f.answer
}

func (f *fakeRedis) renew(ctx context.Context, _, token string, d time.Duration) (bool, error) {
	f.mu.Lock()
	f.renews = append(f.renews, time.Now())
	hang := f.hang
	f.mu.Unlock()
	if hang {
		<-f.thaw
	}
	if err := f.begin(ctx); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token != token || !time.Now().Before(f.until) {
		return false, f.answer
	}
	f.until = time.Now().Add(d)
	return true, f.answer
}

func (f *fakeRedis) release(ctx context.Context, _, token string) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == token {
		f.token = ""
	}
	return nil
}

func (f *fakeRedis) wanted(ctx context.Context, _ string) (string, error) {
	if err := f.begin(ctx); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == "" || !time.Now().Before(f.until) {
		return "", f.answer
	}
	return f.token, f.answer
}

func (f *fakeRedis) expiry() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.until
}

func (f *fakeRedis) free() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.token == ""
}

func (f *fakeRedis) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

var errRefused = errors.New("connection refused")

const duration = time.Minute

// pass lets time go by, which costs none inside synctest.
func pass(d time.Duration) { <-time.After(d) }

func take(t *testing.T, l *Lease) (context.Context, func(context.Context) error) {
	t.Helper()
	leadership, release, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return leadership, release
}

// lostAfter is how long a leadership lasts from now.
func lostAfter(leadership context.Context, t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	<-leadership.Done()
	if cause := context.Cause(leadership); !errors.Is(cause, ErrLost) {
		t.Errorf("cause = %v, want ErrLost", cause)
	}
	return time.Since(start)
}

func TestRenewsAtAThirdForAsLongAsItIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRedis{}
		leadership, release := take(t, newLease(f, Config{Key: "k", Duration: duration}))
		start := time.Now()
		pass(10*duration + time.Second)
		if leadership.Err() != nil {
			t.Fatalf("leadership ended: %v", context.Cause(leadership))
		}
		f.set(func() {
			if len(f.renews) != 30 || f.renews[0].Sub(start) != duration/3 {
				t.Errorf("%d renewals, the first after %s; want 30, %s", len(f.renews), f.renews[0].Sub(start), duration/3)
			}
		})
		if err := release(t.Context()); err != nil || !f.free() {
			t.Errorf("release: %v, free: %t", err, f.free())
		}
		if leadership.Err() == nil || errors.Is(context.Cause(leadership), ErrLost) {
			t.Errorf("after release the leadership's cause is %v", context.Cause(leadership))
		}
	})
}

func TestEndsBeforeTheKeyExpires(t *testing.T) {
	//fault:leaders | renewals are refused, slow, never return, or their answers are lost | a fake Redis under a simulated clock | the leadership ends a tenth before the key expires
	for name, spoil := range map[string]func(*fakeRedis){
		"refused":         func(f *fakeRedis) { f.refuse = errRefused },
		"slow":            func(f *fakeRedis) { f.delay = duration },
		"never returning": func(f *fakeRedis) { f.hang = true },
		"answers lost":    func(f *fakeRedis) { f.answer = errRefused },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeRedis{thaw: make(chan struct{})}
				l := newLease(f, Config{Key: "k", Duration: duration})
				leadership, release := take(t, l)
				expiry := f.expiry()
				f.set(func() { spoil(f) })
				if took := lostAfter(leadership, t); took != duration-duration/10 || !time.Now().Before(expiry) {
					t.Errorf("leadership ended after %s, want %s", took, duration-duration/10)
				}
				if !l.Healthy(time.Now()) || l.Healthy(time.Now().Add(duration)) {
					t.Error("want healthy just after the end, and not healthy when it is never given back")
				}
				close(f.thaw)
				release(t.Context()) //nolint:errcheck // may fail as the rest does
				if !l.Healthy(time.Now().Add(time.Hour)) {
					t.Error("not healthy after it was given back")
				}
			})
		})
	}
}

func TestALateAnswerCountsFromBeforeTheRequest(t *testing.T) {
	//fault:leaders | the answer that gave the lease was late | a fake Redis that answers late, under a simulated clock | the time counts from before the request was sent
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRedis{delay: duration / 10}
		leadership, release := take(t, newLease(f, Config{Key: "k", Duration: duration}))
		f.set(func() { f.refuse = errRefused })
		if took := lostAfter(leadership, t); took != duration-duration/10-duration/10 {
			t.Errorf("leadership ended after %s; the answer to acquire took %s of %s", took, duration/10, duration-duration/10)
		}
		release(t.Context()) //nolint:errcheck // refused
	})
}

func TestSurvivesRenewalsThatFailForAWhile(t *testing.T) {
	//fault:leaders | renewals fail for a while and work again | a fake Redis under a simulated clock | the leadership goes on
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRedis{}
		leadership, release := take(t, newLease(f, Config{Key: "k", Duration: duration}))
		for range 20 {
			f.set(func() { f.refuse = errRefused })
			pass(duration / 2)
			f.set(func() { f.refuse = nil })
			pass(duration / 2)
		}
		if leadership.Err() != nil {
			t.Fatalf("leadership ended: %v", context.Cause(leadership))
		}
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAForeignTokenEndsItWithinAnInterval(t *testing.T) {
	//fault:leaders | somebody else has the lease | a fake Redis whose key changes, under a simulated clock | the leadership ends within one renewal interval
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRedis{}
		leadership, release := take(t, newLease(f, Config{Key: "k", Duration: duration}))
		f.set(func() { f.token = "another" })
		if took := lostAfter(leadership, t); took > duration/3 {
			t.Errorf("leadership ended after %s, want %s at most", took, duration/3)
		}
		if err := release(t.Context()); err != nil || f.token != "another" {
			t.Errorf("release: %v, token %q", err, f.token)
		}
	})
}

func TestTheLeaseIsKeptWhileWorkIsWoundUp(t *testing.T) {
	//fault:leaders | the program is told to stop, and its work takes a while to end | the context ends under a simulated clock | the key is renewed until the lease is given back
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRedis{}
		ctx, cancel := context.WithCancel(t.Context())
		l := newLease(f, Config{Key: "k", Duration: duration})
		leadership, release, err := l.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		<-leadership.Done()
		pass(3 * duration)
		if !time.Now().Before(f.expiry()) {
			t.Error("the key was not renewed while the work under it went on")
		}
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestALostAnswerToAcquireDoesNotLockUsOut(t *testing.T) {
	//fault:leaders | the answer that gave the lease was lost | a fake Redis that does it and fails | the next attempt takes the lease with the same token
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRedis{answer: errRefused}
		l := newLease(f, Config{Key: "k", Duration: duration})
		if _, _, err := l.Acquire(t.Context()); !errors.Is(err, errRefused) || strings.Contains(err.Error(), f.token) {
			t.Fatalf("acquire: %v", err)
		}
		f.set(func() { f.answer = nil })
		_, release := take(t, l)
		if _, _, err := l.Acquire(t.Context()); err == nil || errors.Is(err, ErrHeld) {
			t.Errorf("a second acquire of the holder: %v", err)
		}
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
		_, release = take(t, l)
		if err := errors.Join(release(t.Context()), release(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

func TestReleaseDoesNotWaitForEver(t *testing.T) {
	//fault:leaders | a renewal never returns while the lease is given back | a fake Redis that hangs, under a simulated clock | giving back ends with its context
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRedis{hang: true, thaw: make(chan struct{})}
		_, release := take(t, newLease(f, Config{Key: "k", Duration: duration}))
		pass(duration / 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := release(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("release with a renewal that hangs: %v", err)
		}
		close(f.thaw)
	})
}

func TestHeldSaysForHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRedis{token: "secret", until: time.Now().Add(40 * time.Second)}
		_, _, err := newLease(f, Config{Key: "k", Duration: duration}).Acquire(t.Context())
		var held *HeldError
		if !errors.Is(err, ErrHeld) || !errors.As(err, &held) || held.Remaining != 40*time.Second {
			t.Fatalf("acquire: %v", err)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q tells the token", err)
		}
	})
}

func TestWorkThatHangsIsNotLedAnyLonger(t *testing.T) {
	//fault:leaders | the work under the lease hangs | the lease is told so before a renewal, under a simulated clock | the key is not renewed, the leadership ends with the cause, and the key lapses
	synctest.Test(t, func(t *testing.T) {
		f, hangs := &fakeRedis{}, errors.New("no progress for 5m0s")
		var stuck atomic.Bool
		l := newLease(f, Config{Key: "k", Duration: duration})
		l.RenewWhile(func() error {
			if stuck.Load() {
				return hangs
			}
			return nil
		})
		leadership, release := take(t, l)
		pass(3 * duration)
		if leadership.Err() != nil {
			t.Fatalf("leadership ended: %v", context.Cause(leadership))
		}
		stuck.Store(true)
		expiry := f.expiry()
		if took := lostAfter(leadership, t); took > duration/3 || !errors.Is(context.Cause(leadership), hangs) {
			t.Errorf("leadership ended after %s with %v", took, context.Cause(leadership))
		}
		pass(duration)
		if f.expiry() != expiry || time.Now().Before(expiry) {
			t.Error("the key was renewed")
		}
		pass(duration)
		if l.Healthy(time.Now()) {
			t.Error("healthy, although the work under a lost lease goes on")
		}
		if err := release(t.Context()); err != nil || !l.Healthy(time.Now()) {
			t.Errorf("release: %v, healthy: %t", err, l.Healthy(time.Now()))
		}
		stuck.Store(false)
		if _, release = take(t, l); release(t.Context()) != nil {
			t.Error("no second term after the work has gone on")
		}
	})
}
