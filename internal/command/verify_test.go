package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

const ordersFolder = "korvet:storage:local:orders:0"

// movedOrders is a rig whose sealed segments are on the store, and its folder.
func movedOrders(t *testing.T) (r rig, folder string) {
	t.Helper()
	r = newRig(t)
	if out := call(t, r.environ, "run", "--once"); out.code != exitDone {
		t.Fatalf("%+v", out)
	}
	_, root, _ := strings.Cut(r.environ[1], "file://")
	return r, filepath.Join(root, ordersFolder)
}

func damage(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestVerify(t *testing.T) {
	r, folder := movedOrders(t)
	out := call(t, r.environ, "verify")
	if out.code != exitDone || out.stderr != "" || !strings.HasPrefix(out.stdout, "1 partition, 3 segments, 2 objects; ") ||
		!strings.HasSuffix(out.stdout, "; nothing is wrong, 1 note (--notes)\n") {
		t.Errorf("%+v", out)
	}
	if out = call(t, r.environ, "verify", "--deep", "--notes"); out.code != exitDone || strings.Count(out.stdout, "\n") != 2 ||
		!strings.HasPrefix(out.stdout, "note: overlap  orders:0/1  1708956789000-0 to ") || !strings.Contains(out.stdout, "; read 2 objects (") {
		t.Errorf("%+v", out)
	}
	damage(t, filepath.Join(folder, "0.parquet"))
	if err := os.Remove(filepath.Join(folder, "1.parquet")); err != nil {
		t.Fatal(err)
	}
	out = call(t, r.environ, "verify")
	first, rest, _ := strings.Cut(out.stdout, "\n")
	if out.code != exitFault || out.stderr != "" || !strings.HasPrefix(first, "missing_object  orders:0/1  "+ordersFolder+"/1.parquet  it is not there, and its entry tells of ") ||
		!strings.HasSuffix(rest, "; 1 finding, 1 note (--notes)\n") {
		t.Errorf("%+v", out)
	}
	for _, args := range [][]string{{"--deep"}, {"--compare-local", "orders:0"}, {"--deep", "--topic", "orders"}} {
		out = call(t, r.environ, append([]string{"verify"}, args...)...)
		if out.code != exitFault || !strings.HasPrefix(out.stdout, "checksum_mismatch  orders:0/0  ") || !strings.Contains(out.stdout, "; 2 findings") {
			t.Errorf("%q: %+v", args, out)
		}
	}
}

func TestVerifyJSON(t *testing.T) {
	r, folder := movedOrders(t)
	damage(t, filepath.Join(folder, "0.parquet"))
	out := call(t, r.environ, "verify", "--deep", "--notes", "-o", "json")
	var v verifyView
	if err := json.Unmarshal([]byte(out.stdout), &v); err != nil || out.code != exitFault || out.stderr != "" {
		t.Fatalf("%v %+v", err, out)
	}
	if v.Clean || len(v.Findings) != 1 || v.Findings[0].Kind != scrub.ChecksumMismatch || *v.Findings[0].Segment != 0 || v.Findings[0].Topic != "orders" ||
		v.Findings[0].Path != ordersFolder+"/0.parquet" || len(v.Notes) != 1 || v.Looked.Read < 2 || v.Looked.Findings[scrub.ChecksumMismatch] != 1 {
		t.Errorf("%s", out.stdout)
	}
	const seen = "float64"
	want := []string{"clean bool", "error string", "seconds " + seen}
	for _, list := range []string{"findings", "notes"} {
		for _, f := range []string{"detail string", "kind string", "partition float64", "path string", "segment float64", "topic string"} {
			want = append(want, list+"[]."+f)
		}
	}
	for _, f := range []string{"findings.checksum_mismatch", "notes", "objects", "partitions", "passed_over", "read", "read_bytes", "segments", "skipped", "unread", "unsteady"} {
		want = append(want, "looked."+f+" float64")
	}
	slices.Sort(want)
	if got := shape(t, out.stdout); got != lines(want...) {
		t.Errorf("%s\nwant\n%s", got, lines(want...))
	}
}

func TestVerifyGoesOnWhereItWas(t *testing.T) {
	r, folder := movedOrders(t)
	state := filepath.Join(t.TempDir(), "state")
	verify := func(code int, want string, flags ...string) {
		t.Helper()
		out := call(t, r.environ, append([]string{"verify", "--deep", "--state", state}, flags...)...)
		if out.code != code || !strings.Contains(out.stdout, want) {
			t.Errorf("%q: %+v\nwant %s", flags, out, want)
		}
	}
	verify(exitDone, "read 2 objects")
	if strings.Contains(call(t, r.environ, "verify", "--deep", "--state", state, "--resume").stdout, "read 2 objects") {
		t.Error("it reads again what was verified")
	}
	verify(exitDone, "read 0 objects (0 B), passed over 2", "--resume")
	first := filepath.Join(folder, "0.parquet")
	is, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	damage(t, first)
	if err := os.Chtimes(first, is.ModTime(), is.ModTime()); err != nil {
		t.Fatal(err)
	}
	verify(exitFault, "checksum_mismatch  orders:0/0", "--resume") // though it has its time again
	damage(t, first)
	verify(exitDone, "read 1 object ", "--resume")
	verify(exitDone, "read 2 objects", "--resume", "--compare-local") // streams change without a trace
	r.server.Exec("HSET", "korvet:storage:manifest:orders:0", "0",
		strings.Replace(r.server.Exec("HGET", "korvet:storage:manifest:orders:0", "0"), `"count":10`, `"count":11`, 1))
	verify(exitFault, "wrong_contents  orders:0/0", "--resume")
	damage(t, filepath.Join(folder, "1.parquet")) // another time of modification
	verify(exitFault, "checksum_mismatch  orders:0/1", "--resume")
	r.server.Exec("HSET", "korvet:storage:manifest:orders:0", "0",
		strings.Replace(r.server.Exec("HGET", "korvet:storage:manifest:orders:0", "0"), `"count":11`, `"count":10`, 1))
	verify(exitFault, "checksum_mismatch  orders:0/1", "--resume")
	verify(exitFault, "checksum_mismatch  orders:0/1", "--resume") // what is wrong is never passed over

	b, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, b[:len(b)-5], 0o600); err != nil { // cut off in the middle of a line
		t.Fatal(err)
	}
	verify(exitFault, "checksum_mismatch  orders:0/1", "--resume")
	for _, bad := range []string{"{}\n", "{\"v\":1}\n", string(b[:strings.IndexByte(string(b), '\n')+1]) + "x\n"} {
		if err := os.WriteFile(state, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		out := call(t, r.environ, "verify", "--deep", "--state", state, "--resume")
		if out.code != exitUsage || !strings.Contains(out.stderr, "use state file "+state+": ") || !strings.Contains(out.stderr, "leave --resume away") {
			t.Errorf("%q: %+v", bad, out)
		}
		if now, _ := os.ReadFile(state); string(now) != bad {
			t.Errorf("it has changed a file that it refused: %q", now)
		}
	}
	verify(exitFault, "read 3 objects") // the damaged one at both looks
}

func TestVerifyUsage(t *testing.T) {
	environ := []string{"KORVET_STORAGE_REMOTE_PATH=file:///tmp/x"}
	for _, tt := range []struct{ args, want string }{
		{"verify --resume", "--resume goes with --state"},
		{"verify orders/7", `"orders/7": segments are those of a partition: want TOPIC, TOPIC:N, TOPIC:N/SEGMENTS, --stream KEY [SEGMENTS], SEGMENTS as in 7 or 1-3,7`},
		{"verify orders:0 --topic orders", `--topic and "orders:0": want one of them; a name needs no --topic`},
		{"verify --topic orders orders:0", `--topic and "orders:0": want one of them; a name needs no --topic`},
		{"verify --topic a --stream b", "--topic and --stream: want one of them"},
		{"verify --rate fast", `--rate "fast": `},
		{"verify --rate 1KB", "--rate: verify.rate 1024: want 0 (no limit) or 64KB and more per second"},
	} {
		r := call(t, environ, strings.Fields(tt.args)...)
		if r.code != exitUsage || r.stdout != "" || !strings.HasPrefix(r.stderr, "korvet-offload: "+tt.want) {
			t.Errorf("%s: %+v", tt.args, r)
		}
	}
}

func TestVerifyOfWhatIsNotThere(t *testing.T) {
	r, _ := movedOrders(t)
	r.server.Exec("SET", "korvet:storage:manifest:orders:0", "x")
	if out := call(t, r.environ, "verify"); out.code != exitFault || !strings.Contains(out.stderr, "not all could be looked at: read the manifest of orders:0: ") {
		t.Errorf("%+v", out)
	}
}

func TestVerifyKnowsTheOwner(t *testing.T) {
	r, folder := movedOrders(t)
	marker := filepath.Join(filepath.Dir(folder), "_korvet_offload.json")
	for _, tt := range []struct{ content, want string }{
		{`{"v":1,"namespace":"other"}`, `owner  the root  the root belongs to somebody else: to namespace "other", and this is namespace "korvet"`},
		{`{"v":1,"namespace":"korvet","cluster":"another"}`, `owner  the root  the root belongs to somebody else: to cluster "another", and this redis is `},
		{"junk", "owner  the root  the root belongs to somebody else: "},
		{"", "owner  the root  the root has no owner marker: "},
	} {
		if err := os.Remove(marker); err != nil {
			t.Fatal(err)
		}
		if tt.content != "" {
			if err := os.WriteFile(marker, []byte(tt.content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if out := call(t, r.environ, "verify"); out.code != exitFault || !strings.HasPrefix(out.stdout, tt.want) {
			t.Errorf("%q: %+v", tt.content, out)
		}
	}
}

func TestScrubLine(t *testing.T) {
	p := segment.Partition{Topic: "orders"}
	for _, tt := range []struct {
		p    scrub.Progress
		want string
	}{
		{scrub.Progress{All: 4}, "0/4 partitions"},
		{scrub.Progress{Partition: p, Done: 1, All: 4}, "1/4 partitions  30s left  orders:0"},
		{scrub.Progress{Partition: p, Done: 1, All: 4, Read: 1 << 20, Of: 3 << 20}, "1/4 partitions  1.0 MiB of 3.0 MiB  0.1 MB/s  20s left  orders:0"},
	} {
		if got := scrubLine(tt.p, 10*time.Second); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestVerifyInTheBackground(t *testing.T) {
	r, folder := movedOrders(t)
	damage(t, filepath.Join(folder, "0.parquet"))
	environ := append(slices.Clone(r.environ), "KORVET_STORAGE_OFFLOAD_VERIFY_INTERVAL=1m", "KORVET_STORAGE_OFFLOAD_VERIFY_DEEP=true")
	d := start(t, environ)
	d.await(`"message":"verify has found something","kind":"checksum_mismatch","where":"orders:0/0","object":"` + ordersFolder + `/0.parquet"`)
	d.await(`"message":"verified: something is wrong"`)
	page := d.probe("/metrics")
	for _, want := range []string{`korvet_storage_verify_findings{kind="checksum_mismatch"} 1`, `korvet_storage_verify_findings{kind="orphan"} 0`, "korvet_storage_verify_objects_total 3"} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	d.stop()
	if code := d.end(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, d.log())
	}
	if strings.Count(d.log(), "verify has found") != 1 {
		t.Error(d.log())
	}
}

func TestNoVerifyInTheBackgroundWhileAllIsPaused(t *testing.T) {
	r, _ := movedOrders(t)
	if out := call(t, r.environ, "pause"); out.code != exitDone {
		t.Fatalf("%+v", out)
	}
	d := start(t, append(r.environ, "KORVET_STORAGE_OFFLOAD_VERIFY_INTERVAL=1m"))
	d.await(`"paused`)
	d.await("this instance leads")
	if strings.Contains(d.log(), "verified") {
		t.Error(d.log())
	}
	d.stop()
	d.end()
}
