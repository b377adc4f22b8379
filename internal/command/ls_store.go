package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// ofStore lists what lies in the bucket.
func (l *listing) ofStore(ctx context.Context, footers bool) error {
	switch {
	case len(l.what.partitions()) > 0:
		return l.partitionRows("objects", objectColumns(footers), func(p segment.Partition, add func(...cell) error) error { return l.objects(ctx, p, footers, add) })
	case len(l.what) > 0:
		return l.folders(ctx, "partitions", column{"PARTITION", "partition"}, func(g catalog.Group) string { return g.Partition.String() })
	}
	return l.folders(ctx, "topics", column{"TOPIC", "topic"}, func(g catalog.Group) string { return g.Partition.Topic })
}

// pile is what lies in several folders together.
type pile struct {
	name, namespace                               string // namespace: another than this one
	plain                                         bool
	partitions, segments, files, replaced, others int64
	bytes, replacedBytes                          int64
	first, last                                   time.Time // when the oldest and the newest object was put, by the store's clock
}

func (a *pile) add(g catalog.Group) {
	current := g.Current()
	a.partitions++
	a.segments += int64(len(current))
	a.files += int64(len(g.Objects))
	a.replaced += int64(len(g.Objects) - len(current))
	a.others += int64(len(g.Alien))
	for _, o := range g.Objects {
		a.replacedBytes += o.Info.Size
		if a.first.IsZero() || o.Info.ModTime.Before(a.first) {
			a.first = o.Info.ModTime
		}
		if o.Info.ModTime.After(a.last) {
			a.last = o.Info.ModTime
		}
	}
	for _, o := range current {
		a.bytes += o.Info.Size
		a.replacedBytes -= o.Info.Size
	}
}

func pileColumns(name column) []column {
	return []column{
		name, {"", "plain"}, partitionsColumn(name), {">SEGMENTS", "segments"}, {">SIZE", "bytes"}, {">OTHER COPIES", "other_copies"},
		{">SIZE", "other_copies_bytes"}, {">OTHER FILES", "other_files"}, {"FIRST PUT", "first_put"}, {"LAST PUT", "last_put"},
		{"", "namespace"},
	}
}

func (a *pile) cells() []cell {
	return []cell{
		textCell(a.name), {a.plain, fmt.Sprint(a.plain)}, numberCell(a.partitions), numberCell(a.segments), sizeCell(a.bytes), numberCell(a.replaced),
		sizeCell(a.replacedBytes), numberCell(a.others), timeCell(a.first), timeCell(a.last),
		textCell(a.namespace),
	}
}

// folders prints what lies in the folders, those of one name together. All of one
// topic is not always listed in one go, so that a pile for each is held.
func (l *listing) folders(ctx context.Context, name string, first column, nameOf func(catalog.Group) string) error {
	type key struct {
		name  string
		plain bool
	}
	piles, order := map[key]*pile{}, []key(nil)
	foreign, others, found := pile{name: "(no partition's)"}, namespacePiles{}, map[string]bool{}
	for g, err := range catalog.All(ctx, l.store, l.layout) {
		if err != nil {
			return err
		}
		if !g.Known {
			foreign.add(g)
			continue
		}
		if ns := l.namespaceOf(g); ns != "" {
			others.add(ns, g)
			continue
		}
		if !l.what.covers(g.Partition) {
			continue
		}
		found[g.Partition.Topic] = true
		k := key{nameOf(g), g.Partition.Plain}
		if piles[k] == nil {
			piles[k] = &pile{name: k.name, plain: k.plain}
			order = append(order, k)
		}
		piles[k].add(g)
	}
	out := newRows(l.process.Stdout, l.format, name, pileColumns(first))
	for _, k := range order {
		if err := out.add(piles[k].cells()...); err != nil {
			return err
		}
	}
	if len(l.what) == 0 {
		if foreign.others > 0 {
			others[""] = &foreign
		}
		for _, ns := range slices.Sorted(maps.Keys(others)) {
			if err := out.add(others[ns].cells()...); err != nil {
				return err
			}
		}
	}
	for _, n := range l.what {
		if !found[n.partition.Topic] {
			l.fault("%s: nothing of it lies in the bucket", n)
		}
	}
	return out.end()
}

// namespacePiles are what lies there of other namespaces, by their names.
type namespacePiles map[string]*pile

func (a namespacePiles) add(ns string, g catalog.Group) {
	if a[ns] == nil {
		a[ns] = &pile{name: "(of namespace " + ns + ")", namespace: ns}
	}
	a[ns].add(g)
}

