package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
)

// quickstart types what docs/quickstart.md says into shells.
type quickstart struct {
	t      *testing.T
	redis  *redisserver.Server
	blocks []string
	env    []string
}

// startQuickstart reads the page's commands. Only the Redis and the folder are
// others than there.
func startQuickstart(t *testing.T) *quickstart {
	t.Helper()
	q := &quickstart{t: t, redis: redisserver.Start(t)}
	here := strings.NewReplacer("redis://localhost:6379", "redis://"+q.redis.Addr, "/tmp/korvet-try", filepath.Join(t.TempDir(), "files"))
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readFile(t, "docs/quickstart.md"), -1) {
		q.blocks = append(q.blocks, here.Replace(m[1]))
	}
	if len(q.blocks) != 8 {
		t.Fatalf("the page has %d blocks of commands; which of them is what?", len(q.blocks))
	}
	bin := t.TempDir()
	cli := fmt.Sprintf("#!/bin/sh\nexec %s -p %d \"$@\"\n", tool(t, "redis-cli"), q.redis.Port)
	if err := os.WriteFile(filepath.Join(bin, "redis-cli"), []byte(cli), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	q.env = append(os.Environ(), "PATH="+bin+":"+filepath.Dir(program(t))+":"+os.Getenv("PATH"), "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS="+freeAddress(t))
	return q
}

// shell is a shell with the page's variables that is told these of its blocks.
func (q *quickstart) shell(blocks ...string) *exec.Cmd {
	cmd := exec.Command("bash", "-ec", q.blocks[0]+strings.Join(blocks, ""))
	cmd.Env = q.env
	return cmd
}

// says is what commands print, and whether all went well.
func (q *quickstart) says(blocks ...string) (string, bool) {
	out, err := q.shell(blocks...).CombinedOutput()
	return string(out), err == nil
}

// run starts what a person would leave running, and returns how it is stopped.
func (q *quickstart) run(block string) (stop func()) {
	cmd := q.shell("exec " + block)
	if err := cmd.Start(); err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			q.t.Error(err)
		}
	}
}

// What the page says is what happens to somebody who does it.
func TestQuickstart(t *testing.T) {
	q := startQuickstart(t)
	register, write, look, run, see, again, clean := q.blocks[1], q.blocks[2], q.blocks[3], q.blocks[4], q.blocks[5], q.blocks[6], q.blocks[7]
	out, ok := q.says(register, write, look)
	for _, want := range []string{"0 failed", "orders:0         0  create  it has no manifest", "Nothing was changed"} {
		if !ok || !strings.Contains(out, want) {
			t.Fatalf("no %q in\n%s", want, out)
		}
	}
	stop := q.run(run)
	await(t, "the first segment is on the store alone", time.Minute, func() bool {
		out, ok = q.says(see)
		return ok && strings.Contains(out, `"local":"GONE"`)
	})
	if !strings.Contains(out, "\n0\n") || !strings.HasSuffix(out, "/files/try:storage:local:orders:0/0.parquet\n") {
		t.Error(out)
	}
	if out, ok = q.says(again); !ok {
		t.Error(out)
	}
	await(t, "the second segment follows", time.Minute, func() bool {
		out, ok = q.says(see)
		return ok && strings.Contains(out, "orders:0/1.parquet")
	})
	stop()
	if out, ok = q.says(clean); !ok || q.redis.Exec("DBSIZE") != "0" {
		t.Errorf("%s\n%s", out, q.redis.Exec("KEYS", "*"))
	}
}
