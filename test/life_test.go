package test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/segment"
)

// after is true once a time has passed.
func after(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}

// A life of half an hour in half a minute: producers write steadily to three
// partitions and a plain stream while the worker rolls, copies, drops and
// expires. In the end every message that was acknowledged is where a reader
// finds it, or past total retention.
//
//fault:load | A consumer group reads more slowly than the local retention allows | Four seconds between its reads, where two seconds are kept, with hold-pending | It has read every message
func TestLife(t *testing.T) {
	for name, c := range map[string]struct {
		rig   func(*testing.T) *rig
		hold  bool
		pause time.Duration // of the consumers
	}{
		"S3":                   {newRig, false, 50 * time.Millisecond},
		"files, slow consumer": {newFileRig, true, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t, c.rig(t), fmt.Sprintf("KORVET_STORAGE_OFFLOAD_HOLD_PENDING=%t", c.hold))
			monitor := l.redis.Monitor(forbidden)
			consumed := l.consume("events", c.pause)
			worker := l.start("run")
			l.begin(l.everywhere()...)
			await(t, "24 seconds pass", time.Minute, after(24*time.Second))
			l.end()
			read := consumed()
			await(t, "every sealed segment is copied", 20*time.Second, l.quiet)
			worker.signal(syscall.SIGTERM)
			if code := worker.wait(t, 20*time.Second); code != 0 || strings.Contains(worker.log(), `"level":"warn"`) || strings.Contains(worker.log(), `"level":"error"`) {
				t.Errorf("exit %d\n%s", code, worker.log())
			}
			v := l.verify()
			t.Logf("%+v; seen %v", v, l.watch.steps)
			l.noStreamsLeft()
			l.mustBeLively(v)
			l.mustHaveRead(read)
			l.mustForbid(monitor.Lines(), 10, "events")
		})
	}
}

// mustBeLively checks that the life had all that belongs to one.
func (l *life) mustBeLively(v verdict) {
	l.t.Helper()
	if v.Both == 0 || v.OnStore == 0 || v.Excused["expired"] == 0 || len(v.Excused) != 1 {
		l.t.Errorf("%+v", v)
	}
	for _, step := range []string{"0 open", "1 local", "2 present", "4 gone", "5 deleting", "erased"} {
		if l.watch.steps[step] < 10 {
			l.t.Errorf("%s was seen %d times", step, l.watch.steps[step])
		}
	}
}

// consume lets a consumer group read a plain stream. The function that it
// returns ends that and says what was read.
func (l *life) consume(key string, pause time.Duration) func() map[segment.ID]broker.Sum {
	l.t.Helper()
	c := broker.Consumer{Broker: l.broker, Key: key, Group: "readers", Pause: pause}
	if err := c.Join(context.Background()); err != nil {
		l.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	l.t.Cleanup(end)
	read := make(chan map[segment.ID]broker.Sum, 1)
	go func() {
		all, err := c.Run(ctx)
		if err != nil {
			l.t.Error(err)
		}
		read <- all
	}()
	return func() map[segment.ID]broker.Sum {
		end()
		return <-read
	}
}

// mustHaveRead checks that a consumer has missed nothing.
func (l *life) mustHaveRead(read map[segment.ID]broker.Sum) {
	l.t.Helper()
	acks := l.books.Acks(broker.Source{Partition: l.parts[3], Key: "events"})
	missed := 0
	for id, ack := range acks {
		if read[id] != ack.Sum {
			missed++
		}
	}
	if missed > 0 || len(read) != len(acks) || len(acks) == 0 {
		l.t.Errorf("%d messages were written, %d read, %d missed", len(acks), len(read), missed)
	}
}

// mustForbid checks what the server ran: no look at the whole keyspace, no
// DEL but of the lease, and nothing removed but by a script, UNLINK so many
// times at least, and XTRIM of the plain streams.
func (l *life) mustForbid(lines []string, unlinks int, plain ...string) {
	l.t.Helper()
	seen := map[string]int{}
	command := regexp.MustCompile(`^\S+ \[\d+ ([^\]]+)\] "(\w+)"(?: "([^"]*)")?`)
	for _, line := range lines {
		m := command.FindStringSubmatch(line)
		if m == nil {
			l.t.Errorf("not a line of MONITOR: %s", line)
			continue
		}
		by, command, key := m[1], strings.ToUpper(m[2]), m[3]
		seen[command]++
		switch {
		case command == "DEL" && key == l.layout.LeaseKey():
		case by == "lua" && command == "DEL" && key == l.layout.ClusterKey(): // of a key that is not there, before it is set
		case by == "lua" && command == "UNLINK" && strings.HasPrefix(key, "korvet:storage:local:orders:"):
		case by == "lua" && command == "XTRIM" && slices.Contains(plain, key):
		default:
			l.t.Errorf("the server ran %s", line)
		}
	}
	if seen["UNLINK"] < unlinks || seen["XTRIM"] < 5 || seen["DEL"] != 3 { // to take the lease, and to give it back; and to claim the root
		l.t.Errorf("seen %v", seen)
	}
	stats := l.redis.Exec("INFO", "commandstats")
	for _, command := range []string{"keys", "scan", "flushall", "xdel", "randomkey"} {
		if strings.Contains(stats, "cmdstat_"+command+":") {
			l.t.Errorf("%s was run:\n%s", command, stats)
		}
	}
	for _, command := range []string{"unlink", "xtrim"} {
		if n := seen[strings.ToUpper(command)]; n > 0 && !strings.Contains(stats, fmt.Sprintf("cmdstat_%s:calls=%d,", command, n)) {
			l.t.Errorf("the monitor has seen %d %s, and the server counts\n%s", n, command, stats)
		}
	}
}
