package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// healing is a Redis and a folder with a topic of sealed segments, each of five
// messages, which were copied, and of which each can be damaged.
type healing struct {
	t       *testing.T
	server  *redisserver.Server
	dir     string
	environ []string
}

func newHealing(t *testing.T, sealed int) *healing {
	t.Helper()
	h := &healing{t: t, server: redisserver.Start(t), dir: t.TempDir()}
	h.environ = []string{"KORVET_REDIS_URI=" + h.server.URI(), "KORVET_STORAGE_REMOTE_PATH=file://" + h.dir, "KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0"}
	h.server.Exec("SADD", "korvet:topics", "orders")
	h.server.Exec("HSET", "korvet:topic:orders", "remote.storage.enable", "true", "retention.ms", "-1", "partitions", "1")
	var b []byte
	for n := range sealed + 1 {
		e := segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: 5, FirstID: h.id(n, 0), LastID: h.id(n, 4), OpenedAt: 1, SealedAt: 1}
		if n == sealed {
			e = segment.Entry{State: segment.Open, Tier: segment.Local, Count: segment.NoCount, OpenedAt: time.Now().UnixMilli()}
		}
		for i := range 5 {
			b = h.message(b, n, i)
		}
		b = redisserver.AppendCommand(b, "HSET", h.manifest(), fmt.Sprint(n), string(e.Encode()))
	}
	h.server.Pipe(b)
	h.call(0, "run", "--once")
	return h
}

func (h *healing) id(n, i int) segment.ID {
	return segment.ID{Ms: uint64(1_700_000_000_000 + 10_000*n + i)}
}

func (h *healing) message(b []byte, n, i int) []byte {
	return redisserver.AppendCommand(b, "XADD", h.key(n), h.id(n, i).String(), "value", fmt.Sprintf("message %d of %d", i, n))
}

func (h *healing) key(n int) string { return fmt.Sprintf("korvet:storage:local:orders:0:%d", n) }

func (h *healing) manifest() string { return "korvet:storage:manifest:orders:0" }

func (h *healing) file(n int, copy string) string {
	return filepath.Join(h.dir, "korvet:storage:local:orders:0", fmt.Sprintf("%d%s.parquet", n, copy))
}

