package test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// Ten minutes of 403, shortened by the tick: segments wait to be copied, local
// copies wait to be dropped.
//
//fault:store | The store answers 403 to everything for ten minutes, then works | A proxy before a real server for many ticks of 300 ms, a daemon with segments to copy and local copies to drop | Nothing is flipped or dropped, the daemon is alive and not ready and says which right is missing, and goes on by itself within the back-off
func TestDeniedForTenMinutes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.topic("orders", 4, "local.retention.ms", "1")
	partition := func(p int) segment.Partition { return segment.Partition{Topic: "orders", Number: p} }
	for p := range 4 {
		r.sealed(partition(p), 0, 30)
		r.open(partition(p), 5)
	}
	f := newFront(t, r)
	r.pass(0) // these are remote, and due to be dropped in the next pass
	for p := range 4 {
		for n := segment.Number(1); n < 5; n++ {
			r.sealed(partition(p), n, 30)
		}
	}
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		refuse(w, r, http.StatusForbidden, "AccessDenied")
		return true
	})
	before := f.seen("HEAD file")
	address := closedPort(t)
	r.quick(address)
	p := r.start("run")
	end := time.Now().Add(8 * time.Second)
	await(t, "the store was asked in many passes", time.Minute, func() bool {
		return f.seen("HEAD file")-before > 30 && time.Now().After(end)
	})
	if status, body := get(address, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "s3://bucket/korvet/") || !strings.Contains(body, "allow s3:") {
		t.Errorf("readiness %d %s", status, body)
	}
	if status, body := get(address, "/livez"); status != http.StatusOK {
		t.Errorf("liveness %d %s", status, body)
	}
	if n := r.mustBeRight(); n != 4 { // which looks at the streams, too
		t.Errorf("%d segments are remote, want the 4 of the time before", n)
	}
	f.set(nil)
	mended := time.Now()
	await(t, "all is copied and dropped, after a back-off as long as the outage at most", 20*time.Second, func() bool {
		for _, e := range r.entries() {
			if e.Local != segment.Gone {
				return false
			}
		}
		return true
	})
	t.Logf("went on after %s", time.Since(mended))
	await(t, "ready", 10*time.Second, func() bool { status, _ := get(address, "/readyz"); return status == http.StatusOK })
	select {
	case <-p.ended:
		t.Errorf("it ended:\n%s", p.log())
	default:
	}
	p.kill()
	for key, e := range r.entries() {
		r.mustHold(r.ledger[key], e)
	}
	r.mustNotPutTwice()
	if !strings.Contains(p.log(), "the store can't be used") || !strings.Contains(p.log(), "works again") {
		t.Errorf("its log:\n%s", p.log())
	}
}

// limited is a store that has time for so many requests at once and in a
// second, and asks for fewer beyond.
type limited struct {
	bucket float64 // requests that it has time for at the moment
	at     time.Time
	rate   float64 // in a second
	asked  int
	wait   string // Retry-After; "" = none
}

func (l *limited) before(w http.ResponseWriter, r *http.Request) bool {
	now := time.Now()
	if !l.at.IsZero() {
		l.bucket = min(l.rate/4, l.bucket+now.Sub(l.at).Seconds()*l.rate)
	}
	l.at = now
	if l.bucket >= 1 {
		l.bucket--
		return false
	}
	l.asked++
	if l.wait != "" {
		w.Header().Set("Retry-After", l.wait)
	}
	refuse(w, r, http.StatusServiceUnavailable, "SlowDown")
	return true
}

