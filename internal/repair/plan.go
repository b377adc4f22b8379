package repair

import (
	"fmt"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// Plan decides what is to be done about a segment. It returns a need where the
// facts do not suffice yet, and the action otherwise. It is pure: the same facts
// give the same answer.
func Plan(f Facts) (Action, Need) {
	switch {
	case f.Raw == "":
		return f.planAbsent()
	case f.Err != nil:
		return f.leave("the value is no entry that this program knows (%v), so nothing of it is changed; look at it with HGET, and correct it, or HDEL it and repair again: an object of the segment is taken over then", f.Err), NeedNothing
	case f.advised():
		return f.advise(), NeedNothing
	case f.Entry.State == segment.Deleting:
		return f.planDeleting()
	case f.Entry.State == segment.Open && f.has(scrub.Orphan):
		return f.leave("the segment is OPEN, and an object of it is there: redis has lost what came after it, or the object is of an earlier topic of that name; it stays, and the segment takes another path when it is copied; read it with cat FILE"), NeedNothing
	case f.Entry.State == segment.Open:
		return f.leave("the segment is OPEN, and nothing of it was copied; what its stream has lost is not on the store"), NeedNothing
	case f.Held == nil:
		return Action{}, NeedStream
	case f.Entry.Tier == segment.Local:
		return f.planLocal()
	}
	return f.planRemote()
}

// advised says whether no finding is about the copies of the segment, so that
// nothing need be read.
func (f *Facts) advised() bool {
	for _, x := range f.Findings {
		switch x.Kind {
		case scrub.Gap, scrub.Overlap, scrub.Unknown, scrub.Owner:
		default:
			return false
		}
	}
	return true
}

// planDeleting is about a segment that is hidden: what is left of it is to go.
func (f *Facts) planDeleting() (Action, Need) {
	switch {
	case f.Held == nil:
		return Action{}, NeedStream
	case f.Held.Wrong != nil || f.Held.Info.Length > 0 && !f.Entry.Shared() || f.Held.Contents.Count > 0:
		return f.leave("the entry is DELETING and stream %s is still there: the worker removes it after delete-grace, if it is what was to go; see what run reports", f.Key), NeedNothing
	case f.Entry.Object == nil:
		return f.end(EndDelete, segment.Entry{}, "the entry is DELETING, and neither stream nor object is left"), NeedNothing
	case f.Own == nil:
		return Action{}, NeedStat
	case !f.Own.Missing:
		return f.leave("the entry is DELETING and its object is still there: the worker deletes it after delete-grace; see whether run is at work, and what it reports (delete_denied: a lock or a right of the store)"), NeedNothing
	}
	return f.end(EndDelete, segment.Entry{}, "the entry is DELETING, and neither stream nor object is left"), NeedNothing
}

// end is an action that relies on what is not there.
func (f *Facts) end(d Deed, next segment.Entry, why string) Action {
	a := f.action(d, "%s", why)
	a.held = f.Held
	if d == EndDelete {
		if f.Entry.Object != nil {
			a.absent, a.Path = f.Entry.Object.Path, f.Entry.Object.Path
		}
		return a
	}
	return a.to(next)
}

// action begins an action on the segment.
func (f *Facts) action(d Deed, format string, args ...any) Action {
	a := Action{
		Deed: d, Partition: f.Partition, Segment: f.Segment, HasSegment: true, Why: fmt.Sprintf(format, args...),
		Old: f.Raw, before: f.Entry, hadEntry: f.Raw != "" && f.Err == nil, key: f.Key,
	}
	for _, x := range f.Findings {
		a.Kinds = append(a.Kinds, x.Kind)
	}
	switch {
	case f.Raw != "" && f.Err == nil && f.Entry.Object != nil:
		a.Path = f.Entry.Object.Path
	case len(f.Findings) > 0:
		a.Path = f.Findings[0].Path
	}
	return a
}

func (f *Facts) leave(format string, args ...any) Action { return f.action(Leave, format, args...) }

// to is the action with the entry that it writes.
func (a Action) to(next segment.Entry) Action {
	a.entry, a.New = next, string(next.Encode())
	return a
}

// by is the action that relies on an object.
func (a Action) by(file *File) Action {
	a.file, a.Path = file, file.Path
	return a
}
