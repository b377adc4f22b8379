package main

import (
	"fmt"
	"os"
	"testing"
)

// tb lets a program use what the tests start their servers with.
type tb struct {
	testing.TB // only what is below is called
	cleanups   []func()
}

func (t *tb) Helper()          {}
func (t *tb) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *tb) TempDir() string {
	dir, err := os.MkdirTemp("", "korvet-offload-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (t *tb) Errorf(format string, args ...any) { t.Fatalf(format, args...) }
func (t *tb) Error(args ...any)                 { t.Fatal(args...) }
func (t *tb) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }

func (t *tb) Fatal(args ...any) {
	t.end()
	fmt.Fprintln(os.Stderr, append([]any{"bench:"}, args...)...)
	os.Exit(1)
}

// end undoes everything, the latest first.
func (t *tb) end() {
	for len(t.cleanups) > 0 {
		last := t.cleanups[len(t.cleanups)-1]
		t.cleanups = t.cleanups[:len(t.cleanups)-1]
		last()
	}
}
