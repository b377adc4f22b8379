package torture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a step does.
type Kind string

// The kinds of steps. Worker is 0 or 1, the part is a partition or plain stream.
const (
	Produce  Kind = "produce"  // PART N: append N messages to the open segment
	Late     Kind = "late"     // PART K N: append N messages to the K-th segment before the open one; PART may be all
	Read     Kind = "read"     // PART: read all of it as a consumer does; PART may be all
	Wait     Kind = "wait"     // MS
	Kill     Kind = "kill"     // WORKER: SIGKILL
	Die      Kind = "die"      // WORKER N: alone, it kills itself at the N-th point that it passes
	Start    Kind = "start"    // WORKER: start it if it does not run
	Pause    Kind = "pause"    // WORKER MS: SIGSTOP, SIGCONT so much later
	Freeze   Kind = "freeze"   // WORKER N MS: alone, it stops itself at the N-th point that it passes, and goes on so much later
	Catch    Kind = "catch"    // WORKER I MS: the same at the I-th of Catches, while every partition gets messages
	Clock    Kind = "clock"    // MS: the clock that workers see jumps, forward or back
	Redis    Kind = "redis"    // kill the server and start it again
	Errors   Kind = "errors"   // N SEED: one call in N fails from now on; 0 = none
	Recreate Kind = "recreate" // make the topic phoenix anew, with all that is in Redis gone
	Remove   Kind = "remove"   // take the topic guest out of the registry
	Back     Kind = "back"     // put it back
	Xdel     Kind = "xdel"     // PART N: somebody deletes the N-th latest message that is in Redis
	Del      Kind = "del"      // PART: somebody deletes the stream of a segment that was copied
	Trim     Kind = "trim"     // PART: somebody trims such a stream
)

// everywhere stands for all partitions.
const everywhere = "all"

// Catches are the points at which a leader that stops is most dangerous: right
// before a change that another one, or a producer, may make wrong.
func Catches() []string {
	return []string{
		"dropping.dropStream Removals.Remove",
		"dropping.dropStream dropping.mark dropping.change Manifests.Change",
		"dropping.dropStream dropping.gone dropping.change Manifests.Change",
		"copying.store Store.Put",
		"copying.flip copying.swap Manifests.Change",
		"dropping.dropRange Removals.Trim",
		"Worker.roll Worker.seal Manifests.Change",
		"pass.expiry pass.expire pass.deleteBatch Worker.deleteObjects Store.Delete",
		"pass.deleteBatch Worker.erase Manifests.Change",
		"Worker.hide Manifests.Change",
	}
}

// Kinds lists them all.
func Kinds() []Kind {
	return []Kind{Produce, Late, Read, Wait, Kill, Die, Start, Pause, Freeze, Catch, Clock, Redis, Errors, Recreate, Remove, Back, Xdel, Del, Trim}
}

// shape says what a kind needs.
func (k Kind) shape() (part bool, numbers int, known bool) {
	switch k {
	case Produce, Xdel:
		return true, 1, true
	case Late:
		return true, 2, true
	case Read, Del, Trim:
		return true, 0, true
	case Wait, Kill, Start, Clock:
		return false, 1, true
	case Die, Pause, Errors:
		return false, 2, true
	case Freeze, Catch:
		return false, 3, true
	case Redis, Recreate, Remove, Back:
		return false, 0, true
	}
	return false, 0, false
}

// Step is one thing that is done.
type Step struct {
	Kind    Kind
	Part    string // of the steps that have one
	Numbers []int64
}

// String is the step as Parse reads it.
func (s Step) String() string {
	words := []string{string(s.Kind)}
	if s.Part != "" {
		words = append(words, s.Part)
	}
	for _, n := range s.Numbers {
		words = append(words, strconv.FormatInt(n, 10))
	}
	return strings.Join(words, " ")
}

// Schedule is what is done, in this order.
type Schedule []Step

// String is the schedule as Parse reads it.
func (s Schedule) String() string {
	var steps []string
	for _, step := range s {
		steps = append(steps, step.String())
	}
	return strings.Join(steps, "; ")
}

// Parse reads a schedule: steps with a semicolon between them.
func Parse(text string) (Schedule, error) {
	var s Schedule
	for t := range strings.SplitSeq(text, ";") {
		if t = strings.TrimSpace(t); t == "" {
			continue
		}
		step, err := parseStep(t)
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", t, err)
		}
		s = append(s, step)
	}
	return s, nil
}

func parseStep(text string) (Step, error) {
	words := strings.Fields(text)
	s := Step{Kind: Kind(words[0])}
	part, numbers, known := s.Kind.shape()
	words = words[1:]
	if !known {
		return s, errors.New("no such kind of step")
	}
	if part && len(words) > 0 {
		s.Part, words = words[0], words[1:]
		if !slices.Contains(parts(), s.Part) && (s.Kind != Late && s.Kind != Read || s.Part != everywhere) {
			return s, fmt.Errorf("no such partition; there are %s", strings.Join(parts(), ", "))
		}
	}
	for _, w := range words {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return s, err
		}
		s.Numbers = append(s.Numbers, n)
	}
	if part && s.Part == "" || len(s.Numbers) != numbers {
		return s, fmt.Errorf("it wants %d numbers, and a partition: %t", numbers, part)
	}
	return s, nil
}

