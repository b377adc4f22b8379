package command

import (
	"fmt"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// build is what the linker has written into the program.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built with changes that were not committed
	Time     string `json:"time,omitempty"`     // of the revision
	Go       string `json:"go"`
}

func version() build {
	b := build{Version: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	s := b.Version
	if b.Revision != "" {
		s += " (" + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return s + " " + b.Go
}

func (p Process) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print which build this is",
		Flags: []cli.Flag{outputFlag()},
		Action: func(c *cli.Context) error {
			if c.String("output") == outputJSON {
				return writeJSON(p.Stdout, version())
			}
			_, err := fmt.Fprintln(p.Stdout, "korvet-offload", version())
			return err
		},
	}
}
