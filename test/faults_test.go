package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// Everything that can be wrong with one segment or topic, all at once: each
// is reported on one line, and the good segments move.
func TestBadInput(t *testing.T) {
	//fault:input | entries that are no entries, of a newer version, or whose streams are missing, short, of another type, or hold a field name that is not UTF-8 | all of them written beside good segments | each is one line on stderr, and every good segment moves
	//fault:topics | a topic name outside the rule, a setting that makes no sense, a manifest that is no Hash | written into the registry beside good topics | each is one line on stderr, and every good segment moves
	r := newRig(t)
	r.orders(30)
	manifest := func(p int) string { return fmt.Sprintf("korvet:storage:manifest:orders:%d", p) }
	local := `{"v":1,"state":"SEALED","tier":"LOCAL","count":3,"lastId":"5-0"}`
	r.redis.Exec("HSET", manifest(0), "10", "not JSON", "11", `{"v":9,"state":"SEALED","tier":"LOCAL"}`, "meta", "x")
	r.redis.Exec("HSET", manifest(1), "10", local, "11", local, "12", local)
	r.redis.Exec("SET", "korvet:storage:local:orders:1:10", "a string")
	r.redis.Exec("XADD", "korvet:storage:local:orders:1:11", "4-0", "f", "v")
	r.redis.Pipe(redisserver.AppendCommand(nil, "XADD", "korvet:storage:local:orders:1:13", "5-0", "\xff\xfe", "v"))
	r.redis.Exec("HSET", manifest(1), "13", `{"v":1,"state":"SEALED","tier":"LOCAL","count":1,"lastId":"5-0"}`)
	r.redis.Exec("SADD", "korvet:topics", "a/b", "odd")
	r.redis.Exec("HSET", "korvet:topic:odd", "retention.ms", "soon")
	r.redis.Exec("SADD", "korvet:topics", "wrong")
	r.redis.Exec("HSET", "korvet:topic:wrong", "remote.storage.enable", "true")
	r.redis.Exec("SET", "korvet:storage:manifest:wrong:0", "no hash")

	stdout, stderr, code := r.run("run", "--once")
	if code != 1 || !strings.Contains(stdout, "12 of 16 sealed segments moved") {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	for _, want := range []string{
		"segment orders:0/10: [illegal_entry] illegal manifest entry",
		"segment orders:0/11: [entry_version] unknown manifest entry version 9",
		"segment orders:0/meta: [illegal_entry] illegal manifest entry",
		"segment orders:0/3: [open_behind] segment is OPEN, and is not the last", "segment orders:1/3: [open_behind] segment is OPEN, and is not the last",
		"segment orders:1/10: ", "segment orders:1/11: [short_stream] source stream too short", "segment orders:1/12: [source_missing] source stream missing",
		"segment orders:1/13: ", "field name is not UTF-8",
		`topic "a/b": [topic_name] illegal topic name`, `topic "odd": `, "partition wrong:0: ",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr lacks %q", want)
		}
	}
	if lines := strings.Count(stderr, "\n"); lines != 12 {
		t.Errorf("%d lines on stderr, want 12:\n%s", lines, stderr)
	}
	r.mustBeDone()
}

