// Package command is the command line: one file per verb, and the only place
// where the parts are wired together.
//
// Results go to stdout, everything else to stderr. Main returns the exit
// code: 0 when all is well, 1 when something could not be done, 2 when the
// command line or the settings are wrong.
package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"korvet-offload/internal/cmdline"

	"golang.org/x/term"
)

// program is its name, which begins each line on stderr.
const program = "korvet-offload"

// Process is what the operating system gives to a program.
type Process struct {
	Args    []string
	Environ []string
	Stdout  io.Writer
	Stderr  io.Writer

	// Hangups has hangups (SIGHUP) sent to the channel, instead of ending the
	// program, until stop is called; nil = there are none.
	Hangups func() (asked <-chan os.Signal, stop func())
}

// Hangups are those of the operating system. Several at once are as good as one.
func Hangups() (asked <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// The exit codes.
const (
	exitDone  = cmdline.Done
	exitFault = cmdline.Fault
	exitUsage = cmdline.Usage
)

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, p Process) int { return cmdline.Run(ctx, p.app(), p.Args) }

// complain prints one line for a person.
func (p Process) complain(text string) { cmdline.Complain(p.Stderr, program, text) }

// terminal says whether a person looks at w.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
