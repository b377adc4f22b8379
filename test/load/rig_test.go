// Package load runs the built program on more, or larger, data than usual: many
// partitions, long segments, huge records. Sizes fit into a minute by default;
// with -full they are those that the documentation promises, and take about
// a quarter of an hour, 8 GB of memory and 6 GB of disk:
//
//	go test ./test/load -full -v -timeout 1h
//
// Each test prints the peak memory of the program that it has seen: VmHWM, which
// counts the pages of its binary too.
package load

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/segment"
)

// full asks for the sizes that the documentation promises.
var full = flag.Bool("full", false, "run with the full sizes, which take long")

// program is the built program.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "korvet-offload-load-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "korvet-offload")
		if out, err := exec.Command("go", "build", "-o", program, "../..").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// size is one of two: that which fits everywhere, and that of -full.
func size[T any](usual, large T) T {
	if *full {
		return large
	}
	return usual
}

const mib = 1 << 20

// rig is a Redis, an object store, and how the program is told of them.
type rig struct {
	t      *testing.T
	redis  *redisserver.Server
	layout segment.Layout
	root   string // the folder in which the objects are
	env    []string
}

// newRig is a rig with a folder for object store.
func newRig(t *testing.T, redisArgs ...string) *rig {
	t.Helper()
	r := &rig{t: t, redis: redisserver.Start(t, redisserver.Args(redisArgs...)), layout: segment.DefaultLayout(), root: t.TempDir()}
	r.env = append(r.env, "KORVET_STORAGE_REMOTE_PATH=file://"+r.root)
	return r
}

// newS3Rig is a rig with a real S3 server.
func newS3Rig(t *testing.T) *rig {
	t.Helper()
	s := s3server.Start(t, s3server.Options{})
	return &rig{t: t, redis: redisserver.Start(t), layout: segment.DefaultLayout(), root: filepath.Join(s.Dir, "load"), env: []string{
		"KORVET_STORAGE_REMOTE_PATH=s3://" + s.Bucket + "/load", "KORVET_STORAGE_S3_ENDPOINT=" + s.Endpoint, "KORVET_STORAGE_S3_REGION=" + s.Region,
		"KORVET_STORAGE_S3_ACCESS_KEY_ID=" + s.Access, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + s.Secret,
	}}
}

// topic registers a topic that keeps everything for ever.
func (r *rig) topic(name string, partitions int) {
	r.redis.Exec("HSET", r.layout.TopicKey(name), "remote.storage.enable", "true", "partitions", strconv.Itoa(partitions), "retention.ms", "-1")
	r.redis.Exec("SADD", r.layout.TopicsKey(), name)
}

// ran is what came of a program.
type ran struct {
	stdout, stderr string
	code           int
	peak           int64 // bytes of memory
	anonymous      int64 // of which the system can't take back what is not in use; looked at every few ms
	took           time.Duration
}

// once runs one pass, and kills it when it takes too long. Meanwhile it calls
// watch, if there is one, again and again.
func (r *rig) once(within time.Duration, watch func(), env ...string) ran {
	r.t.Helper()
	cmd := exec.Command(program, "run", "--once")
	// Two segments at once, as on two CPUs, whatever this machine has: memory
	// goes with it. Other tests keep the CPUs busy, so that a low priority, or
	// deadlines for a machine that is well, would test those.
	cmd.Env = append(append(append(os.Environ(), r.env...), "KORVET_REDIS_URI="+r.redis.URI(), "KORVET_STORAGE_OFFLOAD_CONCURRENCY=2",
		"KORVET_STORAGE_OFFLOAD_LOW_PRIORITY=false", "KORVET_REDIS_TIMEOUT=1m", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=10m"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	defer func() {
		_ = cmd.Process.Kill() // it has ended by itself, unless the test has
		<-ended
	}()
	var peak, anonymous int64
	var next time.Time // when to watch again: Redis does nothing else meanwhile
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for running := true; running && time.Since(start) < within; {
		peak = max(peak, memory(cmd.Process.Pid, "VmHWM"))
		anonymous = max(anonymous, memory(cmd.Process.Pid, "RssAnon"))
		if began := time.Now(); watch != nil && began.After(next) {
			watch()
			next = time.Now().Add(max(20*time.Millisecond, 10*time.Since(began)))
		}
		select {
		case <-ended:
			running = false
		case <-tick.C:
		}
	}
	if time.Since(start) >= within {
		_ = cmd.Process.Kill()
	}
	<-ended
	return ran{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), peak, anonymous, time.Since(start)}
}

// memory is what the system says of the memory of a process, in bytes; 0 when
// it is gone. What is told of a child that has ended (ru_maxrss) would be no
// less than what this test itself had when it began the child.
func memory(pid int, what string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), what+":")
	kib, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// mustHaveDone checks that a program has done all it had to.
func (r *rig) mustHaveDone(got ran) {
	r.t.Helper()
	if got.code != 0 {
		r.t.Fatalf("exit code %d after %s:\n%s\n%s", got.code, got.took, tail(got.stdout), tail(got.stderr))
	}
	if got.peak == 0 {
		r.t.Fatal("it had ended before its memory was looked at")
	}
}

// tail is the end of a log.
func tail(text string) string { return text[max(0, len(text)-4000):] }

func inMiB(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/mib) }
