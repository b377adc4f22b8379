package cmdline

import (
	"cmp"
	"runtime/debug"
)

// Build is which build of a program this is.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built with changes that were not committed
	Time     string `json:"time,omitempty"`     // of the revision
	Go       string `json:"go"`
}

// BuildOf is what the linker has written into the program. version and revision are
// what it was told (-ldflags "-X ...") where the sources come without their history,
// as in a container's build; else empty.
func BuildOf(version, revision string) Build {
	b := Build{Version: cmp.Or(version, "unknown"), Revision: revision}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	b.Version = cmp.Or(version, info.Main.Version, b.Version)
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

// String is the build for a person.
func (b Build) String() string {
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
