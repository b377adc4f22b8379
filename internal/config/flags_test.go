package config

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// parse runs a command line through the library.
func parse(t *testing.T, args ...string) (in Input, help string) {
	t.Helper()
	var out bytes.Buffer
	app := &cli.App{Name: "x", Writer: &out, Commands: []*cli.Command{{
		Name: "run", Flags: Flags(),
		Action: func(c *cli.Context) error {
			in = FromFlags(c, []string{"A=b"})
			return nil
		},
	}}}
	if err := app.Run(append([]string{"x", "run"}, args...)); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return in, out.String()
}

func TestFromFlags(t *testing.T) {
	t.Setenv("KORVET_OFFLOAD_CONFIG", "env.yml")
	in, _ := parse(t, "--http-address", "", "--s3-path-style", "--tick-interval=5s", "--set", "a=b,c", "--set", "d=e")
	if in.File != "env.yml" || !slices.Equal(in.Environ, []string{"A=b"}) {
		t.Errorf("file %q, environ %q", in.File, in.Environ)
	}
	if v, ok := in.Flags["http-address"]; !ok || v != "" {
		t.Errorf("an empty flag is not unset: %q", in.Flags)
	}
	if in.Flags["s3-path-style"] != "true" || in.Flags["tick-interval"] != "5s" || len(in.Flags) != 3 {
		t.Errorf("flags %q", in.Flags)
	}
	if !slices.Equal(in.Set, []string{"a=b,c", "d=e"}) {
		t.Errorf("set %q", in.Set)
	}
	if in, _ := parse(t, "-c", "flag.yml", "--s3-path-style=false"); in.File != "flag.yml" || in.Flags["s3-path-style"] != "false" || len(in.Set) != 0 {
		t.Errorf("input %+v", in)
	}
	if in, _ := parse(t); len(in.Flags) != 0 || len(in.Set) != 0 {
		t.Errorf("no flags: %+v", in)
	}
}

func TestHelp(t *testing.T) {
	_, help := parse(t, "--help")
	for _, want := range []string{"--config FILE, -c FILE", "$KORVET_OFFLOAD_CONFIG", "--set NAME=VALUE", "--redis-uri", "--lease-duration value", "(default: 2m)", "one per CPU"} {
		if !strings.Contains(help, want) {
			t.Errorf("help lacks %q:\n%s", want, help)
		}
	}
	for _, secret := range []string{"password", "secret-access-key", "session-token"} {
		if strings.Contains(help, "--"+secret) {
			t.Errorf("help offers the secret %s", secret)
		}
	}
}

func TestFlagFaults(t *testing.T) {
	wantFaults(t, faultsOf(t, Input{
		Flags: map[string]string{"nonsense": "1"},
		Set:   []string{"korvet.redis.password=hunter2", "novalue", "korvet.storage.worker.slaa=1", "sla=1m", "spring.x=1", "korvet.server.port=1"},
	}, ""),
		"--nonsense: there is no such flag",
		"korvet.redis.password (--set): a secret on the command line can be read by every user of the machine; use the environment variable KORVET_REDIS_PASSWORD, the settings file or the secrets folder",
		"--set: want NAME=VALUE, such as korvet.storage.offload.sla=2m",
		"korvet.storage.worker.slaa (--set): there is no such setting; did you mean korvet.storage.worker.sla?",
		"sla (--set): there is no such setting; did you mean korvet.storage.offload.sla?",
		"spring.x (--set): there is no such setting; docs/settings.md lists those there are",
		"korvet.server.port (--set): there is no such setting; did you mean korvet.redis.port?")
}

func TestPasswordInFlag(t *testing.T) {
	l, err := load(Input{Flags: map[string]string{"redis-uri": "redis://u:hunter2@h"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantWarning(t, l, "korvet.redis.uri (--redis-uri)", "can be read by every user")
}
