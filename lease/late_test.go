package lease

import (
	"testing"
	"testing/synctest"
)

func TestALateRenewalCountsFromBeforeTheRequest(t *testing.T) {
	//fault:leaders | The answer to a renewal is late | A fake Redis that answers late, under a simulated clock | The time counts from before the request was sent
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRedis{}
		leadership, release := take(t, newLease(f, Config{Key: "k", Duration: duration}))
		f.set(func() { f.delay = duration / 10 })
		pass(duration/3 + duration/10 + 1) // the first renewal was sent and answered
		f.set(func() { f.refuse = errRefused })
		took := lostAfter(leadership, t)
		if want := duration - duration/10 - duration/10 - 1; took != want {
			t.Errorf("leadership ended %s after the answer to a renewal that took %s, want %s", took, duration/10, want)
		}
		release(t.Context()) //nolint:errcheck // refused
	})
}
