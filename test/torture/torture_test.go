package torture

import (
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	schedules = flag.Int("schedules", 200, "how many random schedules are run")
	seed      = flag.Uint64("seed", 0, "of the first schedule; 0 = another one each time")
	only      = flag.String("schedule", "", "run this schedule alone")
	mutant    = flag.String("mutant", "", "file for go build -overlay: a program with a guard taken out")
	atOnce    = flag.Int("at-once", 8, "schedules at a time")
	shards    = flag.Int("shards", 1, "that the workers share")
)

// shrinkTime is how long a schedule that fails is made shorter.
const shrinkTime = 3 * time.Minute

// program is the program with faultpoints.
func program(t *testing.T) Program {
	t.Helper()
	file := filepath.Join(t.TempDir(), "korvet-offload")
	args := []string{"build", "-tags", "faultpoints", "-o", file}
	if *mutant != "" {
		args = append(args, "-overlay", *mutant)
	}
	if out, err := exec.Command("go", append(args, "../..")...).CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return Program{File: file, Shards: *shards}
}

// failed is a schedule that has failed.
type failed struct {
	seed     uint64
	schedule Schedule
	wrong    []string
}

// runAll runs the schedules of n seeds and returns the first that fails.
func runAll(t *testing.T, file Program, first uint64, n int, tally *Tally) (f failed, some bool) {
	t.Helper()
	seeds := make(chan uint64, n)
	for i := range n {
		seeds <- first + uint64(i) //nolint:gosec // a small one
	}
	close(seeds)
	var mu sync.Mutex
	var going sync.WaitGroup
	for range *atOnce {
		going.Go(func() {
			for s := range seeds {
				mu.Lock()
				over := some
				mu.Unlock()
				if over {
					return
				}
				schedule := Random(s)
				if wrong := Run(file, schedule, tally); len(wrong) > 0 {
					mu.Lock()
					if !some {
						f, some = failed{s, schedule, wrong}, true
					}
					mu.Unlock()
				}
			}
		})
	}
	going.Wait()
	return f, some
}

// Whatever happens, in whatever order: no message that was acknowledged is
// lost or doubled, readers find all while it happens, and in the end nothing
// is stuck.
//
//fault:crash | workers are killed at any time and at any point, stopped beyond their lease and continued, while everything else goes wrong too | random schedules of seeds that are printed, over real processes | no acknowledged message is lost or doubled, a reader finds each at any time, and all comes to rest when the troubles are over
//fault:leaders | a leader is stopped at its most dangerous points, for less or more than its lease, while messages come late, topics are made anew and another worker starts | SIGSTOP of itself right before a removal, a flip, a put or a deletion, in random schedules | the same
//fault:redis | Redis is killed again and again | SIGKILL of redis-server with appendonly and appendfsync always, and a new start, in random schedules | the same
//fault:store | calls to Redis or the store fail at random, half of them after they were carried out | errors made up by the ports' decorator, in random schedules | the same
//fault:time | the clock jumps by seconds, hours or ten years, forward and back | an offset to the Redis clock as workers see it, in random schedules | the same, but for what is past a retention by that clock
//fault:topics | a topic is removed and comes back, or is made anew with segments from 0 again | changes of the registry and the manifests in random schedules | the same, but for what goes with a topic
//fault:late-data | messages come late to segments that were sealed, copied or dropped, and somebody deletes messages and streams | XADD, XDEL, DEL and XTRIM in random schedules | the same; what came after the stream was dropped is in a stray stream
func TestTorture(t *testing.T) {
	file := program(t)
	if *only != "" {
		runOnly(t, file)
		return
	}
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano() / 1e6) //nolint:gosec // after 1970
	}
	t.Logf("schedules of the seeds from %d on", first)
	tally := NewTally()
	f, some := runAll(t, file, first, *schedules, tally)
	t.Logf("%s", tally)
	if some {
		report(t, file, f)
		return
	}
	if missing := tally.Never(); len(missing) > 0 && *schedules >= 50 {
		t.Errorf("never done: %s", strings.Join(missing, ", "))
	}
}

func runOnly(t *testing.T, file Program) {
	t.Helper()
	s, err := Parse(*only)
	if err != nil {
		t.Fatal(err)
	}
	tally := NewTally()
	for _, wrong := range Run(file, s, tally) {
		t.Error(wrong)
	}
	t.Logf("%s", tally)
}

// report makes a failure as short as it gets, and says how to see it again.
func report(t *testing.T, file Program, f failed) {
	t.Helper()
	t.Errorf("seed %d fails:\n%s\n%s", f.seed, strings.Join(f.wrong, "\n"), f.schedule)
	last := f.wrong
	shortest := Shrink(f.schedule, time.Now().Add(shrinkTime), func(s Schedule) bool {
		wrong := Run(file, s, NewTally())
		if len(wrong) > 0 {
			last = wrong
		}
		return len(wrong) > 0
	})
	t.Errorf("the shortest schedule that fails has %d steps of %d:\n%s\nto see it again:\n%s ./test/torture -run TestTorture -shards %d -schedule '%s'",
		len(shortest), len(f.schedule), strings.Join(last, "\n"), "go test", *shards, shortest)
}
