package command

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// movedRig is a rig of which two segments have been copied, and the folder of their
// objects.
func movedRig(t *testing.T) (r rig, folder string) {
	t.Helper()
	r = newRig(t)
	if run := call(t, r.environ, "run", "--once"); run.code != exitDone {
		t.Fatalf("%+v", run)
	}
	_, root, _ := strings.Cut(r.environ[1], "=file://")
	return r, filepath.Join(root, "korvet:storage:local:orders:0")
}

// withoutRedis is an environment in which nothing answers for Redis.
func withoutRedis(environ []string) []string {
	return append(environ[1:], "KORVET_REDIS_URI=redis://127.0.0.1:1")
}

func spoil(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLsOfManifests(t *testing.T) {
	r, _ := movedRig(t)
	for args, want := range map[string][]string{
		"ls":          {"TOPIC   PARTITIONS  SEGMENTS  REMOTE ONLY  BOTH TIERS  WAITING  OPEN", "orders           1         3            0           2        0     1 "},
		"ls orders":   {"PARTITION  SEGMENTS  REMOTE ONLY", "orders:0          3            0           2        0     1 "},
		"ls orders:0": {"SEGMENT  WHERE       MESSAGES  FIRST ID", "      1  both tiers        10  ", "      2  open              10  1708956789000-0  ", "korvet:storage:local:orders:0/1.parquet\n"},
		"ls -o csv":   {"topic,plain,partitions,segments,remote_only,both_tiers,waiting,open,deleting,illegal,remote_messages,remote_bytes,first_id,last_id,from,to\n", "orders,false,1,3,0,2,0,1,0,0,20,"},
	} {
		mustRead(t, call(t, r.environ, strings.Fields(args)...), exitDone, "", want...)
	}
	var list struct {
		Segments []struct {
			Segment   int
			Where     string
			Messages  *int
			FirstID   string `json:"first_id"`
			Bytes     *int64
			Object    *string
			SHA256    *string
			RemoteAt  *string `json:"remote_at"`
			DeletedAt *string `json:"deleting_at"`
		}
	}
	got := call(t, r.environ, "ls", "orders:0", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || len(list.Segments) != 3 {
		t.Fatalf("%v in %+v", err, got)
	}
	first, open := list.Segments[0], list.Segments[2]
	if first.Where != "both tiers" || *first.Messages != 10 || *first.Object != "korvet:storage:local:orders:0/0.parquet" || len(*first.SHA256) != 64 || first.RemoteAt == nil ||
		open.Where != "open" || open.Object != nil || open.Bytes != nil {
		t.Errorf("%s", got.stdout)
	}
	if empty := call(t, r.environ, "ls", "orders:7", "-o", "json"); empty.code != exitFault || empty.stdout != "{\"segments\":[\n]}\n" || !strings.Contains(empty.stderr, "orders:7: there is no manifest of it") {
		t.Errorf("%+v", empty)
	}
	if none := call(t, r.environ, "ls", "nope"); none.code != exitFault || !strings.Contains(none.stderr, "topic nope: it is in no registry") {
		t.Errorf("%+v", none)
	}
}

// What can't be read is told, and keeps nothing else from being listed.
func TestLsOfWhatIsIllegal(t *testing.T) {
	r, _ := movedRig(t)
	r.server.Exec("HSET", "korvet:storage:manifest:orders:0", "9", "no JSON", "meta", "x")
	got := call(t, r.environ, "ls", "orders:0")
	if got.code != exitFault || !strings.Contains(got.stdout, "      9  illegal ") || !strings.Contains(got.stdout, "      2  open ") ||
		got.stderr != "korvet-offload: orders:0: field \"meta\" of the manifest is no segment\nkorvet-offload: segment orders:0/9: illegal manifest entry: not a JSON object\n" {
		t.Errorf("%+v", got)
	}
	if sums := call(t, r.environ, "ls", "-o", "csv"); sums.code != exitDone || !strings.Contains(sums.stdout, "orders,false,1,4,0,2,0,1,0,2,20,") {
		t.Errorf("%+v", sums)
	}
	r.server.Exec("SADD", "korvet:storage:manifest:orders:1", "x")
	r.server.Exec("HSET", "korvet:topic:orders", "partitions", "3")
	if all := call(t, r.environ, "ls", "orders"); all.code != exitFault || !strings.Contains(all.stderr, "orders:1: ") || !strings.Contains(all.stdout, "\norders:2 ") {
		t.Errorf("%+v", all)
	}
}

// Thousands of segments come in their order, in every format, although the table
// does not wait for the last one.
func TestLsOfManySegments(t *testing.T) {
	r := newRig(t)
	var cmds []byte
	for n := range 2*tableAhead + 30 {
		path := fmt.Sprintf("korvet:storage:local:orders:0/%d.parquet", n)
		cmds = redisserver.AppendCommand(cmds, "HSET", "korvet:storage:manifest:orders:0", fmt.Sprint(n),
			fmt.Sprintf(`{"v":1,"state":"SEALED","tier":"REMOTE","local":"GONE","count":5,"firstId":"%d-1","lastId":"%d-5","object":{"path":%q,"bytes":%d,"etag":"","sha256":""}}`, 1700000000000+n, 1700000000000+n, path, 1000+n))
	}
	r.server.Pipe(cmds)
	want := 2*tableAhead + 30
	records, err := csv.NewReader(strings.NewReader(call(t, r.environ, "ls", "orders:0", "-o", "csv").stdout)).ReadAll()
	if err != nil || len(records) != want+1 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for n, record := range records[1:] {
		if record[0] != fmt.Sprint(n) || record[1] != "remote only" || len(record) != len(segmentColumns()) {
			t.Fatalf("record %d: %q", n, record)
		}
	}
	lines := strings.Split(strings.TrimSpace(call(t, r.environ, "ls", "orders:0").stdout), "\n")
	if len(lines) != want+1 || !strings.HasPrefix(lines[0], "SEGMENT  WHERE") || !strings.HasPrefix(lines[want], fmt.Sprintf("   %d  remote only", want-1)) {
		t.Errorf("%d lines; %q ... %q", len(lines), lines[0], lines[len(lines)-1])
	}
	var list struct{ Segments []struct{ Segment int } }
	if err := json.Unmarshal([]byte(call(t, r.environ, "ls", "orders:0", "-o", "json").stdout), &list); err != nil || len(list.Segments) != want || list.Segments[want-1].Segment != want-1 {
		t.Errorf("%d, %v", len(list.Segments), err)
	}
	if sums := call(t, r.environ, "ls", "-o", "csv"); !strings.Contains(sums.stdout, fmt.Sprintf("orders,false,1,%d,%d,0,0,0,0,0,%d,", want, want, 5*want)) {
		t.Errorf("%+v", sums)
	}
}

// The bucket alone tells what there is, and nothing of Redis is needed.
func TestLsOfTheStore(t *testing.T) {
	r, folder := movedRig(t)
	whole, err := os.ReadFile(filepath.Join(folder, "0.parquet"))
	spoil(t, err, os.WriteFile(filepath.Join(folder, "0-1.parquet"), whole, 0o600), os.WriteFile(filepath.Join(folder, "1.parquet"), whole[:100], 0o600),
		os.WriteFile(filepath.Join(folder, "notes"), nil, 0o600), os.Mkdir(folder+"x", 0o700), os.WriteFile(filepath.Join(folder+"x", "7.parquet"), whole, 0o600))
	environ := withoutRedis(r.environ)
	mustRead(t, call(t, environ, "ls", "--from-store"), exitDone, "", "TOPIC", "\norders                     1         2  ", "\n(no partition's)           1         0  ")
	mustRead(t, call(t, environ, "ls", "orders", "--from-store"), exitDone, "", "PARTITION  SEGMENTS", "\norders:0          2  ")
	got := call(t, environ, "ls", "orders:0", "--from-store", "--footers", "-o", "csv")
	if got.code != exitFault || strings.Count(got.stdout, "\n") != 4 || !strings.HasPrefix(got.stdout, "segment,copy,bytes,put,etag,messages,first_id,last_id,from,to,object,problem\n0,0,") ||
		!strings.Contains(got.stderr, "object korvet:storage:local:orders:0/1.parquet: damaged segment file") || !strings.Contains(got.stderr, "orders:0/notes: it is no file of a segment") {
		t.Errorf("%+v", got)
	}
	if none := call(t, environ, "ls", "orders:5", "--from-store"); none.code != exitFault || !strings.Contains(none.stderr, "orders:5: nothing of it lies in the bucket") {
		t.Errorf("%+v", none)
	}
	if none := call(t, environ, "ls", "nope", "--from-store"); none.code != exitFault || !strings.Contains(none.stderr, "topic nope: nothing of it lies in the bucket") {
		t.Errorf("%+v", none)
	}
}

// Both side by side: what is only here, only there, or of another size.
func TestLsCompares(t *testing.T) {
	r, folder := movedRig(t)
	mustRead(t, call(t, r.environ, "ls", "--compare"), exitDone, "", "\norders:0      2           1         0         0         0        0           0        0        0\n")
	mustRead(t, call(t, r.environ, "ls", "orders:0", "--compare"), exitDone, "", "      0  same        both tiers ", "      2  not copied  open ")
	whole, err := os.ReadFile(filepath.Join(folder, "0.parquet"))
	spoil(t, err, os.WriteFile(filepath.Join(folder, "0-1.parquet"), whole, 0o600), os.WriteFile(filepath.Join(folder, "7.parquet"), whole, 0o600),
		os.Truncate(filepath.Join(folder, "0.parquet"), 100), os.Remove(filepath.Join(folder, "1.parquet")))
	got := call(t, r.environ, "ls", "orders:0", "--compare", "-o", "csv")
	var verdicts []string
	records, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
	for _, record := range records[1:] {
		verdicts = append(verdicts, record[0]+" "+record[1])
	}
	if want := "[0 other size 0 replaced 1 missing 2 not copied 7 unnamed]"; err != nil || got.code != exitFault || fmt.Sprint(verdicts) != want {
		t.Errorf("exit %d, %v, want %s", got.code, verdicts, want)
	}
	for _, want := range []string{
		"segment orders:0/0: its entry says that object korvet:storage:local:orders:0/0.parquet has ", " bytes, and it has 100\n",
		"segment orders:0/1: its entry names object korvet:storage:local:orders:0/1.parquet, which is not there\n",
		"segment orders:0/7: there is no entry of it, and object korvet:storage:local:orders:0/7.parquet lies there\n",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr lacks %q:\n%s", want, got.stderr)
		}
	}
	r.server.Exec("DEL", "korvet:topics", "korvet:storage:offload:topics")
	if gone := call(t, r.environ, "ls", "--compare"); gone.code != exitFault || !strings.Contains(gone.stderr, "orders:0: it is in no registry, and the bucket has 3 files of it") {
		t.Errorf("%+v", gone)
	}
}

// A worker that copies, drops, hides and deletes meanwhile makes no difference.
func TestLsComparesWhileAWorkerMoves(t *testing.T) {
	r := newRig(t)
	r.server.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "1", "retention.ms", "2")
	d := start(t, append(r.environ, "KORVET_STORAGE_OFFLOAD_DELETE_GRACE=1ms", "KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0s", "KORVET_STORAGE_OFFLOAD_ROLL_ENABLED=false"))
	d.await(`"message":"this instance leads"`)
	s := sessionOf(t, r.environ, quiet{})
	for n := segment.Number(3); n < 30; n++ {
		r.sealMore(t, s, n)
		for _, args := range []string{"ls --compare", "ls orders:0 --compare"} {
			if got := call(t, r.environ, strings.Fields(args)...); got.code != exitDone || got.stderr != "" {
				t.Fatalf("%+v", got)
			}
		}
	}
	if d.stop(); d.end() != exitDone {
		t.Error(d.log())
	}
}

