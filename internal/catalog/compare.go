package catalog

import (
	"cmp"
	"slices"

	"korvet-offload/segment"
)

// Verdict says how an entry and an object agree.
type Verdict string

// The verdicts.
const (
	Same      Verdict = "same"       // the entry names the object, with this size
	NotCopied Verdict = "not copied" // the entry names none, and none is at its path
	Unmarked  Verdict = "unmarked"   // the object is at the path of an entry that is LOCAL yet: being copied, or left by an attempt that was stopped
	Missing   Verdict = "missing"    // the entry names an object that is not there
	OtherSize Verdict = "other size" // the entry says another size
	Replaced  Verdict = "replaced"   // the segment's entry names another copy, or a later one is being made
	Unnamed   Verdict = "unnamed"    // there is no entry of the segment
	Deleting  Verdict = "deleting"   // the entry is hidden, and its object may or may not be gone
	Illegal   Verdict = "illegal"    // the entry can't be read, so that nobody knows
)

// Wrong says whether something lacks, or nobody knows why it is there. The other
// verdicts are what is found while all is well.
func (v Verdict) Wrong() bool {
	return v == Missing || v == OtherSize || v == Unnamed || v == Illegal
}

// Row is an entry, an object, or both, as they belong together.
type Row struct {
	Segment segment.Number
	Stored  *segment.Stored // nil = no entry names the object
	Object  *Object         // nil = there is none for the entry
	Verdict Verdict
}

// Match compares the entry of one segment, nil if there is none, with the objects
// of that very segment. The row of the entry comes first. It is pure: both may have
// been read at different times, and whoever wants to be sure looks at what is wrong
// once more.
func Match(n segment.Number, stored *segment.Stored, objects []Object) (rows []Row) {
	used := -1
	if stored != nil {
		row := Row{Segment: n, Stored: stored}
		row.Verdict, used = judge(*stored, objects)
		if used >= 0 {
			row.Object = &objects[used]
		}
		rows = append(rows, row)
	}
	for i := range objects {
		if i != used {
			rows = append(rows, Row{n, nil, &objects[i], leftOver(stored, objects[i])})
		}
	}
	return rows
}

// judge says how an entry agrees with the objects of its segment, and which of
// them is its own, -1 for none.
func judge(s segment.Stored, objects []Object) (v Verdict, own int) {
	e := s.Entry
	switch {
	case s.Err != nil:
		return Illegal, -1
	case e.Object == nil:
		own = slices.IndexFunc(objects, func(o Object) bool { return o.Copy == e.Copy })
		v = Unmarked
		if own < 0 {
			v = NotCopied
		}
	default:
		own = slices.IndexFunc(objects, func(o Object) bool { return o.Info.Key == e.Object.Path })
		switch {
		case own < 0:
			v = Missing
		case objects[own].Info.Size != e.Object.Bytes:
			v = OtherSize
		default:
			v = Same
		}
	}
	if e.State == segment.Deleting {
		v = Deleting
	}
	return v, own
}

// leftOver says why an object may be there that is not the one of its segment's
// entry.
func leftOver(s *segment.Stored, o Object) Verdict {
	switch {
	case s == nil:
		return Unnamed
	case s.Err != nil:
		return Illegal
	case s.Entry.Object == nil && o.Copy >= s.Entry.Copy:
		return Unmarked
	}
	return Replaced
}

// Segments are the objects of a group, segment by segment.
func (g *Group) Segments() map[segment.Number][]Object {
	all := make(map[segment.Number][]Object, len(g.Objects))
	for lo := 0; lo < len(g.Objects); {
		hi := lo + 1
		for hi < len(g.Objects) && g.Objects[hi].Segment == g.Objects[lo].Segment {
			hi++
		}
		all[g.Objects[lo].Segment] = g.Objects[lo:hi]
		lo = hi
	}
	return all
}

// Current is the object of each segment, in the order of the segments, that would
// be taken for it where there is no manifest: its highest copy. Of several attempts
// at one copy it is the newest.
func (g *Group) Current() (current []Object) {
	for _, o := range g.Objects {
		if n := len(current); n > 0 && current[n-1].Segment == o.Segment {
			if newer(o, current[n-1]) {
				current[n-1] = o
			}
			continue
		}
		current = append(current, o)
	}
	return current
}

func newer(a, b Object) bool {
	return cmp.Or(cmp.Compare(a.Copy, b.Copy), a.Info.ModTime.Compare(b.Info.ModTime)) > 0
}
