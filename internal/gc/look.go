package gc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"korvet-offload/internal/catalog"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// looking is one Look under way.
type looking struct {
	*Collector
	plan   Plan
	topics topics
	paused segment.Pauses
	read   map[segment.Partition]bool // manifests that were
	fields int64                      // of all manifests
	remote int                        // entries in the scope that name an object
	odd    map[string]bool            // paths that lie where nobody would look for them
	broken int                        // manifests that can't be read
}

// Look lists the store, reads the manifests, and says what could go. It changes
// nothing, and needs no lease.
func (c *Collector) Look(ctx context.Context) (Plan, error) {
	l := &looking{Collector: c, read: map[segment.Partition]bool{}, odd: map[string]bool{}}
	for _, step := range []func(context.Context) error{l.begin, l.objects, l.others, l.check, l.verify, l.uploads} {
		if err := step(ctx); err != nil {
			return l.plan, err
		}
	}
	return l.plan, nil
}

// begin asks what has to be known first.
func (l *looking) begin(ctx context.Context) error {
	if err := l.owned(ctx); err != nil {
		return err
	}
	var err error
	if l.plan.At, err = l.ports.Now(ctx); err != nil {
		return fmt.Errorf("read the clocks: %w", err)
	}
	if l.topics, err = readTopics(ctx, l.ports.Registry); err != nil {
		return err
	}
	if l.paused, err = l.ports.Registry.Paused(ctx); err != nil {
		return fmt.Errorf("read what is paused: %w", err)
	}
	if l.opt.Removed && !l.topics.any() {
		return ErrNoTopics
	}
	return nil
}

