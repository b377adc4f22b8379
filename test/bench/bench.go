package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/testkit/rawread"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/internal/testkit/standin"
	"korvet-offload/segment"
)

// streams is how many streams are moved at once in the rows that say so.
const streams = 4

// rawCount is the COUNT of the raw limit.
const rawCount = 1000

// bench holds the servers and what was measured.
type bench struct {
	ctx    context.Context
	t      *standin.TB
	o      options
	bin    string
	redis  *redisserver.Server
	s3     *s3server.Server
	client *redis.Client
	plans  []*rawread.Plan
	perMsg float64 // bytes of fields of a message
	rows   []row
}

// key is where segment 0 of a partition lies.
func key(partition int) string { return segment.DefaultLayout().SegmentKey(part(partition), 0) }

func part(n int) segment.Partition { return segment.Partition{Topic: "bench", Number: n} }

func newBench(ctx context.Context, t *standin.TB, o options) *bench {
	b := &bench{ctx: ctx, t: t, o: o, bin: build(t), redis: redisserver.Start(t), s3: s3server.Start(t, s3server.Options{})}
	b.client = redis.NewClient(&redis.Options{Addr: b.redis.Addr})
	return b
}

// prepare writes the streams that the rows of the speed share.
func (b *bench) prepare() {
	if b.plans != nil {
		return
	}
	for n := range streams {
		b.load(b.redis, n, b.o.messages)
		plan, err := rawread.NewPlan(b.ctx, b.redis.Addr, key(n), rawCount)
		b.must(err)
		b.plans = append(b.plans, plan)
	}
}

func (b *bench) must(err error) {
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) redisVersion() string {
	info, err := b.client.Info(b.ctx, "server").Result()
	b.must(err)
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return "redis " + strings.TrimSpace(v)
		}
	}
	return "redis"
}

// load writes a stream.
func (b *bench) load(s *redisserver.Server, partition, messages int) {
	g := dataset.New(uint64(partition)+1, 100)
	var cmds []byte
	total := 0
	for i := range messages {
		m := g.Next()
		args := []string{"XADD", key(partition), m.ID.String()}
		for _, f := range m.Fields() {
			args = append(args, string(f))
			total += len(f)
		}
		cmds = redisserver.AppendCommand(cmds, args...)
		if len(cmds) > 16<<20 || i == messages-1 {
			s.Pipe(cmds)
			cmds = cmds[:0]
		}
	}
	b.perMsg = float64(total) / float64(messages)
}

// seal writes topic and manifests as if the first n streams had just been
// sealed, each of them times over: as segments that name the same stream.
func (b *bench) seal(s *redisserver.Server, n, messages, times int) {
	b.topic(s, n)
	for p := range n {
		args := []string{"HSET", segment.DefaultLayout().ManifestKey(part(p))}
		for i := range times {
			args = append(args, fmt.Sprint(i), fmt.Sprintf(`{"v":1,"state":"SEALED","tier":"LOCAL","key":%q,"count":%d,"sealedAt":1}`, key(p), messages))
		}
		s.Exec(args...)
	}
}

// measured is one run of a process.
type measured struct {
	messages int64
	seconds  float64
	out      int64         // bytes of the files
	cpu      time.Duration // of the whole process
	peak     int64         // bytes
}

func (m measured) rate() float64 { return float64(m.messages) / m.seconds }

// worker runs the program once over n streams of a server, to files or to S3.
func (b *bench) worker(s *redisserver.Server, n, messages int, toS3 bool) measured {
	b.seal(s, n, messages, 1)
	dir := b.t.TempDir()
	env := []string{"KORVET_REDIS_URI=" + s.URI(), "KORVET_STORAGE_OFFLOAD_CONCURRENCY=" + fmt.Sprint(n),
		"KORVET_STORAGE_REMOTE_PATH=file://" + dir}
	if toS3 {
		env = append(env[:2], "KORVET_STORAGE_REMOTE_PATH=s3://"+b.s3.Bucket+"/"+filepath.Base(dir), "KORVET_STORAGE_S3_ENDPOINT="+b.s3.Endpoint,
			"KORVET_STORAGE_S3_REGION="+b.s3.Region, "KORVET_STORAGE_S3_ACCESS_KEY_ID="+b.s3.Access, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY="+b.s3.Secret)
	}
	out, m := b.process(env, b.bin, "run", "--once", "--output", "json")
	var report struct {
		Segments []struct {
			Messages int64
			BytesOut int64 `json:"bytes_out"`
		}
		Seconds float64
	}
	b.must(json.Unmarshal(out, &report))
	for _, s := range report.Segments {
		m.messages += s.Messages
		m.out += s.BytesOut
	}
	if len(report.Segments) != n {
		b.t.Fatalf("%d of %d segments were moved", len(report.Segments), n)
	}
	m.seconds = report.Seconds
	_ = os.RemoveAll(dir) // room for the next run
	return m
}

// process runs a program and accounts for it.
func (b *bench) process(env []string, program string, args ...string) ([]byte, measured) {
	cmd := exec.CommandContext(b.ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	b.must(cmd.Start())
	peak := watchPeak(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		b.t.Fatalf("%s %v: %v", program, args, err)
	}
	return out.Bytes(), measured{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak: peak()}
}

// watchPeak reads the high-water mark of a process's memory until the process
// is gone and peak is called. The account that wait gives will not do: it
// begins with the memory of the process that made this one.
func watchPeak(pid int) (peak func() int64) {
	var highest int64
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				highest = max(highest, highWater(pid))
			}
		}
	})
	return func() int64 {
		close(stop)
		watching.Wait()
		return highest
	}
}

// highWater is VmHWM in bytes; 0 when the process is gone.
func highWater(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kb), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// raw measures the raw limit of n connections.
func (b *bench) raw(n int) float64 {
	took, err := rawread.Read(b.ctx, b.redis.Addr, b.plans[:n]...)
	b.must(err)
	return float64(n*b.o.messages) / took.Seconds()
}

// script measures the afternoon script over n streams.
func (b *bench) script(n int) measured {
	args := []string{"child", "script", b.redis.Addr, b.t.TempDir()}
	for p := range n {
		args = append(args, key(p))
	}
	self, err := os.Executable()
	b.must(err)
	out, m := b.process(nil, self, args...)
	b.must(json.Unmarshal(out, &struct {
		Messages *int64
		Seconds  *float64
		Out      *int64
	}{&m.messages, &m.seconds, &m.out}))
	return m
}
