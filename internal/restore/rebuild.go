package restore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/words"
	"korvet-offload/segment"
)

// damaged says whether an error is the fault of one object, and not of the store.
func damaged(err error) bool {
	for _, e := range []error{parquetfile.ErrDamaged, parquetfile.ErrNotSegmentFile, parquetfile.ErrVersion, parquetfile.ErrOtherSegment, ErrMissing} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Options say what a rebuilt manifest may be like all the same.
type Options struct {
	Disorder bool // segments whose ids begin below those of the segment before
	Expired  bool // segments that the topic's retention deletes at the next tick
}

// Rebuild is what is to be done with one manifest.
type Rebuild struct {
	Partition segment.Partition
	Add       []Found // entries that are missing, in the order of their numbers
	There     int     // entries that are there already, just as they would be written
	Replace   string  // the entry 0 that a worker has made meanwhile, and that is replaced or removed
	Open      segment.Number
	OpenEntry segment.Entry // what is put at Open; the zero entry = nothing, the manifest is in use
	Expired   int           // of the segments, by the topic's retention
	Limit     string        // which
	Refused   []error       // why nothing of it is done
	Faults    []error       // segments without a whole file, or that are missing
	Notes     []string
}

// Does says whether there is anything to do.
func (b *Rebuild) Does() bool {
	return len(b.Refused) == 0 && b.OpenEntry.State != ""
}

func (b *Rebuild) refuse(format string, args ...any) {
	b.Refused = append(b.Refused, refuse("%s: %w", b.Partition, fmt.Errorf(format, args...)))
}

func (b *Rebuild) note(format string, args ...any) {
	b.Notes = append(b.Notes, b.Partition.String()+": "+fmt.Sprintf(format, args...))
}

// PlanManifest looks what it takes to make the manifest of a partition anew, out
// of what the store has of it. settings are the topic's; nil = nobody knows it.
// Nothing is changed.
func (r *Restorer) PlanManifest(ctx context.Context, s Survey, settings *segment.TopicSettings, o Options) (Rebuild, error) {
	b := Rebuild{Partition: s.Partition}
	m, err := r.entries(ctx, s.Partition)
	if err != nil {
		return b, err
	}
	now, err := r.Server.Now(ctx)
	if err != nil {
		return b, fmt.Errorf("read the redis clock: %w", err)
	}
	b.tellFaults(s)
	if len(s.whole()) == 0 {
		b.note("there is no whole file of it on the store")
		return b, nil
	}
	if b.Open = s.last() + 1; b.Open > lastNumber {
		b.refuse("segment %s has the largest number there is, or nearly, and none is left for those to come: move its file away", s.last())
		return b, nil
	}
	b.checkFront(s)
	b.compare(s, m, now)
	if len(b.Refused) > 0 || b.OpenEntry.State == "" {
		return b, nil
	}
	b.checkOrder(s, o)
	b.checkRetention(s, settings, o, now)
	return b, r.checkStreams(ctx, &b, s, now)
}

// tellFaults says what of the segments is not there, or not whole.
func (b *Rebuild) tellFaults(s Survey) {
	for i, f := range s.Segments {
		if i > 0 && f.Number > s.Segments[i-1].Number+1 {
			b.note("segments %d to %d have no object: they were deleted, or never copied", s.Segments[i-1].Number+1, f.Number-1)
		}
		if f.Object == nil {
			b.Faults = append(b.Faults, fmt.Errorf("segment %s/%s: no whole file: %w", b.Partition, f.Number, errors.Join(f.Damaged...)))
			continue
		}
		for _, err := range f.Damaged {
			b.Faults = append(b.Faults, fmt.Errorf("segment %s/%s: %w; copy %d is taken instead", b.Partition, f.Number, err, f.Copy))
		}
		if len(f.Older) > 0 {
			b.note("segment %s: %s is taken, of %d copies", f.Number, f.Object.Path, 1+len(f.Older)+len(f.Damaged))
		}
	}
	if s.Alien > 0 {
		b.note("%s in its folder %s of no segment: left alone", words.Count(s.Alien, "object"), words.Are(s.Alien))
	}
}

// lastNumber is up to what number a segment can be OPEN, with others to follow.
const lastNumber = math.MaxInt64 - 1<<32

// checkFront refuses what would leave a file without an entry that may be good:
// one before the manifest's first entry would count as past retention, and gc
// would remove it; one of a newer version is whole to a newer program.
func (b *Rebuild) checkFront(s Survey) {
	first := s.whole()[0].Number
	for _, f := range s.Segments {
		switch err := errors.Join(f.Damaged...); {
		case errors.Is(err, parquetfile.ErrVersion):
			b.refuse("segment %s: %w: restore with the version that wrote it, or move the file away", f.Number, err)
		case f.Number < first:
			b.refuse("segment %s has no whole file, and comes before segment %s, the first that has one: what is before a manifest's first entry counts as past retention, and gc may remove it; move its files out of the root, and keep them",
				f.Number, first)
		}
	}
}

// compare sees what of the manifest is there. One that is in use, by its OPEN or
// LOCAL entries, gets nothing: only the last step of a rebuild puts an OPEN entry,
// so that whatever has one is complete, or somebody else's.
func (b *Rebuild) compare(s Survey, m segment.Manifest, now time.Time) {
	have := map[segment.Number]segment.Stored{}
	inUse := false
	for _, e := range m.Entries {
		have[e.Number] = e
		switch {
		case e.Number == 0 && untouched(e):
			b.Replace = e.Raw
			delete(have, 0)
		case e.Err == nil && e.Entry.Tier == segment.Local:
			inUse = true
		}
	}
	var strange []segment.Number
	for _, f := range s.whole() {
		e, there := have[f.Number]
		delete(have, f.Number)
		switch {
		case !there:
			b.Add = append(b.Add, f)
		case names(e, f):
			b.There++
		default:
			strange = append(strange, f.Number)
		}
	}
	for n := range have { // of segments without a file
		if !inUse {
			strange = append(strange, n)
		}
	}
	switch {
	case len(strange) > 0:
		b.refuse("its manifest has an entry of segment %s that is not what the store tells of it: it is in use, so see verify and repair; nothing of it is changed", least(strange))
	case inUse && len(b.Add) > 0:
		b.refuse("its manifest is in use and lacks %s of the store, the first of them %s: see verify and repair; nothing of it is changed", words.Count(len(b.Add), "segment"), b.Add[0].Number)
	case inUse:
	default:
		b.OpenEntry = segment.NewOpen("", now.UnixMilli())
	}
}

func least(all []segment.Number) segment.Number {
	n := all[0]
	for _, m := range all {
		n = min(n, m)
	}
	return n
}

// untouched says whether an entry may be one that a worker makes of a partition
// without a manifest: OPEN, with a stream of its own. Whether that is still empty
// is looked at apart.
func untouched(e segment.Stored) bool {
	return e.Err == nil && e.Entry.State == segment.Open && e.Entry.Tier == segment.Local && e.Entry.Key == "" && !e.Entry.Shared()
}

// names says whether an entry tells of just this file.
func names(e segment.Stored, f Found) bool {
	return e.Err == nil && e.Entry.State == segment.Sealed && e.Entry.Tier == segment.Remote && e.Entry.Object != nil &&
		e.Entry.Object.Path == f.Object.Path && e.Entry.Object.Bytes == f.Object.Bytes && e.Entry.Object.SHA256 == f.Object.SHA256 &&
		e.Entry.Count == f.Contents.Count && e.Entry.FirstID == f.Contents.FirstID && e.Entry.LastID == f.Contents.LastID
}

// checkOrder looks at the ids from segment to segment. Those of neighbours may
// overlap a little, by late appends; a segment that begins below the one before is
// rather one of an older topic of the same name.
func (b *Rebuild) checkOrder(s Survey, o Options) {
	var before *Found
	for _, f := range s.whole() {
		if f.Contents.Count == 0 {
			continue
		}
		switch {
		case before == nil || f.Contents.FirstID.Compare(before.Contents.LastID) > 0:
		case f.Contents.FirstID.Compare(before.Contents.FirstID) > 0 && s.Partition.Plain && !o.Disorder:
			b.refuse("segments %s (up to %s) and %s (from %s) overlap, and both are of one stream: look at both with cat, move away what does not belong here, or give --allow-disorder",
				before.Number, before.Contents.LastID, f.Number, f.Contents.FirstID)
		case f.Contents.FirstID.Compare(before.Contents.FirstID) > 0:
			b.note("segments %s (up to %s) and %s (from %s) overlap, as late appends make them", before.Number, before.Contents.LastID, f.Number, f.Contents.FirstID)
		case o.Disorder:
			b.note("segment %s begins at %s, below segment %s, which begins at %s", f.Number, f.Contents.FirstID, before.Number, before.Contents.FirstID)
		default:
			b.refuse("segment %s begins at %s, below segment %s, which begins at %s: one of them may be of an older topic of this name; look at both with cat, move away what does not belong here, or give --allow-disorder",
				f.Number, f.Contents.FirstID, before.Number, before.Contents.FirstID)
		}
		before = &f
	}
}

// checkRetention says which segments the next tick would delete, for good.
func (b *Rebuild) checkRetention(s Survey, settings *segment.TopicSettings, o Options, now time.Time) {
	if settings == nil {
		return
	}
	var spans []segment.Span
	var total int64
	for _, f := range s.whole() {
		e := entryOf(b.Partition, f)
		at, _ := e.LastAppend(now.UnixMilli())
		span := segment.Span{Number: f.Number, At: at, Bytes: settings.Size(f.Contents.Count, f.Object.Bytes)}
		spans, total = append(spans, span), total+span.Bytes
	}
	for _, due := range settings.Total().Overdue(now.UnixMilli(), total, each(spans)) {
		b.Expired++
		b.Limit = due.Limit
	}
	const text = "%d of its %s %s past %s, and the next tick would delete them, objects and all"
	switch {
	case b.Expired == 0:
	case o.Expired:
		b.note(text, b.Expired, words.Count(len(spans), "segment"), words.Are(b.Expired), b.Limit)
	default:
		b.refuse(text+": raise it first, or give --include-expired", b.Expired, words.Count(len(spans), "segment"), words.Are(b.Expired), b.Limit)
	}
}
