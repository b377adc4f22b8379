package repair

import (
	"fmt"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// planAbsent is about a segment that has no entry. If an object of it is whole and
// fits between its neighbors, it gets one.
func (f *Facts) planAbsent() (Action, Need) {
	switch {
	case f.Place == nil:
		return Action{}, NeedPlace
	case f.Place.Empty:
		return f.leave("the partition has no manifest: korvet-offload restore --manifests rebuilds it from the objects"), NeedNothing
	case (f.Segment > f.Place.Last || f.Segment < f.Place.First) && !f.has(scrub.Orphan):
		return f.leave("stream %s is of a segment that has no entry, outside of all that the manifest has (%d to %d): no reader finds it: move its messages on (redis-cli XRANGE %[1]s - + shows them), and delete the key", f.Key, f.Place.First, f.Place.Last), NeedNothing
	case f.Segment > f.Place.Last:
		return f.leave("it lies above the last entry (%d), where the next segments begin, so it is not taken over; what Redis has lost there is read with cat --object; it may be the only copy: gc --gaps deletes it when nobody wants it any more", f.Place.Last), NeedNothing
	case f.Segment < f.Place.First && !f.IncludeExpired:
		return f.leave("it lies below the first entry (%d): retention has deleted it, or was about to; gc removes the object, --include-expired takes it over", f.Place.First), NeedNothing
	case f.Held == nil:
		return Action{}, NeedStream
	case f.Held.Wrong != nil:
		return f.leave("%v; see who has made it, and move it away", f.Held.Wrong), NeedNothing
	case !f.OthersRead:
		return Action{}, NeedOthers
	}
	return f.takeOver(), NeedNothing
}

// takeOver gives the best of the objects an entry: the latest copy that is whole.
func (f *Facts) takeOver() Action {
	var found *File
	for i := range f.Others {
		if x := &f.Others[i]; x.whole() && (found == nil || x.Copy > found.Copy) {
			found = x
		}
	}
	if found == nil && f.Held.Contents.Count > 0 {
		return f.takeOverStream()
	}
	if found == nil {
		return f.leave("the segment has no entry, and no object of it is whole%s: if there never was such a segment, nothing is lost; else bring back its object from a backup", f.saysOthers())
	}
	if why := f.outOfPlace(found.Contents); why != "" {
		return f.leave("object %s has %s, and %s: it is of another time (a topic of that name that was removed, an older life of the stream), so it is not taken over; read it with cat FILE", found.Path, span(found.Contents), why)
	}
	next, why := f.entryFor(found)
	if why != "" {
		return f.leave("object %s is whole and has %s, and %s", found.Path, span(found.Contents), why)
	}
	a := f.action(TakeOver, "the segment has no entry; object %s is whole, has %s, and fits between its neighbors", found.Path, span(found.Contents)).by(found).to(next)
	a.held, a.place = f.Held, f.Place
	return a
}

// takeOverStream gives a stream an entry of which no object is whole. It has to be
// certain that it is all that the segment ever had: nothing was ever deleted or
// trimmed.
func (f *Facts) takeOverStream() Action {
	held := f.Held
	why := f.outOfPlace(held.Contents)
	switch {
	case f.Partition.Plain:
		why = "a range that has no entry is found by its object only"
	case why == "" && held.Info.EntriesAdded != held.Info.Length:
		why = "the server does not say that it is all that it ever had"
	}
	if why != "" {
		return f.leave("the segment has no entry, and no object of it is whole%s; stream %s has %s, and %s: no reader finds them: move them on (redis-cli XRANGE %[2]s - + shows them), and delete the key", f.saysOthers(), f.Key, span(held.Contents), why)
	}
	a := f.action(TakeOver, "the segment has no entry; its stream has all that it ever had, %s, and fits between its neighbors", span(held.Contents)).to(segment.NewSealed(held.Contents, 0, f.Now))
	a.held, a.place = held, f.Place
	return a
}

// outOfPlace says why contents can't be those of a segment between its
// neighbors; "" if they can.
func (f *Facts) outOfPlace(c segment.Contents) string {
	for _, n := range []*Neighbor{f.Place.Before, f.Place.After} {
		if n != nil && !n.Known {
			return fmt.Sprintf("nobody knows what segment %d beside it holds", n.Number)
		}
	}
	before, after := f.Place.Before, f.Place.After
	switch {
	case c.Count == 0:
		return ""
	case before != nil && c.FirstID.Compare(later(before.Last, before.To)) <= 0:
		return fmt.Sprintf("segment %d comes to %s", before.Number, later(before.Last, before.To))
	case after != nil && c.LastID.Compare(earlier(after.First, after.From)) >= 0:
		return fmt.Sprintf("segment %d begins with %s", after.Number, earlier(after.First, after.From))
	}
	return ""
}

func later(a, b segment.ID) segment.ID {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// earlier is the earlier of where a segment's messages and its range begin. Either
// may be unknown: a range may be empty, or OPEN, whose entry does not say.
func earlier(first, from segment.ID) segment.ID {
	if first.IsZero() || !from.IsZero() && from.Compare(first) < 0 {
		return from
	}
	return first
}

// entryFor is the entry that an object gets, or why it gets none. Where the
// stream is there too, with all that the object has, the segment is LOCAL, and the
// worker's own checks decide whether this object is its copy.
func (f *Facts) entryFor(found *File) (segment.Entry, string) {
	held := f.Held
	e := segment.NewSealed(found.Contents, found.Copy, f.Now)
	if f.Partition.Plain {
		from, to, why := f.bounds(found.Contents)
		if why != "" {
			return e, why
		}
		e = e.Between(f.Key, from, to)
	}
	switch {
	case held.Contents.Count == 0:
		e, err := e.Found(found.Contents, found.object(), found.Copy, f.Now)
		if err != nil {
			return e, err.Error()
		}
		if e.Shared() {
			e.Source = &segment.Source{LastID: found.Contents.LastID, Added: -1, CRC32C: int64(found.CRC32C)}
		}
		return e, ""
	case holds(held.Contents, e) && (!e.Shared() || held.Contents.Count == e.Count):
		return e, ""
	}
	return e, fmt.Sprintf("stream %s has %s of it: compare the two (redis-cli XRANGE %[1]s - +, cat --object), and move the one that is to go away", f.Key, span(held.Contents))
}

// bounds are those of a range of a plain stream: ranges follow one another
// without a gap.
func (f *Facts) bounds(c segment.Contents) (from, to segment.ID, why string) {
	before, after := f.Place.Before, f.Place.After
	if c.Count == 0 || after == nil || after.From.IsZero() || before != nil && before.To.IsZero() {
		return from, to, "the ranges beside it do not say where they begin and end"
	}
	from, ok := c.FirstID, true
	if before != nil {
		from, ok = before.To.Next()
	}
	to, more := after.From.Prev()
	if !ok || !more || c.FirstID.Compare(from) < 0 || c.LastID.Compare(to) > 0 {
		return from, to, fmt.Sprintf("it does not lie between %s and %s, where the range is missing", from, to)
	}
	if beside(before, f.Segment, -1) && beside(after, f.Segment, 1) {
		return from, to, ""
	}
	return c.FirstID, c.LastID, "" // ranges beside it are missing as well
}

// beside says whether a neighbor is the very next segment; none is.
func beside(n *Neighbor, to segment.Number, step int64) bool {
	return n == nil || int64(n.Number) == int64(to)+step //nolint:gosec // segment numbers are 63 bits
}
