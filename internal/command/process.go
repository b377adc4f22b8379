// Package command is the command line: one file per verb, and the only place
// where the parts are wired together.
//
// Results go to stdout, everything else to stderr. Main returns the exit
// code: 0 when all is well, 1 when something could not be done, 2 when the
// command line or the settings are wrong.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"korvet-offload/internal/config"
)

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
	exitDone  = 0
	exitFault = 1
	exitUsage = 2
)

// errReported ends a command whose faults have been printed already.
var errReported = errors.New("something could not be done")

// usageError is a fault in how the program was called.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }
func (u usageError) Unwrap() error { return u.err }

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, p Process) int {
	app := p.app()
	err := app.RunContext(ctx, optionsFirst(app, p.Args))
	var usage usageError
	var faults config.Faults
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFault
	case errors.As(err, &faults):
		for _, f := range faults {
			p.complain(f)
		}
		return exitUsage
	case errors.As(err, &usage):
		p.complain(err.Error())
		return exitUsage
	}
	p.complain(err.Error())
	return exitFault
}

// complain prints one line for a person.
func (p Process) complain(text string) {
	_, _ = fmt.Fprintf(p.Stderr, "korvet-offload: %s\n", strings.ReplaceAll(text, "\n", "; ")) // stderr is gone: nobody to tell
}

// terminal says whether a person looks at w.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
