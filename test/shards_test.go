package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// shardsEnv is the settings of instances that share four shards.
func shardsEnv(shards int) []string {
	return []string{
		fmt.Sprintf("KORVET_STORAGE_OFFLOAD_SHARDS=%d", shards),
		"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=500ms",
		"KORVET_STORAGE_OFFLOAD_LEASE_DURATION=3s",
		"KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0s",
		"KORVET_STORAGE_OFFLOAD_CONCURRENCY=1",
	}
}

// member is an instance's record.
type member struct {
	Shards []int `json:"shards"`
	Of     int   `json:"of"`
}

// members are the records of the instances, stale ones too.
func (r *rig) members() (all []member) {
	r.t.Helper()
	for line := range strings.Lines(r.redis.Exec("HVALS", r.layout.MembersKey())) {
		if strings.TrimSpace(line) != "" {
			all = append(all, decode[member](r.t, line))
		}
	}
	return all
}

// shares is how many shards each instance says that it holds, sorted.
func (r *rig) shares() string {
	n := []int{}
	for _, m := range r.members() {
		n = append(n, len(m.Shards))
	}
	slices.Sort(n)
	return fmt.Sprint(n)
}

func (r *rig) awaitShares(want string, within time.Duration) {
	r.t.Helper()
	await(r.t, "the instances hold "+want, within, func() bool { return r.shares() == want })
}

// more loads so many further sealed segments into each of 16 partitions.
func (r *rig) more(from, segments int, messages int) {
	r.t.Helper()
	for p := range 16 {
		for n := range segments {
			r.sealed(segment.Partition{Topic: "orders", Number: p}, segment.Number(from+n), messages)
		}
	}
}

// slowly is a way to an object store on which each request waits.
func slowly(t *testing.T, endpoint string, wait time.Duration) string {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to) // the Host that was signed stays
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(wait):
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// anyRemote is whether a segment of that number or above is.
func (r *rig) anyRemote(from segment.Number) bool {
	for key, e := range r.entries() {
		if r.ledger[key].number >= from && e.Tier == segment.Remote {
			return true
		}
	}
	return false
}

// Two instances with four shards share sixteen partitions; one is killed in the
// middle of its work, a third joins and leaves. Asserted: each has its share,
// within seconds where nobody died, also while a pass goes on; everything is copied, once, and is where a
// reader finds it; nothing is said to be wrong.
//
//fault:crash | One of two instances that share the work dies | SIGKILL in the middle of a pass, four shards, sixteen partitions, a real Redis and a real S3 server; a third instance joins and leaves | The others have its shards once its leases have lapsed; no message is lost, none is there twice, no segment is copied twice but the one that was under way
func TestInstancesShareTheWork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env = append(shardsEnv(4), "KORVET_STORAGE_S3_ENDPOINT="+slowly(t, r.s3.Endpoint, 100*time.Millisecond))
	r.topic("orders", 16)
	r.more(0, 2, 50)
	a := r.start("run")
	r.awaitShares("[4]", 10*time.Second)
	b := r.start("run")
	r.awaitShares("[2 2]", 15*time.Second)
	if r.allRemote() {
		t.Error("the first pass was over before its instance had given shards away")
	}
	await(t, "the first segments are REMOTE", 30*time.Second, r.allRemote)

	r.more(2, 4, 50)
	await(t, "new segments are REMOTE", 20*time.Second, func() bool { return r.anyRemote(2) })
	if r.allRemote() {
		t.Fatal("nothing is left for the others")
	}
	a.kill()
	c := r.start("run")
	await(t, "the third is among the instances", 10*time.Second, func() bool { return len(r.members()) == 3 })
	r.awaitShares("[2 2]", time.Minute) // b and c, once the dead one counts no longer
	await(t, "all that was left is REMOTE", time.Minute, r.allRemote)
	r.mustShow(2, 4)

	c.signal(syscall.SIGTERM)
	if code := c.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit %d", code)
	}
	r.awaitShares("[4]", 15*time.Second)
	r.more(6, 1, 50)
	await(t, "everything is REMOTE", 30*time.Second, r.allRemote)
	b.signal(syscall.SIGTERM)
	if code := b.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := r.shares(); got != "[]" {
		t.Errorf("members are left: %s", got)
	}
	r.mustBeDone()
	r.mustBeSound()
	for _, p := range []*process{a, b, c} {
		if log := p.log(); strings.Contains(log, `"level":"error"`) || strings.Contains(log, `"level":"warn"`) {
			t.Errorf("a log has warnings:\n%s", log)
		}
	}
	mustCopyOnce(t, 1, a, b, c)
}

// mustShow checks what status says of the instances.
func (r *rig) mustShow(instances, shards int) {
	r.t.Helper()
	stdout, stderr, code := r.run("status", "--output", "json")
	var view struct{ Members []member }
	if err := json.Unmarshal([]byte(stdout), &view); err != nil || code != 0 {
		r.t.Fatalf("status: exit %d, %v\n%s", code, err, stderr)
	}
	held := 0
	for _, m := range view.Members {
		held += len(m.Shards)
	}
	if len(view.Members) != instances || held != shards {
		r.t.Errorf("status shows %+v", view.Members)
	}
	if text, _, _ := r.run("status"); strings.Count(text, "works on 2 shards of 4: ") != 2 {
		r.t.Errorf("status says\n%s", text)
	}
}

// mustCopyOnce checks that no segment was copied by two instances, but for so
// many that were under way when one was killed.
func mustCopyOnce(t *testing.T, but int, all ...*process) {
	t.Helper()
	times, twice := map[string]int{}, 0
	for _, p := range all {
		for line := range strings.Lines(p.log()) {
			if !strings.Contains(line, `"segment is remote"`) {
				continue
			}
			if s := decode[struct{ Segment string }](t, line).Segment; s != "" {
				if times[s]++; times[s] > 1 {
					twice++
				}
			}
		}
	}
	if len(times) == 0 || twice > but {
		t.Errorf("%d segments were copied, %d of them twice", len(times), twice)
	}
}