// A plain stream is asked for by its key, wherever its name could be a partition's.
func TestLsOfAPlainStream(t *testing.T) {
	r := newRig(t)
	environ := append(slices.Clone(r.environ), "KORVET_STREAMS_0_KEY=events:1", "KORVET_STREAMS_0_SEGMENT_TIME=1", "KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0s")
	for i := range 3 {
		r.server.Exec("XADD", "events:1", fmt.Sprintf("170000000000%d-1", i), "f", "v")
	}
	for range 3 { // it is created, sealed and copied
		if run := call(t, environ, "run", "--once"); run.code != exitDone {
			t.Fatalf("%+v", run)
		}
	}
	mustRead(t, call(t, environ, "ls", "--stream", "events:1"), exitDone, "", "      0  both tiers         3  1700000000000-1  1700000000002-1 ")
	mustRead(t, call(t, environ, "ls"), exitDone, "", "\nevents:1 ", "\norders ")
	mustRead(t, call(t, environ, "ls", "--stream", "events:1", "--compare"), exitDone, "", "      0  same ")
	mustRead(t, call(t, environ, "describe", "--stream", "events:1", "0"), exitDone, "", "segment   events:1/0\n", "range     ", " of a shared stream\n", "\nfile      schema version 1, 3 messages, ")
	if wrong := call(t, environ, "ls", "events:1"); wrong.code != exitFault {
		t.Errorf("as a partition: %+v", wrong)
	}
}

