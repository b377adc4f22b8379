package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"korvet-offload/internal/broker"
)

// The fields of a problem, a count of what was found.
const (
	problemShape = "problems[].error string\nproblems[].partition float64\nproblems[].reason string\nproblems[].segment string\n" +
		"problems[].topic string\nproblems[].what string"
	foundShape = "found.both float64\nfound.deleting float64\nfound.faulty_topics float64\nfound.grace float64\nfound.illegal float64\nfound.open float64\nfound.other_topics float64\n" +
		"found.partitions float64\nfound.remote float64\nfound.sealed float64\nfound.streams float64\nfound.topics float64\nfound.unuploaded float64"
)

// mustPrint checks a command's exit code and the fields of what it prints.
func mustPrint(t *testing.T, r result, code int, want ...string) {
	t.Helper()
	if got := shape(t, r.stdout); r.code != code || got != lines(want...) {
		t.Errorf("exit %d, stderr %s\nfields\n%s\nwant\n%s", r.code, r.stderr, got, lines(want...))
	}
}

func TestFieldsOfJSON(t *testing.T) {
	rig := newRig(t)
	rig.server.Exec("HSET", "korvet:storage:manifest:orders:0", "8", "no JSON")

	mustPrint(t, call(t, rig.environ, "status", "--output", "json"), exitFault,
		"at string", "eviction.max_memory float64", "eviction.policy string", "eviction.risk string", foundShape, "lag.bytes float64", "lag.local_headroom_seconds null", "lag.oldest_seconds float64", "lag.overdue float64", "lag.overdue_seconds float64", "lag.segments float64", "lag.sla_met bool", "lag.sla_seconds float64", "lag.total_headroom_seconds null", "lag.unknown float64", "lent_to string", "members[] empty",
		"partitions[].both float64", "partitions[].deleting float64", "partitions[].illegal float64", "partitions[].oldest_seconds float64", "partitions[].open float64",
		"partitions[].partition float64", "partitions[].remote float64", "partitions[].remote_bytes float64",
		"partitions[].remote_messages float64", "partitions[].sealed float64", "partitions[].topic string", "paused[] empty", problemShape, "registry string",
		"removed[] empty", "warnings[] empty")

	mustPrint(t, call(t, rig.environ, "run", "--once", "--dry-run", "-o", "json"), exitFault,
		"actions[].action string", "actions[].messages float64", "actions[].object string", "actions[].over float64", "actions[].partition float64",
		"actions[].sealed_seconds float64", "actions[].segment string", "actions[].topic string", "at string", foundShape, "paused[] empty", problemShape, "warnings[] empty")

	mustPrint(t, call(t, rig.environ, "run", "--once", "--output=json"), exitFault,
		foundShape, "led bool", "left float64", "paused[] empty", problemShape, "seconds float64", "segments[].bytes_in float64", "segments[].bytes_out float64",
		"segments[].messages float64", "segments[].object string", "segments[].partition float64", "segments[].result string",
		"segments[].seconds float64", "segments[].segment string", "segments[].topic string")

	mustPrint(t, call(t, rig.environ, "config", "check", "--connect", "-o", "json"), exitDone,
		"findings[].detail string", "findings[].ok bool", "findings[].tried string", "settings[].from string",
		"settings[].name string", "settings[].secret bool", "settings[].source string", "settings[].value string", "warnings[] empty")

	mustPrint(t, call(t, nil, "demo", "--messages", "16", "--dir", t.TempDir(), "-o", "json"), exitDone,
		"folder string", "segments[].bytes_in_parquet float64", "segments[].bytes_in_redis float64", "segments[].file string",
		"segments[].messages float64", "segments[].messages_per_second float64", "segments[].partition string",
		"segments[].segment string", "segments[].verified float64")
}

// A list is a list even when there is nothing in it.
func TestEmptyListsOfJSON(t *testing.T) {
	rig := newRig(t)
	rig.server.Exec("FLUSHALL")
	for verb, lists := range map[string][]string{
		"status": {"partitions", "problems"}, "run --once --dry-run": {"actions", "problems"}, "run --once": {"segments", "problems"},
	} {
		r := call(t, rig.environ, append(strings.Fields(verb), "-o", "json")...)
		for _, l := range lists {
			if r.code != exitDone || !strings.Contains(r.stdout, `"`+l+`": []`) {
				t.Errorf("%s: no empty list %s: %+v", verb, l, r)
			}
		}
	}
}

