package test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"korvet-offload/segment"
)

func TestRunOnce(t *testing.T) {
	r := newRig(t)
	r.env = []string{"KORVET_STORAGE_OFFLOAD_LOW_PRIORITY=true"} // as it is by default
	r.orders(500)
	stdout, stderr, code := r.run("run", "--once")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "12 of 12 sealed segments moved") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	r.mustBeDone()
	for key, e := range r.entries() {
		if raw := string(e.Encode()); !strings.Contains(raw, `"broker":{"epoch":3}`) {
			t.Errorf("%s: the broker's own field was lost: %s", key, raw)
		}
	}
	for p := range 4 {
		if got := strings.TrimSpace(r.redis.Exec("HGET", fmt.Sprintf("korvet:storage:manifest:orders:%d", p), "3")); got != `{"v":1,"state":"OPEN","tier":"LOCAL"}` {
			t.Errorf("the open segment of partition %d became %s", p, got)
		}
	}
	if got := strings.TrimSpace(r.redis.Exec("EXISTS", "korvet:storage:offload:lease")); got != "0" {
		t.Error("the lease was not given back")
	}

	before := r.s3.Requests(t)
	stdout, stderr, code = r.run("run", "--once")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "0 of 0 sealed segments moved") {
		t.Errorf("second run: exit %d\n%s%s", code, stdout, stderr)
	}
	after := r.s3.Requests(t)
	for op, n := range after {
		// The start looks at the bucket: each question once, and none for an object.
		look := strings.Contains(op, "Bucket") || op == "GetObjectLockConfiguration" || op == "ListMultipartUploads"
		if made := n - before[op]; made > 0 && op != "GetObject" && op != "HeadObject" && (!look || made > 1) {
			t.Errorf("the second run made %d requests %s", made, op)
		}
	}
	r.mustBeDone()
}

// Killed at any moment and run again, the end is the same.
//
//fault:crash | The program is killed in the middle of a pass | SIGKILL at random moments of several passes | The next pass goes on, and the end is as if nothing had happened
func TestKilledAtRandomMoments(t *testing.T) {
	r := newRig(t)
	r.orders(4000)
	started := time.Now()
	full := newRig(t)
	full.orders(4000)
	begun := time.Now()
	if _, stderr, code := full.run("run", "--once"); code != 0 {
		t.Fatal(stderr)
	}
	whole := time.Since(begun)
	seed := uint64(started.UnixNano())
	t.Logf("seed %d; a whole run takes %s", seed, whole)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		p := r.start("run", "--once")
		moment := time.NewTimer(time.Duration(random.Int64N(int64(whole))))
		select {
		case <-moment.C:
		case <-p.ended:
		}
		p.kill()
		r.redis.Exec("DEL", "korvet:storage:offload:lease") // or wait for it to lapse
	}
	if _, stderr, code := r.run("run", "--once"); code != 0 {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	r.mustBeDone()
}

// Two instances, the leader of which is killed again and again while
// segments are sealed: none is missed and none is copied twice.
//
//fault:leaders | Leaders die one after the other while work comes in | SIGKILL of whoever leads, with another instance beside it | No segment is missed and none is copied twice
func TestTwoInstances(t *testing.T) {
	r := newRig(t)
	r.env = []string{"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=100ms", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=500ms"}
	r.topic("orders", 4)
	running := []*process{r.start("run"), r.start("run")}
	kills, next := 0, segment.Number(0)
	stop := time.After(12 * time.Second) // over 50 ticks for each
	kill := time.NewTicker(2 * time.Second)
	seal := time.NewTicker(150 * time.Millisecond)
	defer kill.Stop()
	defer seal.Stop()
	for going := true; going; {
		select {
		case <-stop:
			going = false
		case <-seal.C:
			r.sealed(segment.Partition{Topic: "orders", Number: int(next % 4)}, next/4, 50)
			next++
		case <-kill.C:
			for i, p := range running {
				if strings.Contains(p.log(), "this instance leads") {
					p.kill()
					kills++
					running[i] = r.start("run")
					break
				}
			}
		}
	}
	await(t, "every segment is REMOTE", 20*time.Second, func() bool {
		for _, e := range r.entries() {
			if e.Tier != segment.Remote {
				return false
			}
		}
		return true
	})
	if kills < 3 {
		t.Errorf("only %d leaders were killed", kills)
	}
	t.Logf("%d segments, %d leaders killed", next, kills)
	var both sync.WaitGroup
	for _, p := range running {
		both.Go(func() {
			p.signal(syscall.SIGTERM)
			if code := p.wait(t, 20*time.Second); code != 0 {
				t.Errorf("exit %d\n%s", code, p.log())
			}
		})
	}
	both.Wait()
	r.mustBeDone()
}

// Two instances that start at the same moment on an empty Redis and bucket.
//
//fault:leaders | Eight instances start in the same moment on an empty bucket | Eight processes | One claims the bucket, and losing that race is no failure
func TestManyStartAtOnce(t *testing.T) {
	r := newRig(t)
	r.orders(50)
	var all sync.WaitGroup
	for range 8 {
		p := r.start("run", "--once")
		all.Go(func() {
			if code := p.wait(t, time.Minute); code != 0 {
				t.Errorf("exit %d\n%s", code, p.log())
			}
		})
	}
	all.Wait()
	r.mustBeDone()
}

func TestFollowerSaysSo(t *testing.T) {
	r := newRig(t)
	r.orders(1)
	r.redis.Exec("SET", "korvet:storage:offload:lease", "somebody", "PX", "60000")
	_, stderr, code := r.run("run", "--once")
	if code != 0 || !strings.Contains(stderr, "another instance leads; nothing done") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if got := strings.TrimSpace(r.redis.Exec("GET", "korvet:storage:offload:lease")); got != "somebody" {
		t.Errorf("somebody's lease became %q", got)
	}
}