func TestWrongSettings(t *testing.T) {
	//fault:input | settings, flags and commands that are wrong, a password, a bucket, a secret | ten of them, one by one | exit code 2 or 1 with what is wrong, no secret, and nothing is flipped
	r := newRig(t)
	r.orders(5)
	locked := redisserver.Start(t, redisserver.Password("another"))
	const password = "pa55word-that-nobody-may-see"
	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
		want string
	}{
		"lease not above the tick": {[]string{"KORVET_STORAGE_OFFLOAD_LEASE_DURATION=1m"}, []string{"run"}, 2, "tick-interval"},
		"misspelt":                 {[]string{"KORVET_STORAGE_OFFLOAD_TICK_INTREVAL=1m"}, []string{"run"}, 2, "TICK_INTERVAL"},
		"no such flag":             {nil, []string{"run", "--onec"}, 2, "onec"},
		"no such command":          {nil, []string{"rnu"}, 2, "rnu"},
		"argument":                 {nil, []string{"status", "orders"}, 2, "unexpected argument"},
		"wrong password":           {[]string{"KORVET_REDIS_URI=redis://:" + password + "@" + locked.Addr}, []string{"run", "--once"}, 1, "password"},
		"nobody listens":           {[]string{"KORVET_REDIS_URI=redis://:" + password + "@" + closedPort(t)}, []string{"run", "--once"}, 1, "refused"},
		"no bucket":                {[]string{"KORVET_STORAGE_REMOTE_PATH=s3://nothere/x"}, []string{"run", "--once"}, 1, "nothere"},
		"wrong secret":             {[]string{"KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + password}, []string{"run", "--once"}, 1, "secret-access-key"},
		"no remote path":           {[]string{"KORVET_STORAGE_REMOTE_PATH="}, []string{"run", "--once"}, 2, "remote-path"},
	} {
		t.Run(name, func(t *testing.T) {
			r.env = c.env
			defer func() { r.env = nil }()
			stdout, stderr, code := r.run(c.args...)
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit %d, want %d with %q\n%s", code, c.code, c.want, stderr)
			}
			if strings.Contains(stdout+stderr, password) || strings.Contains(stderr, "goroutine ") {
				t.Errorf("a secret or a stack was printed:\n%s%s", stdout, stderr)
			}
			t.Log(strings.TrimSpace(stderr))
		})
	}
	for key, e := range r.entries() {
		if e.Tier != segment.Local {
			t.Errorf("%s was flipped", key)
		}
	}
	if _, stderr, code := r.run("run", "--once"); code != 0 {
		t.Errorf("afterwards: exit %d\n%s", code, stderr)
	}
	r.mustBeDone()
}

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A daemon that is up before Redis and the store waits for both, alive and
// not ready, and needs nobody to go on.
func TestDaemonWaitsForItsServers(t *testing.T) {
	//fault:redis | Redis is not there when the program starts | redis-server is stopped and started later | alive, not ready, and the work is done once it is there
	r := newRig(t)
	r.orders(20)
	r.redis.Stop()
	address := closedPort(t)
	r.env = []string{"KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=" + address, "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=200ms",
		"KORVET_STORAGE_OFFLOAD_LEASE_DURATION=1s"}
	p := r.start("run")
	await(t, "the daemon says that it waits", 10*time.Second, func() bool { return strings.Contains(p.log(), "waiting for redis") })
	if status, _ := get(address, "/livez"); status != 200 {
		t.Errorf("liveness %d", status)
	}
	if status, body := get(address, "/readyz"); status != 503 || !strings.Contains(body, "refused") {
		t.Errorf("readiness %d %s", status, body)
	}
	r.redis.Relaunch()
	r.ledger = map[string]written{} // an empty Redis
	r.orders(20)
	await(t, "the daemon is ready", 20*time.Second, func() bool { status, _ := get(address, "/readyz"); return status == 200 })
	await(t, "every segment is REMOTE", 20*time.Second, func() bool {
		for _, e := range r.entries() {
			if e.Tier != segment.Remote {
				return false
			}
		}
		return true
	})
	r.mustBeDone()
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log())
	}
}

// A store that takes connections and never answers must not keep the program
// from stopping, and the lease is given back.
func TestStopWhileTheStoreHangs(t *testing.T) {
	//fault:network | the program is told to stop while the store takes connections and never answers | SIGTERM, behind a listener that says nothing | it ends with code 0 within 20 s, and the lease is given back
	r := newRig(t)
	r.orders(20)
	hole := blackHole(t)
	r.env = []string{"KORVET_STORAGE_S3_ENDPOINT=http://" + hole}
	p := r.start("run")
	await(t, "the lease is taken", 20*time.Second, func() bool {
		return strings.TrimSpace(r.redis.Exec("EXISTS", "korvet:storage:offload:lease")) == "1"
	})
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log())
	}
	if got := strings.TrimSpace(r.redis.Exec("EXISTS", "korvet:storage:offload:lease")); got != "0" {
		t.Error("the lease was not given back")
	}
}

// blackHole takes connections and says nothing.
func blackHole(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return l.Addr().String()
}