// A store that throttles is no outage: the pass goes through, if slowly.
//
//fault:store | The store answers 503 SlowDown to most requests, with and without Retry-After | A proxy that lets so many requests through in a second, sixteen segments at once | One pass moves every segment, nothing fails and nothing is parked
func TestThrottledPass(t *testing.T) {
	for name, store := range map[string]*limited{"without a time": {rate: 20}, "with Retry-After": {rate: 60, wait: "1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.topic("orders", 16)
			for p := range 16 {
				for n := range segment.Number(2) {
					r.sealed(segment.Partition{Topic: "orders", Number: p}, n, 30)
				}
			}
			r.env = []string{"KORVET_STORAGE_OFFLOAD_CONCURRENCY=16"}
			f := newFront(t, r)
			f.set(store.before)
			p := r.start("run", "--once")
			if code := p.wait(t, 2*time.Minute); code != 0 || !strings.Contains(p.stdout.String(), "32 of 32 sealed segments moved") {
				t.Errorf("exit %d\n%s%s", code, p.stdout.String(), p.log())
			}
			f.change(func(*front) {
				if store.asked == 0 {
					t.Error("the store never asked for fewer requests")
				}
				t.Logf("%d requests were refused of %v", store.asked, f.count)
			})
			r.mustBeDone()
		})
	}
}

// A store that has time for nobody is given up, with one line that says so.
//
//fault:store | The store answers 503 SlowDown to everything about files | A proxy does so until the pass has been given up | The pass is given up after half a minute to a minute, not at once, nothing is flipped, the next one does everything
func TestThrottledForLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.orders(30)
	f := newFront(t, r)
	never := &limited{}
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		return strings.HasSuffix(kind(r), " file") && never.before(w, r)
	})
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_CONCURRENCY=4")
	begun := time.Now()
	p := r.start("run", "--once")
	code := p.wait(t, 4*time.Minute)
	if took := time.Since(begun); took < 30*time.Second || took > 90*time.Second {
		t.Errorf("given up after %s", took)
	}
	if code != 1 || !strings.Contains(p.log(), "SlowDown") && !strings.Contains(p.log(), "HTTP 503") || strings.Count(p.log(), "\n") > 8 {
		t.Errorf("exit %d\n%s", code, p.log())
	}
	if n := r.mustBeRight(); n != 0 {
		t.Errorf("%d segments were flipped", n)
	}
	f.set(nil)
	r.pass(0)
	r.mustBeDone()
}

// One key of many that the store does not delete, in the middle of expiry: the
// others go, and it is tried again.
//
//fault:store | A batch delete is answered 200 with an error for one key among many, and cut or empty at first | A proxy writes such answers to the deletion of expired objects | Entries whose objects went are removed, the one that is left keeps entry and object and goes later
func TestOneObjectDoesNotGo(t *testing.T) {
	r := newRig(t)
	r.orders(30)
	f := newFront(t, r)
	r.pass(0)
	stays := r.objects()[0]
	answers := []string{"", "<DeleteResult><Deleted><Key>korv", `<DeleteResult><Deleted><Key>` + "korvet/" + stays + `</Key></Deleted>` + `<Error><Key>korvet/` + stays + `</Key><Code>AccessDenied</Code></Error></DeleteResult>`}
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, stays) {
			refuse(w, r, http.StatusForbidden, "AccessDenied")
			return true
		}
		if r.Method != http.MethodPost || len(answers) == 0 {
			return false
		}
		_, _ = fmt.Fprint(w, answers[0])
		answers = answers[1:]
		return true
	})
	r.set("orders", "retention.ms", "1", "local.retention.ms", "1")
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_DELETE_GRACE=0s")
	await(t, "eleven objects are gone", time.Minute, func() bool {
		_, _, _ = r.run("run", "--once")
		return len(r.objects()) <= 1
	})
	if got := r.objects(); len(got) != 1 || got[0] != stays {
		t.Errorf("left are the objects %q, want %s", got, stays)
	}
	if left := r.manifestFields(); left != 1 {
		t.Errorf("%d entries are left beside the open ones, want that of %s", left, stays)
	}
	f.set(nil)
	r.pass(0)
	if got := r.objects(); len(got) != 0 || r.manifestFields() != 0 {
		t.Errorf("afterwards: objects %q, %d entries", got, r.manifestFields())
	}
}

// manifestFields counts the entries of the ledger's segments that are left.
func (r *rig) manifestFields() (n int) {
	for _, w := range r.ledger {
		if strings.TrimSpace(r.redis.Exec("HEXISTS", r.layout.ManifestKey(w.partition), w.number.String())) == "1" {
			n++
		}
	}
	return n
}
