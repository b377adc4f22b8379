package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/segment"
)

const gcFolder = "korvet:storage:local:orders:0"

// newGCRig is a rig whose segments 0 and 1 are REMOTE, with a second copy that is
// in use of segment 0, and objects of each other kind, all ten days old.
func newGCRig(t *testing.T) rig {
	t.Helper()
	r := newRig(t)
	b := brokerOf(t, r.server)
	gone := []broker.Segment{{Partition: segment.Partition{Topic: "gone"}, Seed: 7, Count: 10, ValueBytes: 100, SealedAt: time.Now().Add(-time.Hour)}}
	if err := b.CreateTopic(t.Context(), "gone", 1); err != nil {
		t.Fatal(err)
	}
	if err := b.Write(t.Context(), gone[0], nil); err != nil {
		t.Fatal(err)
	}
	mustRead(t, call(t, r.environ, "run", "--once"), exitDone, "")
	if err := b.Remove(t.Context(), "gone", gone); err != nil {
		t.Fatal(err)
	}
	r.copyFile(t, gcFolder+"/0.parquet", gcFolder+"/0-1.parquet")
	r.edit(t, "0", `"copy":1,`, `"object":{"path":"`+gcFolder+`/0.parquet`, `"object":{"path":"`+gcFolder+`/0-1.parquet`)
	r.copyFile(t, gcFolder+"/1.parquet", gcFolder+"/9.parquet") // in a gap
	r.copyFile(t, gcFolder+"/1.parquet", "reports/1.parquet")   // somebody's
	r.age(t, 10*24*time.Hour)
	return r
}

// edit changes an entry of orders: what is put at its beginning, and a replacement.
func (r rig) edit(t *testing.T, field, begin, old, new string) {
	t.Helper()
	entry := strings.TrimSpace(r.server.Exec("HGET", "korvet:storage:manifest:orders:0", field))
	if !strings.HasPrefix(entry, "{") || !strings.Contains(entry, old) {
		t.Fatalf("entry %s: %s", field, entry)
	}
	r.server.Exec("HSET", "korvet:storage:manifest:orders:0", field, "{"+begin+strings.Replace(entry[1:], old, new, 1))
}