// length of a schedule, in steps.
const (
	shortest = 14
	longest  = 26
)

// Random makes the schedule of a seed.
func Random(seed uint64) Schedule {
	r := &maker{rand.New(rand.NewPCG(seed, 0x746f7274757265))} //nolint:gosec // it is to be the same every time
	s := Schedule{r.produce(), r.produce()}
	for n := shortest + r.IntN(longest-shortest); len(s) < n; {
		s = append(s, r.trouble()...)
	}
	return s
}

// maker makes steps.
type maker struct{ *rand.Rand }

func (r *maker) part() string { return parts()[r.IntN(len(parts()))] }

// between is a number from lo to hi, both inclusive.
func (r *maker) between(lo, hi int64) int64 { return lo + r.Int64N(hi-lo+1) }

func (r *maker) worker() int64 { return int64(r.IntN(workers)) }

func (r *maker) produce() Step { return Step{Produce, r.part(), []int64{r.between(1, 40)}} }

func (r *maker) wait(lo, hi int64) Step { return Step{Kind: Wait, Numbers: []int64{r.between(lo, hi)}} }

// trouble is one trouble, and what should come with it.
func (r *maker) trouble() []Step {
	w := r.worker()
	start := Step{Kind: Start, Numbers: []int64{w}}
	switch r.IntN(27) {
	case 0, 1, 2, 3:
		return []Step{r.produce(), r.wait(20, 200)}
	case 4, 5, 6:
		return []Step{{Late, r.part(), []int64{r.between(1, 3), r.between(1, 5)}}, r.wait(10, 150)}
	case 7, 8:
		return []Step{r.produce(), r.wait(450, 800), {Late, everywhere, []int64{1, r.between(1, 3)}}} // between copy and drop
	case 9, 10:
		return []Step{{Kind: Read, Part: everywhere}}
	case 11:
		return []Step{{Kind: Kill, Numbers: []int64{w}}, r.wait(10, 300), start}
	case 12, 13:
		return []Step{{Kind: Die, Numbers: []int64{w, r.between(1, 70)}}, r.produce(), r.wait(50, 300), start}
	case 14:
		return []Step{{Kind: Start, Numbers: []int64{1 - w}}, {Kind: Pause, Numbers: []int64{w, r.sleep()}}, r.produce()}
	case 15:
		return []Step{{Kind: Freeze, Numbers: []int64{w, r.between(1, 70), r.sleep()}}, r.produce(), r.wait(100, 500)}
	case 16, 17, 18:
		return r.caught(w)
	case 19:
		return []Step{{Kind: Clock, Numbers: []int64{r.jump()}}, r.wait(50, 200)}
	case 20:
		return []Step{{Kind: Redis}}
	case 21, 22:
		return []Step{{Kind: Errors, Numbers: []int64{r.between(3, 30), r.between(1, 1000)}}, r.produce(), r.wait(100, 400), {Kind: Errors, Numbers: []int64{0, 0}}}
	case 23:
		return []Step{{Kind: Recreate}, {Produce, phoenix + ":0", []int64{r.between(1, 20)}}, r.wait(50, 300)}
	case 24:
		return []Step{{Kind: Remove}, r.wait(100, 900), {Kind: Back}}
	case 25:
		return []Step{{Xdel, r.part(), []int64{r.between(1, 10)}}}
	default:
		return []Step{{Kind: []Kind{Del, Trim}[r.IntN(2)], Part: r.part()}}
	}
}

// caught stops a leader where it is most dangerous, and has something happen
// before it goes on.
func (r *maker) caught(w int64) []Step {
	steps := []Step{{Kind: Catch, Numbers: []int64{w, r.Int64N(int64(len(Catches()))), r.sleep()}}}
	for _, s := range []Step{{Late, everywhere, []int64{1, r.between(1, 3)}}, {Kind: Start, Numbers: []int64{1 - w}}, {Kind: Recreate}, {Kind: Redis}} {
		if r.IntN(2) == 0 {
			steps = append(steps, s)
		}
	}
	return append(steps, r.wait(50, 700))
}

// sleep is how long a worker stands still: not as long as its lease, or longer.
func (r *maker) sleep() int64 {
	if r.IntN(2) == 0 {
		return r.between(30, 300)
	}
	return r.between(1100, 1800)
}

// jump is by how much a clock jumps: a little, hours, or years.
func (r *maker) jump() int64 {
	by := []int64{500, 5_000, 60_000, 2 * 3_600_000, 10 * 365 * 86_400_000}[r.IntN(5)]
	if r.IntN(2) == 0 {
		return -by
	}
	return by
}
