package test

import (
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

// older makes everything that the S3 server keeps ten days older.
func (r *rig) older() {
	r.t.Helper()
	at := time.Now().Add(-10 * 24 * time.Hour)
	err := filepath.WalkDir(r.s3.Dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Chtimes(path, at, at)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// While an instance leads, gc gets the lease, removes what nobody names from a real
// S3 server, and the instance goes on.
//
//fault:store | Replaced copies, objects of removed topics and unfinished uploads pile up | All of them on a real S3 server, ten days old, among objects in use and an upload of somebody else, while an instance leads | gc lists them without --yes and removes them with it, and nothing else; the instance goes on
func TestCollectingBesideARunningInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=200ms", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=3s")
	r.orders(10)
	p := r.start("run")
	await(t, "every segment is copied", 30*time.Second, func() bool { return len(r.objects()) == 12 })
	await(t, "every segment is REMOTE", 30*time.Second, func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(r.entries())), func(e segment.Entry) bool { return e.State == segment.Sealed && e.Tier == segment.Local })
	})
	for _, key := range []string{"korvet/korvet:storage:local:orders:0/0-1.parquet", "korvet/notes.txt"} { // a later copy, and somebody's
		r.s3.Put(t, key, []byte("x"))
	}
	body, err := os.ReadFile(filepath.Join(r.root(), "korvet:storage:local:orders:0", "1.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	r.s3.Put(t, "korvet/korvet:storage:local:orders:0/7.parquet", body) // above the last entry
	r.s3.Put(t, "korvet/korvet:storage:local:orders:0/1-1.parquet", body)
	r.second(segment.Partition{Topic: "orders"}, 1)
	ids := []string{r.s3.BeginUpload(t, "korvet/korvet:storage:local:orders:0/8.parquet"), r.s3.BeginUpload(t, "elsewhere/8.parquet")}
	r.older()
	before := r.objects()

	stdout, stderr, code := r.run("gc")
	if code != 0 || !strings.Contains(stdout, "would delete korvet:storage:local:orders:0/1.parquet (") ||
		!strings.Contains(stdout, "would give up the unfinished upload of korvet:storage:local:orders:0/8.parquet") ||
		!strings.Contains(stdout, "1 object (") || !strings.Contains(stdout, "(--gaps)") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if after := r.objects(); len(after) != len(before) {
		t.Errorf("a dry run has removed something: %d objects, %d before", len(after), len(before))
	}
	stdout, stderr, code = r.run("gc", "--yes", "--gaps")
	if code != 0 || !strings.Contains(stdout, "2 objects (") || !strings.Contains(stdout, ") deleted, 1 unfinished upload given up") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if after := r.objects(); len(after) != len(before)-2 {
		t.Errorf("%d objects, %d before: %q", len(after), len(before), after)
	}
	if left := r.s3.Unfinished(t); !slices.Equal(left, ids[1:]) {
		t.Errorf("uploads %q, want %q", left, ids[1:])
	}
	r.sealed(segment.Partition{Topic: "orders", Number: 3}, 4, 10)
	await(t, "the instance goes on", 30*time.Second, func() bool { return len(r.objects()) == len(before)-1 })
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 20*time.Second); code != 0 || strings.Contains(p.log(), `"level":"error"`) {
		t.Errorf("run: exit %d\n%s", code, p.log())
	}
}

// second makes the entry of a segment name its second copy.
func (r *rig) second(p segment.Partition, n segment.Number) {
	r.t.Helper()
	entry := strings.TrimSpace(r.redis.Exec("HGET", r.layout.ManifestKey(p), n.String()))
	path := segment.ObjectPath(r.layout.Folder(p), n, 0, "")
	if !strings.HasPrefix(entry, "{") || !strings.Contains(entry, path) {
		r.t.Fatalf("entry %s", entry)
	}
	entry = `{"copy":1,` + strings.Replace(entry[1:], path, segment.ObjectPath(r.layout.Folder(p), n, 1, ""), 1)
	r.redis.Exec("HSET", r.layout.ManifestKey(p), n.String(), entry)
}
