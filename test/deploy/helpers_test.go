// Package deploy tries what is in Dockerfile, k8s and deploy: with the tools that
// check such files, and with the built program where this machine can run it.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// root is the folder of the repository.
const root = "../.."

// tool is the path of a program that setup.sh installs.
func tool(t testing.TB, name string) string {
	t.Helper()
	if path, err := filepath.Abs(filepath.Join(root, ".tools", name)); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not there: run make setup-deploy", name)
	}
	return path
}

// builder builds the program once.
type builder struct {
	once sync.Once
	dir  string
	out  []byte
	err  error
}

var built builder

// program is the built program.
func program(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "korvet-offload-deploy-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-trimpath", "-o", built.dir, ".")
		cmd.Dir = root
		built.out, built.err = cmd.CombinedOutput()
	})
	if built.err != nil {
		t.Fatalf("build the program: %v\n%s", built.err, built.out)
	}
	return filepath.Join(built.dir, "korvet-offload")
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}

// await polls until something holds.
func await(t testing.TB, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// readFile is the text of a file below the repository's folder.
func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
