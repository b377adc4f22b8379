package repair

import (
	"errors"
	"fmt"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// Deed is what an action does. The list is closed.
type Deed string

// The deeds.
const (
	Recopy    Deed = "recopy"     // the stream is whole: LOCAL with the next copy, and copied
	Repoint   Deed = "repoint"    // the entry takes another object of the same content
	Reflip    Deed = "reflip"     // the stream is lost and an object has it all: REMOTE
	TakeOver  Deed = "take_over"  // an object whose entry is gone gets an entry
	EndDrop   Deed = "end_drop"   // DROPPING, and the stream is gone: GONE
	EndDelete Deed = "end_delete" // DELETING, and nothing is left: the entry goes
	Unstray   Deed = "unstray"    // a stray stream, all of which is in the object: it goes
	Leave     Deed = "leave"      // can't be healed for certain: Why
	Nothing   Deed = "nothing"    // there is nothing wrong (any more)
)

// Deeds lists all deeds.
func Deeds() []Deed {
	return []Deed{Recopy, Repoint, Reflip, TakeOver, EndDrop, EndDelete, Unstray, Leave, Nothing}
}

// Acts says whether the deed changes anything.
func (d Deed) Acts() bool { return d != Leave && d != Nothing }

// Action is what is to be done about one segment, or about one finding that is of
// no segment.
type Action struct {
	Deed       Deed
	Partition  segment.Partition
	Segment    segment.Number
	HasSegment bool
	Kinds      []scrub.Kind // that it is about
	Path       string       // of the object that it relies on or is about; "" = none
	Why        string       // one line: what was found; of Leave also what a person can do

	Old, New string // the entry's bytes; "" = there is none
	entry    segment.Entry
	before   segment.Entry
	hadEntry bool

	file   *File  // relied on: it has to be what was read
	absent string // relied on: there has to be no object at this path
	held   *Held  // relied on: the stream has to be what was read
	place  *Place // relied on: the neighbors have to be what was read
	key    string // of the stream
}

// Before says in a few words what the entry is before the action.
func (a Action) Before() string { return words(a.before, a.hadEntry) }

// After says in a few words what the entry is after the action, the copying that
// follows aside.
func (a Action) After() string {
	switch a.Deed {
	case EndDelete:
		return "no entry"
	case Unstray:
		return a.Before() + " without stray stream"
	case Recopy, Repoint, Reflip, TakeOver, EndDrop:
		return words(a.entry, true)
	}
	return a.Before()
}

func words(e segment.Entry, there bool) string {
	if !there {
		return "no entry"
	}
	text := string(e.State) + " " + string(e.Tier)
	if e.Local != "" {
		text += " " + string(e.Local)
	}
	switch {
	case e.Object != nil:
		text += " " + e.Object.Path
	case e.Copy > 0:
		text += fmt.Sprintf(" copy %d", e.Copy)
	}
	return text
}

// What can be wrong with an object, as the planner sees it.
var (
	errMissing    = errors.New("it is not there")
	errUnread     = errors.New("it was not read")
	errNotTold    = errors.New("the entry does not say what was copied, or where to")
	errOtherBytes = errors.New("its bytes are not those that were put")
	errOtherRows  = errors.New("its rows are not those that were copied")
	// errNotWritten: a bit has changed where rows do not show it, or the file was
	// made by somebody else.
	errNotWritten = errors.New("its rows can be read, and its bytes are not those that this program writes of them")
)

// errUnsteady says nothing of a stream: it is to be read again.
var errUnsteady = errors.New("stream changes while it is read")

func otherContents(is, want segment.Contents) error {
	return fmt.Errorf("it holds %s, and the entry says %s", span(is), span(want))
}

// span says what something holds.
func span(c segment.Contents) string {
	switch c.Count {
	case segment.NoCount:
		return "an unknown number of entries"
	case 0:
		return "no entries"
	case 1:
		return fmt.Sprintf("1 entry, %s", c.FirstID)
	}
	return fmt.Sprintf("%d entries from %s to %s", c.Count, c.FirstID, c.LastID)
}
