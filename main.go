// Command korvet-offload moves sealed segments of Redis Streams to an object
// store. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"korvet-offload/internal/command"
)

// stopTime is how long work under way may take after the first signal.
const stopTime = 20 * time.Second

func main() { os.Exit(run()) }

// run returns the exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the program at once
		time.AfterFunc(stopTime, func() {
			fmt.Fprintf(os.Stderr, "korvet-offload: still not stopped after %s; giving up. Nothing is lost: the next run goes on from the manifests\n", stopTime)
			os.Exit(1)
		})
	})
	return command.Main(ctx, command.Process{
		Args: os.Args, Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Hangups: command.Hangups,
	})
}