// call calls the program and fails unless it ends with that code.
func (h *healing) call(code int, args ...string) result {
	h.t.Helper()
	r := call(h.t, h.environ, args...)
	if r.code != code {
		h.t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

func (h *healing) set(n int, change func(*segment.Entry)) {
	h.t.Helper()
	e, err := segment.ParseEntry([]byte(h.server.Exec("HGET", h.manifest(), fmt.Sprint(n))))
	if err != nil {
		h.t.Fatal(err)
	}
	change(&e)
	h.server.Exec("HSET", h.manifest(), fmt.Sprint(n), string(e.Encode()))
}

// gone takes the local copies of segments away.
func (h *healing) gone(numbers ...int) {
	for _, n := range numbers {
		h.set(n, func(e *segment.Entry) { e.Local = segment.Gone })
		h.server.Exec("DEL", h.key(n))
	}
}

func (h *healing) do(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *healing) rewrite(from, to string, how func([]byte) []byte) {
	h.t.Helper()
	body, err := os.ReadFile(from)
	h.do(err)
	_ = os.Remove(to)
	h.do(os.WriteFile(to, how(body), 0o600))
}

func same(b []byte) []byte { return b }

func flip(b []byte) []byte {
	b[len(b)/3] ^= 1
	return b
}

// damage does one of each kind that can be healed to segments 0 to 8.
func (h *healing) damage() {
	h.gone(0, 3, 5, 6, 8)
	h.do(os.Remove(h.file(7, "")))
	h.rewrite(h.file(1, ""), h.file(1, ""), func(b []byte) []byte { return b[:len(b)/2] })
	h.rewrite(h.file(2, ""), h.file(2, ""), flip)
	h.rewrite(h.file(3, ""), h.file(3, "-1"), same)
	h.rewrite(h.file(3, ""), h.file(3, ""), flip)
	h.set(4, func(e *segment.Entry) {
		e.Tier, e.Local, e.Object, e.Source, e.RemoteAt = segment.Local, "", nil, nil, 0
	})
	h.server.Exec("DEL", h.key(4))
	h.server.Exec("HDEL", h.manifest(), "5")
	h.server.Pipe(h.message(nil, 6, 2))
	h.set(0, func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, 1 })
	h.do(os.Remove(h.file(0, "")))
	h.set(8, func(e *segment.Entry) { e.Object.Path = "korvet:storage:local:orders:0/9.parquet" })
}

func TestRepairHealsWhatVerifyFinds(t *testing.T) {
	h := newHealing(t, 10)
	h.call(0, "verify", "--deep", "orders:0")
	h.damage()
	found := h.call(1, "verify", "--deep")
	for _, kind := range []string{"missing_object", "truncated", "checksum_mismatch", "source_missing", "orphan", "stray_stream", "half_deleted", "duplicate_path"} {
		if !strings.Contains(found.stdout, kind) {
			t.Errorf("verify does not find %s:\n%s", kind, found.stdout)
		}
	}
	before := h.server.Exec("HGETALL", h.manifest())
	dry := h.call(0, "repair", "--deep")
	if now := h.server.Exec("HGETALL", h.manifest()); now != before {
		t.Errorf("a dry run has changed the manifest from\n%s\nto\n%s", before, now)
	}
	if !strings.Contains(dry.stdout, "nothing was changed: --yes acts") {
		t.Errorf("the dry run says:\n%s", dry.stdout)
	}
	done := h.call(0, "repair", "--deep", "--yes")
	for n, want := range []string{
		"done: end_delete  orders:0/0  DELETING REMOTE GONE korvet:storage:local:orders:0/0.parquet -> no entry",
		"done: recopy  orders:0/1", "done: recopy  orders:0/2",
		"done: repoint  orders:0/3  SEALED REMOTE GONE korvet:storage:local:orders:0/3.parquet -> SEALED REMOTE GONE korvet:storage:local:orders:0/3-1.parquet",
		"done: reflip  orders:0/4", "done: take_over  orders:0/5  no entry -> SEALED REMOTE GONE korvet:storage:local:orders:0/5.parquet",
		"done: unstray  orders:0/6", "done: recopy  orders:0/7  SEALED REMOTE PRESENT korvet:storage:local:orders:0/7.parquet -> SEALED LOCAL copy 1, then copied to korvet:storage:local:orders:0/7-1.parquet", "done: repoint  orders:0/8",
	} {
		if !strings.Contains(done.stdout, want) {
			t.Errorf("of segment %d repair does not say %q:\n%s", n, want, done.stdout)
		}
	}
	if clean := h.call(0, "verify", "--deep", "--compare-local"); !strings.Contains(clean.stdout, "nothing is wrong") {
		t.Errorf("verify says:\n%s", clean.stdout)
	}
	if again := h.call(0, "repair", "--yes"); !strings.Contains(again.stdout, "0 findings") {
		t.Errorf("repair says:\n%s", again.stdout)
	}
	h.call(0, "run", "--once")
	h.call(0, "verify", "--deep")
}

func TestRepairSaysWhatItCantHeal(t *testing.T) {
	h := newHealing(t, 3)
	h.gone(1)
	h.do(os.Remove(h.file(1, "")))
	before := h.server.Exec("HGETALL", h.manifest())
	for _, yes := range []string{"--yes=false", "--yes"} {
		r := h.call(1, "repair", yes)
		if !strings.Contains(r.stdout, "left  orders:0/1  missing_object") || !strings.Contains(r.stdout, "bring back the object from a backup") {
			t.Errorf("it says:\n%s%s", r.stdout, r.stderr)
		}
	}
	if now := h.server.Exec("HGETALL", h.manifest()); now != before {
		t.Errorf("the manifest was changed from\n%s\nto\n%s", before, now)
	}
}

func TestRepairOfAReport(t *testing.T) {
	h := newHealing(t, 3)
	h.rewrite(h.file(1, ""), h.file(1, ""), flip)
	report := filepath.Join(t.TempDir(), "verify.json")
	h.do(os.WriteFile(report, []byte(h.call(1, "verify", "--deep", "--output", "json").stdout), 0o600))
	h.server.Exec("SADD", "korvet:topics", "other")
	if r := h.call(0, "repair", "--report", report, "--topic", "other"); !strings.Contains(r.stdout, "0 findings") {
		t.Errorf("of another topic:\n%s", r.stdout)
	}
	r := h.call(0, "repair", "--report", report, "--yes", "--output", "json", "orders:0")
	var view repairView
	if err := json.Unmarshal([]byte(r.stdout), &view); err != nil || !view.Healed || view.DryRun || len(view.Steps) != 1 ||
		view.Steps[0].Action != "recopy" || view.Steps[0].Result != "done" || *view.Steps[0].Segment != 1 || view.Steps[0].Object == "" {
		t.Errorf("%v\n%s", err, r.stdout)
	}
	if !strings.Contains(r.stderr, "done: recopy  orders:0/1") {
		t.Errorf("what was changed is not on stderr:\n%s", r.stderr)
	}
	h.call(0, "verify", "--deep")
	for _, bad := range []string{``, `{}`, `{"findings":[{"kind":"odd"}]}`, `{"findings":[{"kind":"orphan","topic":"a/b","segment":1}]}`} {
		h.do(os.WriteFile(report, []byte(bad), 0o600))
		h.call(2, "repair", "--report", report)
	}
	h.call(2, "repair", "--report", report, "--deep")
	h.call(2, "repair", "--report", filepath.Join(t.TempDir(), "none"))
}

func TestRepairOfWhatIsPaused(t *testing.T) {
	h := newHealing(t, 2)
	h.do(os.Remove(h.file(0, "")))
	h.call(0, "pause", "--topic", "orders")
	before := h.server.Exec("HGETALL", h.manifest())
	for _, args := range [][]string{{"repair", "--yes"}, {"repair"}} {
		if r := h.call(1, args...); !strings.Contains(r.stderr, "paused; resume it first (korvet-offload resume)") {
			t.Errorf("it says:\n%s%s", r.stdout, r.stderr)
		}
	}
	if now := h.server.Exec("HGETALL", h.manifest()); now != before {
		t.Errorf("the manifest was changed from\n%s\nto\n%s", before, now)
	}
	h.call(0, "resume", "--topic", "orders")
	h.call(0, "repair", "--yes")
	h.call(0, "verify", "--deep")
}

// a root that belongs to somebody else is refused, and so is an empty one.
func TestRepairOfAForeignRoot(t *testing.T) {
	h := newHealing(t, 2)
	before := h.server.Exec("HGETALL", h.manifest())
	empty := append([]string{}, h.environ...)
	empty[1] = "KORVET_STORAGE_REMOTE_PATH=file://" + t.TempDir()
	if r := call(t, empty, "repair", "--yes"); r.code != 1 || !strings.Contains(r.stderr, "nothing is repaired") {
		t.Errorf("an empty root: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if now := h.server.Exec("HGETALL", h.manifest()); now != before {
		t.Errorf("the manifest was changed from\n%s\nto\n%s", before, now)
	}
}

// a daemon that runs hands the lease over, goes on afterwards, and gets along with
// what was healed.
func TestRepairBesideADaemon(t *testing.T) {
	h := newHealing(t, 10)
	h.damage()
	environ := append(slices.Clone(h.environ), "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=3s")
	d := start(t, environ)
	d.await(`"message":"this instance leads"`)
	h.call(0, "repair", "--deep", "--yes")
	d.await(`"message":"the lease is lent; this instance goes on when it is given back","to":"repair by `)
	h.server.Pipe(redisserver.AppendCommand(nil, "HSET", "korvet:topic:orders", "local.retention.ms", "1"))
	d.await(`"message":"local copy is removed","segment":"orders:0/9"`)
	if d.stop(); d.end() != exitDone {
		t.Errorf("the daemon:\n%s", d.log())
	}
	h.call(0, "verify", "--deep")
}
