package scrub

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/words"
	"korvet-offload/segment"
)

// facts is what is known of a partition without asking for more.
type facts struct {
	partition segment.Partition
	folder    string
	topic     segment.Topic // zero where the registry has no such topic
	listed    bool          // the registry has it, and its settings make sense
	manifest  manifest
	group     catalog.Group
	now       int64         // by the Redis server's clock, epoch ms
	grace     time.Duration // that a DELETING entry stays by design

	foreign map[string]segment.Number // objects that are named by an entry of another segment
}

// halfDeleted is for how long after its grace a DELETING entry may stay. Objects
// are deleted some thousands at a time, and one that the store does not let go is
// tried again and again.
const (
	halfDeleted = 24 * time.Hour
	unerased    = time.Hour // where the object has gone already
)

// judge finds what manifest and listing tell by themselves. It is pure.
func judge(f *facts) []Finding {
	f.foreign = map[string]segment.Number{}
	for _, r := range f.manifest.rows {
		if r.err == nil && r.entry.Object != nil && !f.owns(r) {
			f.foreign[r.entry.Object.Path] = r.number
		}
	}
	var all []Finding
	all = append(all, f.illegal()...)
	all = append(all, f.paths()...)
	all = append(all, f.gaps()...)
	all = append(all, f.overlaps()...)
	all = append(all, f.halfDeleted()...)
	all = append(all, f.orphans()...)
	return append(all, f.unknown()...)
}

func (f *facts) finding(k Kind, n segment.Number, format string, args ...any) Finding {
	return Finding{Kind: k, Partition: f.partition, Segment: n, HasSegment: true, Detail: fmt.Sprintf(format, args...)}
}

// illegal are the values and fields that are no entries.
func (f *facts) illegal() (all []Finding) {
	for _, name := range f.manifest.alien {
		all = append(all, Finding{Kind: IllegalEntry, Partition: f.partition,
			Detail: fmt.Sprintf("field %.60q of the manifest is no segment id", name)})
	}
	for _, r := range f.manifest.rows {
		if r.err != nil {
			all = append(all, f.finding(IllegalEntry, r.number, "%v", r.err))
		}
	}
	return all
}

// owns says whether the object that an entry names is one of its segment.
func (f *facts) owns(r row) bool { return segment.IsObjectOf(r.entry.Object.Path, f.folder, r.number) }

// paths are the entries whose object is not their own.
func (f *facts) paths() (all []Finding) {
	for _, r := range f.manifest.rows {
		if r.err != nil || r.entry.Object == nil || f.owns(r) {
			continue
		}
		out := f.finding(IllegalEntry, r.number, "its entry names %q, which is no object of this segment", r.entry.Object.Path)
		if whose, named := f.namedBy(r.entry.Object.Path); named && whose != r.number {
			out = f.finding(DuplicatePath, r.number, "its entry names the object of segment %s", whose)
		}
		out.Path = r.entry.Object.Path
		all = append(all, out)
	}
	return all
}

// namedBy is the segment whose entry names an object: its own, if that does.
func (f *facts) namedBy(path string) (whose segment.Number, named bool) {
	if name, ok := segment.ParseObjectPath(path); ok && name.Folder == f.folder {
		if r, there := f.manifest.find(name.Segment); there && r.err == nil && r.entry.Object != nil && r.entry.Object.Path == path {
			return r.number, true
		}
	}
	whose, named = f.foreign[path]
	return whose, named
}

// gaps are the numbers between two entries that have neither an entry nor an
// object, which would say more. Where retention has taken them they are notes.
func (f *facts) gaps() (all []Finding) {
	firm, any := f.firm()
	for lo, hi := range f.missing() {
		for from, to := range f.without(lo, hi) {
			g := f.finding(Gap, from, "segments %s to %s are not in the manifest, between %s and %s", from, to, lo-1, hi+1)
			if from == to {
				g.Detail = fmt.Sprintf("segment %s is not in the manifest, between %s and %s", from, lo-1, hi+1)
			}
			if g.Note = !any || from < firm; g.Note {
				g.Detail += ": what is before it is past retention, or waits for something"
			}
			all = append(all, g)
		}
	}
	return all
}

// missing gives the numbers between entries that have none, as ranges.
func (f *facts) missing() iter.Seq2[segment.Number, segment.Number] {
	return func(yield func(lo, hi segment.Number) bool) {
		rows := f.manifest.rows
		for i := 1; i < len(rows); i++ {
			if lo, hi := rows[i-1].number+1, rows[i].number-1; lo <= hi && !yield(lo, hi) {
				return
			}
		}
	}
}

