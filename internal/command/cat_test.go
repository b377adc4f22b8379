package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// line is a message as cat prints it, with texts only.
type line struct {
	ID     string      `json:"id"`
	Fields [][2]string `json:"fields"`
}

// linesOf reads what cat has printed.
func linesOf(t *testing.T, out string) (all []line) {
	t.Helper()
	for text := range strings.Lines(out) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v in %.300q", err, text)
		}
		all = append(all, l)
	}
	return all
}

// newCatRig is newRig with ids that go on from segment to segment.
func newCatRig(t *testing.T) rig {
	t.Helper()
	server := redisserver.Start(t)
	r := rig{server, []string{"KORVET_REDIS_URI=" + server.URI(), "KORVET_STORAGE_REMOTE_PATH=file://" + t.TempDir()}}
	server.Exec("SADD", "korvet:topics", "orders")
	server.Exec("HSET", "korvet:topic:orders", "remote.storage.enable", "true", "retention.ms", "-1", "segment.ms", "9000000000000")
	messages, ms := dataset.New(1, 100), uint64(dataset.FirstMs)
	for n := range 3 {
		var wire []byte
		var ids []string
		for i := range 10 {
			ms += uint64(1 - i%2)
			id := segment.ID{Ms: ms, Seq: 9 + uint64(i%2)}.String() // 10 follows 9
			ids = append(ids, id)
			args := []string{"XADD", "korvet:storage:local:orders:0:" + strconv.Itoa(n), id}
			for _, f := range messages.Next().Fields() {
				args = append(args, string(f))
			}
			wire = redisserver.AppendCommand(wire, args...)
		}
		ms += 5
		server.Pipe(wire)
		entry := `{"state":"OPEN","tier":"LOCAL"}`
		if n < 2 {
			entry = fmt.Sprintf(`{"state":"SEALED","tier":"LOCAL","firstId":%q,"lastId":%q,"count":10,"sealedAt":1}`, ids[0], ids[9])
		}
		server.Exec("HSET", "korvet:storage:manifest:orders:0", strconv.Itoa(n), entry)
	}
	return r
}

// cat runs cat and wants it to go well.
func (r rig) cat(t *testing.T, args ...string) []line {
	t.Helper()
	got := call(t, r.environ, append([]string{"cat"}, args...)...)
	if got.code != exitDone || got.stderr != "" {
		t.Fatalf("cat %q: exit %d, %s", args, got.code, got.stderr)
	}
	return linesOf(t, got.stdout)
}

// inRedis is what raw XRANGE says of the segments of orders:0, in order.
func (r rig) inRedis(t *testing.T, segments ...int) (all []line) {
	t.Helper()
	for _, n := range segments {
		out := r.server.Exec("XRANGE", "korvet:storage:local:orders:0:"+strconv.Itoa(n), "-", "+")
		var l *line
		words := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		for i := 0; i < len(words); i++ {
			if _, err := segment.ParseID(words[i]); err == nil {
				all = append(all, line{ID: words[i]})
				l = &all[len(all)-1]
				continue
			}
			l.Fields = append(l.Fields, [2]string{words[i], words[i+1]})
			i++
		}
	}
	return all
}

func sameLines(a, b []line) bool {
	return slices.EqualFunc(a, b, func(x, y line) bool { return x.ID == y.ID && slices.Equal(x.Fields, y.Fields) })
}

// move runs one pass.
func (r rig) move(t *testing.T) {
	t.Helper()
	if got := call(t, r.environ, "run", "--once"); got.code != exitDone {
		t.Fatalf("run: %s", got.stderr)
	}
}

// dropLocal lets the local copies go at the next pass.
func (r rig) dropLocal(t *testing.T) {
	t.Helper()
	r.server.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "1")
	r.move(t)
	r.server.Exec("HDEL", "korvet:topic:orders", "local.retention.ms")
}

func (r rig) folder() string {
	for _, v := range r.environ {
		if path, ok := strings.CutPrefix(v, "KORVET_STORAGE_REMOTE_PATH=file://"); ok {
			return path
		}
	}
	return ""
}

