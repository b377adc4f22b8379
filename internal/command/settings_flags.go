package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/config"
)

// The flags of settings that several commands have a use for. --config,
// --secrets-dir and --set stand in every help.
func everySetting() []string  { return []string{"config", "secrets-dir", "set"} }
func redisSettings() []string { return []string{"namespace", "redis-uri"} }
func storeSettings() []string {
	return []string{"remote-path", "s3-endpoint", "s3-path-style", "s3-region"}
}

// bothSettings are those of Redis and the store, and more.
func bothSettings(more ...string) []string {
	return slices.Concat(redisSettings(), storeSettings(), more)
}

// settingFlags are the flags of all settings, of which the help shows those that a
// command has a use for. The others are taken all the same, so that one line of
// options does for every command.
func settingFlags(used ...string) []cli.Flag {
	return hideFlags(func(name string) bool { return !slices.Contains(used, name) && !slices.Contains(everySetting(), name) })
}

// settingFlagsBut are settingFlags of a command that has a use for all but a few.
func settingFlagsBut(unused ...string) []cli.Flag {
	return hideFlags(func(name string) bool { return slices.Contains(unused, name) })
}

func hideFlags(hidden func(name string) bool) []cli.Flag {
	flags := config.Flags()
	for _, f := range flags {
		if !hidden(f.Names()[0]) {
			continue
		}
		switch f := f.(type) {
		case *cli.StringFlag:
			f.Hidden = true
		case *cli.BoolFlag:
			f.Hidden = true
		}
	}
	return flags
}
