package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A Redis that is emptied under a running worker takes the lease with it, and
// what it remembered. It is not shown as if all were well, and nothing is put
// below the objects of its earlier life, until somebody says that it goes on.
//
//fault:redis | Redis is emptied, and gets its topics again | FLUSHALL, or a restart without persistence, under a running worker that leads | It is not ready, and says why for as long as it lasts; nothing is copied; every object stays; it goes on when the root was claimed
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
		r.orders(10)
		await(t, "five more ticks pass", 20*time.Second, after(time.Second))
		d.unready("redis seems to have lost its data")
		if n := strings.Count(d.worker.log(), `"message":"redis seems to have lost its data`); n != 1 || len(r.objects()) != 12 {
			t.Errorf("%s: said %d times, %d objects\n%s", how, n, len(r.objects()), d.worker.log())
		}
		d.mustLive()
		if _, stderr, code := r.run("restore", "--claim", "--yes"); code != 0 {
			t.Errorf("claim: exit %d\n%s", code, stderr)
		}
		await(t, "it is ready", 20*time.Second, d.ready(200))
		await(t, "the segments are copied beside those of before", 20*time.Second, func() bool { return len(r.objects()) == 24 })
	}
}

// A root whose marker names no cluster was made by an older version: there it goes
// on when the topics are there again.
//
//fault:redis | Redis is emptied, and the root's marker names no cluster | FLUSHALL under a running worker that leads | It is not ready, and says why for as long as it lasts; every object stays; it goes on when the topic is there again
func TestAnEmptiedRedisOfAnOlderRoot(t *testing.T) {
	t.Parallel()
	r := newFileRig(t)
	if err := os.WriteFile(filepath.Join(r.files, "_korvet_offload.json"), []byte(`{"v":1,"namespace":"korvet","created":"2026-01-31T08:00:00Z"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.orders(10)
	d := r.ticking()
	await(t, "every segment is copied", 20*time.Second, func() bool { return len(r.objects()) == 12 })
	r.redis.Exec("FLUSHALL")
	d.unready("redis seems to have lost its data")
	await(t, "five ticks pass", 20*time.Second, after(time.Second))
	d.unready("redis seems to have lost its data")
	if n := strings.Count(d.worker.log(), `"reason":"registry_doubt"`); n != 1 || len(r.objects()) != 12 {
		t.Errorf("said %d times, %d objects\n%s", n, len(r.objects()), d.worker.log())
	}
	d.mustLive()
	r.topic("orders", 4)
	await(t, "it is ready", 20*time.Second, d.ready(200))
}
