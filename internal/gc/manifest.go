package gc

import (
	"context"
	"fmt"

	"korvet-offload/internal/catalog"
	"korvet-offload/segment"
)

// Class is why an object could go.
type Class string

// The classes. Objects of the first two are leftovers of what this program does;
// those of the others may be the only copy of something.
const (
	Replaced Class = "replaced"      // an older copy of a segment whose entry names another one
	Expired  Class = "expired"       // of a segment before the manifest's first entry, and past retention.ms
	Gap      Class = "gap"           // of a segment without an entry, elsewhere
	Removed  Class = "removed_topic" // of a partition without a manifest, whose topic is not registered
)

// Classes lists all classes.
func Classes() []Class { return []Class{Replaced, Expired, Gap, Removed} }

// keep is why an object is no candidate whatever its age.
type keep string

// The reasons to keep an object.
const (
	keepNamed   keep = "named"   // an entry names it
	keepPending keep = "pending" // its segment's entry may name it yet, or does not name one
	keepNewer   keep = "newer"   // a later copy than the one that the entry names
)

// fact is what matters of an entry.
type fact struct {
	copied   int64 // the entry's copy
	copyOf   int64 // the copy that the path it names is of
	settled  bool  // SEALED REMOTE and names an object
	gone     bool  // and its local copy is gone
	odd      bool  // its path is in manifest.odd
	suffixed bool  // its path has a suffix, and so is in manifest.odd as well
}

// manifest is what matters of one partition's manifest.
type manifest struct {
	partition   segment.Partition
	folder      string
	entries     map[segment.Number]fact
	odd         map[string]bool // paths that are not the plain one of their entry's copy
	first, last segment.Number
	fields      int64
	remote      int   // entries that name an object
	err         error // why all of the partition stays
}

func newManifest(l segment.Layout, p segment.Partition) *manifest {
	return &manifest{partition: p, folder: l.Folder(p), entries: map[segment.Number]fact{}, odd: map[string]bool{}}
}

// readManifest reads a manifest as a whole. An error is an outage; what is wrong
// with the manifest is in it.
func readManifest(ctx context.Context, from Manifests, l segment.Layout, p segment.Partition) (*manifest, error) {
	m := newManifest(l, p)
	fields, err := from.Each(ctx, p, m.take)
	m.fields = fields
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case isOutage(err):
		return nil, fmt.Errorf("read the manifest of %s: %w", p, err)
	case err != nil:
		m.spoil(fmt.Errorf("its manifest can't be read: %w", err))
	case int64(len(m.entries)) < fields:
		m.spoil(fmt.Errorf("its manifest did not come whole: %d of %d entries", len(m.entries), fields))
	}
	return m, nil
}

// spoil protects the whole partition, for the first reason that there is.
func (m *manifest) spoil(why error) {
	if m.err == nil {
		m.err = why
	}
}

// take adds an entry; one that comes again takes the place of the first, whose
// path stays protected.
func (m *manifest) take(field, value string) {
	n, err := segment.ParseNumber(field)
	if err != nil {
		m.spoil(fmt.Errorf("its manifest has a field that is no segment: %.100q", field))
		return
	}
	e, err := segment.ParseEntry([]byte(value))
	if err != nil {
		m.spoil(fmt.Errorf("the entry of segment %s can't be read: %w", n, err))
		return
	}
	if _, again := m.entries[n]; !again {
		m.bound(n)
	}
	m.entries[n] = m.note(n, e)
}

func (m *manifest) bound(n segment.Number) {
	if len(m.entries) == 0 {
		m.first, m.last = n, n
	}
	m.first, m.last = min(m.first, n), max(m.last, n)
}

func (m *manifest) note(n segment.Number, e segment.Entry) fact {
	f := fact{copied: e.Copy}
	if e.Object == nil || e.Object.Path == "" {
		return f
	}
	m.remote++
	path := e.Object.Path
	f.odd = path != segment.ObjectPath(m.folder, n, e.Copy, "")
	if f.odd {
		m.odd[path] = true
	}
	name, ours := segment.ParseObjectPath(path)
	if !ours || name.Folder != m.folder || name.Segment != n {
		return f // it lies somewhere else: nothing is known of its copies
	}
	f.copyOf, f.suffixed = name.Copy, name.Suffix != ""
	f.settled = e.State == segment.Sealed && e.Tier == segment.Remote
	f.gone = e.Local == segment.Gone
	return f
}

// judge says of an object in the partition's folder which class it is of, or why
// it stays. It is pure.
func (m *manifest) judge(o catalog.Object) (Class, keep) {
	if m.odd[o.Info.Key] {
		return "", keepNamed
	}
	f, there := m.entries[o.Segment]
	switch {
	case m.fields == 0 && len(m.entries) == 0:
		return Removed, ""
	case !there && o.Segment < m.first:
		return Expired, ""
	case !there:
		return Gap, ""
	}
	return f.judge(o)
}

// judge says it of an object whose segment has this entry, and which no other
// entry names.
func (f fact) judge(o catalog.Object) (Class, keep) {
	switch {
	case !f.settled:
		return "", keepPending
	case !f.odd && o.Copy == f.copied && o.Suffix == "":
		return "", keepNamed
	case o.Copy < f.copied && o.Copy < f.copyOf:
		return Replaced, ""
	case o.Copy == f.copied && f.copied == f.copyOf && f.suffixed && f.gone:
		return Replaced, "" // of another attempt, on a store without conditional puts
	case !f.gone && o.Copy >= f.copied:
		return "", keepPending
	}
	return "", keepNewer
}