func TestWrongUsageOfLs(t *testing.T) {
	environ := []string{"KORVET_STORAGE_REMOTE_PATH=file:///tmp/x"}
	for args, want := range map[string]string{
		"ls a b:0":                             "topics and partitions are listed differently: want either topics, or partitions (TOPIC:N, TOPIC:N/SEGMENTS)",
		"ls a/b":                               `"a/b": segments are those of a partition: want TOPIC, TOPIC:N, TOPIC:N/SEGMENTS, --stream KEY [SEGMENTS]`,
		"ls a:b":                               `"a:b": partition "b" is no number below 1000000: want TOPIC, `,
		"ls a --stream k":                      `--stream and "a": want TOPIC, `,
		"ls --from-store --compare":            "--from-store and --compare: want one of them",
		"ls --footers":                         "--footers goes with --from-store and a partition",
		"ls orders --from-store --footers":     "--footers goes with --from-store and a partition",
		"ls -o xml":                            "--output xml: want table, json or csv",
		"describe":                             "nothing is named: want TOPIC:N/SEGMENTS, --stream KEY SEGMENTS, SEGMENTS as in 7 or 1-3,7; korvet-offload ls lists segments",
		"describe orders:0":                    `"orders:0" names a partition: want TOPIC:N/SEGMENTS, `,
		"describe orders:0/1-1001":             "describe: that is more than 1000 segments; korvet-offload ls lists them",
		"describe orders:0/1-9 orders:1/1-999": "describe: that is more than 1000 segments",
		"describe orders:0/x":                  "x",
		"describe orders:0/07":                 "07",
		"describe a:b/1":                       `"a:b/1": partition "b" is no number below 1000000`,
		"describe orders:0/1 -o csv":           "--output csv: want table or json",
	} {
		if r := call(t, environ, strings.Fields(args)...); r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := call(t, nil, "ls", "--from-store"); r.code != exitUsage || !strings.Contains(r.stderr, "korvet.storage.remote-path") {
		t.Errorf("without a bucket: %+v", r)
	}
}

// What can't be printed is an error.
func TestRowsThatCantBePrinted(t *testing.T) {
	for _, format := range []string{outputTable, outputJSON, outputCSV} {
		out := newRows(fullDisk{}, format, "x", []column{{"A", "a"}})
		err := out.add(textCell("x"))
		if e := out.end(); err == nil {
			err = e
		}
		if err == nil {
			t.Errorf("%s: no error", format)
		}
		var empty bytes.Buffer
		if err := newRows(&empty, format, "x", []column{{"A", "a"}}).end(); err != nil || empty.String() != map[string]string{outputTable: "", outputJSON: "{\"x\":[\n]}\n", outputCSV: "a\n"}[format] {
			t.Errorf("%s: of nothing %q, %v", format, empty.String(), err)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, context.DeadlineExceeded }
