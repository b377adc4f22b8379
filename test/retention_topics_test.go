package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// A topic that is removed and made again under its name, by the broker, while
// the worker runs: the new messages go beside the objects of the old one,
// which stay as they are.
//
//fault:topics | A topic is deleted and made again while the worker runs | The broker's keys are removed and written anew, with another topic id and without one | The new messages are copied beside the old objects, which stay as they are
func TestTopicMadeAnew(t *testing.T) {
	for name, id := range map[string][]string{"with ids": {"id", "6b1c"}, "without ids": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFileRig(t)
			p := segment.Partition{Topic: "orders"}
			key := r.layout.SegmentKey(p, 0)
			r.env = []string{"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=100ms", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=1s",
				"KORVET_STORAGE_OFFLOAD_DELETE_REMOVED_TOPICS=true"}
			r.topic("orders", 1, id...)
			r.sealed(p, 0, 50)
			worker := r.start("run")
			copied := func() bool { return r.entries()[key].Tier == segment.Remote }
			await(t, "the first one is copied", 20*time.Second, copied)
			old := filepath.Join(r.root(), r.entries()[key].Object.Path)
			before, err := os.ReadFile(old)
			if err != nil {
				t.Fatal(err)
			}
			r.redis.Exec("SREM", r.layout.TopicsKey(), "orders")
			r.redis.Exec("DEL", r.layout.TopicKey("orders"), key, r.layout.ManifestKey(p))
			await(t, "the worker has missed it", 20*time.Second, func() bool { return strings.Contains(worker.log(), "orders left the registry") })
			r.ledger = map[string]written{"old": r.ledger[key]} // so that the next messages are others
			if id != nil {
				id = []string{"id", "77f0"}
			}
			r.redis.Exec("DEL", r.layout.ManifestKey(p)) // as the broker does that makes it
			r.topic("orders", 1, id...)
			r.sealed(p, 0, 50)
			delete(r.ledger, "old")
			await(t, "the second one is copied", 20*time.Second, copied)
			stopped(t, worker)
			e := r.entries()[key]
			if e.Object.Path != "korvet:storage:local:orders:0/0-1.parquet" || r.ledger[key].seed == 1 {
				t.Errorf("the second one is %s", e.Encode())
			}
			r.mustBeSound(checker.Orphan) // of the old one
			if now, err := os.ReadFile(old); err != nil || string(now) != string(before) {
				t.Errorf("the object of the first one is not what it was: %v", err)
			}
		})
	}
}

// Where offloading is switched off nothing more is copied or rolled, and what
// was copied lives out its retention.
//
//fault:topics | Offloading is switched off for a topic that has copies | remote.storage.enable becomes false | What was copied lives out its retention, and what was not stays in Redis as it is
func TestOffloadingSwitchedOff(t *testing.T) {
	r := newFileRig(t)
	r.topic("orders", 1)
	p := segment.Partition{Topic: "orders"}
	r.sealed(p, 0, 10)
	r.pass(0)
	r.set("orders", "remote.storage.enable", "false", "segment.ms", "1")
	r.sealed(p, 1, 10)
	r.open(p, 2)
	r.pass(0)
	first, second := r.layout.SegmentKey(p, 0), r.layout.SegmentKey(p, 1)
	if e := r.entries(); e[first].Local != segment.Present || e[second].Tier != segment.Local || len(r.objects()) != 1 {
		t.Errorf("%+v", e)
	}
	r.mustBeInRedis(r.ledger[first])
	r.mustBeInRedis(r.ledger[second])
	r.mustBeSound()

	r.set("orders", "retention.ms", "1000", "local.retention.ms", "1000")
	r.env = []string{"KORVET_STORAGE_OFFLOAD_DELETE_GRACE=0", "KORVET_STORAGE_OFFLOAD_EXPIRE_UNUPLOADED=expire"}
	for range 3 { // dropped, hidden, deleted
		r.pass(0)
	}
	if got := r.redis.Exec("HEXISTS", r.layout.ManifestKey(p), "0") + r.redis.Exec("EXISTS", first); got != "00" || len(r.objects()) != 0 {
		t.Errorf("the copied segment is left: %s, %q", got, r.objects())
	}
	r.mustBeInRedis(r.ledger[second])
	if got := r.redis.Exec("HGET", r.layout.ManifestKey(p), "2"); got != `{"v":1,"state":"OPEN","tier":"LOCAL"}` {
		t.Errorf("the open segment is %s", got)
	}
}
