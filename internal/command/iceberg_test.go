package command

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func writeProgram(t *testing.T, dir, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, icebergProgram)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// The program beside this one counts before the one in the PATH, and where there is
// neither, the message says how to get it.
func TestTheOtherProgramIsFound(t *testing.T) {
	empty, beside, inPath := t.TempDir(), t.TempDir(), t.TempDir()
	besidePath, pathPath := writeProgram(t, beside, "", 0o700), writeProgram(t, inPath, "", 0o700)
	locked := t.TempDir()
	writeProgram(t, locked, "", 0o600)
	for _, tt := range []struct{ self, path, want, fault string }{
		{filepath.Join(beside, "korvet-offload"), inPath, besidePath, ""},
		{filepath.Join(empty, "korvet-offload"), inPath, pathPath, ""},
		{"", inPath, pathPath, ""},
		{filepath.Join(empty, "korvet-offload"), empty, "", `build it with "make iceberg"`},
		{filepath.Join(locked, "korvet-offload"), inPath, "", "permission denied"},
	} {
		t.Setenv("PATH", tt.path)
		got, err := findProgram(icebergProgram, tt.self)
		if got != tt.want || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("self %q, PATH %q: %q, %v", tt.self, tt.path, got, err)
		}
	}
	t.Setenv("PATH", empty)
	r := call(t, nil, "iceberg", "register", "orders")
	if r.code != exitUsage || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, `"make iceberg"`) {
		t.Errorf("%+v", r)
	}
}

// icebergChild is set where the test's own program plays korvet-offload.
const icebergChild = "KORVET_TEST_ICEBERG_CHILD"

// The other program gets the arguments as they are, options too, and the environment,
// and its exit code is that of the verb.
func TestTheOtherProgramIsRun(t *testing.T) {
	if os.Getenv(icebergChild) != "" {
		os.Exit(Main(context.Background(), Process{Args: []string{"korvet-offload", "iceberg", "register", "orders", "--table", "a b", "--dry-run"},
			Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}))
	}
	dir := t.TempDir()
	path := writeProgram(t, dir, `printf '<%s>' "$0" "$@" "$KORVET_REDIS_URI"; exit 7`, 0o700)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheOtherProgramIsRun$")
	cmd.Env = append(os.Environ(), icebergChild+"=1", "PATH="+dir+":"+os.Getenv("PATH"), "KORVET_REDIS_URI=redis://there:1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	want := "<" + path + "><register><orders><--table><a b><--dry-run><redis://there:1>"
	if cmd.ProcessState.ExitCode() != 7 || stdout.String() != want {
		t.Errorf("%v: stdout %q, want %q, stderr %q", err, stdout.String(), want, stderr.String())
	}
}
