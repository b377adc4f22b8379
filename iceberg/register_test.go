package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"
	"go.uber.org/goleak"

	"korvet-offload/internal/cmdline"
	"korvet-offload/segment"
)

func TestMain(m *testing.M) {
	// Connections to the object store that the library keeps open, and has no way to close.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

func allOfOrders() []string { return []string{"orders:0/0", "orders:0/1", "orders:1/0", "orders:1/1"} }

// life is what becomes of a table: it is made, nothing changes, segments come, are
// hidden, and are replaced by another copy.
func life(t *testing.T, r *rig) {
	t.Helper()
	dry := r.register("orders", "--dry-run")
	r.want(dry, cmdline.Done, 0, 0, 0)
	r.pass()
	before := r.digests()
	r.want(r.register("orders", "--dry-run"), cmdline.Done, 4, 0, 0)
	first := r.register("orders")
	r.want(first, cmdline.Done, 4, 0, 0)
	if !first.Created || first.Snapshot == nil || first.Table != "korvet.orders" {
		t.Errorf("%s", first.stdout)
	}
	r.wantRows(allOfOrders()...)
	r.untouched(before)
	again := r.register("orders")
	r.want(again, cmdline.Done, 0, 0, 4)
	if n := r.snapshots("orders"); n != 1 || again.Snapshot != nil || again.Created {
		t.Errorf("%d snapshots after a run in which nothing differed\n%s", n, again.stdout)
	}

	r.edit(0, 0, `"state":"SEALED"`, `"state":"DELETING"`)
	r.copyAgain(1, 1)
	before = r.digests()
	r.want(r.register("orders", "--dry-run"), cmdline.Done, 1, 2, 2)
	r.want(r.register("orders"), cmdline.Done, 1, 2, 2)
	r.wantRows("orders:0/1", "orders:1/0", "orders:1/1")
	if n := r.snapshots("orders"); n != 2 {
		t.Errorf("%d snapshots, want one for each run that changed something", n)
	}
	r.untouched(before)

	r.edit(0, 0, `"state":"DELETING"`, `"state":"SEALED"`) // its retention was raised
	r.want(r.register("orders"), cmdline.Done, 1, 0, 3)
	r.wantRows(allOfOrders()...)
	r.untouched(before)
}

func TestLifeOnFiles(t *testing.T) { life(t, newRig(t)) }

// A file whose object is not what its entry says is reported, and not added.
func TestWhatIsNotAsTheManifestSaysIsNotAdded(t *testing.T) {
	r := newRig(t)
	r.pass()
	object := filepath.Join(r.objects, "korvet:storage:local:orders:0", "0.parquet")
	r.edit(0, 0, `"count":20`, `"count":21`)
	for _, want := range []string{"holds 20 messages", "bytes, and by the manifest", "does not exist"} {
		a := r.register("orders", "--dry-run")
		r.want(a, cmdline.Fault, 3, 0, 0)
		if len(a.Problems) != 1 || !strings.Contains(a.stderr, want) || !strings.Contains(a.stderr, "orders:0/0: object") {
			t.Errorf("want %q in %s", want, a.stderr)
		}
		switch want {
		case "holds 20 messages":
			r.edit(0, 0, `"count":21`, `"count":20`)
			text, err := os.ReadFile(object)
			if err != nil || os.WriteFile(object, append(text, 0), 0o600) != nil {
				t.Fatal(err)
			}
		case "bytes, and by the manifest":
			if err := os.Remove(object); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.want(r.register("orders"), cmdline.Fault, 3, 0, 0)
	r.wantRows("orders:0/1", "orders:1/0", "orders:1/1")
}

// The older copy stays as long as the next one can't be had.
func TestAnOlderCopyStaysUntilTheNextIsThere(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("orders")
	r.copyAgain(0, 0)
	r.edit(0, 0, `"count":20`, `"count":19`)
	r.want(r.register("orders"), cmdline.Fault, 0, 0, 3)
	r.wantRows(allOfOrders()...)
	r.edit(0, 0, `"count":19`, `"count":20`)
	r.want(r.register("orders"), cmdline.Done, 1, 1, 3)
	r.wantRows(allOfOrders()...)
}

// What can't be read takes nothing out of the table.
func TestWhatCantBeReadTakesNothingOut(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("orders")
	was := r.server.Exec("HGET", manifestOfOrders+"0", "1")
	r.edit(0, 1, `"tier":"REMOTE"`, `"tier":"ELSEWHERE"`)
	r.server.Exec("DEL", manifestOfOrders+"1")
	a := r.register("orders")
	r.want(a, cmdline.Fault, 0, 0, 1)
	if len(a.Problems) != 2 || !strings.Contains(a.stderr, "orders:0/1:") || !strings.Contains(a.stderr, "orders:1: there is no manifest, and the table has 2 files of it, which stay") {
		t.Errorf("%s", a.stderr)
	}
	r.wantRows(allOfOrders()...)
	r.server.Exec("HSET", manifestOfOrders+"0", "1", was)

	r.server.Exec("FLUSHALL") // another Redis, or one that lost its data
	a = r.register("orders")
	if a.code != cmdline.Fault || !strings.Contains(a.stderr, "cluster") {
		t.Errorf("%+v", a)
	}
	if err := os.Remove(filepath.Join(r.objects, "_korvet_offload.json")); err != nil {
		t.Fatal(err)
	}
	a = r.register("orders")
	if a.code != cmdline.Fault || !strings.Contains(a.stderr, "is this the right Redis?") {
		t.Errorf("%+v", a)
	}
	r.wantRows(allOfOrders()...)
}

// A manifest that is rebuilt, or that begins anew after a loss of Redis, takes nothing
// out whose object is still there.
func TestAManifestThatLacksEntriesTakesNothingOut(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("orders")
	key := manifestOfOrders + "0"
	first, second, open := r.server.Exec("HGET", key, "0"), r.server.Exec("HGET", key, "1"), r.server.Exec("HGET", key, "2")
	lost := `{"v":1,"state":"SEALED","tier":"LOCAL","sealedAt":1}`
	for _, entries := range [][]string{
		{"0", first, "1", lost, "2", open}, // a failover has lost the flip
		{"0", first},                       // restore --manifests is under way
		{"0", strings.ReplaceAll(open, "orders:0:2", "orders:0:0")}, // a broker begins anew
	} {
		r.server.Exec("DEL", key)
		r.server.Exec(append([]string{"HSET", key}, entries...)...)
		a := r.register("orders")
		r.want(a, cmdline.Fault, 0, 0, a.Same)
		if !strings.Contains(a.stderr, "orders:0/1: no entry says that it is over, and its object korvet:storage:local:orders:0/1.parquet is there") {
			t.Errorf("%s", a.stderr)
		}
		r.wantRows(allOfOrders()...)
	}
	r.server.Exec("HSET", key, "1", strings.Replace(lost, `"sealedAt"`, `"copy":1,"sealedAt"`, 1), "2", open) // it is copied again
	r.server.Exec("HSET", key, "0", first)
	r.want(r.register("orders"), cmdline.Done, 0, 1, 3)
	r.server.Exec("HSET", key, "1", second)
	r.want(r.register("orders"), cmdline.Done, 1, 0, 3)
	r.server.Exec("HDEL", key, "0") // retention: the object first, then the entry
	if err := os.Remove(filepath.Join(r.objects, "korvet:storage:local:orders:0", "0.parquet")); err != nil {
		t.Fatal(err)
	}
	r.want(r.register("orders"), cmdline.Done, 0, 1, 3)
	r.wantRows("orders:0/1", "orders:1/0", "orders:1/1")
}

// A topic takes nothing of another, and no rows that are not its own, out of a table.
func TestRowsOfOthersStay(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.want(r.register("payments", "--table", "korvet.orders"), cmdline.Done, 2, 0, 0)
	text, err := os.ReadFile(filepath.Join(r.objects, "korvet:storage:local:orders:0", "0.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.parquet")
	if err := os.WriteFile(other, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r.change("orders", func(ctx context.Context, tx *table.Transaction) error {
		return tx.AddFiles(ctx, []string{"file://" + other}, nil, false)
	})
	r.want(r.register("orders", "--table", "korvet.orders"), cmdline.Done, 4, 0, 0)
	r.wantRows(append(allOfOrders(), "orders:0/0", "payments:0/0", "payments:0/1")...)
	for n := range 2 {
		r.edit(0, n, `"state":"SEALED"`, `"state":"DELETING"`)
	}
	r.want(r.register("orders", "--table", "korvet.orders"), cmdline.Done, 0, 2, 2)
	r.wantRows("orders:1/0", "orders:1/1", "orders:0/0", "payments:0/0", "payments:0/1")
}

// Two at once: the one that is slower begins anew, with the manifests as they are then.
func TestTwoAtOnce(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("orders", "--dry-run")
	ctx, slow := r.registration("orders")
	times := 0
	slow.committed = func() {
		if times++; times == 1 {
			r.copyAgain(0, 0)
			r.edit(1, 0, `"state":"SEALED"`, `"state":"DELETING"`)
			r.want(r.register("orders"), cmdline.Done, 3, 0, 0)
		}
	}
	done, err := slow.run(ctx)
	if err != nil || len(done.added)+len(done.removed) != 0 || done.same != 3 || times != 1 {
		t.Errorf("%v: %+v after %d attempts", err, done, times)
	}
	r.wantRows("orders:0/0", "orders:0/1", "orders:1/1")
	if n := r.snapshots("orders"); n != 1 {
		t.Errorf("%d snapshots", n)
	}
}

// late is manifests of which somebody tells what they were a moment ago.
type late struct {
	manifests
	meanwhile func()
}

// Each implements manifests.
func (l *late) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	n, err := l.manifests.Each(ctx, p, take)
	if do := l.meanwhile; do != nil && p.Number == 1 {
		l.meanwhile = nil
		do()
	}
	return n, err
}

// One that has read the manifests before another run has, and commits after it, does not
// undo what that has done.
func TestOldManifestsAreNotCommitted(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("orders")
	ctx, slow := r.registration("orders")
	r.edit(1, 1, `"state":"SEALED"`, `"state":"DELETING"`)
	slow.redis = &late{slow.redis, func() {
		r.copyAgain(0, 0)
		r.want(r.register("orders"), cmdline.Done, 1, 2, 2)
	}}
	done, err := slow.run(ctx)
	if err != nil || len(done.added)+len(done.removed) != 0 || done.same != 3 {
		t.Errorf("%v: %d added, %d removed, %d as they were", err, len(done.added), len(done.removed), done.same)
	}
	r.wantRows("orders:0/0", "orders:0/1", "orders:1/0")
}

// A table may tell the library to repeat commits by itself, on top of what somebody else
// has committed: here that would add files twice.
func TestTheLibraryDoesNotRepeatCommits(t *testing.T) {
	r := newRig(t)
	r.pass()
	s := startREST(r) // of an SQL catalog the library takes no conflict for one
	r.environ = append(r.environ, tokenVariable+"="+s.token)
	r.register("payments", "--table", "korvet.orders")
	r.set(table.CommitNumRetriesKey, "4", table.CommitMinRetryWaitMsKey, "1")
	ctx, slow := r.registration("orders")
	times := 0
	slow.committed = func() {
		if times++; times == 1 {
			r.want(r.register("orders", "--table", "korvet.orders"), cmdline.Done, 4, 0, 0)
		}
	}
	if done, err := slow.run(ctx); err != nil || len(done.added) != 0 || done.same != 4 {
		t.Errorf("%v: %d added, %d as they were", err, len(done.added), done.same)
	}
	r.wantRows(append(allOfOrders(), "payments:0/0", "payments:0/1")...)
}

// A table that changes all the time is given up, and is as it was.
func TestConflictsAreBounded(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("payments", "--table", "korvet.orders")
	ctx, slow := r.registration("orders")
	times := 0
	slow.committed = func() {
		times++
		for _, was := range [][]string{{"payments:0/0"}, {"payments:0/1"}} {
			state, other := `"state":"SEALED"`, `"state":"DELETING"`
			if times%2 == 0 {
				state, other = other, state
			}
			key, field := "korvet:storage:manifest:payments:0", was[0][len(was[0])-1:]
			r.server.Exec("HSET", key, field, strings.Replace(r.server.Exec("HGET", key, field), state, other, 1))
		}
		if a := r.register("payments", "--table", "korvet.orders"); a.code != cmdline.Done {
			t.Errorf("%+v", a)
		}
	}
	_, err := slow.run(ctx)
	if !errors.Is(err, errConflict) || times != attempts {
		t.Errorf("%v after %d attempts", err, times)
	}
	r.wantRows("payments:0/0", "payments:0/1")
}

// A run that is told to stop before its commit leaves the table as it was, and the
// next one does it all.
func TestAnInterruptedRun(t *testing.T) {
	r := newRig(t)
	r.pass()
	ctx, is := r.registration("orders")
	ctx, cancel := context.WithCancel(ctx)
	is.committed = cancel
	if _, err := is.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n := r.snapshots("orders"); n != 0 {
		t.Errorf("%d snapshots", n)
	}
	r.want(r.register("orders"), cmdline.Done, 4, 0, 0)
	r.wantRows(allOfOrders()...)
}

// A table goes through many runs: lists of files are merged, and old table metadata
// goes, and nothing else does.
func TestManyRuns(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("orders")
	r.change("orders", func(_ context.Context, tx *table.Transaction) error {
		return tx.SetProperties(map[string]string{table.ManifestMinMergeCountKey: "3", table.MetadataPreviousVersionsMaxKey: "2"})
	})
	before := r.digests()
	hidden := false
	for range 5 {
		from, to := `"state":"SEALED"`, `"state":"DELETING"`
		if hidden {
			from, to = to, from
		}
		hidden = !hidden
		r.edit(0, 0, from, to)
		a := r.register("orders")
		if a.code != cmdline.Done || len(a.Added)+len(a.Removed) != 1 {
			t.Fatalf("%s%s", a.stdout, a.stderr)
		}
	}
	r.wantRows("orders:0/1", "orders:1/0", "orders:1/1")
	r.untouched(before)
	metadata, err := filepath.Glob(strings.TrimPrefix(r.warehouse, "file://") + "/korvet/orders/metadata/*.metadata.json")
	if err != nil || len(metadata) != 3 {
		t.Errorf("%v: %q, want the current table metadata and two before it", err, metadata)
	}
	ctx, is := r.table("orders")
	files, err := is.FS(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := is.CurrentSnapshot().Manifests(files)
	if err != nil || len(lists) > 3 {
		t.Errorf("%v: %d lists of files", err, len(lists))
	}
}

func TestText(t *testing.T) {
	r := newRig(t)
	r.pass()
	args := []string{"register", "--catalog", r.catalog, "--warehouse", r.warehouse, "orders"}
	for _, want := range []string{
		"table korvet.orders: nothing was changed; it would be made, and 4 files with 80 messages added, 0 files with 0 messages removed, 0 as they were",
		"table korvet.orders: made; 4 files with 80 messages added, 0 files with 0 messages removed, 0 as they were",
		"table korvet.orders: 0 files with 0 messages added, 1 file with 20 messages removed, 3 as they were",
	} {
		call := args
		if strings.Contains(want, "would be") {
			call = slices.Concat(args, []string{"--dry-run"})
		}
		if strings.Contains(want, "1 file with 20") {
			r.edit(0, 0, `"state":"SEALED"`, `"state":"DELETING"`)
		}
		a := r.call(call...)
		lines := strings.Split(strings.TrimSpace(a.stdout), "\n")
		if a.code != cmdline.Done || a.stderr != "" || lines[len(lines)-1] != want {
			t.Errorf("exit %d, %s\n%s\nwant %s", a.code, a.stderr, a.stdout, want)
		}
	}
	if a := r.call(args...); strings.Contains(a.stdout, "+ ") {
		t.Errorf("%s", a.stdout)
	}
}
