package command

import (
	"cmp"
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

// What the linker is told (-ldflags "-X ...") where the sources come without
// their history, as in a container's build; else empty.
var linkedVersion, linkedRevision string

func version() build {
	b := build{Version: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go, b.Revision = info.GoVersion, linkedRevision
	b.Version = cmp.Or(linkedVersion, info.Main.Version, b.Version)
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