func TestFullSpoolFolder(t *testing.T) {
	//fault:store | there is no room for unfinished files | spool-dir is a folder that does not exist | each segment is one line on stderr, and all move once there is room
	r := newRig(t)
	r.orders(20)
	r.env = []string{"KORVET_STORAGE_OFFLOAD_SPOOL_DIR=" + filepath.Join(t.TempDir(), "nothere"), "KORVET_STORAGE_OFFLOAD_SPOOL_MEMORY=0"}
	_, stderr, code := r.run("run", "--once")
	// One more line is that of the look at the start, and one its sum.
	if code != 1 || !strings.Contains(stderr, "spool-dir") || strings.Count(stderr, "\n") != 12+2 {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	r.env = nil
	if _, stderr, code := r.run("run", "--once"); code != 0 {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	r.mustBeDone()
}

// A place that belongs to another namespace is refused before anything is
// written there.
func TestForeignRemotePath(t *testing.T) {
	//fault:store | the place belongs to another namespace | the owner marker of another namespace is there | exit code 2, and nothing is written there
	r := newRig(t)
	r.orders(5)
	if _, stderr, code := r.run("run", "--once"); code != 0 {
		t.Fatal(stderr)
	}
	r.env = []string{"KORVET_NAMESPACE=other"}
	_, stderr, code := r.run("run", "--once")
	if code != 2 || !strings.Contains(stderr, "korvet") || !strings.Contains(stderr, "other") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

func TestDemo(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	for _, args := range [][]string{{"demo", "--dir", dir}, {"demo", "--messages", "2000", "--redis-uri", r.redis.URI(), "--dir", dir}} {
		stdout, stderr, code := r.run(args...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "every message read back and compared") || strings.Count(stdout, "\n") < 14 {
			t.Errorf("%q: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
	if got := strings.TrimSpace(r.redis.Exec("DBSIZE")); got != "0" {
		t.Errorf("the demo left %s keys", got)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) == 0 {
		t.Errorf("files: %v, %v", files, err)
	}
}

func TestStatus(t *testing.T) {
	r := newRig(t)
	r.orders(10)
	stdout, _, code := r.run("status", "--output", "json")
	type view struct {
		Registry   string
		Partitions []struct{ Sealed, Remote, Open int }
		Lag        struct {
			Segments int
			SLAMet   bool `json:"sla_met"`
		}
	}
	v := decode[view](t, stdout)
	if code != 0 || v.Registry != "set" || len(v.Partitions) != 4 || v.Partitions[0].Sealed != 3 || v.Lag.Segments != 12 || v.Lag.SLAMet {
		t.Errorf("exit %d: %+v", code, v)
	}
	if _, stderr, code := r.run("run", "--once"); code != 0 {
		t.Fatal(stderr)
	}
	stdout, _, _ = r.run("status", "--output", "json")
	v = decode[view](t, stdout)
	if v.Partitions[0].Remote != 3 || v.Lag.Segments != 0 || !v.Lag.SLAMet {
		t.Errorf("afterwards: %+v", v)
	}
}

// The first signal waits for the lease to be given back, here to a Redis that
// has stopped answering; the second one waits for nothing.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	//fault:redis | the program is told to stop twice while Redis does not answer | two SIGTERM, while redis-server has a SIGSTOP | the first one waits for the lease to be given back, the second one ends it at once
	r := newRig(t)
	r.orders(5)
	p := r.start("run")
	await(t, "a pass is done", 20*time.Second, func() bool {
		e := r.entries()[r.layout.SegmentKey(segment.Partition{Topic: "orders", Number: 3}, 2)]
		return e.Tier == segment.Remote
	})
	r.redis.Freeze()
	defer r.redis.Thaw()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		t.Fatalf("it did not wait for the lease:\n%s", p.log())
	case <-time.After(500 * time.Millisecond):
	}
	begun := time.Now()
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 10*time.Second); code != -1 || time.Since(begun) > 2*time.Second {
		t.Errorf("exit %d after %s\n%s", code, time.Since(begun), p.log())
	}
}

// A Redis that has stopped answering must not keep the program from ending
// within the 20 seconds, even without a second signal.
func TestStopWhileRedisHangs(t *testing.T) {
	//fault:redis | the program is told to stop while Redis does not answer | SIGTERM, while redis-server has a SIGSTOP | it ends with code 0 within 20 s
	r := newRig(t)
	r.orders(5)
	p := r.start("run")
	await(t, "the lease is taken", 20*time.Second, func() bool {
		return strings.TrimSpace(r.redis.Exec("EXISTS", "korvet:storage:offload:lease")) == "1"
	})
	r.redis.Freeze()
	defer r.redis.Thaw()
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log())
	}
}
