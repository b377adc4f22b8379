package test

import (
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// running is a rig with a worker that ticks five times a second.
type running struct {
	*rig
	worker  *process
	address string // of its probes
	next    segment.Number
}

// ticking starts a worker that is ready.
func (r *rig) ticking(env ...string) *running {
	r.t.Helper()
	d := &running{rig: r, address: closedPort(r.t), next: 100}
	r.env = append(append(r.env, "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS="+d.address, "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=200ms",
		"KORVET_STORAGE_OFFLOAD_LEASE_DURATION=1s", "KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0", "KORVET_REDIS_TIMEOUT=2s"), env...)
	d.worker = r.start("run")
	await(r.t, "the worker is ready", 20*time.Second, d.ready(200))
	return d
}

// ready says whether the readiness probe answers so.
func (d *running) ready(want int) func() bool {
	return func() bool { status, _ := get(d.address, "/readyz"); return status == want }
}

// unready waits until the readiness probe says that this is wrong.
func (d *running) unready(why string) {
	d.t.Helper()
	says := func() bool {
		status, body := get(d.address, "/readyz")
		return status == 503 && strings.Contains(body, why)
	}
	for deadline := after(20 * time.Second); !says(); {
		if deadline() {
			_, body := get(d.address, "/readyz")
			d.t.Fatalf("not ready because of %q: it says %q\n%s", why, body, d.worker.log())
		}
		await(d.t, "a tenth of a second", time.Minute, tenth())
	}
}

// mustLive checks that the worker runs and that nobody would restart it.
func (d *running) mustLive() {
	d.t.Helper()
	if status, body := get(d.address, "/livez"); status != 200 {
		d.t.Errorf("liveness %d %s\n%s", status, body, d.worker.log())
	}
	if strings.Contains(d.worker.log(), "goroutine ") {
		d.t.Errorf("it crashed:\n%s", d.worker.log())
	}
}

// mustGoOn checks that the worker is ready again by itself, soon, and moves
// what is there and a segment that comes now.
func (d *running) mustGoOn() {
	d.t.Helper()
	d.mustLive()
	await(d.t, "ready again", 20*time.Second, d.ready(200))
	d.sealed(segment.Partition{Topic: "orders"}, d.next, 20)
	d.next++
	await(d.t, "every segment is REMOTE", 20*time.Second, func() bool {
		for _, e := range d.entries() {
			if e.Tier != segment.Remote {
				return false
			}
		}
		return true
	})
	d.mustBeDone()
	for line := range strings.Lines(d.worker.log()) {
		if len(line) > 900 {
			d.t.Errorf("no line for a person: %s", line)
		}
	}
}

// one is topic orders with one partition and some sealed segments.
func (r *rig) one(segments, messages int) {
	r.topic("orders", 1)
	for n := range segments {
		r.sealed(segment.Partition{Topic: "orders"}, segment.Number(n), messages)
	}
}

// oneLine checks that a message is one line that has these words.
func oneLine(t *testing.T, text string, words ...string) {
	t.Helper()
	if strings.Count(text, "\n") != 1 {
		t.Errorf("not one line: %s", text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in: %s", w, text)
		}
	}
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
