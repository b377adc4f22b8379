package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/segment"
)

const (
	aclUser     = "korvet-offload"
	aclPassword = "CHANGE-ME" // as the documentation has it
	aclDefault  = "user default on nopass ~* &* +@all"
)

// documentedACL is the line of the documentation's ACL file.
func documentedACL(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/redis-acl.txt")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(text))
	if strings.Contains(line, "\n") || !strings.HasPrefix(line, "user "+aclUser+" on >"+aclPassword+" ") {
		t.Fatalf("want one line for user %s: %s", aclUser, line)
	}
	return line
}

// newACLRig is a rig whose programs are the documented user.
func newACLRig(t *testing.T) *rig {
	t.Helper()
	server := redisserver.Start(t, redisserver.Users(aclDefault, documentedACL(t)))
	return &rig{t: t, redis: server, s3: s3server.Start(t, s3server.Options{}), layout: segment.DefaultLayout(), ledger: map[string]written{},
		env: []string{"KORVET_REDIS_URI=" + server.UserURI(aclUser, aclPassword)}}
}

// grant gives the user this line instead.
func (r *rig) grant(line string) {
	r.t.Helper()
	text := aclDefault + "\n" + line + "\n"
	if err := os.WriteFile(filepath.Join(r.redis.Dir, "users.acl"), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.redis.Exec("ACL", "LOAD")
}

// reload begins anew with one sealed segment, in a manifest that is too large
// for one reply.
func (r *rig) reload() {
	r.t.Helper()
	r.redis.Exec("FLUSHALL")
	r.redis.Exec("SCRIPT", "FLUSH")
	if err := os.RemoveAll(r.root()); err != nil { // or it is asked whether Redis has lost its data
		r.t.Fatal(err)
	}
	clear(r.ledger)
	r.topic("orders", 1)
	p := segment.Partition{Topic: "orders"}
	r.sealed(p, 0, 20)
	var cmds []byte
	for n := range 1000 {
		cmds = redisserver.AppendCommand(cmds, "HSET", r.layout.ManifestKey(p), fmt.Sprint(n+10), `{"v":1,"state":"SEALED","tier":"REMOTE"}`)
	}
	r.redis.Pipe(cmds)
}

// heldByAnother makes the user's programs followers.
func (r *rig) heldByAnother() {
	r.redis.Exec("SET", r.layout.LeaseKey(), "somebody", "PX", "60000")
}

func TestDocumentedACLSuffices(t *testing.T) {
	r := newACLRig(t)
	r.reload()
	for _, args := range []string{"config check --connect", "run --once --dry-run", "status", "pause --topic orders", "run --once", "resume --topic orders", "run --once", "status", "ls", "ls orders:0", "ls --compare", "describe orders:0/0"} {
		if stdout, stderr, code := r.run(strings.Fields(args)...); code != 0 || stderr != "" {
			t.Fatalf("%s: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
	r.mustBeDone()
	r.heldByAnother()
	if _, stderr, code := r.run("run", "--once"); code != 0 || stderr != "another instance leads; nothing done\n" {
		t.Errorf("as a follower: exit %d\n%s", code, stderr)
	}
	r.reload()
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=100ms", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=3s")
	p := r.start("run")
	await(t, "the segment is REMOTE", 20*time.Second, func() bool { return r.entries()["korvet:storage:local:orders:0:0"].Tier == segment.Remote })
	stay := time.Now().Add(2500 * time.Millisecond) // renewals, one a second, and idle connections
	await(t, "time passes", 20*time.Second, func() bool { return time.Now().After(stay) })
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 20*time.Second); code != 0 || strings.Contains(p.log(), `"level":"error"`) || strings.Contains(p.log(), `"level":"warn"`) {
		t.Errorf("run: exit %d\n%s", code, p.log())
	}
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_SHARDS=4")
	p = r.start("run")
	await(t, "an instance has all shards", 20*time.Second, func() bool { return strings.Contains(p.log(), `"shards":[0,1,2,3]`) })
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 20*time.Second); code != 0 || strings.Contains(p.log(), `"level":"error"`) || strings.Contains(p.log(), `"level":"warn"`) {
		t.Errorf("run with shards: exit %d\n%s", code, p.log())
	}
	if got := strings.TrimSpace(r.redis.Exec("ACL", "LOG")); got != "" {
		t.Errorf("the server refused something: %s", got)
	}
}

// Without any one of its commands the user gets a message that names it.
//
//fault:redis | The user lacks a command | each command of the documented user taken away in turn | config check --connect and run name it, at the start where it is needed later only
func TestDocumentedACLHasNothingToSpare(t *testing.T) {
	r := newACLRig(t)
	line := documentedACL(t)
	seen := map[string]bool{}
	for _, rule := range regexp.MustCompile(`\+[a-z|]+`).FindAllString(line, -1) {
		command := rule[1:]
		if seen[command] {
			t.Errorf("+%s stands there twice", command)
		}
		seen[command] = true
		t.Run(command, func(t *testing.T) {
			r := *r
			r.t = t
			r.reload()
			r.grant(regexp.MustCompile(regexp.QuoteMeta(rule)+` `).ReplaceAllLiteralString(line, ""))
			r.mustMiss(command)
		})
	}
	if len(seen) != 26 {
		t.Errorf("%d commands", len(seen))
	}
}

// mustMiss checks that a run without a command of the ACL says so, at its start
// where it needs it later only, and the check of the settings as well.
func (r *rig) mustMiss(command string) {
	r.t.Helper()
	if command == "ping" { // a refused one keeps a connection alive as well, and fills the server's ACL log
		return
	}
	checked, stderr, code := r.run("config", "check", "--connect")
	if missed := code == 1 && names(checked, command); !missed {
		r.t.Errorf("config check: exit %d\n%s%s", code, checked, stderr)
	}
	want := 1
	switch command {
	case "info": // for config check and for what may be evicted alone
		return
	case "pexpire", "hmget", "xinfo|groups", "xpending", "xlen", "memory|usage", "unlink": // for later ticks, and what falls due then
		want = 0
	case "get", "pttl": // to see whose lease it is, and for how long
		r.heldByAnother()
	}
	_, stderr, code = r.run("run", "--once")
	if code != want || !names(stderr, command) {
		r.t.Errorf("run --once: exit %d, want %d\n%s", code, want, stderr)
	}
}

// names says whether a message names a command, as Redis or as ACL rules do.
func names(message, command string) bool {
	return strings.Contains(message, "+"+command) || strings.Contains(message, "'"+command+"'")
}

func TestDocumentedACLAllowsNothingElse(t *testing.T) {
	r := newACLRig(t)
	r.reload()
	stream, manifest, lease := "korvet:storage:local:orders:0:0", "korvet:storage:manifest:orders:0", r.layout.LeaseKey()
	for _, command := range []string{
		"FLUSHALL", "FLUSHDB", "KEYS *", "SCAN 0", "CONFIG GET *", "CONFIG SET maxmemory 1", "ACL LIST", "SHUTDOWN", "SWAPDB 0 1",
		"DEL " + stream, "PEXPIRE " + stream + " 1", "SET " + stream + " x", "XADD " + stream + " * f v", "XTRIM " + stream + " MAXLEN 0", "XDEL " + stream + " 0-1",
		"DEL " + manifest, "SET " + manifest + " x", "UNLINK " + manifest, "PEXPIRE " + manifest + " 1", "EVAL return(0) 1 korvet:topics",
		"UNLINK korvet:topics", "SADD korvet:streams x", "DEL korvet:storage:offload:topics", "XTRIM other MAXLEN 0",
		"DEL korvet:topics", "SADD korvet:topics x", "HSET korvet:topic:orders f v", "HGETALL other", "GET other", "SET other x",
		"EVAL return(redis.call('DEL','" + stream + "')) 1 " + lease,
	} {
		reply := r.asUser(strings.Fields(command)...)
		if !strings.Contains(reply, "NOPERM") && !strings.Contains(reply, "The user executing the script can't access") {
			t.Errorf("%s: %s", command, reply)
		}
	}
	for _, command := range []string{"HGETALL korvet:storage:offload:topics", "TYPE " + stream, "PTTL " + lease} { // after rare faults
		if reply := r.asUser(strings.Fields(command)...); strings.Contains(reply, "NOPERM") {
			t.Errorf("%s: %s", command, reply)
		}
	}
}

// asUser runs a command as the documented user and returns the reply.
func (r *rig) asUser(command ...string) string {
	r.t.Helper()
	reply, err := r.redis.TryExec(append([]string{"--user", aclUser, "--pass", aclPassword, "--no-auth-warning"}, command...)...)
	if err != nil {
		return err.Error()
	}
	return reply
}
