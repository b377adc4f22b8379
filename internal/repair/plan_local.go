package repair

import (
	"korvet-offload/segment"
)

// planLocal is about a SEALED LOCAL segment. Its stream was read.
func (f *Facts) planLocal() (Action, Need) {
	fault := f.sourceFault()
	if fault == nil {
		return f.action(Nothing, "its stream is whole, with %s, and is copied at the next tick", span(f.Held.Contents)), NeedNothing
	}
	if !f.OthersRead {
		return Action{}, NeedOthers
	}
	return f.reflip(fault), NeedNothing
}

// reflip looks for an object that has all that the segment held.
func (f *Facts) reflip(fault error) Action {
	e := f.Entry
	var found *File
	for i := range f.Others {
		x := &f.Others[i]
		if x.whole() && f.mayBe(x.Contents) && (found == nil || x.Contents.Count > found.Contents.Count ||
			x.Contents.Count == found.Contents.Count && x.Copy > found.Copy) {
			found = x
		}
	}
	switch {
	case e.Count == segment.NoCount:
		return f.leave("stream: %v; and the entry does not say what the segment held, so that no object%s can be known to have it: correct the entry's firstId, lastId and count, and repair again", fault, f.saysOthers())
	case found == nil:
		return f.leave("stream: %v; and no object has %s%s", fault, span(contentsOf(e)), f.saysOthers())
	case f.Held.Wrong != nil:
		return f.leave("%v; rename that key first: object %s has the segment", f.Held.Wrong, found.Path)
	case found.Lacks > 0 && !e.Shared():
		return f.leave("stream: %v; object %s has %s, and the stream has %d other entries, which no reader would find any more: move them on (redis-cli XRANGE %s - + shows them), delete the key, and repair again",
			fault, found.Path, span(found.Contents), found.Lacks, f.Key)
	case found.Lacks < 0 && !e.Shared():
		return f.leave("stream: %v; object %s has %s, and what the stream has is too much to compare here: compare it (redis-cli XRANGE %s - +, cat --object), delete the key if the object has it all, and repair again",
			fault, found.Path, span(found.Contents), f.Key)
	}
	next, err := e.Found(found.Contents, found.object(), found.Copy, f.Now)
	if err != nil {
		return f.leave("%v", err)
	}
	if e.Shared() {
		next.Source = &segment.Source{LastID: found.Contents.LastID, Added: -1, CRC32C: int64(found.CRC32C)}
	}
	a := f.action(Reflip, "stream: %v; object %s is whole and has %s", fault, found.Path, span(found.Contents)).by(found).to(next)
	a.held = f.Held
	return a
}

// mayBe says whether contents are those of the segment: at least what the entry
// tells; of a range, exactly that, within its bounds.
func (f *Facts) mayBe(c segment.Contents) bool {
	e := f.Entry
	if !holds(c, e) {
		return false
	}
	if !e.Shared() {
		return true
	}
	return c.Count == e.Count && (c.Count == 0 || c.FirstID.Compare(e.From) >= 0 && c.LastID.Compare(e.To) <= 0)
}
