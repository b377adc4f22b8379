package repair

import (
	"korvet-offload/internal/scrub"
)

// advise is for findings that need nothing read, and that are for a person to
// settle.
func (f *Facts) advise() Action {
	if f.has(scrub.Overlap) {
		return f.leave("two segments hold the same ids (%s); readers would get them twice: see with ls and cat which of them is right, and correct the manifest by hand", f.detail(scrub.Overlap))
	}
	for _, x := range f.Findings {
		if x.Kind == scrub.Unknown || x.Kind == scrub.Owner {
			return f.leave("%s", advise(x).Why)
		}
	}
	return f.action(Nothing, "the segment has an entry")
}

// advise is for a finding that is of no segment.
func advise(x scrub.Finding) Action {
	a := Action{Deed: Leave, Partition: x.Partition, Segment: x.Segment, HasSegment: x.HasSegment, Kinds: []scrub.Kind{x.Kind}, Path: x.Path, Why: x.Detail}
	switch x.Kind {
	case scrub.Unknown:
		a.Why += ": it is none of this program's objects, and is left alone; move it away if nobody needs it"
	case scrub.Orphan:
		a.Why += ": korvet-offload restore --manifests rebuilds the manifest from the objects, if they are still wanted"
	case scrub.Owner:
		a.Why += ": nothing is repaired below a root that is not this namespace's; look at _korvet_offload.json there, and at korvet.namespace and the remote path"
	case scrub.IllegalEntry:
		a.Why += ": a field of the manifest that is no segment is left alone; look at it with HGET, and HDEL it if nobody needs it"
	case scrub.StrayStream:
		a.Why += ": move its entries on, and delete the key"
	default:
		a.Why += ": there is no segment to repair; look at it with ls and describe"
	}
	return a
}
