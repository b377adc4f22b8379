package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/config"
)

// process is what the operating system gives to a program.
type process struct {
	args, environ  []string
	stdout, stderr io.Writer
}

// The exit codes, as those of korvet-offload.
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

// main runs the command line and returns the exit code.
func (p process) main(ctx context.Context) int {
	app := p.app()
	err := app.RunContext(ctx, topicLast(app, p.args))
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
	}
	p.complain(err.Error())
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFault
}

// complain prints one line for a person.
func (p process) complain(text string) {
	_, _ = fmt.Fprintf(p.stderr, "korvet-offload-iceberg: %s\n", strings.ReplaceAll(text, "\n", "; ")) // stderr is gone: nobody to tell
}

const description = `Keeps an Iceberg table of a topic's segments that lie on the object store. It is
what "korvet-offload iceberg" runs. No object of a segment is ever changed or
deleted.`

// app is the command line.
func (p process) app() *cli.App {
	wrong := func(c *cli.Context, err error, _ bool) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.Command.HelpName)}
	}
	register := p.registerCommand()
	register.OnUsageError = wrong
	return &cli.App{
		Name:            "korvet-offload-iceberg",
		Usage:           "Iceberg tables of the segments on the object store",
		Description:     description,
		UsageText:       "korvet-offload iceberg register TOPIC --catalog URI [options]",
		Version:         version(),
		Writer:          p.stdout,
		ErrWriter:       p.stderr,
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {}, // main decides
		OnUsageError:    wrong,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError{fmt.Errorf("there is no command %q; there is register", c.Args().First())}
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{register},
	}
}

// topicLast puts arguments behind the options, wherever they were typed: the
// library takes no option behind the first argument.
func topicLast(app *cli.App, args []string) []string {
	if len(args) < 2 || args[1] != "register" {
		return args
	}
	options, others := slices.Clone(args[:2]), []string(nil)
	valued := valuedOptions(app.Commands[0].Flags)
	for at := 2; at < len(args); at++ {
		arg := args[at]
		switch name := strings.TrimLeft(arg, "-"); {
		case name == arg:
			others = append(others, arg)
		case valued[name] && at+1 < len(args):
			options = append(options, arg, args[at+1])
			at++
		default:
			options = append(options, arg)
		}
	}
	return append(options, others...)
}

// valuedOptions are the names of the flags behind which a value stands.
func valuedOptions(flags []cli.Flag) map[string]bool {
	names := map[string]bool{}
	for _, f := range flags {
		if taking, ok := f.(cli.DocGenerationFlag); ok && taking.TakesValue() {
			for _, name := range f.Names() {
				names[name] = true
			}
		}
	}
	return names
}

// What the linker is told (-ldflags "-X ..."); else empty.
var linkedVersion, linkedRevision string

// version says which build this is.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(linkedVersion, "unknown")
	}
	v := cmp.Or(linkedVersion, info.Main.Version)
	if linkedRevision != "" {
		v += " (" + linkedRevision[:min(12, len(linkedRevision))] + ")"
	}
	return v + " " + info.GoVersion
}
