// Command korvet-offload-iceberg keeps an Iceberg table of what korvet-offload
// has copied: it adds the files that the manifests of a topic name as REMOTE,
// and takes out those that they do not name any more. See docs/iceberg.md.
//
// Guarantees:
//
//   - No object below the remote path is ever written or deleted: a file that is
//     taken out of a table is only not named by it any more (guardedIO).
//   - A table by whose own means an engine could delete objects is refused
//     (gc.enabled, or a location that overlaps the remote path).
//   - One run makes one snapshot, or none: no reader sees a segment twice, or a
//     copy without the one that it replaces gone.
//   - What two runs at once do is what one after the other would have done.
//
// Non-guarantees: that the table is current between runs, and that readers of an
// older snapshot find its files.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"korvet-offload/internal/cmdline"
)

func main() { os.Exit(run()) }

// run returns the exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	p := process{environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr}
	return cmdline.Run(ctx, p.app(), os.Args)
}
