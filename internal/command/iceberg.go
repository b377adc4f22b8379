package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"korvet-offload/internal/cmdline"

	"github.com/urfave/cli/v2"
)

// icebergProgram is the program that "iceberg" runs. It is one of its own because
// what it is made of is larger than all of this one.
const icebergProgram = "korvet-offload-iceberg"

const icebergDescription = `Runs ` + icebergProgram + `, which makes an Iceberg table of a topic's segments on
the object store, for Spark, Trino, DuckDB and others, and keeps it up to date. It
lies beside this program, or in the PATH; "make iceberg" builds it. All that
follows is for it: korvet-offload iceberg register --help.`

func (p Process) icebergCommand() *cli.Command {
	return &cli.Command{
		Name:            "iceberg",
		Usage:           "keep an Iceberg table of the segments on the object store",
		UsageText:       "korvet-offload iceberg register TOPIC --catalog URI [options]",
		ArgsUsage:       "register TOPIC",
		Description:     icebergDescription,
		SkipFlagParsing: true,
		Action:          p.iceberg,
	}
}

// iceberg becomes the other program, which has the same settings: signals and exit
// codes are its own.
func (p Process) iceberg(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
		return cli.ShowSubcommandHelp(c)
	}
	self, err := os.Executable()
	if err != nil {
		self = ""
	}
	path, err := findProgram(icebergProgram, self)
	if err != nil {
		return cmdline.UsageError{Err: err}
	}
	if err := syscall.Exec(path, append([]string{path}, args...), p.Environ); err != nil { //nolint:gosec // what it runs is found by a name of our own
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}

// findProgram looks for another program beside this one, then in the PATH.
func findProgram(name, self string) (string, error) {
	if self != "" {
		beside := filepath.Join(filepath.Dir(self), name)
		switch path, err := exec.LookPath(beside); {
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, exec.ErrNotFound):
			return "", fmt.Errorf("run %s: %w", beside, err)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("iceberg: %s is neither beside this program nor in the PATH; build it with \"make iceberg\" and put it there (docs/iceberg.md)", name)
	}
	return path, nil
}