// without gives the ranges of a range in which no number has an object.
func (f *facts) without(lo, hi segment.Number) iter.Seq2[segment.Number, segment.Number] {
	return func(yield func(from, to segment.Number) bool) {
		i, _ := slices.BinarySearchFunc(f.group.Objects, lo, func(o catalog.Object, n segment.Number) int { return cmp.Compare(o.Segment, n) })
		for ; i < len(f.group.Objects) && f.group.Objects[i].Segment <= hi; i++ {
			n := f.group.Objects[i].Segment
			if lo < n && !yield(lo, n-1) {
				return
			}
			lo = max(lo, n+1)
		}
		if lo <= hi {
			yield(lo, hi)
		}
	}
}

// firm is the first segment that retention leaves, so that what follows it can't
// have been taken. false: it can't be told of any.
func (f *facts) firm() (first segment.Number, any bool) {
	if !f.listed {
		return 0, false // a topic that is removed goes in no order
	}
	total := f.topic.Settings.Total()
	if f.kept() {
		for _, r := range f.manifest.rows {
			if r.sealed() {
				return r.number, true
			}
		}
		return 0, false
	}
	var sum int64
	for _, r := range f.manifest.rows {
		sum += f.size(r)
	}
	spans := func(yield func(segment.Span) bool) {
		for _, r := range f.manifest.rows {
			if !r.sealed() {
				continue
			}
			at, _ := r.entry.LastAppend(f.now)
			if !yield(segment.Span{Number: r.number, At: at, Bytes: f.size(r)}) {
				first, any = r.number, true
				return
			}
		}
	}
	for range total.Overdue(f.now, sum, spans) { // to its end: the one that stays is the last that it has asked for
		continue
	}
	return first, any
}

// kept says whether the topic keeps everything for ever.
func (f *facts) kept() bool {
	total := f.topic.Settings.Total()
	return f.listed && total.Ms < 0 && total.Bytes < 0
}

// size is what a segment counts in the total.
func (f *facts) size(r row) int64 {
	switch {
	case r.err != nil || r.entry.State == segment.Deleting:
		return 0
	case r.entry.Tier == segment.Remote:
		return f.topic.Settings.Size(r.entry.Count, r.entry.Object.Bytes)
	}
	return f.topic.Settings.Size(r.entry.Count, 0)
}

// overlaps are segments that hold the same ids. Segments of topics have streams of
// their own, and what comes late makes their ranges overlap without harm: whether
// they hold the same messages, only their objects tell.
func (f *facts) overlaps() (all []Finding) {
	var before row
	for _, r := range f.manifest.rows {
		e, b := r.entry, before.entry
		if !r.ranged() {
			continue
		}
		if !b.LastID.IsZero() && e.FirstID.Compare(b.LastID) <= 0 {
			all = append(all, f.overlap(before, r))
		}
		if b.LastID.IsZero() || e.LastID.Compare(b.LastID) > 0 {
			before = r
		}
	}
	return all
}

func (f *facts) overlap(before, r row) Finding {
	e, b := r.entry, before.entry
	out := f.finding(Overlap, r.number, "%s to %s, and segment %s has %s to %s", e.FirstID, e.LastID, before.number, b.FirstID, b.LastID)
	if e.Shared() {
		return out
	}
	out.Note = true
	out.Detail += ": what comes late makes ranges overlap"
	return out
}

// halfDeleted are the deletions that nothing has come of.
func (f *facts) halfDeleted() (all []Finding) {
	for _, r := range f.manifest.rows {
		if r.err != nil || r.entry.State != segment.Deleting || r.entry.DeletingAt == 0 {
			continue
		}
		e := r.entry
		over := time.Duration(f.now-e.DeletingAt)*time.Millisecond - f.grace
		out := f.finding(HalfDeleted, r.number, "it is DELETING since %s", time.UnixMilli(e.DeletingAt).UTC().Format(time.RFC3339))
		switch gone := e.Object != nil && f.lacks(e.Object.Path); {
		case gone && over > unerased:
			out.Detail += ", and its object is gone"
		case over <= halfDeleted:
			continue
		}
		if e.Object != nil {
			out.Path = e.Object.Path
		}
		all = append(all, out)
	}
	return all
}