// One pass takes the shards that are free, and leaves the others to who holds
// them.
func TestOnceTakesTheFreeShards(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env = shardsEnv(4)
	r.topic("orders", 16)
	r.more(0, 1, 20)
	lease := func(i int) string { return fmt.Sprintf("%s:%d/4", r.layout.LeaseKey(), i) }
	r.redis.Exec("SET", lease(1), "somebody", "PX", "600000")
	_, stderr, code := r.run("run", "--once")
	done := 0
	for _, e := range r.entries() {
		if e.Tier == segment.Remote {
			done++
		}
	}
	if code != 0 || done == 0 || done == 16 || !strings.Contains(stderr, `"shards":[1],"of":4`) {
		t.Errorf("exit %d, %d of 16 done\n%s", code, done, stderr)
	}
	for i := range 4 {
		if got := strings.TrimSpace(r.redis.Exec("EXISTS", lease(i))); (got == "1") != (i == 1) {
			t.Errorf("lease %d is there: %s", i, got)
		}
		r.redis.Exec("SET", lease(i), "somebody", "PX", "600000")
	}
	if _, stderr, code := r.run("run", "--once"); code != 0 || !strings.HasSuffix(stderr, "other instances hold all 4 shards; nothing done\n") {
		t.Errorf("when none is free: exit %d\n%s", code, stderr)
	}
	if got := r.shares(); got != "[]" {
		t.Errorf("a single pass is among the instances: %s", got)
	}
	if stdout, _, code := r.run("run", "--once", "--dry-run", "--output", "json"); code != 0 || strings.Count(stdout, `"action": "copy"`) != 16-done {
		t.Errorf("the dry run shows another number than %d: exit %d\n%s", 16-done, code, stdout)
	}
	for i := range 4 {
		r.redis.Exec("DEL", lease(i))
	}
	if _, stderr, code := r.run("run", "--once"); code != 0 || stderr != "" {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	r.mustBeDone()
}

// While the number of shards is being changed, instances with both numbers are at
// work on everything.
//
//fault:leaders | Instances disagree on the number of shards, as while it is changed | One with a single lease, one with four shards and one with three at work on the same sixteen partitions, a real Redis and a real S3 server | They race, and no message is lost or there twice; each of them warns once
func TestInstancesThatDisagreeOnShards(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.topic("orders", 16)
	var all []*process
	for _, shards := range []int{1, 4, 3} {
		r.env = shardsEnv(shards)
		all = append(all, r.start("run"))
	}
	r.awaitShares("[1 3 4]", 15*time.Second)
	for n := range 5 {
		r.more(n, 1, 100)
	}
	await(t, "everything is REMOTE", time.Minute, r.allRemote)
	var warned, raced int
	for i, p := range all {
		p.signal(syscall.SIGTERM)
		if code := p.wait(t, 20*time.Second); code != 0 {
			t.Errorf("exit %d\n%s", code, p.log())
		}
		if n := strings.Count(p.log(), "instances disagree on korvet.storage.offload.shards"); n > 0 {
			warned++
		} else {
			t.Errorf("instance %d has not warned:\n%s", i, p.log())
		}
		raced += strings.Count(p.log(), "was changed by another instance first")
		raced += strings.Count(p.log(), `"result":"adopted"`)
	}
	t.Logf("%d races", raced)
	if warned != 3 {
		t.Errorf("%d have warned", warned)
	}
	r.mustBeDone()
	r.mustBeSound(checker.Orphan)
}

// A life while instances that share its partitions come, leave, sleep beyond
// their leases and wake again. Asserted: in the end every message that was
// acknowledged is where a reader finds it, once, or past total retention.
//
//fault:leaders | Instances join, leave and sleep beyond their leases while producers write and segments live and die | Four shards, up to three instances and single passes, a real Redis and a real S3 server; SIGTERM, SIGSTOP and SIGCONT | No acknowledged message is lost, altered or found twice, and every step is reached
func TestLifeWithShards(t *testing.T) {
	t.Parallel()
	l := newLife(t, newRig(t), "KORVET_STORAGE_OFFLOAD_SHARDS=4")
	a := l.start("run")
	l.begin(l.everywhere()...)
	over := after(24 * time.Second)
	for round := 0; !over(); round++ {
		b := l.start("run")
		await(t, "the second one has its share", 20*time.Second, func() bool { return strings.Contains(b.log(), "the shards of this instance") })
		if round%2 == 1 {
			a.signal(syscall.SIGSTOP)
			await(t, "its leases lapse", 10*time.Second, after(1800*time.Millisecond))
			if _, stderr, code := l.run("run", "--once"); code > 1 {
				t.Errorf("a pass of the shards that are free: exit %d\n%s", code, stderr)
			}
			a.signal(syscall.SIGCONT)
		}
		await(t, "they work together", 10*time.Second, after(time.Second))
		b.signal(syscall.SIGTERM)
		if code := b.wait(t, 20*time.Second); code != 0 {
			t.Errorf("exit %d\n%s", code, b.log())
		}
	}
	l.end()
	await(t, "every sealed segment is copied", 30*time.Second, l.quiet)
	a.signal(syscall.SIGTERM)
	if code := a.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit %d\n%s", code, a.log())
	}
	v := l.verify()
	t.Logf("%+v; seen %v", v, l.watch.steps)
	l.noStreamsLeft()
	l.mustBeLively(v)
}
