package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Flags are the flags of every command that reads settings.
func Flags() []cli.Flag {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "config", Aliases: []string{"c"}, Usage: "settings `FILE` (YAML; the broker's application.yml will do)",
			EnvVars: []string{"KORVET_OFFLOAD_CONFIG"}, TakesFile: true, Category: "Settings:"},
		&cli.StringFlag{Name: "secrets-dir", Usage: "`FOLDER` of files that are named as settings and hold one value each", DefaultText: "$CREDENTIALS_DIRECTORY",
			EnvVars: []string{"KORVET_OFFLOAD_SECRETS_DIR"}, TakesFile: true, Category: "Settings:"},
		&cli.GenericFlag{Name: "set", Usage: "any other setting, as `NAME=VALUE`; may be repeated", Value: &setFlag{}, Category: "Settings:"},
	}
	for _, r := range table() {
		if r.flag != "" {
			flags = append(flags, flagOf(r))
		}
	}
	return flags
}

func flagOf(r row) cli.Flag {
	preset := r.defaultText()
	if preset == "" {
		preset = "unset"
	}
	if r.kind == kindBool {
		return &cli.BoolFlag{Name: r.flag, Usage: r.help, DefaultText: preset, Category: "Settings:"}
	}
	return &cli.StringFlag{Name: r.flag, Usage: r.help, DefaultText: preset, Category: "Settings:", TakesFile: r.kind == kindPath}
}

// setFlag collects --set. The library's own list of texts would cut them at
// commas.
type setFlag []string

// Set adds one.
func (s *setFlag) Set(text string) error {
	*s = append(*s, text)
	return nil
}

// String is empty: help shows it as the default.
func (*setFlag) String() string { return "" }

// FromFlags is the input of a command that has Flags.
func FromFlags(c *cli.Context, environ []string) Input {
	in := Input{File: c.String("config"), SecretsDir: c.String("secrets-dir"), Environ: environ, Flags: map[string]string{}}
	for _, r := range table() {
		if r.flag == "" || !c.IsSet(r.flag) {
			continue
		}
		if in.Flags[r.flag] = c.String(r.flag); r.kind == kindBool {
			in.Flags[r.flag] = formatBool(c.Bool(r.flag))
		}
	}
	if s, ok := c.Generic("set").(*setFlag); ok {
		in.Set = *s
	}
	return in
}

func formatBool(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// readFlags takes the short flags and --set.
func (l *loader) readFlags(flags map[string]string, set []string) {
	byFlag := map[string]*row{}
	for i, r := range l.rows {
		byFlag[r.flag] = &l.rows[i]
	}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		r, ok := byFlag[flag]
		if !ok || flag == "" {
			l.fault("--%s: there is no such flag", printable(flag))
			continue
		}
		l.take(named{r, r.name}, leaf{text: flags[flag], at: "--" + flag}, sourceFlag, 0)
	}
	for _, s := range set {
		l.readSet(s)
	}
}

// readSet takes one --set name=value.
func (l *loader) readSet(text string) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		l.fault("--set: want NAME=VALUE, such as %ssla=2m", workerFamily)
		return
	}
	path := splitPath(strings.TrimSpace(name))
	if n, ok := l.find(path); ok && n.row.kind == kindSecret {
		l.fault("%s (--set): a secret on the command line can be read by every user of the machine; use the environment variable %s, the settings file or the secrets folder", n.name, n.row.variable())
		return
	}
	f := leaf{path: path, text: value, at: "--set"}
	if !strings.HasPrefix(foldPath(path), "korvet.") {
		l.fault("%s (--set): there is no such setting; %s", printable(name), proposal(l.nearestName(path)))
		return
	}
	l.assign(f, sourceFlag, 0)
}
