package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The producers' load: redis-benchmark, as fast as its clients get answers.
const (
	producerClients = 10
	producerEntries = 300_000
)

// producers measures XADD with and without the worker running flat out.
func (b *bench) producers() {
	if !b.o.only.MatchString("producers") {
		return
	}
	b.prepare()
	var without, with, ratio []float64
	for range b.o.runs {
		alone := b.produce()
		beside := b.besideWorker(b.produce)
		without, with = append(without, alone), append(with, beside)
		ratio = append(ratio, beside/alone)
	}
	b.rows = append(b.rows, row{what: fmt.Sprintf("producers' XADD p99, beside the worker with %d streams / alone", streams),
		note: fmt.Sprintf("%.2fms / %.2fms = %.1fx", median(with), median(without), median(ratio)), must: "3x", aim: "1.5x"})
}

// busyTimes is how often the worker moves each stream: more than it can while
// the load runs.
const busyTimes = 100

// besideWorker measures while one worker moves all streams over and over.
func (b *bench) besideWorker(measure func() float64) float64 {
	b.seal(b.redis, streams, b.o.messages, busyTimes)
	dir := b.t.TempDir()
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, b.bin, "run", "--once", "--redis-uri", b.redis.URI(), "--concurrency", fmt.Sprint(streams), "--remote-path", "file://"+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // gives the lease back
	b.must(cmd.Start())
	// The load begins when the worker is in the middle of its work.
	for begun, _ := filepath.Glob(dir + "/*/*.parquet"); len(begun) == 0; begun, _ = filepath.Glob(dir + "/*/*.parquet") {
		time.Sleep(20 * time.Millisecond)
	}
	p99 := measure()
	if done, err := filepath.Glob(dir + "/*/*.parquet"); err != nil || len(done) == streams*busyTimes {
		b.t.Fatalf("the worker was done before the load: %v", err)
	}
	stop()
	_ = cmd.Wait() // it was told to stop
	_ = os.RemoveAll(dir)
	return p99
}

// produce runs the load and returns the 99th percentile of XADD in ms.
func (b *bench) produce() float64 {
	host, port, _ := strings.Cut(b.redis.Addr, ":")
	out, err := exec.CommandContext(b.ctx, "redis-benchmark", "-h", host, "-p", port, "--csv",
		"-c", strconv.Itoa(producerClients), "-n", strconv.Itoa(producerEntries),
		"XADD", "producer", "MAXLEN", "~", "1000", "*", "key", "customer-000001", "value", strings.Repeat("x", 100), "timestamp", "1708956789000").Output()
	b.must(err)
	lines, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	b.must(err)
	for i, name := range lines[0] {
		if name == "p99_latency_ms" {
			ms, err := strconv.ParseFloat(lines[1][i], 64)
			b.must(err)
			return ms
		}
	}
	b.t.Fatal("redis-benchmark prints no p99")
	return 0
}