func (r rig) copyFile(t *testing.T, from, to string) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(r.root(), from))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(filepath.Join(r.root(), to)), 0o750)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(r.root(), to), body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// age makes every object as old as that.
func (r rig) age(t *testing.T, d time.Duration) {
	t.Helper()
	for _, path := range r.files(t) {
		at := time.Now().Add(-d)
		if err := os.Chtimes(filepath.Join(r.root(), path), at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// files are the objects, by their paths.
func (r rig) files(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(r.root(), "*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], r.root()+"/")
	}
	return all
}

func (r rig) mustHave(t *testing.T, want ...string) {
	t.Helper()
	if got, want := strings.Join(r.files(t), "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("objects\n%s\nwant\n%s", got, want)
	}
}

func TestGC(t *testing.T) {
	rig := newGCRig(t)
	all := rig.files(t)
	r := call(t, rig.environ, "gc")
	mustRead(t, r, exitDone, "",
		"would delete "+gcFolder+"/0.parquet (", " old): copy 0 of segment 0, whose entry names copy 1\n",
		"1 object (", ") to delete, 0 unfinished uploads to give up; nothing was changed, --yes does it\n",
		"1 object (", ") of segments without an entry, though no retention took them (--gaps)\n",
		"2 objects (", "reports: all of its objects stay: it has no manifest, and korvet.streams names no plain stream here", " in use, 1 object (", ") of partitions that are protected\n")
	if len(rig.files(t)) != len(all) {
		t.Errorf("a dry run has changed something: %q", rig.files(t))
	}
	mustRead(t, call(t, rig.environ, "gc", "--older-than", "11d"), exitDone, "", "nothing to delete\n", "younger than 11d")

	mustRead(t, call(t, rig.environ, "gc", "--yes"), exitDone, "", "deleted "+gcFolder+"/0.parquet (", "1 object (", ") deleted, 0 unfinished uploads given up\n")
	rest := []string{"korvet:storage:local:gone:0/0.parquet", gcFolder + "/0-1.parquet", gcFolder + "/1.parquet", gcFolder + "/9.parquet", "reports/1.parquet"}
	rig.mustHave(t, rest...)
	mustRead(t, call(t, rig.environ, "gc", "--yes", "--removed-topics", "--topic", "gone"), exitDone, "", "deleted korvet:storage:local:gone:0/0.parquet")
	rig.mustHave(t, rest[1:]...)
	mustRead(t, call(t, rig.environ, "gc", "--yes", "--gaps", "--removed-topics"), exitDone, "", "deleted "+gcFolder+"/9.parquet")
	rig.mustHave(t, gcFolder+"/0-1.parquet", gcFolder+"/1.parquet", "reports/1.parquet")
	mustRead(t, call(t, rig.environ, "gc", "--gaps", "--removed-topics"), exitDone, "", "nothing to delete\n")
	if got := strings.TrimSpace(rig.server.Exec("EXISTS", "korvet:storage:offload:lease")); got != "0" {
		t.Error("the lease was not given back")
	}
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "", "2 segments remote before")
}

func TestGCAsJSON(t *testing.T) {
	rig := newGCRig(t)
	rig.server.Exec("HSET", "korvet:storage:manifest:audit:0", "0", "no JSON")
	rig.copyFile(t, gcFolder+"/1.parquet", "korvet:storage:local:audit:0/0.parquet")
	rig.age(t, 10*24*time.Hour)
	for _, verb := range []string{"gc", "gc --yes"} {
		r := call(t, rig.environ, append(strings.Fields(verb), "-o", "json")...)
		mustPrint(t, r, exitFault, "alien.bytes float64", "alien.objects float64", "at string", "deleted.bytes float64", "deleted.objects float64", "dry_run bool",
			"guarded.bytes float64", "guarded.objects float64",
			"left[].bytes float64", "left[].class string", "left[].modified string", "left[].partition float64", "left[].path string", "left[].result string", "left[].segment string", "left[].topic string", "left[].why string",
			"named.bytes float64", "named.objects float64", "newer.bytes float64", "newer.objects float64",
			"objects[].bytes float64", "objects[].class string", "objects[].modified string", "objects[].partition float64", "objects[].path string", "objects[].result string", "objects[].segment string", "objects[].topic string", "objects[].why string",
			"older_than_seconds float64", "protected[].odd bool", "protected[].partition float64", "protected[].plain bool", "protected[].topic string", "protected[].why string",
			"seen.bytes float64", "seen.objects float64", "uploads[] empty", "versioned bool", "young.bytes float64", "young.objects float64")
		var v gcView
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: "would_delete", false: "deleted"}[v.DryRun]
		if v.DryRun != (verb == "gc") || len(v.Objects) != 1 || v.Objects[0].Result != want || v.Objects[0].Path != gcFolder+"/0.parquet" || v.Seen.Objects != 7 {
			t.Errorf("%s: %+v", verb, v)
		}
		if !strings.Contains(r.stderr, "audit:0: all of its objects stay: the entry of segment 0 can't be read") {
			t.Errorf("%s: %s", verb, r.stderr)
		}
	}
}

// Whatever makes it doubtful whose the objects are keeps them all.
func TestGCThatDoesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, rig rig)
		code   int
		want   string
	}{
		"no marker": {func(t *testing.T, rig rig) {
			if err := os.Remove(filepath.Join(rig.root(), "_korvet_offload.json")); err != nil {
				t.Fatal(err)
			}
		}, exitFault, "has no owner marker"},
		"another namespace's": {func(t *testing.T, rig rig) {
			if err := os.WriteFile(filepath.Join(rig.root(), "_korvet_offload.json"), []byte(`{"v":1,"namespace":"other"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}, exitUsage, `belongs to namespace "other"`},
		"another cluster's":     {func(_ *testing.T, rig rig) { rig.server.Exec("SET", clusterKey, "other") }, exitUsage, "restore --claim"},
		"redis is emptied":      {func(_ *testing.T, rig rig) { rig.server.Exec("FLUSHALL") }, exitUsage, "restore --manifests"},
		"the manifests are":     {func(_ *testing.T, rig rig) { rig.server.Exec("DEL", "korvet:storage:manifest:orders:0") }, exitFault, "no manifest of any partition"},
		"an older marker, same": {func(t *testing.T, rig rig) { rig.setMarker(t, ""); rig.server.Exec("FLUSHALL") }, exitFault, "the topic registry is empty"},
		"no folder": {func(t *testing.T, rig rig) {
			if err := os.Rename(rig.root(), rig.root()+".away"); err != nil {
				t.Fatal(err)
			}
		}, exitFault, "has no owner marker"},
		"another folder": {func(t *testing.T, rig rig) {
			for _, f := range rig.files(t) {
				if err := os.Remove(filepath.Join(rig.root(), f)); err != nil {
					t.Fatal(err)
				}
			}
		}, exitFault, "the store lists no object"},
		"the lease is somebody's": {func(_ *testing.T, rig rig) { rig.server.Exec("SET", "korvet:storage:offload:lease", "somebody") }, exitFault, "lease"},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newGCRig(t)
			c.change(t, rig)
			before := rig.files(t)
			r := call(t, rig.environ, "gc", "--yes", "--gaps", "--removed-topics")
			if r.code != c.code || !strings.Contains(r.stderr, c.want) {
				t.Errorf("%+v", r)
			}
			rig.mustHave(t, before...)
		})
	}
}

func TestGCUsage(t *testing.T) {
	environ := []string{"KORVET_STORAGE_REMOTE_PATH=file:///tmp/x", "KORVET_REDIS_URI=redis://127.0.0.1:1"}
	for args, want := range map[string]string{
		"gc --older-than 1h":         "--older-than: age 1h0m0s: want 24h0m0s or more",
		"gc --topic a --stream b":    "want one of them",
		"gc --topic a/b":             "--topic: ",
		"gc --older-than yesterday":  `--older-than "yesterday": `,
		"gc -o csv":                  "want table or json",
		"gc orders:x":                `"orders:x": partition "x" is no number below 1000000: want TOPIC, TOPIC:N, TOPIC:N/SEGMENTS, --stream KEY [SEGMENTS]`,
		"gc --topic a b":             `--topic and "b": want one of them; a name needs no --topic`,
		"gc --older-than=-1h --yes ": "want a duration of 0 or more",
	} {
		if r := call(t, environ, strings.Fields(args)...); r.code != exitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// A paused topic is left, which is no fault.
func TestGCOfAPausedTopic(t *testing.T) {
	rig := newGCRig(t)
	mustRead(t, call(t, rig.environ, "pause", "--topic", "orders"), exitDone, "")
	mustRead(t, call(t, rig.environ, "gc", "--yes"), exitDone, "", "orders:0: all of its objects stay: it is paused\n", "0 objects deleted")
	mustRead(t, call(t, rig.environ, "resume", "--topic", "orders"), exitDone, "")
	mustRead(t, call(t, rig.environ, "gc", "--yes"), exitDone, "", "1 object (")
}

// An older copy of an object that is damaged stays: it may be what repair needs.
func TestGCLeavesTheOnlyCopy(t *testing.T) {
	rig := newGCRig(t)
	if err := os.Truncate(filepath.Join(rig.root(), gcFolder, "0-1.parquet"), 10); err != nil {
		t.Fatal(err)
	}
	before := rig.files(t)
	mustRead(t, call(t, rig.environ, "gc", "--yes"), exitDone, "", "leave "+gcFolder+"/0.parquet", "this may be the only copy: see korvet-offload verify and repair", "that may be needed")
	rig.mustHave(t, before...)
}
