package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// oneSegment is topic orders with one partition, a sealed segment in it that
// is copied already, and an open one.
func (r *rig) oneSegment() (written, segment.Entry) {
	r.t.Helper()
	p := segment.Partition{Topic: "orders"}
	r.topic("orders", 1)
	r.sealed(p, 0, 500)
	r.open(p, 1)
	r.pass(0)
	w := r.ledger[r.layout.SegmentKey(p, 0)]
	e := r.entries()[r.layout.SegmentKey(p, 0)]
	if e.Tier != segment.Remote || e.Local != segment.Present {
		r.t.Fatalf("not copied: %s", e.Encode())
	}
	return w, e
}

// pass is run --once, which ends with this code; it returns all that it prints.
func (r *rig) pass(code int, args ...string) string {
	r.t.Helper()
	stdout, stderr, got := r.run(append([]string{"run", "--once"}, args...)...)
	if got != code {
		r.t.Fatalf("exit %d, want %d\n%s%s", got, code, stdout, stderr)
	}
	return stdout + stderr
}

// set changes a topic's settings.
func (r *rig) set(topic string, settings ...string) {
	r.redis.Exec(append([]string{"HSET", r.layout.TopicKey(topic)}, settings...)...)
}

// stored puts an object in the place of another, as anybody could; nil
// removes it.
func (r *rig) stored(path string, body []byte) {
	r.t.Helper()
	file := filepath.Join(r.root(), path)
	switch {
	case r.files == "" && body == nil:
		r.s3.Remove(r.t, "korvet/"+path)
	case r.files == "":
		r.s3.Put(r.t, "korvet/"+path, body)
	case body == nil:
		if err := os.Remove(file); err != nil {
			r.t.Fatal(err)
		}
	default:
		if err := os.WriteFile(file, body, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// A local copy is not removed if its object is not what was copied any more:
// the segment is LOCAL again, is copied to the next path, and goes then.
func TestDropRefused(t *testing.T) {
	for store, start := range map[string]func(*testing.T) *rig{"S3": newRig, "files": newFileRig} {
		for what, damage := range map[string]func(body []byte) []byte{
			//fault:store | An object is removed before its stream is dropped | The file is removed from the store | The stream stays, is copied again and goes then
			"removed": func([]byte) []byte { return nil },
			//fault:store | An object is cut before its stream is dropped | Half of its bytes are put in its place | The stream stays, is copied to another path and goes then
			"truncated": func(body []byte) []byte { return body[:len(body)/2] },
			//fault:store | An object is emptied before its stream is dropped | No bytes are put in its place | The stream stays, is copied to another path and goes then
			"emptied": func([]byte) []byte { return []byte{} },
			//fault:store | An object is replaced by one of the same size before its stream is dropped | One bit of it is changed | The stream stays, is copied to another path and goes then
			"replaced": func(body []byte) []byte {
				body[len(body)/2] ^= 1
				return body
			},
		} {
			t.Run(store+" "+what, func(t *testing.T) {
				r := start(t)
				w, e := r.oneSegment()
				body, err := os.ReadFile(filepath.Join(r.root(), e.Object.Path))
				if err != nil {
					t.Fatal(err)
				}
				damaged := damage(body)
				r.stored(e.Object.Path, damaged)
				r.set("orders", "local.retention.ms", "1000")

				if out := r.pass(0); !strings.Contains(out, "1 reopened") {
					t.Errorf("the first pass: %s", out)
				}
				key := r.layout.SegmentKey(w.partition, w.number)
				if e := r.entries()[key]; e.State != segment.Sealed || e.Tier != segment.Local || e.Copy != 1 || e.Object != nil {
					t.Errorf("after the first pass %s", e.Encode())
				}
				r.mustBeInRedis(w)
				r.mustBeSound(checker.Orphan) // the damaged one

				r.pass(0)
				again := r.entries()[key]
				if again.Tier != segment.Remote || again.Local != segment.Present || again.Object.Path != "korvet:storage:local:orders:0/0-1.parquet" {
					t.Fatalf("after the second pass %s", again.Encode())
				}
				r.mustBeInRedis(w)
				r.mustBeSound(checker.Orphan)

				r.pass(0)
				last := r.entries()[key]
				if last.Local != segment.Gone || r.redis.Exec("EXISTS", key) != "0" {
					t.Errorf("after the third pass %s", last.Encode())
				}
				r.mustBeSound(checker.Orphan)
				if damaged != nil {
					if left, err := os.ReadFile(filepath.Join(r.root(), e.Object.Path)); err != nil || string(left) != string(damaged) {
						t.Errorf("the damaged object was touched: %d bytes, %v", len(left), err)
					}
				}
			})
		}
	}
}

// With wait-replicas a local copy stays for as long as no replica has the
// manifest that says where the other one is.
//
//fault:redis | The only replica is away when a stream is to be dropped | The replica is stopped, with wait-replicas | The stream stays until the replica is back and has the manifest
func TestDropWaitsForReplicas(t *testing.T) {
	r := newRig(t)
	r.redis.Exec("CONFIG", "SET", "repl-diskless-sync-delay", "0")
	replica := redisserver.Start(t, redisserver.Args("--replicaof", "127.0.0.1", strings.TrimPrefix(r.redis.Addr, "127.0.0.1:")))
	w, _ := r.oneSegment()
	key := r.layout.SegmentKey(w.partition, w.number)
	r.set("orders", "local.retention.ms", "1000")
	r.env = []string{"KORVET_STORAGE_OFFLOAD_WAIT_REPLICAS=1", "KORVET_REDIS_TIMEOUT=2s"}

	replica.Stop()
	if out := r.pass(1, "--output", "json"); !strings.Contains(out, `"reason": "not_replicated"`) {
		t.Errorf("without the replica: %s", out)
	}
	e := r.entries()[key]
	if e.Tier != segment.Remote || e.Local == segment.Gone {
		t.Errorf("without the replica %s", e.Encode())
	}
	r.mustBeInRedis(w)
	r.mustBeSound()

	replica.Relaunch()
	await(t, "the replica is back", 30*time.Second, func() bool { return strings.Contains(r.redis.Exec("INFO", "replication"), "state=online") })
	if out := r.pass(0); !strings.Contains(out, "1 dropped") {
		t.Errorf("with the replica: %s", out)
	}
	e = r.entries()[key]
	if e.Local != segment.Gone || r.redis.Exec("EXISTS", key) != "0" {
		t.Errorf("with the replica %s", e.Encode())
	}
	r.mustBeSound()
	await(t, "the replica has it too", 30*time.Second, func() bool {
		return strings.Contains(replica.Exec("HGET", r.layout.ManifestKey(w.partition), "0"), `"local":"GONE"`) && replica.Exec("EXISTS", key) == "0"
	})
}

// A segment that can't be copied and is past total retention stays, or goes
// where the settings say so.
//
//fault:input | A field name can't be written to a Parquet file | Bytes that are not UTF-8 | The segment stays in Redis, and is reported, past its retention too unless the settings let it go
func TestUnuploadedSegmentPastRetention(t *testing.T) {
	r := newRig(t)
	p := segment.Partition{Topic: "orders"}
	key := r.layout.SegmentKey(p, 0)
	r.topic("orders", 1, "retention.ms", "1000")
	r.redis.Pipe(redisserver.AppendCommand(nil, "XADD", key, "5-0", "\xff\xfe", "v"))
	r.redis.Exec("HSET", r.layout.ManifestKey(p), "0", `{"v":1,"state":"SEALED","tier":"LOCAL","count":1,"lastId":"5-0","sealedAt":6}`)
	r.open(p, 1)
	for range 3 {
		if out := r.pass(1, "--output", "json"); !strings.Contains(out, `"unuploaded": 1`) || !strings.Contains(out, `"reason": "field_name"`) {
			t.Errorf("held: %s", out)
		}
	}
	if got := r.redis.Exec("XLEN", key); got != "1" {
		t.Fatalf("the stream has %s entries", got)
	}
	r.env = []string{"KORVET_STORAGE_OFFLOAD_EXPIRE_UNUPLOADED=expire", "KORVET_STORAGE_OFFLOAD_DELETE_GRACE=0"}
	if out := r.pass(0); !strings.Contains(out, "1 hidden") {
		t.Errorf("expired: %s", out)
	}
	if got := r.redis.Exec("XLEN", key); got != "1" {
		t.Errorf("in the grace the stream has %s entries", got)
	}
	if out := r.pass(0); !strings.Contains(out, "1 expired unuploaded") {
		t.Errorf("expired: %s", out)
	}
	if r.redis.Exec("EXISTS", key) != "0" || r.redis.Exec("HEXISTS", r.layout.ManifestKey(p), "0") != "0" || len(r.objects()) != 0 {
		t.Errorf("left: %q", r.redis.Exec("HGETALL", r.layout.ManifestKey(p)))
	}
}

// A segment that was never copied is as young as the latest message that came
// into it, however late.
//
//fault:late-data | A message comes into a sealed segment that is past retention and was never copied | XADD after the seal, with expire-unuploaded | The segment is as young as that message and stays
func TestUnuploadedSegmentWithALateMessage(t *testing.T) {
	r := newRig(t)
	p := segment.Partition{Topic: "orders"}
	key := r.layout.SegmentKey(p, 0)
	r.topic("orders", 1, "retention.ms", "3600000")
	r.redis.Pipe(redisserver.AppendCommand(nil, "XADD", key, "5-0", "\xff\xfe", "v"))
	r.redis.Exec("HSET", r.layout.ManifestKey(p), "0", `{"v":1,"state":"SEALED","tier":"LOCAL","count":1,"lastId":"5-0","sealedAt":6}`)
	r.open(p, 1)
	r.redis.Exec("XADD", key, "*", "value", "late")
	r.env = []string{"KORVET_STORAGE_OFFLOAD_EXPIRE_UNUPLOADED=expire", "KORVET_STORAGE_OFFLOAD_DELETE_GRACE=0"}
	for range 3 {
		r.run("run", "--once")
	}
	if entry := r.redis.Exec("HGET", r.layout.ManifestKey(p), "0"); r.redis.Exec("XLEN", key) != "2" || strings.Contains(entry, "DELETING") {
		t.Errorf("%s entries are left of 2: %s", r.redis.Exec("XLEN", key), entry)
	}
}
