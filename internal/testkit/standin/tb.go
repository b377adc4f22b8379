// Package standin lets what needs a test run outside of one: servers that a
// benchmark starts, and schedules whose failure must not be that of the test
// which runs them.
package standin

import (
	"fmt"
	"os"
	"testing"
)

// TB is as much of a testing.TB as the helpers of testkit call; any other
// method panics. Not safe for concurrent use.
type TB struct {
	testing.TB
	name     string
	fatal    func(text string)
	cleanups []func()
}

// New makes a TB. Every error calls fatal, which must not return.
func New(name string, fatal func(text string)) *TB { return &TB{name: name, fatal: fatal} }

// Helper does nothing.
func (t *TB) Helper() {}

// Name is the name that it was made with.
func (t *TB) Name() string { return t.name }

// Log does nothing.
func (t *TB) Log(...any) {}

// Logf does nothing.
func (t *TB) Logf(string, ...any) {}

// Cleanup has End call f.
func (t *TB) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// TempDir makes a folder that End removes.
func (t *TB) TempDir() string {
	dir, err := os.MkdirTemp("", "korvet-offload-"+t.name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Error is Fatal.
func (t *TB) Error(args ...any) { t.Fatal(args...) }

// Errorf is Fatalf.
func (t *TB) Errorf(format string, args ...any) { t.Fatalf(format, args...) }

// Fatal does not return.
func (t *TB) Fatal(args ...any) { t.fatal(fmt.Sprint(args...)) }

// Fatalf does not return.
func (t *TB) Fatalf(format string, args ...any) { t.fatal(fmt.Sprintf(format, args...)) }

// End undoes everything, the latest first.
func (t *TB) End() {
	for len(t.cleanups) > 0 {
		last := t.cleanups[len(t.cleanups)-1]
		t.cleanups = t.cleanups[:len(t.cleanups)-1]
		last()
	}
}