// The same messages come, byte for byte, whichever tier they are on.
func TestCatIsTheSameOnBothTiers(t *testing.T) {
	r := newCatRig(t)
	want := r.inRedis(t, 0, 1, 2)
	if len(want) != 30 || len(want[0].Fields) != 4 {
		t.Fatalf("%d messages, %+v", len(want), want[0])
	}
	check := func(when string, remote, local int) {
		t.Helper()
		if got := r.cat(t, "orders:0"); !sameLines(got, want) {
			t.Errorf("%s: %d messages, or others", when, len(got))
		}
		back := r.cat(t, "orders:0", "--reverse")
		slices.Reverse(back)
		if !sameLines(back, want) {
			t.Errorf("%s, reversed: %d messages, or others", when, len(back))
		}
		for from := 0; from < len(want); from += 11 {
			to := min(from+12, len(want)-1)
			if got := r.cat(t, "orders:0", "--from", want[from].ID, "--to", want[to].ID); !sameLines(got, want[from:to+1]) {
				t.Errorf("%s: from %d to %d: %d messages", when, from, to, len(got))
			}
			if got := r.cat(t, "--offset", strconv.Itoa(from), "orders:0", "-n", "3"); !sameLines(got, want[from:min(from+3, len(want))]) {
				t.Errorf("%s: offset %d: %d messages", when, from, len(got))
			}
		}
		if got := r.cat(t, "orders:0", "--tier", "remote"); len(got) != remote {
			t.Errorf("%s: %d on the store", when, len(got))
		}
		if got := r.cat(t, "orders:0", "--tier", "local"); len(got) != local {
			t.Errorf("%s: %d in Redis", when, len(got))
		}
	}
	check("before", 0, 30)
	r.move(t)
	check("copied", 20, 30)
	r.dropLocal(t)
	if r.server.Exec("EXISTS", "korvet:storage:local:orders:0:0", "korvet:storage:local:orders:0:1") != "0" {
		t.Fatal("the local copies are still there")
	}
	check("dropped", 20, 10)
}

// One file needs neither Redis nor settings; an object and a listing no Redis.
func TestCatWithoutRedis(t *testing.T) {
	r := newCatRig(t)
	want := r.inRedis(t, 0, 1)
	r.move(t)
	r.dropLocal(t)
	r.server.Stop()
	path := filepath.Join(r.folder(), "korvet:storage:local:orders:0", "1.parquet")
	for name, tt := range map[string]struct {
		environ []string
		args    string
		want    []line
	}{
		"file":             {nil, path, want[10:]},
		"file, reversed":   {nil, path + " --reverse --limit 2 --offset 1", []line{want[18], want[17]}},
		"file, a range":    {nil, path + " --from " + want[12].ID + " --to " + want[13].ID, want[12:14]},
		"object":           {r.environ, "--object korvet:storage:local:orders:0/1.parquet", want[10:]},
		"listing":          {r.environ, "orders:0 --from-store", want},
		"listing, a range": {r.environ, "orders:0 --from-store --from " + want[8].ID + " --to " + want[11].ID, want[8:12]},
	} {
		got := call(t, tt.environ, append([]string{"cat"}, strings.Fields(tt.args)...)...)
		if got.code != exitDone || got.stderr != "" || !sameLines(linesOf(t, got.stdout), tt.want) {
			t.Errorf("%s: exit %d, %s%d bytes", name, got.code, got.stderr, len(got.stdout))
		}
	}
	got := call(t, r.environ, "cat", "orders:0")
	if got.code != exitFault || !strings.Contains(got.stderr, "connect") {
		t.Errorf("%+v", got)
	}
}

