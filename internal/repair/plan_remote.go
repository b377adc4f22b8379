package repair

import (
	"fmt"
	"strings"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// planRemote is about a SEALED REMOTE segment. Its stream was read.
func (f *Facts) planRemote() (Action, Need) {
	if f.Own == nil {
		return Action{}, NeedOwn
	}
	damage := f.asTold(f.Own)
	switch {
	case damage == nil && !f.has(scrub.Orphan):
		return f.planSound(), NeedNothing
	case damage != nil && f.streamWhole():
		return f.recopy(damage), NeedNothing
	case !f.OthersRead:
		return Action{}, NeedOthers
	case damage == nil:
		return f.planNewer(), NeedNothing
	}
	return f.repoint(damage), NeedNothing
}

// planNewer is about a segment whose object is what was put, and of which there is
// a newer copy: Redis has lost a change. The newer one has what came late.
func (f *Facts) planNewer() Action {
	e := f.Entry
	var newer *File
	for i := range f.Others {
		if x := &f.Others[i]; x.Copy > max(e.Copy, f.Own.Copy) && (newer == nil || x.Copy > newer.Copy) {
			newer = x
		}
	}
	switch {
	case newer == nil:
		return f.planSound()
	case f.streamThere() && f.streamWhole():
		return f.recopy(fmt.Errorf("%s is newer than that of the entry: redis has lost a change", newer.Path))
	case f.streamThere():
		return f.leave("%s is newer than the object of the entry, and %s: compare the three (cat)", newer.Path, f.saysStream())
	case !newer.whole() || !holds(newer.Contents, e):
		return f.leave("the object of the entry is whole, and %s, which is newer, does not have all of it%s: compare them (cat FILE); gc removes the one that no entry names", newer.Path, f.saysOthers())
	case newer.Begins != start{f.Own.Contents, f.Own.CRC32C}:
		return f.leave("the object of the entry is whole, and %s, which is newer and has more (%s), does not begin with its messages: it is of another life of the topic, or some were deleted in between: compare them (cat FILE)", newer.Path, span(newer.Contents))
	}
	next, err := e.Repoint(newer.Contents, newer.object(), newer.Copy)
	if err != nil {
		return f.leave("%v", err)
	}
	return f.action(Repoint, "%s is newer than the object of the entry, whole, and has all of it: %s", newer.Path, span(newer.Contents)).by(newer).to(next)
}

// streamThere says whether the stream has anything of the segment, or the key
// holds something else.
func (f *Facts) streamThere() bool {
	if f.Entry.Shared() {
		return f.Held.Wrong != nil || f.Held.Contents.Count > 0
	}
	return f.Held.Wrong != nil || f.Held.Info.Length > 0
}

// planSound is about a REMOTE segment whose object is what was put.
func (f *Facts) planSound() Action {
	e, there := f.Entry, f.streamThere()
	switch {
	case e.Local == segment.Dropping && !there:
		next, err := e.Dropped()
		if err != nil {
			return f.leave("%v", err)
		}
		return f.end(EndDrop, next, "the local copy was being dropped, and is gone; the object is whole").by(f.Own)
	case e.Local == segment.Gone && there && !e.Shared():
		return f.planStray()
	case there && f.has(scrub.StreamDiffers):
		return f.leave("the object is what was put, and the local stream does not have its messages (%s); both stay: compare them (cat --tier local, cat --tier remote), and remove the stream by hand if the object is right", f.detail(scrub.StreamDiffers))
	case !segment.IsObjectOf(f.Own.Path, f.Folder, f.Segment):
		return f.leave("the object is whole and of this segment, and lies at a path that is none of its own, so it will never be deleted; correct the entry by hand")
	case f.has(scrub.HalfDeleted) && there && e.Local != segment.Present:
		return f.leave("the object is whole, and the local copy is still there: the worker finishes the drop at its next tick; see what run reports")
	}
	return f.action(Nothing, "the object is whole, and is what the entry tells of")
}

// planStray is about a stream of a segment whose local copy is gone.
func (f *Facts) planStray() Action {
	held := f.Held
	switch {
	case held.Wrong != nil:
		return f.leave("%v; it is no stream of this segment, see who has made it", held.Wrong)
	case f.Own.Lacks < 0:
		return f.leave("stream %s has %d entries again, too many to compare with the object here; no reader finds them: compare them (redis-cli XRANGE %[1]s - +, cat --object), move on what the object lacks, and delete the key", f.Key, held.Info.Length)
	case f.Own.Lacks > 0:
		return f.leave("stream %s has %d entries that the object does not have, appended after it was dropped; no reader finds them: move them on into the topic (redis-cli XRANGE %[1]s - + shows them), and delete the key", f.Key, f.Own.Lacks)
	}
	a := f.action(Unstray, "stream %s is there again, and the object has each of its %d entries", f.Key, held.Contents.Count).by(f.Own)
	a.held = held
	return a
}

// recopy sends the segment back to LOCAL.
func (f *Facts) recopy(damage error) Action {
	next, err := f.Entry.Recopy()
	if f.Entry.Local == segment.Gone {
		next, err = f.Entry.Retake()
	}
	if err != nil {
		return f.leave("%v", err)
	}
	a := f.action(Recopy, "object: %v; the stream still has %s", damage, span(f.Held.Contents)).to(next)
	a.held = f.Held
	return a
}

// repoint looks for another object of the same content.
func (f *Facts) repoint(damage error) Action {
	other := f.replacement()
	if other == nil {
		return f.leave("object: %v; %s, and no other object of the segment is whole and has the same%s: bring back the object from a backup, a replica or an older version of the bucket, to its path, with its bytes",
			damage, f.saysStream(), f.saysOthers())
	}
	next, err := f.Entry.Repoint(other.Contents, other.object(), other.Copy)
	if err != nil {
		return f.leave("%v", err)
	}
	return f.action(Repoint, "object: %v; %s is whole and has the same %s", damage, other.Path, span(other.Contents)).by(other).to(next)
}

// replacement is the best of the other objects that hold what was copied: the
// very same bytes before others. Where nothing else is left, one that holds more
// will do: later copies have what came late.
func (f *Facts) replacement() (best *File) {
	e := f.Entry
	rank := func(x *File) int {
		same, alone := x.Contents == contentsOf(e), !f.Held.Info.Exists && !e.Shared()
		switch {
		case !x.whole() || e.Count == segment.NoCount || !f.digestFits(x.CRC32C):
			return 0
		case same && e.Object != nil && x.SHA256 == e.Object.SHA256:
			return 3
		case same:
			return 2
		case alone && holds(x.Contents, e):
			return 1
		}
		return 0
	}
	for i := range f.Others {
		if x := &f.Others[i]; rank(x) > 0 && (best == nil || rank(x) > rank(best) || rank(x) == rank(best) && x.Copy > best.Copy) {
			best = x
		}
	}
	return best
}

// holds says whether contents are at least what an entry tells that the segment
// held. A stream grows at its end only: what begins with another message is of
// another one.
func holds(c segment.Contents, e segment.Entry) bool {
	return e.Count != segment.NoCount && c.Count >= e.Count &&
		(e.Count == 0 || c.FirstID == e.FirstID && c.LastID.Compare(e.LastID) >= 0)
}

// saysStream says in a few words what is left of the stream.
func (f *Facts) saysStream() string {
	held := f.Held
	switch {
	case held.Wrong != nil:
		return held.Wrong.Error()
	case held.Contents.Count == 0:
		return "the stream has nothing of it any more"
	}
	return fmt.Sprintf("the stream is no whole copy (it has %s, %d of the %d that were copied)", span(held.Contents), held.Copied.Count, max(0, f.Entry.Count))
}

// saysOthers lists the other objects, and why they will not do.
func (f *Facts) saysOthers() string {
	var all []string
	for i := range f.Others {
		x := &f.Others[i]
		if x.Damage != nil {
			all = append(all, fmt.Sprintf("%s: %v", x.Path, x.Damage))
		} else if !x.Missing {
			all = append(all, fmt.Sprintf("%s has %s", x.Path, span(x.Contents)))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, "; ") + ")"
}