func TestDryRunOfWhatTheManifestDoesNotSay(t *testing.T) {
	rig := newRig(t)
	rig.server.Exec("HSET", "korvet:storage:manifest:orders:0", "0", `{"state":"SEALED","tier":"LOCAL"}`, "1", `{"state":"SEALED","tier":"LOCAL"}`)
	r := call(t, rig.environ, "run", "--once", "--dry-run", "-o", "json")
	if got := shape(t, r.stdout); r.code != exitDone || !strings.Contains(got, "actions[].messages null\n") || !strings.Contains(got, "actions[].sealed_seconds null\n") {
		t.Errorf("exit %d %s\n%s", r.code, r.stderr, got)
	}
	r = call(t, rig.environ, "run", "--once", "--dry-run")
	if want := "orders:0         0  copy    sealed         ?           ?  korvet:storage:local:orders:0/0.parquet\n"; r.code != exitDone || !strings.Contains(r.stdout, want) {
		t.Errorf("%+v", r)
	}
}

func TestTablesOfAPass(t *testing.T) {
	rig := newRig(t)
	rig.server.Exec("HSET", "korvet:storage:manifest:orders:0", "8", "no JSON")
	const problem = "korvet-offload: segment orders:0/8: [illegal_entry] illegal manifest entry"

	r := call(t, rig.environ, "run", "--once", "--dry-run")
	mustRead(t, r, exitFault, problem,
		"PARTITION  SEGMENT  ACTION  WHY     MESSAGES  SEALED FOR  OBJECT\n",
		"orders:0         1  copy    sealed        10        1h0m  korvet:storage:local:orders:0/1.parquet\n",
		"2 to copy; files go to file:///", "; 0 sealed too short a time ago, 0 remote, 1 open. Nothing was changed\n")

	r = call(t, rig.environ, "status")
	mustRead(t, r, exitFault, problem,
		"PARTITION  REMOTE ONLY  BOTH TIERS  WAITING  OPEN  DELETING  ILLEGAL  REMOTE MESSAGES  ON THE STORE  OLDEST WAITS\n",
		"orders:0             0           0        2     1         0        1                0           0 B          1h0m\n",
		"registry: set; 1 topic, 1 partition; lag: 2 segments (", "iB), the oldest waits 1h0m; SLA of 2m0s BROKEN; 0 segments past a retention\n")

	r = call(t, rig.environ, "run", "--once")
	mustRead(t, r, exitFault, problem, "PARTITION  SEGMENT  RESULT  MESSAGES", "orders:0         0  copied        10",
		"2 of 2 sealed segments moved to file:///", "; 1 topic, 1 partition, 0 segments remote before, 1 open; 1 problem\n")

	r = call(t, rig.environ, "status")
	mustRead(t, r, exitFault, problem, "orders:0             0           2        0     1 ", "lag: 0 segments, the oldest waits -; SLA of 2m0s not known; 0 segments past a retention\n")
}

// mustRead checks an exit code, what stderr begins with, and what stdout
// has in it.
func mustRead(t *testing.T, r result, code int, stderr string, stdout ...string) {
	t.Helper()
	if r.code != code || !strings.HasPrefix(r.stderr, stderr) || strings.Count(r.stderr, "\n") != min(1, len(stderr)) {
		t.Errorf("exit %d, stderr %q, want %q", r.code, r.stderr, stderr)
	}
	for _, want := range stdout {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, r.stdout)
		}
	}
}

func TestDemo(t *testing.T) {
	dir := t.TempDir()
	r := call(t, nil, "demo", "--messages", "160", "--dir", dir)
	mustRead(t, r, exitDone, "", "PARTITION   SEGMENT  MESSAGES", "orders:0          0        10", "payments:0        2        10", "total                     120",
		"12 sealed segments moved and flipped to REMOTE, every message read back and compared.\n4 open segments stayed in Redis. The speed is that of the Redis of this demo.\nThe files are in "+dir)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.parquet"))
	if err != nil || len(files) != 12 {
		t.Errorf("%v: files %q", err, files)
	}
}

