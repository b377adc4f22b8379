package test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/segment"
)

const restoreUser = "korvet-offload-restore"

// onStore loads a topic whose sealed segments are on the store and no longer in
// Redis, and returns what XRANGE had said of them, one after the other.
func (r *rig) onStore(messages int) string {
	r.t.Helper()
	r.topic("orders", 1, "local.retention.ms", "0")
	p := segment.Partition{Topic: "orders"}
	var ledger []string
	ms := 1_700_000_000_000
	for n := range segment.Number(3) {
		key := r.layout.SegmentKey(p, n)
		var cmds []byte
		for i := range messages {
			ms++
			cmds = redisserver.AppendCommand(cmds, "XADD", key, fmt.Sprintf("%d-%d", ms, i%3), "value", fmt.Sprintf("%0200d", i), "b", "1", "a", "\xff\r\n", "b", "2")
		}
		r.redis.Pipe(cmds)
		ledger = append(ledger, r.redis.Exec("XRANGE", key, "-", "+"))
		r.redis.Exec("HSET", r.layout.ManifestKey(p), n.String(), `{"v":1,"state":"SEALED","tier":"LOCAL","sealedAt":1}`)
	}
	r.open(p, 3)
	for range 2 {
		if stdout, stderr, code := r.run("run", "--once"); code != 0 {
			r.t.Fatalf("run --once: exit %d\n%s%s", code, stdout, stderr)
		}
	}
	if n := r.redis.Exec("EXISTS", r.layout.SegmentKey(p, 0), r.layout.SegmentKey(p, 1), r.layout.SegmentKey(p, 2)); n != "0" {
		r.t.Fatalf("%s streams are still there", n)
	}
	return strings.Join(ledger, "\n")
}

// Killed again and again, in the middle of a stream, and made again.
//
//fault:crash | a restore is killed in the middle | kill -9 of the built program with a real Redis and S3 server, several times, then to the end | the stream holds the messages of the ledger, byte for byte, each once
func TestRestoreKilled(t *testing.T) {
	r := newRig(t)
	ledger := r.onStore(4000)
	r.redis.Exec("FLUSHALL")
	if stdout, stderr, code := r.run("restore", "--manifests", "--registry", "--yes"); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	const key = "restored:korvet:storage:local:orders:0"
	length := func() int {
		var n int
		fmt.Sscan(r.redis.Exec("XLEN", key), &n) //nolint:errcheck // a number
		return n
	}
	for _, until := range []int{1, 3500, 7000} {
		p := r.start("restore", "orders:0", "--yes", "--rate", "1MB")
		await(t, fmt.Sprintf("%d messages", until), 90*time.Second, func() bool { return length() >= until })
		p.signal(syscall.SIGKILL)
		p.wait(t, 20*time.Second)
		if n := length(); n >= 12_000 {
			t.Fatalf("it was faster: %d", n)
		}
		r.redis.Exec("DEL", r.layout.LeaseKey(), r.layout.LeaseKey()+":wanted") // they would lapse by themselves
	}
	if stdout, stderr, code := r.run("restore", "orders:0", "--yes"); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	if got := r.redis.Exec("XRANGE", key, "-", "+"); got != ledger {
		t.Errorf("%d bytes that are not the %d of the ledger", len(got), len(ledger))
	}
}

// The documented user is all that a restore needs, and needs all that it has.
//
//fault:redis | the user lacks a command that a restore needs | each command of the documented user taken away in turn | restore ends with a message that names it
func TestRestoreACL(t *testing.T) {
	text, err := os.ReadFile("../docs/redis-acl-restore.txt")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(text))
	server := redisserver.Start(t, redisserver.Users(aclDefault, line))
	r := &rig{t: t, redis: server, s3: s3server.Start(t, s3server.Options{}), layout: segment.DefaultLayout(), ledger: map[string]written{}}
	ledger := r.onStore(20)
	r.env = []string{"KORVET_REDIS_URI=" + server.UserURI(restoreUser, aclPassword)}
	all := []string{"restore --manifests --registry --yes", "restore orders:0 --yes", "restore orders:0 --original --yes", "restore orders:0 --yes"}
	run := func() (stderr string, code int) {
		for _, args := range all {
			if _, stderr, code = r.run(strings.Fields(args)...); code != 0 {
				break
			}
		}
		return stderr, code
	}
	r.redis.Exec("FLUSHALL")
	if stderr, code := run(); code != 0 || stderr != "" {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	if got := r.redis.Exec("XRANGE", "restored:korvet:storage:local:orders:0", "-", "+"); got != ledger {
		t.Errorf("%d bytes that are not the %d of the ledger", len(got), len(ledger))
	}
	if got := strings.TrimSpace(r.redis.Exec("ACL", "LOG")); got != "" {
		t.Errorf("the server refused something: %s", got)
	}
	for _, command := range []string{"XADD other * f v", "UNLINK korvet:storage:local:orders:0:0", "DEL korvet:storage:manifest:orders:0", "XTRIM korvet:storage:local:orders:0:0 MAXLEN 0", "FLUSHALL", "DEL korvet:topics"} {
		reply, err := r.redis.TryExec(append([]string{"--user", restoreUser, "--pass", aclPassword, "--no-auth-warning"}, strings.Fields(command)...)...)
		if err != nil {
			reply = err.Error()
		}
		if !strings.Contains(reply, "NOPERM") {
			t.Errorf("%s: %s", command, reply)
		}
	}
	for _, rule := range regexp.MustCompile(`\+(xadd|sadd|hset|hlen|hscan|xlen|xrange)\b`).FindAllString(line, -1) {
		r.redis.Exec("FLUSHALL")
		r.grant(strings.ReplaceAll(line, rule+" ", ""))
		if stderr, code := run(); code == 0 || !names(stderr, rule[1:]) {
			t.Errorf("without %s: exit %d\n%s", rule, code, stderr)
		}
	}
}
