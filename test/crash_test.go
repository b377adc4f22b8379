package test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"korvet-offload/internal/points"
	"korvet-offload/test/torture"
)

// faulty is the program with named points, built when it is first needed.
var faulty = sync.OnceValues(func() (file string, err error) {
	file = program + "-faultpoints"
	if out, err := exec.Command("go", "build", "-tags", "faultpoints", "-o", file, "..").CombinedOutput(); err != nil {
		return string(out), err
	}
	return file, nil
})

func faultyProgram(t *testing.T) string {
	t.Helper()
	file, err := faulty()
	if err != nil {
		t.Fatalf("build the program with faultpoints: %v\n%s", err, file)
	}
	return file
}

// pointsOfALife plays a life in which nothing happens and returns the points
// that it passes.
func pointsOfALife(t *testing.T) []string {
	t.Helper()
	l := newCrashLife(t)
	file := filepath.Join(t.TempDir(), "trace")
	l.faults = []string{points.FaultTrace + "=" + file}
	l.run()
	l.settle()
	l.judge()
	return slices.Compact(slices.Sorted(slices.Values(trace(t, file))))
}

// Wherever the worker dies in a segment's life, the next one goes on, and
// nothing is lost, doubled or stuck. The points are those of the source: a new
// step that the life does not pass fails here.
//
//fault:crash | the worker is killed before or after any call that it makes to Redis, the encoder or the store | SIGKILL by itself at each named point of a whole life: create, roll, copy, next copy, adoption, drop, copy again, hide, delete, return, and a plain stream with cut and trim | another worker goes on, every acknowledged message is where a reader looks, and no segment is stuck
func TestCrashAtEveryPoint(t *testing.T) {
	all := pointsOfALife(t)
	mustPassEverySite(t, all)
	for _, point := range torture.Catches() {
		if !slices.Contains(all, point) {
			t.Errorf("there is no point %q, where schedules would catch a worker", point)
		}
	}
	for _, point := range all {
		for _, side := range []points.Side{points.Before, points.After} {
			t.Run(string(side)+" "+point, func(t *testing.T) {
				t.Parallel()
				l := newCrashLife(t)
				l.faults = []string{points.Fault + "=kill:" + string(side) + ":" + point}
				l.run()
				l.settle()
				l.judge()
				if !l.died {
					t.Error("the worker did not die")
				}
			})
		}
	}
}

// besidePasses are the calls that no pass makes, and that only read: those of a
// command that looks or repairs, and of an instance that follows.
func besidePasses() []string {
	return []string{"Worker.CopyNow Manifests.Peek", "Worker.lookForSources Streams.Sizes", "Worker.lookAround Known.Known", "Worker.lookAround Registry.Topics", "Worker.lookAtClock Clock.Now"}
}

// mustPassEverySite checks that there is no call of a port in the source that
// the points leave out.
func mustPassEverySite(t *testing.T, all []string) {
	t.Helper()
	var passed []string
	for _, p := range all {
		passed = append(passed, points.Site(p))
	}
	for _, site := range callSites(t) {
		if !slices.Contains(passed, site) && !slices.Contains(besidePasses(), site) {
			t.Errorf("nothing ever dies at %s: the crash life does not pass it", site)
		}
	}
}
