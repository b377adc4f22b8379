package command

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// timed says how long something takes.
func timed(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// mustWait checks that so many bytes take so long, but for what may go at once
// and a tenth.
func mustWait(t *testing.T, u *uploadRate, n int, want time.Duration) {
	t.Helper()
	took := timed(func() {
		if err := u.wait(t.Context(), n); err != nil {
			t.Error(err)
		}
	})
	if took < want*9/10 || took > want*11/10 {
		t.Errorf("%d bytes took %s, want %s", n, took, want)
	}
}

func TestUploadRate(t *testing.T) {
	for _, limit := range []int64{1 << 16, 1 << 20, 100 << 20} {
		synctest.Test(t, func(t *testing.T) {
			moves := 0
			u := newUploadRate(limit, func() { moves++ })
			mustWait(t, u, int(10*limit), 10*time.Second)
			if moves < 10*piecesPerSecond {
				t.Errorf("only %d movements in ten seconds", moves)
			}
		})
	}
}

func TestNoUploadRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUploadRate(0, func() {})
		mustWait(t, u, 1<<30, 0)
	})
}

// TestUploadsShareTheRate: none of them starves.
func TestUploadsShareTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const uploads, each, limit = 16, 10 << 20, 1 << 20
		u := newUploadRate(limit, func() {})
		var all sync.WaitGroup
		start := time.Now()
		for range uploads {
			all.Go(func() {
				_ = u.wait(t.Context(), each)
				if took, want := time.Since(start), uploads*each/limit*time.Second; took < want*9/10 || took > want*11/10 {
					t.Errorf("one ends after %s, want about %s", took, want)
				}
			})
		}
		all.Wait()
	})
}

// A new limit holds for what waits already.
func TestUploadRateChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUploadRate(64<<10, func() {})
		go func() {
			time.Sleep(10 * time.Second) // the bubble's clock
			u.set(1 << 20)
			time.Sleep(10 * time.Second)
			u.set(0)
		}()
		mustWait(t, u, 10*64<<10+10<<20+1<<30, 20*time.Second)
		u.set(1 << 20)
		mustWait(t, u, 10<<20, 10*time.Second)
	})
}

func TestUploadRateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUploadRate(1, func() {})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		took := timed(func() {
			if err := u.wait(ctx, 1<<30); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		if took != time.Minute {
			t.Errorf("it ends after %s", took)
		}
	})
}
