package torture

import (
	"fmt"
	"os"
	"testing"
)

// tb is what a stage needs of a test, for one schedule: a run that fails in
// the shrinker must not fail the test.
type tb struct {
	testing.TB // only what is below is called
	cleanups   []func()
}

// stageFailure is what Fatal ends a schedule with.
type stageFailure string

func (t *tb) Helper()             {}
func (t *tb) Name() string        { return "torture" }
func (t *tb) Log(...any)          {}
func (t *tb) Logf(string, ...any) {}
func (t *tb) Cleanup(f func())    { t.cleanups = append(t.cleanups, f) }

func (t *tb) TempDir() string {
	dir, err := os.MkdirTemp("", "korvet-torture-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (t *tb) Errorf(format string, args ...any) { t.Fatalf(format, args...) }
func (t *tb) Error(args ...any)                 { t.Fatal(args...) }
func (t *tb) Fatal(args ...any)                 { panic(stageFailure(fmt.Sprint(args...))) }
func (t *tb) Fatalf(format string, args ...any) { panic(stageFailure(fmt.Sprintf(format, args...))) }

// end undoes everything, the latest first.
func (t *tb) end() {
	for len(t.cleanups) > 0 {
		last := t.cleanups[len(t.cleanups)-1]
		t.cleanups = t.cleanups[:len(t.cleanups)-1]
		last()
	}
}
