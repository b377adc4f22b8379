package command

import (
	"fmt"

	"korvet-offload/internal/cmdline"

	"github.com/urfave/cli/v2"
)

// What the linker is told; see cmdline.BuildOf.
var linkedVersion, linkedRevision string

func version() cmdline.Build { return cmdline.BuildOf(linkedVersion, linkedRevision) }

func (p Process) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print which build this is",
		Flags: []cli.Flag{outputFlag()},
		Action: func(c *cli.Context) error {
			if c.String("output") == outputJSON {
				return cmdline.WriteJSON(p.Stdout, version())
			}
			_, err := fmt.Fprintln(p.Stdout, "korvet-offload", version())
			return err
		},
	}
}
