package test

import (
	"os/exec"
	"strings"
	"testing"
)

// A program says which one it is, also where GOFLAGS keeps Go from asking git.
func TestMakeTellsTheVersion(t *testing.T) {
	ask := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = ".."
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v", name, args, err)
		}
		return strings.TrimSpace(string(out))
	}
	build := ask("make", "-n", "build")
	if _, err := exec.LookPath("git"); err != nil || exec.Command("git", "rev-parse", "HEAD").Run() != nil {
		if strings.Contains(build, "ldflags") {
			t.Errorf("without git: %s", build)
		}
		return
	}
	const in = " -X korvet-offload/internal/command."
	version := strings.TrimSuffix(ask("git", "describe", "--tags", "--always", "--dirty"), "-dirty")
	for _, want := range []string{in + "linkedVersion=" + version, in + "linkedRevision=" + ask("git", "rev-parse", "HEAD")} {
		if !strings.Contains(build, want) {
			t.Errorf("%q is not in %s", want, build)
		}
	}
}
