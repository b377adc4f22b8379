package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/segment"
)

// untouchable is all that there is, but for what a worker may write of what is
// paused: the records of topics and of instances.
func (r *rig) untouchable() map[string]string {
	all := r.snapshot()
	for _, key := range []string{r.layout.KnownKey(), r.layout.MembersKey(), r.layout.PausedKey()} {
		delete(all, "key "+key)
	}
	return all
}

// Something of every kind is due, and everything is paused, or each topic and
// stream by itself: nothing changes, and the dry run plans nothing. Resumed, all
// is done.
//
//fault:operator | Something of every kind is due while everything, or each topic and stream, is paused | The built program, Redis and a folder or S3 | Not a byte of what is paused changes; it is counted and shown; resumed, it goes on
func TestNothingChangesWhileItIsPaused(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *rig{"S3": newRig, "files": newFileRig} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			work := r.somethingOfEach()
			before := r.untouchable()
			each := [][]string{{"--topic", "creating"}, {"--topic", "copying"}, {"--topic", "rolling"}, {"--topic", "dropping"}, {"--topic", "hiding"},
				{"--topic", "deleting"}, {"--stream", "events"}, {"--stream", "events2"}}
			if name == "S3" {
				each = [][]string{nil}
			}
			for _, scope := range each {
				r.control("pause", scope...)
			}
			for range 2 {
				if out := r.pass(0); strings.Count(out, "\npaused: ")+strings.Count(out, "paused: ") < len(each) {
					t.Errorf("a pass does not say what is paused:\n%s", out)
				}
			}
			if after := r.untouchable(); !maps.Equal(after, before) {
				t.Errorf("%q\nwas %q", after, before)
			}
			if out, _, _ := r.run("run", "--once", "--dry-run", "--output", "json"); len(decode[struct{ Actions []planned }](t, out).Actions) > 0 {
				t.Errorf("planned all the same: %s", out)
			}
			for _, scope := range each {
				r.control("resume", scope...)
			}
			out, _, _ := r.run("run", "--once", "--dry-run", "--output", "json")
			if got := decode[struct{ Actions []planned }](t, out).Actions; len(got) != len(work) {
				t.Errorf("planned then: %v, want %d", got, len(work))
			}
			r.pass(0)
			if after := r.untouchable(); maps.Equal(after, before) {
				t.Error("it does not go on")
			}
		})
	}
}

// control pauses or resumes.
func (r *rig) control(verb string, scope ...string) {
	r.t.Helper()
	if stdout, stderr, code := r.run(append([]string{verb}, scope...)...); code != 0 || stderr != "" {
		r.t.Fatalf("%s %q: exit %d\n%s%s", verb, scope, code, stdout, stderr)
	}
}

// Two daemons obey one pause, whoever leads.
//
//fault:operator | A topic is paused while two instances run, and the one that leads is killed | The built program | Neither touches it; the other topic goes on; resumed, all goes on
func TestEveryInstanceObeysAPause(t *testing.T) {
	r := newFileRig(t)
	r.topic("orders", 1)
	r.topic("other", 1)
	r.control("pause", "--topic", "orders")
	first := r.ticking("KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0")
	await(t, "the first leads", 20*time.Second, func() bool { return strings.Contains(first.worker.log(), "this instance leads") })
	second := r.ticking()
	moved := func(topic string, n segment.Number) func() bool {
		return func() bool {
			return r.entries()[r.layout.SegmentKey(segment.Partition{Topic: topic}, n)].Tier == segment.Remote
		}
	}
	both := func(n segment.Number) {
		t.Helper()
		for _, topic := range []string{"orders", "other"} {
			r.sealed(segment.Partition{Topic: topic}, n, 20)
		}
		await(t, "the other topic goes on", 20*time.Second, moved("other", n))
		if moved("orders", n)() {
			t.Errorf("segment %d was moved although it is paused", n)
		}
	}
	both(0)
	first.worker.kill()
	await(t, "the second leads", 20*time.Second, func() bool { return strings.Contains(second.worker.log(), "this instance leads") })
	both(1)
	r.control("resume", "--topic", "orders")
	await(t, "it goes on", 20*time.Second, func() bool { return moved("orders", 0)() && moved("orders", 1)() })
}

// uploaded is what run --once --output json says of an upload.
type uploaded struct {
	Seconds  float64
	Segments []struct {
		Out int64 `json:"bytes_out"`
	}
}

func (u uploaded) bytes() (sum int64) {
	for _, s := range u.Segments {
		sum += s.Out
	}
	return sum
}

// Uploads, of whatever kind and however many at once, take as long as the rate
// says.
func TestUploadRate(t *testing.T) {
	const rate, messages = 512 << 10, 70_000 // about 48 bytes of a message go up
	parts := []string{"KORVET_STORAGE_S3_MULTIPART_THRESHOLD=64KB", "KORVET_STORAGE_S3_PART_SIZE=5MB"}
	for _, tt := range []struct {
		name     string
		rig      func(*testing.T) *rig
		segments int
		env      []string
	}{
		{"files", newFileRig, 4, nil}, {"S3", newRig, 4, nil}, {"S3, in parts", newRig, 2, parts},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // they wait for most of their time
			r := tt.rig(t)
			r.topic("orders", tt.segments)
			for p := range tt.segments {
				r.sealed(segment.Partition{Topic: "orders", Number: p}, 0, messages/tt.segments)
			}
			r.env = slices.Concat(tt.env, []string{fmt.Sprintf("KORVET_STORAGE_OFFLOAD_UPLOAD_RATE=%d", rate), "KORVET_STORAGE_OFFLOAD_CONCURRENCY=4"})
			stdout, stderr, code := r.run("run", "--once", "--output", "json")
			if code != 0 {
				t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
			}
			u := decode[uploaded](t, stdout)
			got := float64(u.bytes()) / u.Seconds
			t.Logf("%d bytes in %.2f s: %.0f bytes/s", u.bytes(), u.Seconds, got)
			if got > 1.15*rate || got < 0.85*rate {
				t.Errorf("%.0f bytes per second, want %d", got, rate)
			}
			r.mustBeDone()
		})
	}
}

// SIGHUP reads the file again: an upload that would take a minute ends, and what
// needs a restart is named. A second one, and one with a fault in the file, end
// nothing.
//
//fault:operator | SIGHUP, several times, during an upload, with right and wrong settings | The built program | What can change does, in the middle of the upload; nothing changes where there is a fault; it never ends
func TestHangup(t *testing.T) {
	r := newFileRig(t)
	r.one(1, 70_000)
	file := filepath.Join(t.TempDir(), "settings.yml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("korvet.storage.offload.upload-rate: 64KB\n")
	p := r.start("run", "--config", file)
	says := func(text string) {
		t.Helper()
		await(t, text, 20*time.Second, func() bool { return strings.Contains(p.log(), text) })
	}
	says("this instance leads")
	write("korvet.storage.offload.upload-rate: fast\n")
	p.signal(syscall.SIGHUP)
	says(`nothing is changed`)
	await(t, "the upload goes on for a second", 20*time.Second, after(time.Second))
	if strings.Contains(p.log(), "segment is remote") {
		t.Fatalf("it was too fast:\n%s", p.log())
	}
	write("korvet.storage.offload.upload-rate: 0\nkorvet.storage.offload.shards: 4\n")
	for range 3 {
		p.signal(syscall.SIGHUP)
	}
	says(`"setting":"korvet.storage.offload.upload-rate","value":"0"`)
	says(`"message":"changed, and needs a restart","settings":["korvet.storage.offload.shards"]`)
	says("segment is remote")
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log())
	}
	r.mustBeDone()
}
