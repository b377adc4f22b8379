package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/config"
)

// settingsInHelp are the settings in the help of a command.
func settingsInHelp(c *cli.Command) (shown []string) {
	for _, f := range c.Flags {
		category, of := f.(cli.CategorizableFlag)
		visible, may := f.(cli.VisibleFlag)
		if of && category.GetCategory() == settingsCategory && (!may || visible.IsVisible()) {
			shown = append(shown, f.Names()[0])
		}
	}
	slices.Sort(shown)
	return shown
}

// The help of each command has the settings that its code reads, and every setting
// that has a flag is taken by each.
func TestTheSettingsInTheHelp(t *testing.T) {
	const all = "config secrets-dir set"
	const redis, store = all + " namespace redis-uri", " remote-path s3-endpoint s3-path-style s3-region"
	app := Process{}.app()
	var every []string
	for _, f := range config.Flags() {
		every = append(every, f.Names()[0])
	}
	for verb, want := range map[string]string{
		"ls": redis + store, "describe": redis + store,
		"cat":         redis + store + " page-size",                                                        // streams are read in pages
		"verify":      redis + store + " page-size spool-dir",                                              // --compare-local, and large objects
		"repair":      redis + store + " page-size spool-dir spool-memory lease-duration",                  // it copies, under a lease
		"restore":     redis + store + " page-size spool-dir lease-duration",                               // what is there is compared
		"gc":          redis + store + " lease-duration",                                                   //
		"serve":       redis + store + " page-size serve-address zero-copy cache-dir log-level log-format", // it runs
		"status":      redis + " tick-interval",                                                            // which the SLA begins with
		"pause":       redis,
		"resume":      redis,
		"healthcheck": all + " http-address",
		"doctor":      strings.Join(every, " "),
		"run": strings.Join(slices.DeleteFunc(slices.Clone(every), func(name string) bool {
			return name == "serve-address" || name == "zero-copy" || name == "cache-dir"
		}), " "),
	} {
		c := app.Command(verb)
		sorted := strings.Fields(want)
		slices.Sort(sorted)
		if got := settingsInHelp(c); !slices.Equal(got, sorted) {
			t.Errorf("%s: its help has %q, want %q", verb, got, sorted)
		}
		for _, name := range every {
			if !slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == name }) {
				t.Errorf("%s: it does not take --%s", verb, name)
			}
		}
	}
	help := call(t, nil, "ls", "--help")
	if strings.Contains(help.stdout, "tick-interval") || !strings.Contains(help.stdout, "--redis-uri") {
		t.Errorf("%s", help.stdout)
	}
	if r := call(t, []string{"KORVET_REDIS_URI=redis://127.0.0.1:1"}, "ls", "--tick-interval", "5s", "--zero-copy=false"); r.code != exitFault || !strings.Contains(r.stderr, "redis CONNECT") {
		t.Errorf("options of a daemon: %+v", r)
	}
}
