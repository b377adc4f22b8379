package test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/checker/loader"
	"korvet-offload/segment"
)

// streamsYAML is what somebody writes who has a growing stream: the one by
// its key, the others by a pattern.
const streamsYAML = `korvet:
  storage:
    offload:
      tick-interval: 500ms
      lease-duration: 2s
      seal-grace: 500ms
  streams:
    - key: readings
      segment-time: 1s
      local-retention-time: 2s
    - key: "sensors/*"
      segment-entries: 500
      segment-time: 1d
      local-retention-bytes: 0
`

// feeder is a redis-cli that is fed with XADD commands through a pipe.
type feeder struct {
	key  string
	cmd  *exec.Cmd
	in   *bufio.Writer
	out  *bufio.Scanner
	acks map[segment.ID]broker.Sum
}

func (r *rig) feed(key string) *feeder {
	r.t.Helper()
	cmd := exec.Command("redis-cli", "-s", r.redis.Socket)
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &feeder{key: key, cmd: cmd, in: bufio.NewWriter(in), out: bufio.NewScanner(out), acks: map[segment.ID]broker.Sum{}}
}

// add appends so many messages, and reads the ids that the server gives them.
func (f *feeder) add(t *testing.T, messages int) {
	t.Helper()
	first := len(f.acks)
	for i := range messages {
		fmt.Fprintf(f.in, "XADD %s * sensor s%d value %d\n", f.key, i%7, first+i)
	}
	if err := f.in.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		if !f.out.Scan() {
			t.Fatalf("redis-cli: %v", f.out.Err())
		}
		id, err := segment.ParseID(strings.TrimSpace(f.out.Text()))
		if err != nil {
			t.Fatal(err)
		}
		f.acks[id] = broker.SumOf("sensor", fmt.Sprintf("s%d", i%7), "value", strconv.Itoa(first+i))
	}
}

// Somebody's streams, fed with redis-cli XADD: files appear, the streams stay
// short, and a consumer group misses nothing.
func TestPlainStreamByRedisCli(t *testing.T) {
	t.Parallel()
	l := newLife(t, newFileRig(t), "KORVET_STORAGE_OFFLOAD_HOLD_PENDING=true")
	settings := filepath.Join(t.TempDir(), "korvet-offload.yml")
	if err := os.WriteFile(settings, []byte(streamsYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	l.env = []string{"KORVET_STORAGE_OFFLOAD_HOLD_PENDING=true"}
	l.redis.Exec("DEL", l.layout.TopicsKey(), l.layout.TopicKey("orders")) // there is no topic
	l.redis.Exec("SADD", l.layout.StreamsKey(), "sensors/hall 1")
	monitor := l.redis.Monitor(forbidden)
	feeders := []*feeder{l.feed("readings"), l.feed(`"sensors/hall 1"`)}
	feeders[0].add(t, 100) // it has grown before
	consumers := []func() map[segment.ID]broker.Sum{l.consume("readings", 100*time.Millisecond), l.consume("sensors/hall 1", time.Second)}
	worker := l.start("run", "--config", settings)
	longest := l.feedSteadily(feeders, 15*time.Second)

	total := len(feeders[0].acks)
	if longest[0] > total/2 {
		t.Errorf("stream readings had up to %d of %d messages", longest[0], total)
	}
	keys := []string{"readings", "sensors/hall 1"}
	await(t, "all but the open segments is trimmed", 20*time.Second, func() bool {
		return l.redis.Exec("XLEN", keys[0]) == "0" || len(l.objects()) > 0 && l.length(keys[0]) < total/10
	})
	for i, consumed := range consumers {
		mustEqualSums(t, keys[i]+", consumed", consumed(), feeders[i].acks)
	}
	worker.signal(syscall.SIGTERM)
	if code := worker.wait(t, 20*time.Second); code != 0 || strings.Contains(worker.log(), `"level":"error"`) {
		t.Errorf("exit %d\n%s", code, worker.log())
	}
	files := l.mustBeSomewhere(feeders)
	for i, folder := range []string{"readings", "sensors%2Fhall%201"} {
		t.Logf("%s: %d messages, %d files, %d in the stream, %d at most", keys[i], len(feeders[i].acks), files[folder], l.length(keys[i]), longest[i])
		if files[folder] < 5 || len(files) != 2 {
			t.Errorf("%d files in %s, of %v", files[folder], folder, files)
		}
	}
	l.mustForbid(monitor.Lines(), 0, keys...)
}

// feedSteadily feeds the streams for a time and returns how long each has been
// at most, once the worker had a third of the time to begin.
func (l *life) feedSteadily(feeders []*feeder, d time.Duration) []int {
	l.t.Helper()
	longest := make([]int, len(feeders))
	settled, over := after(d/3), after(d)
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for !over() {
		for i, f := range feeders {
			f.add(l.t, 15)
			if settled() {
				longest[i] = max(longest[i], l.length(strings.Trim(f.key, `"`)))
			}
		}
		<-pace.C
	}
	return longest
}

func (l *life) length(key string) int {
	n, err := strconv.Atoi(l.redis.Exec("XLEN", key))
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// mustBeSomewhere checks that each message is in its stream or in one file,
// and returns the number of the files.
func (l *life) mustBeSomewhere(feeders []*feeder) (files map[string]int) {
	l.t.Helper()
	var parts []segment.Partition
	var acks []checker.Ack
	files = map[string]int{}
	for _, f := range feeders {
		p := segment.Partition{Topic: strings.Trim(f.key, `"`), Plain: true}
		parts = append(parts, p)
		for id, sum := range f.acks {
			acks = append(acks, loader.Ack(p, p.Topic, id, sum))
		}
		for _, s := range l.entriesOf(p) {
			if o := s.Entry.Object; o != nil {
				files[path.Dir(o.Path)]++
			}
		}
	}
	report := l.examine(parts, acks, checker.Rules{Settled: true})
	if len(acks) == 0 || report.Tally.OnStore == 0 || report.Tally.Acked != len(acks) {
		l.t.Errorf("%d messages were fed: %+v", len(acks), report.Tally)
	}
	return files
}

func mustEqualSums(t *testing.T, what string, found, want map[segment.ID]broker.Sum) {
	t.Helper()
	missing, wrong := 0, 0
	for id, sum := range want {
		switch other, there := found[id]; {
		case !there:
			missing++
		case other != sum:
			wrong++
		}
	}
	if missing > 0 || wrong > 0 || len(found) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d found of %d, %d missing, %d with other bytes", what, len(found), len(want), missing, wrong)
	}
}
