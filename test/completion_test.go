package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completions are what a shell offers for the last of the words.
func completions(t *testing.T, words ...string) []string {
	t.Helper()
	const script = `source <(korvet-offload completion bash)
complete -p korvet-offload >/dev/null || exit 1
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_korvet_offload
printf '%s\n' "${COMPREPLY[@]}"`
	cmd := exec.Command("bash", append([]string{"--norc", "-c", script, "bash"}, words...)...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Fatalf("%q: %v: %s", words, err, &errs)
	}
	offered := strings.Fields(string(out))
	slices.Sort(offered)
	return offered
}

func TestBashCompletes(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"korvet-offload ru", "run"},
		{"korvet-offload s", "serve status"},
		{"korvet-offload co", "completion config"},
		{"korvet-offload config ", "check"},
		{"korvet-offload completion ", "bash fish zsh"},
		{"korvet-offload run --dry", "--dry-run"},
		{"korvet-offload run --once --dry", "--dry-run"},
		{"korvet-offload run --remote-p", "--remote-path"},
		{"korvet-offload config check --conn", "--connect"},
		{"korvet-offload frob", ""},
	} {
		if got := strings.Join(completions(t, strings.Split(tt.line, " ")...), " "); got != tt.want {
			t.Errorf("%q completes to %q, want %q", tt.line, got, tt.want)
		}
	}
	if all := completions(t, "korvet-offload", ""); !slices.Contains(all, "run") || !slices.Contains(all, "demo") {
		t.Errorf("all commands: %q", all)
	}
}