// namespaceOf is the other namespace that a folder is of; "" = of this one, or of
// none. To this one, a topic's folder of another looks like that of a plain stream.
func (l *listing) namespaceOf(g catalog.Group) string {
	before, after, has := strings.Cut(l.layout.Stream, "{ns}")
	if _, mine := segment.ResolveStream(g.Partition.Topic, l.layout, l.plain); mine || !g.Partition.Plain || !has || !strings.HasPrefix(g.Folder, before) {
		return ""
	}
	divider, _, _ := strings.Cut(after, "{")
	if divider == "" {
		return "" // it can't be told where its name ends
	}
	rest, other := g.Folder[len(before):], l.layout
	for at := range rest {
		if at == 0 || !strings.HasPrefix(rest[at:], divider) {
			continue
		}
		other.Namespace = rest[:at]
		if p, known := other.PartitionOf(g.Folder); known && !p.Plain {
			return other.Namespace
		}
	}
	return ""
}

func objectColumns(footers bool) []column {
	all := []column{
		{">SEGMENT", "segment"}, {">COPY", "copy"}, {">SIZE", "bytes"}, {"PUT", "put"}, {"", "etag"},
	}
	if footers {
		all = append(all, column{">MESSAGES", "messages"}, column{"FIRST ID", "first_id"}, column{"LAST ID", "last_id"}, column{"FROM", "from"}, column{"TO", "to"})
	}
	return append(all, column{"OBJECT", "object"}, column{"", "problem"})
}

// objects prints the files of one partition.
func (l *listing) objects(ctx context.Context, p segment.Partition, footers bool, add func(...cell) error) error {
	g, err := catalog.List(ctx, l.store, l.layout, p)
	if err != nil {
		return err
	}
	g.Objects = slices.DeleteFunc(g.Objects, func(o catalog.Object) bool { return !l.what.has(p, o.Segment) })
	for batch := range slices.Chunk(g.Objects, footersAtOnce) {
		var read []footer
		if footers {
			if read, err = l.footers(ctx, p, batch); err != nil {
				return err
			}
		}
		for i, o := range batch {
			cells := []cell{numberCell(o.Segment), numberCell(o.Copy), sizeCell(o.Info.Size), timeCell(o.Info.ModTime), textCell(o.Info.ETag)}
			problem := ""
			if footers {
				cells = append(cells, read[i].cells()...)
				problem = read[i].problem()
			}
			if problem != "" {
				l.fault("object %s: %s", o.Info.Key, problem)
			}
			if err := add(append(cells, textCell(o.Info.Key), textCell(problem))...); err != nil {
				return err
			}
		}
	}
	for _, a := range g.Alien {
		if l.what.some(p) {
			break
		}
		l.fault("object %s: it is no file of a segment", a.Key)
	}
	left := l.what.of(p)
	for _, o := range g.Objects {
		left = left.without(o.Segment)
	}
	switch {
	case len(left) > 0:
		l.fault("segment %s/%s: nothing of it lies in the bucket", p, left)
	case len(g.Objects)+len(g.Alien) == 0:
		l.fault("%s: nothing of it lies in the bucket; is the name right?", p)
	}
	return nil
}

// footersAtOnce is how many footers are read at once.
const footersAtOnce = 16

// footer is what a file tells of itself, or why it does not.
type footer struct {
	meta parquetfile.Meta
	err  error
}

func (f footer) problem() string {
	if f.err != nil {
		return f.err.Error()
	}
	return ""
}

func (f footer) cells() []cell {
	if f.err != nil {
		return []cell{textCell(""), textCell(""), textCell(""), textCell(""), textCell("")}
	}
	m := f.meta
	return []cell{countCell(m.Count), idCell(m.FirstID), idCell(m.LastID), idTimeCell(m.FirstID), idTimeCell(m.LastID)}
}

// footers reads the footers of some objects. One that is wrong says so; the error
// is that of the context.
func (l *listing) footers(ctx context.Context, p segment.Partition, all []catalog.Object) ([]footer, error) {
	read := make([]footer, len(all))
	g, ctx := errgroup.WithContext(ctx)
	for i, o := range all {
		g.Go(func() error {
			read[i] = l.footer(ctx, p, o)
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("read the footers of %s: %w", p, err)
	}
	return read, nil
}

func (l *listing) footer(ctx context.Context, p segment.Partition, o catalog.Object) footer {
	source := objectfile.New(ctx, l.store, o.Info.Key, o.Info.Size)
	defer source.Close()
	f, err := parquetfile.Open(source, o.Info.Size)
	if err != nil {
		return footer{err: err}
	}
	m := f.Meta()
	if want := (parquetfile.FileID{StreamKey: l.layout.StreamKey(p), Segment: o.Segment}); m.FileID != want {
		return footer{meta: m, err: fmt.Errorf("%w: %s/%s", parquetfile.ErrOtherSegment, m.StreamKey, m.Segment)}
	}
	return footer{meta: m}
}