// orphans are the objects of segments that no entry names.
func (f *facts) orphans() (all []Finding) {
	if f.manifest.empty() {
		return f.abandoned()
	}
	firm, any := f.firm()
	for _, o := range f.group.Objects {
		if _, named := f.namedBy(o.Info.Key); named {
			continue
		}
		text, note, say := f.standing(o, firm, any)
		if !say {
			continue
		}
		out := f.finding(Orphan, o.Segment, "%s (%s)", text, words.Size(o.Info.Size))
		out.Path, out.Note = o.Info.Key, note
		all = append(all, out)
	}
	return all
}

// standing says what an object is that no entry names.
func (f *facts) standing(o catalog.Object, firm segment.Number, any bool) (text string, note, say bool) {
	r, there := f.manifest.find(o.Segment)
	switch {
	case there && r.err != nil:
		return "", false, false // nothing can be said of what is its
	case there && r.entry.Object != nil && !segment.IsObjectOf(r.entry.Object.Path, f.folder, r.number) && o.Copy >= r.entry.Copy:
		return fmt.Sprintf("its entry names %q instead", r.entry.Object.Path), false, true
	case there:
		return standingOf(o, r.entry)
	case len(f.manifest.rows) == 0:
		return "the manifest has no entry that can be read", false, true
	case o.Segment < f.manifest.rows[0].number && f.kept():
		return "its segment is before the manifest's first entry, and no retention is set that could have taken it", false, true
	case o.Segment < f.manifest.rows[0].number:
		return "its segment is before the manifest's first entry, as retention may have it; gc looks closer", true, true
	case o.Segment > f.manifest.rows[len(f.manifest.rows)-1].number:
		return "its segment is above all of the manifest: redis has lost entries, or an earlier topic of this name has left it", false, true
	case !any || o.Segment < firm:
		return "its segment has no entry, as retention may have it; gc looks closer", true, true
	}
	return "its segment is not in the manifest", false, true
}

// standingOf says it where the segment has an entry, which names another object,
// or none.
func standingOf(o catalog.Object, e segment.Entry) (text string, note, say bool) {
	newest := e.Copy
	if e.Object != nil {
		if name, ok := segment.ParseObjectPath(e.Object.Path); ok {
			newest = max(newest, name.Copy)
		}
	}
	switch {
	case e.State == segment.Open:
		return "its segment is still OPEN: redis has lost entries, or an earlier topic of this name has left it", false, true
	case e.Tier == segment.Local && o.Copy >= newest:
		return "", false, false // it is being copied, or was when something stopped it
	case e.Tier == segment.Remote && o.Copy > newest:
		return fmt.Sprintf("it is a newer copy than its entry names, which is %s: redis has lost a change", e.Object.Path), false, true
	}
	return "replaced copy", true, true
}

// abandoned are the objects of a partition that has no manifest at all.
func (f *facts) abandoned() []Finding {
	var bytes int64
	for _, o := range f.group.Objects {
		bytes += o.Info.Size
	}
	n := len(f.group.Objects)
	if n == 0 {
		return nil
	}
	return []Finding{{Kind: Orphan, Partition: f.partition, Path: f.group.Objects[0].Info.Key,
		Detail: fmt.Sprintf("%s (%s), from segment %s to %s, and there is no manifest", words.Count(n, "object"), words.Size(bytes),
			f.group.Objects[0].Segment, f.group.Objects[n-1].Segment)}}
}

// unknown are the objects in the partition's folder that are no segment's.
func (f *facts) unknown() (all []Finding) {
	for _, o := range f.group.Alien {
		all = append(all, Finding{Kind: Unknown, Partition: f.partition, Path: o.Key,
			Detail: fmt.Sprintf("it is no object of a segment (%s)", words.Size(o.Size)), Note: f.manifest.empty()})
	}
	return all
}

// object finds an object in the listing.
func (f *facts) object(path string) (catalog.Object, bool) {
	name, ok := segment.ParseObjectPath(path)
	if !ok || name.Folder != f.folder {
		return catalog.Object{}, false
	}
	i, there := slices.BinarySearchFunc(f.group.Objects, name, func(o catalog.Object, n segment.ObjectName) int {
		return cmp.Or(cmp.Compare(o.Segment, n.Segment), cmp.Compare(o.Copy, n.Copy), cmp.Compare(o.Suffix, n.Suffix))
	})
	if !there {
		return catalog.Object{}, false
	}
	return f.group.Objects[i], true
}

func (f *facts) lacks(path string) bool {
	_, there := f.object(path)
	return !there
}

// order is that in which findings of a partition are told.
func order(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Path, b.Path))
}
