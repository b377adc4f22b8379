package test

import (
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// mustBeRight checks every entry as it is: those that are REMOTE have their
// whole object, the others their whole stream.
func (r *rig) mustBeRight() (remote int) {
	r.t.Helper()
	for key, e := range r.entries() {
		switch {
		case e.Tier == segment.Remote:
			remote++
			r.mustHold(r.ledger[key], e)
			r.mustBeInRedis(r.ledger[key])
		case e.State != segment.Sealed || e.Object != nil:
			r.t.Errorf("%s: %+v", key, e)
		}
	}
	return remote
}

// Connections that break in the middle of pages are made again, and the pages
// asked for again: no entry is lost or comes twice.
func TestConnectionsBreakInMidPage(t *testing.T) {
	//fault:redis | all connections are killed, again and again, while pages are read | CLIENT KILL TYPE normal every 10 ms during a pass | pages are asked for again, and no entry is lost or comes twice
	r := newRig(t)
	r.orders(20_000)
	p := r.start("run", "--once")
	cut := time.NewTicker(10 * time.Millisecond)
	defer cut.Stop()
	for running := true; running; {
		select {
		case <-p.ended:
			running = false
		case <-cut.C:
			_, _ = r.redis.TryExec("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}
	}
	t.Logf("%d segments moved under fire\n%s", r.mustBeRight(), p.log())
	if strings.Contains(p.log(), "goroutine ") {
		t.Error("it crashed")
	}
	r.redis.Exec("DEL", "korvet:storage:offload:lease") // or wait for it to lapse
	if _, stderr, code := r.run("run", "--once"); code != 0 {
		t.Errorf("afterwards: exit %d\n%s", code, stderr)
	}
	r.mustBeDone()
}

// A Redis that dies in the middle of the copy: one line that says so, and
// nothing was flipped that is not on the store.
func TestRedisDiesInMidCopy(t *testing.T) {
	//fault:redis | Redis dies in the middle of a copy | SIGKILL of redis-server once the first object is there | one line says so, the exit code is 1, and nothing was flipped that is not on the store
	r := newRig(t)
	r.orders(60_000) // enough to be in the middle of
	p := r.start("run", "--once")
	await(t, "the first object is there", 20*time.Second, func() bool { return len(r.objects()) > 0 })
	r.redis.Stop()
	if code := p.wait(t, time.Minute); code != 1 || !strings.Contains(p.log(), "redis") {
		t.Errorf("exit %d\n%s", code, p.log())
	}
	for line := range strings.Lines(p.log()) {
		if len(line) > 600 || strings.Contains(line, "goroutine ") {
			t.Errorf("no message for a person: %q", line)
		}
	}
}

// A store that dies in the middle: what was moved is right, the rest is LOCAL
// and is said to be.
func TestTheStoreDiesInMidCopy(t *testing.T) {
	//fault:store | the store dies in the middle of a copy | SIGKILL of the S3 server once the first object is there | what was moved is right, the rest is LOCAL and is said to be
	r := newRig(t)
	r.orders(60_000) // enough to be in the middle of
	p := r.start("run", "--once")
	await(t, "the first object is there", 20*time.Second, func() bool { return len(r.objects()) > 0 })
	r.s3.Stop()
	code := p.wait(t, 2*time.Minute)
	remote := r.mustBeRight()
	if code != 1 || !strings.Contains(p.log(), "refused") && !strings.Contains(p.log(), "reset") && !strings.Contains(p.log(), "EOF") {
		t.Errorf("exit %d with %d segments moved\n%s", code, remote, p.log())
	}
}

// Readiness says the truth between two ticks too, about Redis and about a
// store that has never worked.
func TestReadiness(t *testing.T) {
	//fault:store | the bucket is missing, for several ticks | the setting names a bucket that is made later | not ready all the time, and ready by itself once the bucket is there
	//fault:redis | Redis stops answering between two ticks | SIGSTOP of redis-server | not ready until it goes on
	r := newRig(t)
	r.orders(5)
	address := closedPort(t)
	r.env = []string{"KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=" + address, "KORVET_STORAGE_REMOTE_PATH=s3://later/korvet",
		"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=1s", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=3s"}
	ready := func(want int) func() bool {
		return func() bool { status, _ := get(address, "/readyz"); return status == want }
	}
	p := r.start("run")
	await(t, "a pass has met the missing bucket", 30*time.Second, func() bool { return strings.Contains(p.log(), "the store can't be used") })
	for range 50 { // over several ticks
		if status, body := get(address, "/readyz"); status != 503 || !strings.Contains(body, "later") {
			t.Fatalf("readiness %d %s\n%s", status, body, p.log())
		}
		await(t, "a tenth of a second", time.Minute, tenth())
	}
	r.s3.AddBucket(t, "later")
	await(t, "ready once the bucket is there", time.Minute, ready(200))
	r.redis.Freeze()
	await(t, "not ready without redis", 30*time.Second, ready(503))
	r.redis.Thaw()
	await(t, "ready with it", 30*time.Second, ready(200))
}

// tenth is true after a tenth of a second.
func tenth() func() bool {
	end := time.Now().Add(100 * time.Millisecond)
	return func() bool { return time.Now().After(end) }
}

// A lease key that never expires was written by somebody who is no instance:
// nobody would ever lead, and that must not look like following.
func TestALeaseThatNeverExpires(t *testing.T) {
	//fault:leaders | somebody else has written the lease key, without an expiry | SET of the key | it does not look like following: exit code 1, and a line that says what to do
	r := newRig(t)
	r.orders(1)
	r.redis.Exec("SET", "korvet:storage:offload:lease", "x")
	_, stderr, code := r.run("run", "--once")
	if code != 1 || !strings.Contains(stderr, "never expires") || !strings.Contains(stderr, "delete it") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// One topic that the Redis user may not touch holds up no other.
func TestOneForbiddenTopic(t *testing.T) {
	//fault:redis | the user may not touch one topic | an ACL user without a key pattern for it | that topic is reported, and all others move
	r := newRig(t)
	r.orders(5)
	r.topic("secret", 1)
	r.redis.Exec("ACL", "SETUSER", "worker", "on", ">pw", "+@all", "~korvet:topics", "~korvet:topic:*", "~korvet:storage:*:orders:*", "~korvet:storage:offload:*")
	r.env = []string{"KORVET_REDIS_URI=" + r.redis.UserURI("worker", "pw")}
	stdout, stderr, code := r.run("run", "--once")
	if code != 1 || !strings.Contains(stdout, "12 of 12 sealed segments moved") || !strings.Contains(stderr, "partition secret:0: ") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	r.mustBeDone()
}
