// Package cmdline is what the command lines of the programs have in common: how
// they end, how a fault is said, that options may stand anywhere, which build it
// is.
//
// Results go to stdout, everything else to stderr, a line for each fault. It keeps
// nothing between two calls; one command line at a time runs in a process, since
// the library keeps its flag for help in a variable.
package cmdline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/config"
)

// The exit codes.
const (
	Done  = 0 // all is well
	Fault = 1 // something could not be done, or was found
	Usage = 2 // the command line or the settings are wrong
)

// ErrReported ends a command whose faults have been printed already.
var ErrReported = errors.New("something could not be done")

// UsageError is a fault in how a program was called.
type UsageError struct{ Err error }

func (u UsageError) Error() string { return u.Err.Error() }

// Unwrap gives the fault.
func (u UsageError) Unwrap() error { return u.Err }

// Run runs a command line and returns the exit code. What went wrong is printed to
// the app's ErrWriter.
func Run(ctx context.Context, app *cli.App, args []string) int {
	err := app.RunContext(ctx, OptionsFirst(app, args))
	var faults config.Faults
	switch {
	case err == nil:
		return Done
	case errors.Is(err, ErrReported):
		return Fault
	case errors.As(err, &faults):
		for _, f := range faults {
			Complain(app.ErrWriter, app.Name, f)
		}
		return Usage
	}
	Complain(app.ErrWriter, app.Name, err.Error())
	if errors.As(err, new(UsageError)) {
		return Usage
	}
	return Fault
}

// Complain prints one line for a person, behind the program's name.
func Complain(w io.Writer, program, text string) {
	_, _ = fmt.Fprintf(w, "%s: %s\n", program, strings.ReplaceAll(text, "\n", "; ")) // stderr is gone: nobody to tell
}

// WriteJSON prints a value as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
