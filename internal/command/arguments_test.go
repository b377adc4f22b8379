package command

import (
	"slices"
	"strings"
	"testing"

	"korvet-offload/internal/cmdline"
)

func TestOptionsMayStandAnywhere(t *testing.T) {
	app := Process{}.app()
	for given, want := range map[string]string{
		"cat orders:0 --limit 5 -r":                         "cat --limit 5 -r orders:0",
		"cat --limit 5 orders:0 --reverse":                  "cat --limit 5 --reverse orders:0",
		"cat orders:0 --limit=5 --decompress":               "cat --limit=5 --decompress orders:0",
		"cat orders:0 --decompress --set a=b":               "cat --decompress --set a=b orders:0",
		"cat orders:0 --decompress=zstd -c f.yml":           "cat --decompress=zstd -c f.yml orders:0",
		"cat -- -x.parquet --limit":                         "cat -- -x.parquet --limit",
		"cat a --reverse -- -x":                             "cat --reverse -- a -x",
		"cat - --reverse":                                   "cat --reverse -",
		"cat orders:0 --limit":                              "cat --limit orders:0",
		"cat orders:0 --limit 5 --generate-bash-completion": "cat orders:0 --limit 5 --generate-bash-completion",
		"status extra --output json":                        "status extra --output json", // it takes no arguments, and says so
		"config check extra --connect":                      "config check extra --connect",
		"--version":                                         "--version",
		"rnu x --y":                                         "rnu x --y",
		"":                                                  "",
	} {
		got := cmdline.OptionsFirst(app, append([]string{"korvet-offload"}, strings.Fields(given)...))
		if !slices.Equal(got[1:], strings.Fields(want)) {
			t.Errorf("%s: %q", given, got)
		}
	}
	if got := cmdline.OptionsFirst(app, nil); got != nil {
		t.Errorf("%q", got)
	}
}
