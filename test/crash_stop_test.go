package test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/points"
	"korvet-offload/internal/testkit/stage"
)

// zombieLife is a crash life in which a leader stops for a while instead of
// dying: others go on without it, and then it goes on from where it stood.
type zombieLife struct {
	*crashLife
	fault  string
	sleep  int // passes that others make meanwhile; 0 = as many as there are
	zombie *stage.Process
	slept  int
}

// pass is one pass; if its worker stops, another one makes it.
func (l *zombieLife) pass() {
	l.t.Helper()
	if l.zombie != nil {
		l.crashLife.pass()
		l.slept++
		if l.slept == l.sleep {
			l.wake()
		}
		return
	}
	p := l.Start(append([]string{l.fault}, l.plain...), "run", "--once", "--output", "json")
	await(l.t, "a pass ends or stops", time.Minute, func() bool { return p.Ended() || p.Stopped() })
	if !p.Ended() {
		l.zombie = p
		l.FreeLease() // it lapses
		l.crashLife.pass()
		l.slept++
	}
}

// wake lets the stopped leader finish what it was about to do.
func (l *zombieLife) wake() {
	l.t.Helper()
	l.zombie.Signal(syscall.SIGCONT)
	if !l.zombie.Wait(time.Minute) {
		l.t.Fatalf("the leader that woke up does not come to an end; its log:\n%s", l.zombie.Log())
	}
}

// play plays the life to its end; the zombie wakes before that.
func (l *zombieLife) play() {
	l.t.Helper()
	for _, scene := range l.scenes() {
		scene()
		l.Ahead(lifeStep)
		l.pass()
	}
	for i := 0; l.zombie == nil && i < 6; i++ { // its last steps have no scene
		l.Ahead(lifeStep)
		l.pass()
	}
	if l.zombie == nil {
		l.t.Fatal("no leader stops")
	}
	if !l.zombie.Ended() {
		l.wake()
	}
	l.settle()
	l.judge()
}

// A leader that stops at any step of a copy, of a drop or of a deletion and
// wakes up when another one has long taken over does no harm.
//
//fault:leaders | a leader stops before any step of a copy, a drop or a deletion and goes on when another one has made the next pass | SIGSTOP of itself at the named point, a pass of another worker with the lease, SIGCONT | its changes lose, no message is lost or doubled, and no segment is stuck
//fault:leaders | the same leader wakes up only when others have lived the rest of the segment's life | the same, with SIGCONT after the last pass | the same
func TestZombieAtEveryPoint(t *testing.T) {
	for _, point := range pointsOfALife(t) {
		if !risky(point) {
			continue
		}
		for when, sleep := range map[string]int{"wakes soon": 2, "wakes late": 0} {
			t.Run(when+" "+point, func(t *testing.T) {
				t.Parallel()
				l := &zombieLife{crashLife: newCrashLife(t), fault: points.Fault + "=stop:before:" + point, sleep: sleep}
				l.orphans = true // what it puts at a path that nobody names any more stays
				l.play()
			})
		}
	}
}

// risky says whether a point is one of a job that changes where a message is.
func risky(point string) bool {
	for _, job := range []string{"copying.", "dropping.", "Worker.checkObject", "Worker.hide", "pass."} {
		if strings.HasPrefix(point, job) {
			return true
		}
	}
	return false
}
