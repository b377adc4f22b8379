package test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// snapshot is all that there is in Redis and on the store: each key with its
// type, expiry and serialized value, consumer groups included, and each file.
func (r *rig) snapshot() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	for key := range strings.Lines(r.redis.Exec("KEYS", "*")) {
		if key = strings.TrimSuffix(key, "\n"); key == "" {
			continue
		}
		all["key "+key] = r.redis.Exec("TYPE", key) + r.redis.Exec("PEXPIRETIME", key) + r.redis.Exec("DUMP", key)
	}
	err := filepath.WalkDir(r.root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		body, err := os.ReadFile(path)
		all["file "+path] = fmt.Sprintf("%x %s %s", sha256.Sum256(body), info.ModTime(), info.Mode())
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// planned is an action as --dry-run --output json prints it.
type planned struct {
	Topic, Segment, Action, Limit string
	Partition                     int
	Over                          int64
}

func (p planned) String() string {
	return fmt.Sprintf("%s:%d/%s %s by %s", p.Topic, p.Partition, p.Segment, p.Action, p.Limit)
}

// somethingOfEach makes a Redis in which something of every kind is due, by
// real passes, and returns what a dry run has to say, with the time from which
// each age counts.
func (r *rig) somethingOfEach() map[string]int64 {
	r.t.Helper()
	for _, topic := range []string{"dropping", "hiding", "deleting"} {
		r.topic(topic, 1)
		r.sealed(segment.Partition{Topic: topic}, 0, 5)
		r.open(segment.Partition{Topic: topic}, 1)
	}
	for i := range 4 {
		r.redis.Exec("XADD", "events", fmt.Sprintf("%d-0", dataset.FirstMs+i), "n", fmt.Sprint(i))
	}
	r.redis.Exec("XGROUP", "CREATE", "events", "readers", "0")
	r.redis.Exec("XREADGROUP", "GROUP", "readers", "one", "COUNT", "1", "STREAMS", "events", ">")
	r.env = []string{"KORVET_STREAMS_0_KEY=events*", "KORVET_STREAMS_0_SEGMENT_ENTRIES=4", "KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0",
		"KORVET_STORAGE_OFFLOAD_DELETE_GRACE=1ms", "KORVET_STREAMS_0_SEGMENT_TIME=3650d"}
	r.redis.Exec("SADD", r.layout.StreamsKey(), "events")
	r.pass(0) // copies the topics' segments; events has its first entry
	r.pass(0) // events has a sealed segment
	r.pass(0) // which is copied
	r.set("hiding", "local.retention.ms", "1000")
	r.set("deleting", "local.retention.ms", "1000")
	r.pass(0) // drops two
	r.set("deleting", "retention.ms", "1000")
	r.pass(0) // hides one
	r.set("hiding", "retention.ms", "2000", "local.retention.ms", "1000")
	r.set("dropping", "local.retention.ms", "1000")

	old := time.Now().Add(-48 * time.Hour).UnixMilli()
	r.topic("creating", 1)
	r.topic("copying", 1)
	r.sealed(segment.Partition{Topic: "copying"}, 0, 7)
	r.topic("rolling", 2)
	r.open(segment.Partition{Topic: "rolling"}, 0)
	r.redis.Exec("HSET", r.layout.ManifestKey(segment.Partition{Topic: "rolling"}), "0", fmt.Sprintf(`{"v":1,"state":"OPEN","tier":"LOCAL","openedAt":%d}`, old))
	r.redis.Exec("XADD", r.layout.StreamKey(segment.Partition{Topic: "rolling", Number: 1}), "*", "value", "adopt me")
	for i := range 6 {
		r.redis.Exec("XADD", "events", "*", "n", fmt.Sprint(i))
	}
	r.redis.Exec("SADD", r.layout.StreamsKey(), "events2")
	r.redis.Exec("XADD", "events2", "*", "n", "0")
	r.env = append(r.env, "KORVET_STREAMS_0_LOCAL_RETENTION_TIME=1s")
	newest := func(topic string) int64 {
		w := r.ledger[r.layout.SegmentKey(segment.Partition{Topic: topic}, 0)]
		g := dataset.New(w.seed, 100)
		var last segment.ID
		for range w.count {
			last = g.Next().ID
		}
		return int64(last.Ms)
	}
	return map[string]int64{ // 0 = an age that has no beginning
		"creating:0/0 create by ":                 0,
		"rolling:0/0 roll by segment.ms":          old + 86_400_000,
		"rolling:1/0 create by ":                  0,
		"copying:0/0 copy by ":                    0,
		"dropping:0/0 drop by local.retention.ms": newest("dropping") + 1000,
		"hiding:0/0 hide by retention.ms":         newest("hiding") + 2000,
		"deleting:0/0 delete by delete-grace":     r.entries()[r.layout.SegmentKey(segment.Partition{Topic: "deleting"}, 0)].DeletingAt + 1,
		"events:0/1 roll by segment-entries":      0,
		"events:0/0 drop by local-retention-time": dataset.FirstMs + 3 + 1000,
		"events2:0/0 create by ":                  0,
	}
}

// A dry run says what would be done with each segment, by which limit and by
// how much, and changes nothing anywhere.
func TestDryRunChangesNothing(t *testing.T) {
	for store, start := range map[string]func(*testing.T) *rig{"S3": newRig, "files": newFileRig} {
		t.Run(store, func(t *testing.T) {
			r := start(t)
			want := r.somethingOfEach()
			before := r.snapshot()
			out, _, _ := r.run("run", "--once", "--dry-run", "--output", "json") // on stderr are warnings
			plan := decode[struct {
				At      time.Time
				Actions []planned
			}](t, out)
			table := r.pass(0, "--dry-run")
			after := r.snapshot()

			for _, a := range plan.Actions {
				since, planned := want[a.String()]
				if !planned {
					t.Errorf("%s is none of what is due", a)
				}
				delete(want, a.String())
				if since != 0 && a.Over != plan.At.UnixMilli()-since {
					t.Errorf("%s, over by %d, want %d", a, a.Over, plan.At.UnixMilli()-since)
				}
				if since == 0 && a.Over <= 0 && a.Limit != "" {
					t.Errorf("%s, over by %d", a, a.Over)
				}
				if !strings.Contains(table, " "+a.Action+" ") || a.Limit != "" && !strings.Contains(table, a.Limit+" + ") {
					t.Errorf("%s is not in the table", a)
				}
			}
			if len(want) > 0 {
				t.Errorf("not planned: %q", slices.Sorted(maps.Keys(want)))
			}
			if !strings.Contains(table, "Nothing was changed") {
				t.Error("it does not say that nothing was changed")
			}
			t.Log(table)
			mustEqualSnapshots(t, before, after)
			if len(before) < 20 {
				t.Errorf("only %d things to compare: %q", len(before), slices.Sorted(maps.Keys(before)))
			}
			mustDiffer(r, before)
		})
	}
}

func mustEqualSnapshots(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, was := range before {
		if is, there := after[name]; !there || is != was {
			t.Errorf("%s was %q\nand is %q", name, was, is)
		}
	}
	for name := range after {
		if _, there := before[name]; !there {
			t.Errorf("%s is new", name)
		}
	}
}

// mustDiffer checks that a snapshot shows what a real pass does.
func mustDiffer(r *rig, before map[string]string) {
	r.t.Helper()
	r.pass(0)
	after := r.snapshot()
	for _, name := range []string{
		"key korvet:storage:manifest:rolling:0", "key korvet:storage:manifest:rolling:1", "key korvet:storage:manifest:creating:0", "key korvet:storage:manifest:copying:0",
		"key korvet:storage:local:dropping:0:0", "key korvet:storage:manifest:hiding:0", "key korvet:storage:manifest:deleting:0", "key events",
		"key korvet:storage:stream-manifest:events2", "file " + filepath.Join(r.root(), "korvet:storage:local:copying:0/0.parquet"),
		"file " + filepath.Join(r.root(), "korvet:storage:local:deleting:0/0.parquet"),
	} {
		if before[name] == after[name] {
			r.t.Errorf("a real pass has not changed %s", name)
		}
	}
}
