package test

import (
	"strings"
	"testing"
	"time"
)

// A Redis that is emptied under a running worker takes the lease with it, and
// what it remembered. It is not shown as if all were well, until topics are there
// again.
//
//fault:redis | Redis is emptied | FLUSHALL, or a restart without persistence, under a running worker that leads | It is not ready, and says why for as long as it lasts; every object stays; it goes on when the topic is there again
func TestAnEmptiedRedisIsNotReady(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"FLUSHALL", "restart"} {
		r := newFileRig(t)
		r.orders(10)
		d := r.ticking()
		await(t, "every segment is copied", 20*time.Second, func() bool { return len(r.objects()) == 12 })
		if how == "restart" {
			r.redis.Restart()
		} else {
			r.redis.Exec("FLUSHALL")
		}
		d.unready("redis seems to have lost its data")
		await(t, "five ticks pass", 20*time.Second, after(time.Second))
		d.unready("redis seems to have lost its data")
		if n := strings.Count(d.worker.log(), `"reason":"registry_doubt"`); n != 1 || len(r.objects()) != 12 {
			t.Errorf("%s: said %d times, %d objects\n%s", how, n, len(r.objects()), d.worker.log())
		}
		d.mustLive()
		r.topic("orders", 4)
		await(t, "it is ready", 20*time.Second, d.ready(200))
	}
}
