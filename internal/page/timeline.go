package page

import (
	"fmt"
	"strings"

	"korvet-offload/internal/board"
)

// legend says what a state is called and how it is drawn: the class of the style
// sheet and the pattern of the page have its name.
type legend struct{ State, Name, Means string }

// legends are the states, in the order of a segment's life.
func legends() []legend {
	return []legend{
		{"remote", "remote only", "on the store, the local copy is gone"},
		{"both", "both tiers", "on the store, and still in Redis"},
		{"sealed", "waiting", "sealed, in Redis only, to be copied"},
		{"open", "open", "producers append to it"},
		{"deleting", "deleting", "hidden from readers, about to go"},
		{"parked", "stuck", "tried, and waiting for another try"},
		{"illegal", "illegal", "the value in the manifest is no entry"},
		{"mixed", "mixed", "several states in turn, too many to be drawn"},
	}
}

func stateName(state string) string {
	for _, l := range legends() {
		if l.State == state {
			return l.Name
		}
	}
	return state
}

// bar is one run as it is drawn, in per cent of the width.
type bar struct {
	X, Width string
	State    string
	Title    string
}

// leastWidth is what a run has at least, in per cent, so that a single segment
// can be seen among a thousand.
const leastWidth = 2.5

// bars draws runs from the oldest to the newest. Each gets a least width, and
// the rest is shared by how many segments they have.
func bars(runs []board.Run) []bar {
	all := 0
	for _, r := range runs {
		all += r.Count
	}
	if all == 0 {
		return nil
	}
	least := min(leastWidth, 60/float64(len(runs)))
	rest := 100 - least*float64(len(runs))
	drawn, x := make([]bar, 0, len(runs)), 0.0
	for _, r := range runs {
		width := least + rest*float64(r.Count)/float64(all)
		drawn = append(drawn, bar{X: percent(x), Width: percent(width), State: r.State, Title: runTitle(r)})
		x += width
	}
	return drawn
}

func percent(x float64) string { return fmt.Sprintf("%.2f%%", x) }

func runTitle(r board.Run) string {
	return fmt.Sprintf("%s: %s (%s)", stateName(r.State), segments(r), whole(r.Count))
}

// segments names the segments of a run.
func segments(r board.Run) string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "–" + r.Last.String()
}

// words is a timeline for who can't see it.
func words(runs []board.Run) string {
	if len(runs) == 0 {
		return "no segments"
	}
	n := map[string]int{}
	for _, r := range runs {
		n[r.State] += r.Count
	}
	var parts []string
	for _, l := range legends() {
		if n[l.State] > 0 {
			parts = append(parts, whole(n[l.State])+" "+l.Name)
		}
	}
	return "oldest to newest: " + strings.Join(parts, ", ")
}

// phaseBars is how long the parts of a pass took, as they are drawn.
type phaseBars struct {
	Bars  []bar
	Words string
}

// phases draws the parts of a pass; the longest pass fills the width.
func phases(p board.Pass, slowest float64) phaseBars {
	drawn, x := phaseBars{}, 0.0
	var said []string
	for _, f := range p.Phases {
		width := 0.0
		if slowest > 0 {
			width = 100 * f.Seconds / slowest
		}
		text := f.Name + " " + board.Ago(seconds(f.Seconds))
		said = append(said, text)
		drawn.Bars = append(drawn.Bars, bar{X: percent(x), Width: percent(width), State: f.Name, Title: text})
		x += width
	}
	drawn.Words = strings.Join(said, ", ")
	return drawn
}
