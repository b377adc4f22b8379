package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"korvet-offload/internal/testkit/redisserver"
)

// daemon is the program as it runs from tick to tick.
type daemon struct {
	b      *bench
	cmd    *exec.Cmd
	passes chan time.Duration // how long each took
}

// passTime is how long a pass may take.
const passTime = 5 * time.Minute

// daemon starts the program over a server. Nothing that is there is due; a
// warning of the program ends the benchmark. It has its usual priority, since
// something else may be at work on this machine.
func (b *bench) daemon(s *redisserver.Server, interval time.Duration) *daemon {
	d := &daemon{b: b, passes: make(chan time.Duration, 10_000)}
	root := b.t.TempDir() // with its marker: objects that manifests name are not there, and need not be
	b.must(os.WriteFile(filepath.Join(root, "_korvet_offload.json"), []byte(`{"v":1,"namespace":"korvet"}`), 0o600))
	d.cmd = exec.CommandContext(b.ctx, b.bin, "run", "--redis-uri", s.URI(), "--remote-path", "file://"+root,
		"--tick-interval", interval.String(), "--seal-grace", "24h", "--http-address", "", "--log-level", "debug", "--log-format", "json",
		"--set", "korvet.storage.offload.low-priority=false")
	log, err := d.cmd.StderrPipe()
	b.must(err)
	b.must(d.cmd.Start())
	b.t.Cleanup(func() { _ = d.cmd.Process.Kill() }) // it has ended, unless something went wrong
	go d.read(log)
	return d
}

// read takes the program's log until there is no more.
func (d *daemon) read(log io.Reader) {
	defer close(d.passes)
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Level, Message, Took string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Level == "warn" || line.Level == "error" {
			d.b.t.Fatal("the worker says", lines.Text())
		}
		if line.Message == "pass done" {
			took, err := time.ParseDuration(line.Took)
			d.b.must(err)
			d.passes <- took
		}
	}
}

// pass waits for the end of the next pass.
func (d *daemon) pass() time.Duration {
	select {
	case took, runs := <-d.passes:
		if !runs {
			d.b.t.Fatal("the worker has ended")
		}
		return took
	case <-time.After(passTime):
		d.b.t.Fatalf("no pass in %s", passTime)
	}
	return 0
}

// upToDate forgets the passes that are over.
func (d *daemon) upToDate() {
	for len(d.passes) > 0 {
		<-d.passes
	}
	d.pass()
}

// stop ends the program, which gives its lease back.
func (d *daemon) stop() {
	d.b.must(d.cmd.Process.Signal(syscall.SIGTERM))
	for range d.passes { // to the end of its log
	}
	d.b.must(d.cmd.Wait())
}

// ticks is what a worker costs, from tick to tick.
type ticks struct {
	d          *daemon
	audit      *auditor
	first      time.Duration // the pass that reads everything
	firstRedis account
	peak       int64 // bytes of the worker's memory, by then

	took  time.Duration // of the others
	redis account       // of one of them
	cpu   float64       // seconds of the worker's CPU, of one of them
}

// settling is how many passes are left out: the program has just started.
const settling = 2

// ticking starts a daemon and measures its first pass.
func (b *bench) ticking(s *redisserver.Server, interval time.Duration) *ticks {
	t := &ticks{audit: b.auditor(s)}
	start := t.audit.look()
	t.d = b.daemon(s, interval)
	t.first = t.d.pass()
	t.firstRedis = t.audit.since(start)
	for range settling {
		t.d.pass()
	}
	t.peak = highWater(t.d.cmd.Process.Pid)
	return t
}

// measureTicks measures n further passes of several daemons, all in the same
// time, and stops them.
func measureTicks(n int, all ...*ticks) {
	before, cpu, took := make([]account, len(all)), make([]float64, len(all)), make([][]float64, len(all))
	for i, t := range all {
		t.d.upToDate()
		before[i], cpu[i] = t.audit.look(), cpuOf(t.d.cmd.Process.Pid)
	}
	for range n {
		for i, t := range all {
			took[i] = append(took[i], t.d.pass().Seconds())
		}
	}
	for i, t := range all {
		t.redis, t.cpu = t.audit.since(before[i]).per(float64(n)), (cpuOf(t.d.cmd.Process.Pid)-cpu[i])/float64(n)
		t.took = seconds(median(took[i]))
	}
	for _, t := range all {
		t.d.stop()
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// short is a duration for a table.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + "s"
	case d >= time.Millisecond:
		return strconv.FormatFloat(float64(d.Microseconds())/1e3, 'f', 1, 64) + "ms"
	}
	return strconv.FormatInt(d.Microseconds(), 10) + "us"
}