// objects lists folder by folder, and reads each folder's manifest behind it.
func (l *looking) objects(ctx context.Context) error {
	for g, err := range catalog.All(ctx, scoped{l.ports.Store, scopePrefix(l.layout, l.opt.Scope)}, l.layout) {
		if err != nil {
			return err
		}
		if !g.Known || !l.opt.covers(g.Partition) {
			if l.opt.all() {
				l.alien(g)
			}
			continue
		}
		if err := l.folder(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

func (l *looking) alien(g catalog.Group) {
	for _, o := range g.Alien {
		l.plan.Seen.add(o)
		l.plan.Alien.add(o)
	}
}

// folder sorts the objects of one partition.
func (l *looking) folder(ctx context.Context, g catalog.Group) error {
	m, err := l.manifest(ctx, g.Partition)
	if err != nil {
		return err
	}
	l.alien(g)
	guard := l.guard(m)
	for _, o := range g.Objects {
		l.plan.Seen.add(o.Info)
		class, kept := m.judge(o)
		switch {
		case !l.opt.meant(m.partition, o.Segment):
		case guard != nil:
			l.plan.Guarded.add(o.Info)
		case kept == keepNewer:
			l.plan.Newer.add(o.Info)
		case kept != "":
			l.plan.Named.add(o.Info)
		default:
			l.candidate(m, o, l.topics.lower(class, m.partition))
		}
	}
	if guard != nil && len(g.Objects) > 0 {
		l.plan.Protected = append(l.plan.Protected, *guard)
	}
	return nil
}

// guard says why all objects of a partition stay; nil if they need not.
func (l *looking) guard(m *manifest) *Protected {
	switch {
	case m.err != nil:
		return &Protected{Partition: m.partition, Err: m.err, Odd: true}
	case l.paused.Covers(m.partition):
		return &Protected{Partition: m.partition, Err: errPaused}
	case m.fields == 0:
		if err := l.topics.isThere(m.partition); err != nil {
			return &Protected{Partition: m.partition, Err: err, Odd: errors.Is(err, errLostManifest)}
		}
	}
	return nil
}

func (l *looking) candidate(m *manifest, o catalog.Object, class Class) {
	age := l.plan.At.Sub(o.Info.ModTime)
	if o.Info.ModTime.IsZero() || age < l.opt.OlderThan {
		l.plan.Young.add(o.Info)
		return
	}
	found := Candidate{Partition: m.partition, Object: o, Class: class, Why: m.why(class, o), Age: age, first: m.first, last: m.last}
	found.retention, _ = l.topics.retention(m.partition)
	if l.opt.wants(class) {
		l.plan.Objects = append(l.plan.Objects, found)
	} else {
		l.plan.Left = append(l.plan.Left, found)
	}
}

// why says in one line what makes an object a candidate.
func (m *manifest) why(class Class, o catalog.Object) string {
	f := m.entries[o.Segment]
	switch {
	case class == Replaced && f.copyOf == o.Copy:
		return fmt.Sprintf("another attempt at copy %d of segment %s, whose entry names one", o.Copy, o.Segment)
	case class == Replaced:
		return fmt.Sprintf("copy %d of segment %s, whose entry names copy %d", o.Copy, o.Segment, f.copyOf)
	case class == Removed:
		return "its partition has no manifest, and is not in the registry"
	case o.Segment < m.first && class == Expired:
		return fmt.Sprintf("segment %s has no entry, as retention.ms may have it: the manifest begins with segment %s", o.Segment, m.first)
	case o.Segment < m.first:
		return fmt.Sprintf("segment %s has no entry: the manifest begins with segment %s, and no retention.ms is set that could have taken it", o.Segment, m.first)
	case o.Segment > m.last:
		return fmt.Sprintf("segment %s has no entry: the manifest ends with segment %s", o.Segment, m.last)
	}
	return fmt.Sprintf("segment %s has no entry, between others that have", o.Segment)
}

// manifest reads a manifest, and notes what matters beyond its partition.
func (l *looking) manifest(ctx context.Context, p segment.Partition) (*manifest, error) {
	m, err := readManifest(ctx, l.ports.Manifests, l.layout, p)
	if err != nil {
		return nil, err
	}
	l.read[p] = true
	l.fields += int64(len(m.entries))
	if m.err != nil {
		l.broken++
	}
	for path := range m.odd {
		if !strings.HasPrefix(path, m.folder+"/") {
			l.odd[path] = true
		}
	}
	if l.opt.covers(p) {
		l.remote += m.remote
	}
	return m, nil
}

// others reads the manifests of the partitions that have no folder: they may name
// an object in another's.
func (l *looking) others(ctx context.Context) error {
	for p := range l.topics.partitions() {
		if l.read[p] {
			continue
		}
		if _, err := l.manifest(ctx, p); err != nil {
			return err
		}
	}
	named := func(c Candidate) bool { return l.odd[c.Object.Info.Key] }
	for _, list := range []*[]Candidate{&l.plan.Objects, &l.plan.Left} {
		for _, c := range *list {
			if named(c) {
				l.plan.Named.add(c.Object.Info)
			}
		}
		*list = slices.DeleteFunc(*list, named)
	}
	return nil
}

// check refuses worlds that can't be true.
func (l *looking) check(context.Context) error {
	switch {
	case l.fields == 0 && l.broken == 0 && l.plan.Seen.Objects > l.plan.Alien.Objects:
		return ErrNoManifests
	case l.remote > 0 && l.plan.Seen.Objects == 0:
		return ErrNoObjects
	}
	return nil
}

// verify looks at what the objects that are to go depend on, so that a plan says
// what will be done.
func (l *looking) verify(ctx context.Context) error {
	kept := make([]Candidate, 0, len(l.plan.Objects))
	for some := range slices.Chunk(l.plan.Objects, batch) {
		why, err := l.recheck(ctx, pointers(some))
		if err != nil {
			return err
		}
		for i, c := range some {
			if why[i] == "" {
				kept = append(kept, c)
				continue
			}
			c.Stays = why[i]
			l.plan.Left = append(l.plan.Left, c)
		}
	}
	l.plan.Objects = kept
	return nil
}

func pointers(some []Candidate) []*Candidate {
	all := make([]*Candidate, len(some))
	for i := range some {
		all[i] = &some[i]
	}
	return all
}

// uploads looks for unfinished ones.
func (l *looking) uploads(ctx context.Context) error {
	if !l.opt.Uploads {
		return nil
	}
	for u, err := range l.ports.Uploads.Uploads(ctx) {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			l.plan.NoUploads = err
			return nil
		}
		age := l.plan.At.Sub(u.Begun)
		if l.ours(u) && !u.Begun.IsZero() && age >= l.opt.OlderThan {
			l.plan.Uploads = append(l.plan.Uploads, Upload{u, age})
		} else {
			l.plan.NewBegun++
		}
	}
	return nil
}

// ours says whether an upload would make an object of this program, in the scope.
func (l *looking) ours(u s3sink.Unfinished) bool {
	name, ok := segment.ParseObjectPath(u.Key)
	if !ok {
		return l.opt.all() && strings.HasPrefix(u.Key, s3sink.ProbeFolder)
	}
	p, known := l.layout.PartitionOf(name.Folder)
	return known && l.opt.covers(p) && l.opt.meant(p, name.Segment) && !l.paused.Covers(p)
}

// scoped lists only what begins with a prefix.
type scoped struct {
	from   catalog.Lister
	prefix string
}

// List implements catalog.Lister.
func (s scoped) List(ctx context.Context, prefix string) iter.Seq2[s3sink.Info, error] {
	return s.from.List(ctx, s.prefix+prefix)
}

// scopePrefix is what the folders of a scope begin with, as far as one prefix can
// say it.
func scopePrefix(l segment.Layout, s segment.Scope) string {
	switch {
	case s.Stream != "":
		return l.Folder(segment.Partition{Topic: s.Stream, Plain: true}) + "/"
	case s.Topic == "":
		return ""
	}
	first, second := l.Folder(segment.Partition{Topic: s.Topic}), l.Folder(segment.Partition{Topic: s.Topic, Number: 1})
	n := 0
	for n < min(len(first), len(second)) && first[n] == second[n] {
		n++
	}
	return first[:n]
}
