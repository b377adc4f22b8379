package command

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"korvet-offload/internal/cmdline"

	"github.com/urfave/cli/v2"
)

func TestWrongUsage(t *testing.T) {
	environ := []string{"KORVET_STORAGE_REMOTE_PATH=file:///tmp/x"}
	for _, tt := range []struct{ args, want string }{
		{"rnu", `there is no command "rnu"; there are cat, completion, config, demo, describe, doctor, gc, healthcheck, iceberg, ls, man, pause, repair, restore, resume, run, serve, status, verify, version`},
		{"config chekc", `there is no command "chekc"; there are check`},
		{"completion", "completion: name a shell: bash, zsh or fish; see korvet-offload completion --help"},
		{"completion powershell", `there is no command "powershell"; there are bash, fish, zsh`},
		{"--quiet", "flag provided but not defined: -quiet; see korvet-offload --help"},
		{"run --frequently", "flag provided but not defined: -frequently; see korvet-offload run --help"},
		{"run --once now", `run: unexpected argument "now"; see korvet-offload run --help`},
		{"config check all", `check: unexpected argument "all"; see korvet-offload config check --help`},
		{"completion bash x", `bash: unexpected argument "x"; see korvet-offload completion bash --help`},
		{"version x", `version: unexpected argument "x"; see korvet-offload version --help`},
		{"run --dry-run", "--dry-run goes with --once"},
		{"run --once --output xml", "--output xml: want table or json"},
		{"status -o yaml", "--output yaml: want table or json"},
		{"run --config=", "--config: name a file"},
		{"run --config", "flag needs an argument: -config; see korvet-offload run --help"},
		{"demo --messages many", `invalid value "many" for flag -messages: parse error; see korvet-offload demo --help`},
		{"demo --messages 15", "--messages 15: want 16 to 100000000"},
		{"demo --messages 100000001", "--messages 100000001: want 16 to 100000000"},
	} {
		r := call(t, environ, strings.Fields(tt.args)...)
		if want := "korvet-offload: " + tt.want + "\n"; r.code != exitUsage || r.stdout != "" || r.stderr != want {
			t.Errorf("%s: exit %d, stdout %q\n%swant %s", tt.args, r.code, r.stdout, r.stderr, want)
		}
	}
}

func TestEveryWrongSettingIsOneLine(t *testing.T) {
	for _, verb := range []string{"run", "run --once", "run --once --dry-run", "config check", "config check --connect"} {
		r := call(t, []string{"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=soon"}, strings.Fields(verb)...)
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		if r.code != exitUsage || r.stdout != "" || len(lines) != 2 ||
			!strings.Contains(r.stderr, "tick-interval") || !strings.Contains(r.stderr, "remote-path") {
			t.Errorf("%s: exit %d, stdout %q, stderr\n%s", verb, r.code, r.stdout, r.stderr)
		}
		for _, l := range lines {
			if !strings.HasPrefix(l, "korvet-offload: ") {
				t.Errorf("%s: %q", verb, l)
			}
		}
	}
}

// verbs are all commands, each as its words.
func verbs(commands []*cli.Command, before ...string) (all [][]string) {
	for _, c := range commands {
		words := append(slices.Clone(before), c.Name)
		all = append(append(all, words), verbs(c.Subcommands, words...)...)
	}
	return all
}

func TestHelpOfEveryCommand(t *testing.T) {
	all := append(verbs(Process{}.app().Commands), nil)
	if len(all) < 12 { // seven, four below them, and the program itself
		t.Errorf("%d commands: %q", len(all), all)
	}
	for _, words := range all {
		for _, flag := range []string{"--help", "-h"} {
			r := call(t, nil, append(slices.Clone(words), flag)...)
			name := strings.Join(append([]string{"korvet-offload"}, words...), " ")
			if r.code != exitDone || r.stderr != "" || !strings.Contains(r.stdout, name) || !strings.Contains(r.stdout, "USAGE:") {
				t.Errorf("%s %s: exit %d, stderr %q, stdout\n%s", name, flag, r.code, r.stderr, r.stdout)
			}
		}
	}
}

func TestWithoutCommandTheHelpIsShown(t *testing.T) {
	for _, args := range [][]string{nil, {"config"}} {
		r := call(t, nil, args...)
		if r.code != exitDone || r.stderr != "" || !strings.Contains(r.stdout, "COMMANDS:") {
			t.Errorf("%q: exit %d, stderr %q, stdout\n%s", args, r.code, r.stderr, r.stdout)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"-v"}} {
		r := call(t, nil, args...)
		if r.code != exitDone || r.stderr != "" || !strings.HasPrefix(r.stdout, "korvet-offload ") || !strings.HasSuffix(r.stdout, runtime.Version()+"\n") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	r := call(t, nil, "version", "-o", "json")
	var b cmdline.Build
	if err := json.Unmarshal([]byte(r.stdout), &b); err != nil || b != version() || b.Version == "" {
		t.Errorf("%v %+v", err, r)
	}
	full := cmdline.Build{Version: "v1.2.3", Revision: "0123456789abcdef", Modified: true, Time: "2026-01-02T03:04:05Z", Go: "go1.26"}
	if got, want := full.String(), "v1.2.3 (0123456789ab, modified) go1.26"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	text, err := json.Marshal(full)
	if want := lines("go string", "modified bool", "revision string", "time string", "version string"); err != nil || shape(t, string(text)) != want {
		t.Errorf("%v %s", err, text)
	}
}

func TestCompletionNamesEveryCommand(t *testing.T) {
	fish := call(t, nil, "completion", "fish")
	for _, words := range verbs(Process{}.app().Commands) {
		if want := "-a '" + words[len(words)-1] + "'"; !strings.Contains(fish.stdout, want) {
			t.Errorf("fish: no %s", want)
		}
	}
	for _, flag := range []string{"-l dry-run", "-l remote-path", "-l connect"} {
		if !strings.Contains(fish.stdout, flag) {
			t.Errorf("fish: no %s", flag)
		}
	}
	for shell, want := range map[string]string{"bash": "complete -o default -F _korvet_offload korvet-offload", "zsh": "compdef _korvet_offload korvet-offload"} {
		if r := call(t, nil, "completion", shell); r.code != exitDone || r.stderr != "" || !strings.Contains(r.stdout, want) {
			t.Errorf("%s: %+v", shell, r)
		}
	}
}