// A segment that can't be read is named, with where it should be; behind it the
// reading goes on only if that was asked for.
func TestCatOfWhatIsMissing(t *testing.T) {
	r := newCatRig(t)
	want := r.inRedis(t, 0, 1, 2)
	r.move(t)
	r.dropLocal(t)
	path := filepath.Join(r.folder(), "korvet:storage:local:orders:0", "0.parquet")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/3] ^= 1
	for name, tt := range map[string]struct {
		damage func() error
		says   string
	}{
		"missing": {func() error { return os.Remove(path) }, "object does not exist"},
		"cut":     {func() error { return os.WriteFile(path, whole[:len(whole)/2], 0o600) }, ""},
		"flipped": {func() error { return os.WriteFile(path, flipped, 0o600) }, "damaged"},
		"other":   {func() error { return os.WriteFile(path, []byte(strings.Repeat("x", len(whole))), 0o600) }, ""},
	} {
		if err := tt.damage(); err != nil {
			t.Fatal(err)
		}
		got := call(t, r.environ, "cat", "orders:0")
		if got.code != exitFault || !strings.Contains(got.stderr, "read segment orders:0/0: object korvet:storage:local:orders:0/0.parquet: ") || !strings.Contains(got.stderr, tt.says) {
			t.Errorf("%s: exit %d, %s", name, got.code, got.stderr)
		}
		got = call(t, r.environ, "cat", "orders:0", "--skip-missing")
		if rest := linesOf(t, got.stdout); got.code != exitFault || !strings.Contains(got.stderr, "warning: skipped: read segment orders:0/0: ") || !sameLines(rest[max(0, len(rest)-20):], want[10:]) {
			t.Errorf("%s, skipped: exit %d, %s%d lines", name, got.code, got.stderr, len(rest))
		}
		if got := r.cat(t, "orders:0", "--from", want[10].ID); !sameLines(got, want[10:]) {
			t.Errorf("%s: what is not asked for is opened", name)
		}
	}
	r.server.Exec("HSET", "korvet:storage:manifest:orders:0", "0", "nonsense")
	if got := call(t, r.environ, "cat", "orders:0"); got.code != exitFault || !strings.Contains(got.stderr, "orders:0/0: illegal manifest entry") {
		t.Errorf("%+v", got)
	}
	if got := call(t, r.environ, "cat", "orders:7"); got.code != exitFault || got.stderr != "korvet-offload: partition orders:7: there is no manifest of it; is the name right? korvet-offload ls lists what there is\n" {
		t.Errorf("%+v", got)
	}
}

func TestCatFormats(t *testing.T) {
	r := newCatRig(t)
	want := r.inRedis(t, 0, 1, 2)
	var values, zeros string
	for _, l := range want[:5] {
		for _, f := range l.Fields {
			if f[0] == "value" {
				values += f[1] + "\n"
				zeros += f[1] + "\x00"
			}
		}
	}
	first := map[string]string{}
	for _, f := range want[0].Fields {
		first[f[0]] = f[1]
	}
	for args, text := range map[string]string{
		"-f value":                   values,
		`-f value --separator \0`:    zeros,
		"-f xadd --to-key copy -n 1": commandOf("copy", want[0]),
		"--envelope -n 1":            "",
	} {
		got := call(t, r.environ, append([]string{"cat", "orders:0", "-n", "5"}, strings.Fields(args)...)...)
		if got.code != exitDone || got.stderr != "" || text != "" && got.stdout != text {
			t.Errorf("%s: %+v\nwant %q", args, got, text)
		}
		if text == "" {
			var e struct {
				ID, Key, Value, Headers string
				Timestamp               json.Number
			}
			if err := json.Unmarshal([]byte(got.stdout), &e); err != nil || e.Key != first["key"] || e.Value != first["value"] || e.Headers != first["headers"] || e.Timestamp.String() != first["timestamp"] {
				t.Errorf("%v %+v", err, e)
			}
		}
	}
	all := call(t, r.environ, "cat", "orders:0", "--format", "xadd", "--to-key", "copy")
	r.server.Pipe([]byte(all.stdout))
	for i, out := range strings.SplitAfter(r.server.Exec("XRANGE", "copy", "-", "+"), want[29].ID) {
		if i == 0 && !strings.HasPrefix(out, want[0].ID) {
			t.Errorf("%.100q", out)
		}
	}
	if n := r.server.Exec("XLEN", "copy"); n != "30" {
		t.Errorf("%s messages", n)
	}
	stats := call(t, r.environ, "cat", "orders:0", "--stats", "-n", "2")
	if !strings.HasPrefix(stats.stderr, "korvet-offload: 2 messages, ") || len(linesOf(t, stats.stdout)) != 2 {
		t.Errorf("%+v", stats)
	}
}

