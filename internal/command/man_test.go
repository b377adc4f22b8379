package command

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// shown is a manual page as a reader of it sees it. A complaint of the
// formatter fails the test.
func shown(t *testing.T, page string) string {
	t.Helper()
	var complaints strings.Builder
	groff := exec.Command("groff", "-man", "-Tascii", "-P-cbou", "-ww")
	groff.Stdin, groff.Stderr = strings.NewReader(page), &complaints
	text, err := groff.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("%v; the tests need groff, on Debian: apt-get install groff-base; it says: %s", err, complaints.String())
	}
	return string(text)
}

func TestManualNamesEverything(t *testing.T) {
	r := call(t, nil, "man")
	if r.code != exitDone || r.stderr != "" {
		t.Fatalf("exit %d, %s", r.code, r.stderr)
	}
	text := shown(t, r.stdout)
	var each func(above string, commands []*cli.Command)
	each = func(above string, commands []*cli.Command) {
		for _, c := range commands {
			name := strings.TrimSpace(above + " " + c.Name)
			if c.Hidden || c.Name == "help" {
				continue
			}
			if each(name, c.Subcommands); len(c.Subcommands) == 0 && !regexp.MustCompile(`(?m)^   `+name+`$`).MatchString(text) {
				t.Errorf("the command %s is missing", name)
			}
			for _, f := range c.Flags {
				if flag := "--" + f.Names()[0]; !strings.Contains(text, flag) {
					t.Errorf("%s: %s is missing", name, flag)
				}
			}
		}
	}
	each("", Process{}.app().Commands)
	for _, want := range []string{
		"korvet-offload - move sealed segments", "--config, -c FILE", "(default: 2m)", "korvet-offload man | man -l -",
		"See it work, with nothing installed:    korvet-offload demo", "EXIT STATUS",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestRoffTakesTextAsItIs(t *testing.T) {
	const text = `.TH and 'quotes' at the start, \fBback-slashes\fR, "quotes", --flags, <a>{b}*c*_d_`
	page := &manPage{}
	page.macro("TH", "X", "1")
	page.macro("SH", text)
	page.text(roff(text))
	for _, line := range []string{".TH and", `'quotes'`, `\fBback-slashes\fR`, `"quotes"`, "--flags", "<a>{b}*c*_d_"} {
		if got := strings.Join(strings.Fields(shown(t, page.String())), " "); strings.Count(got, line) != 2 {
			t.Errorf("%q stands %d times in %s", line, strings.Count(got, line), got)
		}
	}
}
