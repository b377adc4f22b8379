package test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/broker"
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
	for i, folder := range []string{"readings", "sensors%2Fhall%201"} {
		files := l.mustBeSomewhere(keys[i], folder, feeders[i].acks)
		t.Logf("%s: %d messages, %d files, %d in the stream, %d at most", keys[i], len(feeders[i].acks), files, l.length(keys[i]), longest[i])
		if files < 5 {
			t.Errorf("%d files in %s", files, folder)
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

// mustBeSomewhere checks that each message is in the stream or in one file,
// and returns the number of the files.
func (l *life) mustBeSomewhere(key, folder string, acks map[segment.ID]broker.Sum) (files int) {
	l.t.Helper()
	p := segment.Partition{Topic: key, Plain: true}
	entries, err := l.broker.Entries(context.Background(), p)
	if err != nil {
		l.t.Fatal(err)
	}
	found := l.stream(key, segment.ID{}, segment.MaxID())
	copied := 0
	for _, s := range entries {
		o := s.Entry.Object
		if o == nil {
			continue
		}
		if want := segment.ObjectPath(folder, s.Number, 0, ""); o.Path != want {
			l.t.Errorf("object %s, want %s", o.Path, want)
		}
		files++
		for id, sum := range l.object(o.Path) {
			found[id] = sum
			copied++
		}
		copied -= int(s.Entry.Count)
	}
	if copied != 0 {
		l.t.Errorf("the files of %s have %d messages more than the manifest says", key, copied)
	}
	mustEqualSums(l.t, key, found, acks)
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
