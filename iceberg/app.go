package main

import (
	"fmt"
	"io"

	"korvet-offload/internal/cmdline"

	"github.com/urfave/cli/v2"
)

// program is its name, which begins each line on stderr.
const program = "korvet-offload-iceberg"

// process is what the operating system gives to a program.
type process struct {
	environ        []string
	stdout, stderr io.Writer
}

// complain prints one line for a person.
func (p process) complain(text string) { cmdline.Complain(p.stderr, program, text) }

const description = `Keeps an Iceberg table of a topic's segments that lie on the object store. It is
what "korvet-offload iceberg" runs. No object of a segment is ever changed or
deleted.`

// app is the command line.
func (p process) app() *cli.App {
	wrong := func(c *cli.Context, err error, _ bool) error {
		return cmdline.UsageError{Err: fmt.Errorf("%w; see %s --help", err, c.Command.HelpName)}
	}
	register := p.registerCommand()
	register.OnUsageError = wrong
	return &cli.App{
		Name:            program,
		Usage:           "Iceberg tables of the segments on the object store",
		Description:     description,
		UsageText:       "korvet-offload iceberg register TOPIC --catalog URI [options]",
		Version:         cmdline.BuildOf(linkedVersion, linkedRevision).String(),
		Writer:          p.stdout,
		ErrWriter:       p.stderr,
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {}, // cmdline.Run decides
		OnUsageError:    wrong,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return cmdline.UsageError{Err: fmt.Errorf("there is no command %q; there is register", c.Args().First())}
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{register},
	}
}

// What the linker is told; see cmdline.BuildOf.
var linkedVersion, linkedRevision string
