// Command bench measures the built program against a real Redis and a real S3
// server on this machine, next to the raw limit (a socket reader that throws
// the pages away) and to what one would write in an afternoon (go-redis' maps
// and the usual writer of xitongsys/parquet-go).
//
// Absolute numbers say little on a machine that is shared. Each row is
// measured several times, in turn with the raw limit, and the shares and
// ratios are medians of what was measured side by side. What a tick costs is
// taken from the server's own counters.
//
// The rows go by the names speed, memory, allocations, producers, history,
// quiet, usage, trim, sharing and serve.
//
//	go run . [-messages N] [-runs N] [-large] [-only REGEXP]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"

	"korvet-offload/internal/testkit/standin"
)

type options struct {
	messages int
	runs     int
	large    bool
	only     *regexp.Regexp
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		child(os.Args[2:])
		return
	}
	var o options
	only := flag.String("only", "", "measure only the rows whose name matches")
	flag.IntVar(&o.messages, "messages", 670_000, "messages of one stream; the default makes 128 MiB of fields")
	flag.IntVar(&o.runs, "runs", 3, "how often each row is measured")
	flag.BoolVar(&o.large, "large", false, "measure a segment of 1 GiB too")
	flag.Parse()
	o.only = regexp.MustCompile(*only)
	var t *standin.TB
	t = standin.New("bench", func(text string) {
		t.End()
		fmt.Fprintln(os.Stderr, "bench:", text)
		os.Exit(1)
	})
	defer t.End()
	run(context.Background(), t, o)
}

func run(ctx context.Context, t *standin.TB, o options) {
	b := newBench(ctx, t, o)
	fmt.Printf("%d messages of 100 bytes in a four-field envelope per stream; %d CPUs, %s, %s\n\n",
		o.messages, runtime.NumCPU(), runtime.Version(), b.redisVersion())
	b.speed()
	b.memory()
	b.allocations()
	b.producers()
	b.history()
	b.quiet()
	b.usage()
	b.trim()
	b.sharing()
	b.serve()
	b.print()
}

// build makes the program that is measured.
func build(t *standin.TB) string {
	bin := filepath.Join(t.TempDir(), "korvet-offload")
	cmd := exec.Command("go", "build", "-o", bin, ".")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("build the program: %v", err)
	}
	return bin
}