func commandOf(key string, l line) string {
	args := []string{"XADD", key, l.ID}
	for _, f := range l.Fields {
		args = append(args, f[0], f[1])
	}
	return string(redisserver.AppendCommand(nil, args...))
}

// The time of --since is that of the Redis server.
func TestCatOfTheLastHour(t *testing.T) {
	r := newCatRig(t)
	var now int64
	if _, err := fmt.Sscan(strings.Split(r.server.Exec("TIME"), "\n")[0], &now); err != nil {
		t.Fatal(err)
	}
	r.server.Exec("HSET", "korvet:storage:manifest:orders:1", "0", `{"state":"OPEN","tier":"LOCAL"}`)
	for _, ago := range []int64{7200, 3000, 60} {
		r.server.Exec("XADD", "korvet:storage:local:orders:1:0", strconv.FormatInt((now-ago)*1000, 10)+"-0", "ago", strconv.FormatInt(ago, 10))
	}
	for since, want := range map[string]int{"3h": 3, "1h": 2, "5m": 1, "1s": 0} {
		if got := r.cat(t, "orders:1", "--since", since); len(got) != want {
			t.Errorf("%s: %d messages", since, len(got))
		}
	}
	at := time.Unix(now-3000, 0).UTC()
	if got := r.cat(t, "orders:1", "--from", at.Format("2006-01-02T15:04:05Z07:00")); len(got) != 2 {
		t.Errorf("%d messages from a time", len(got))
	}
	if got := r.cat(t, "orders:1", "--to", strconv.FormatInt((now-3000)*1000, 10)); len(got) != 1 {
		t.Errorf("%d messages before a time, which is not included", len(got))
	}
}

func TestCatDecompresses(t *testing.T) {
	r := newCatRig(t)
	const zstd, gzip = "\x28\xb5\x2f\xfd\x04\x58\x29\x00\x00hello\xa3\x6d\x9f\x88", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00"
	r.server.Exec("SADD", "korvet:topics", "packed", "bare")
	r.server.Exec("HSET", "korvet:topic:packed", "storage.compression.type", "ZSTD", "remote.storage.enable", "true")
	r.server.Exec("HSET", "korvet:storage:manifest:packed:0", "0", `{"state":"OPEN","tier":"LOCAL"}`)
	add := func(args ...string) {
		r.server.Pipe(redisserver.AppendCommand(nil, append([]string{"XADD", "korvet:storage:local:packed:0:0"}, args...)...))
	}
	add("1-0", "key", zstd, "value", zstd)
	add("2-0", "value", "")
	if got := call(t, r.environ, "cat", "packed:0", "--decompress", "-f", "value"); got.code != exitDone || got.stdout != "hello\n\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, r.environ, "cat", "packed:0", "-n", "1"); !strings.Contains(got.stdout, "base64") {
		t.Errorf("%+v", got)
	}
	add("3-0", "value", gzip)
	got := call(t, r.environ, "cat", "--decompress", "packed:0")
	if got.code != exitFault || !strings.Contains(got.stderr, "message 3-0: decompress the value as zstd: ") || strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("%+v", got)
	}
	if got := call(t, r.environ, "cat", "packed:0", "--decompress=gzip", "-f", "value", "--from", "3-0"); got.stdout != "hello\n" {
		t.Errorf("%+v", got)
	}
	got = call(t, r.environ, "cat", "packed:0", "--decompress", "--decompress-limit", "4")
	if got.code != exitFault || !strings.Contains(got.stderr, "message 1-0: decompress the value as zstd: the value is larger than the limit of 4 bytes (--decompress-limit)") {
		t.Errorf("%+v", got)
	}
	got = call(t, r.environ, "cat", "orders:0", "--decompress")
	if got.code != exitUsage || got.stderr != "korvet-offload: --decompress: the registry has no storage.compression.type of orders:0; name the codec: --decompress=zstd\n" {
		t.Errorf("%+v", got)
	}
}