func TestDemoLeavesNothingInARealRedis(t *testing.T) {
	rig := newRig(t)
	before := rig.server.Exec("DBSIZE")
	r := call(t, nil, "demo", "--messages", "160", "--dir", t.TempDir(), "--redis-uri", rig.server.URI())
	mustRead(t, r, exitDone, "", "12 sealed segments moved")
	if after := rig.server.Exec("DBSIZE"); after != before {
		t.Errorf("there were %s keys and are %s", before, after)
	}
}

func TestDemoSaysWhereItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := call(t, nil, "demo", "--messages", "16", "--dir", file)
	if r.code != exitFault || !strings.HasPrefix(r.stderr, "korvet-offload: make a folder for the files: ") || !strings.Contains(r.stderr, file) {
		t.Errorf("%+v", r)
	}
}

func TestRedisThatIsAway(t *testing.T) {
	environ := []string{"KORVET_REDIS_URI=redis://127.0.0.1:1", "KORVET_STORAGE_REMOTE_PATH=file://" + t.TempDir()}
	for _, verb := range []string{"run --once", "run --once --dry-run", "status"} {
		r := call(t, environ, strings.Fields(verb)...)
		if r.code != exitFault || r.stdout != "" || !strings.HasPrefix(r.stderr, "korvet-offload: redis CONNECT 127.0.0.1:1: ") || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", verb, r)
		}
	}
	r := call(t, environ, "config", "check", "--connect")
	if r.code != exitFault || r.stderr != "" || !strings.Contains(r.stdout, "redis         FAULT   redis CONNECT 127.0.0.1:1: ") {
		t.Errorf("%+v", r)
	}
}

// Neither a remote path nor a store that answers is needed to look.
func TestStatusNeedsNoStore(t *testing.T) {
	rig := newRig(t)
	for _, environ := range [][]string{rig.environ[:1], {rig.environ[0], "KORVET_STORAGE_REMOTE_PATH=file:///nowhere/at/all"}} {
		mustRead(t, call(t, environ, "status"), exitDone, "", "orders:0             0           0        2     1 ")
	}
}

func TestCheckTellsNotesFromFaults(t *testing.T) {
	var out bytes.Buffer
	err := Process{Stdout: &out}.printFindings([]finding{
		{Tried: "a", OK: true, Detail: "fine"}, {Tried: "b", OK: true, Note: true, Detail: "not tried"}, {Tried: "c", Detail: "broken", Advice: "mend it"},
	})
	want := "\nTRIED  RESULT  DETAIL\na      ok      fine\nb      note    not tried\nc      FAULT   broken; mend it\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, &out, want)
	}
}

func TestSwitchedOff(t *testing.T) {
	rig := newRig(t)
	r := call(t, append(rig.environ, "KORVET_STORAGE_OFFLOAD_ENABLED=false"), "run", "--once")
	if r.code != exitDone || r.stdout != "" || r.stderr != "offload is switched off by korvet.storage.offload.enabled; nothing done\n" {
		t.Errorf("%+v", r)
	}
}

func TestDemoNoticesWhatIsNotTheSame(t *testing.T) {
	rig := newRig(t)
	if r := call(t, rig.environ, "run", "--once"); r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	cfg := demoConfig(rig.server.URI())
	cfg.Store.URL = strings.TrimPrefix(rig.environ[1], "KORVET_STORAGE_REMOTE_PATH=")
	s, err := connect(t.Context(), cfg, quiet{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	d := &demo{session: s}
	for _, tt := range []struct {
		seed  uint64
		count int
		want  string
	}{
		{1, 10, ""},
		{2, 10, "message 1708956789000-0 is not what went in"},
		{1, 11, "korvet:storage:local:orders:0/1.parquet holds 10 messages, and 11 went in"},
	} {
		_, err := d.compare(t.Context(), broker.Segment{Seed: tt.seed, Count: tt.count, ValueBytes: 100}, "korvet:storage:local:orders:0/1.parquet")
		if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
			t.Errorf("seed %d, %d messages: %s, want %q", tt.seed, tt.count, got, tt.want)
		}
	}
}
