package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/words"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// compare lays manifests and bucket side by side.
func (l *listing) compare(ctx context.Context) error {
	if len(l.what.partitions()) > 0 {
		return l.partitionRows("segments", compareColumns(), func(p segment.Partition, add func(...cell) error) error { return l.compareSegments(ctx, p, add) })
	}
	parts, err := l.partitions(ctx)
	if err != nil {
		return err
	}
	columns := []column{
		{"PARTITION", "partition"}, {"", "plain"}, {">SAME", "same"}, {">NOT COPIED", "not_copied"}, {">UNMARKED", "unmarked"}, {">DELETING", "deleting"},
		{">REPLACED", "replaced"}, {">MISSING", "missing"}, {">OTHER SIZE", "other_size"}, {">UNNAMED", "unnamed"}, {">ILLEGAL", "illegal"},
	}
	out := newRows(l.process.Stdout, l.format, "partitions", columns)
	for _, p := range parts {
		counts := map[catalog.Verdict]int64{}
		if err := l.match(ctx, p, func(r catalog.Row) error { counts[r.Verdict]++; return nil }); err != nil {
			return err
		}
		cells := []cell{textCell(p.String()), {p.Plain, fmt.Sprint(p.Plain)}}
		for _, v := range []catalog.Verdict{catalog.Same, catalog.NotCopied, catalog.Unmarked, catalog.Deleting, catalog.Replaced,
			catalog.Missing, catalog.OtherSize, catalog.Unnamed, catalog.Illegal} {
			cells = append(cells, numberCell(counts[v]))
		}
		if err := out.add(cells...); err != nil {
			return err
		}
	}
	return errors.Join(out.end(), l.folderless(ctx, parts))
}

// folderless says which partitions have objects and are in no registry.
func (l *listing) folderless(ctx context.Context, parts []segment.Partition) error {
	for g, err := range catalog.All(ctx, l.store, l.layout) {
		switch {
		case err != nil:
			return err
		case !g.Known:
			if len(l.what) == 0 && len(g.Alien) > 0 {
				l.fault("folder %q: it is no partition's, and has %s", g.Folder, words.Count(len(g.Alien), "object"))
			}
		case l.what.covers(g.Partition) && !slices.Contains(parts, g.Partition):
			l.fault("%s: it is in no registry, and the bucket has %s of it", g.Partition, words.Count(len(g.Objects)+len(g.Alien), "file"))
		}
	}
	return nil
}

func compareColumns() []column {
	return []column{
		{">SEGMENT", "segment"}, {"VERDICT", "verdict"}, {"WHERE", "where"}, {">SIZE", "entry_bytes"}, {">ON THE STORE", "object_bytes"},
		{"PUT", "put"}, {"ENTRY NAMES", "entry_object"}, {"OBJECT", "object"},
	}
}

func (l *listing) compareSegments(ctx context.Context, p segment.Partition, add func(...cell) error) error {
	n, left := 0, l.what.of(p)
	err := l.match(ctx, p, func(r catalog.Row) error {
		n, left = n+1, left.without(r.Segment)
		named, size, where := "", cell{nil, "-"}, ""
		if r.Stored != nil && r.Stored.Err == nil {
			where = whereabouts(r.Stored.Entry)
			if o := r.Stored.Entry.Object; o != nil {
				named, size = o.Path, sizeCell(o.Bytes)
			}
		}
		there, put, path := cell{nil, "-"}, cell{nil, "-"}, ""
		if r.Object != nil {
			there, put, path = sizeCell(r.Object.Info.Size), timeCell(r.Object.Info.ModTime), r.Object.Info.Key
		}
		return add(numberCell(r.Segment), textCell(string(r.Verdict)), textCell(where), size, there, put, textCell(named), textCell(path))
	})
	switch {
	case err != nil:
	case len(left) > 0:
		l.fault("segment %s/%s: there is neither an entry nor an object of it", p, left)
	case n == 0:
		l.fault("%s: there is neither an entry nor an object of it; is the name right?", p)
	}
	return err
}

// match gives what a manifest and a folder have, segment by segment. The folder
// is read first: what is copied and marked meanwhile is then seen as missing at
// worst, and that is looked at once more.
func (l *listing) match(ctx context.Context, p segment.Partition, take func(catalog.Row) error) error {
	g, err := catalog.List(ctx, l.store, l.layout, p)
	if err != nil {
		return err
	}
	left := g.Segments()
	maps.DeleteFunc(left, func(n segment.Number, _ []catalog.Object) bool { return !l.what.has(p, n) })
	numbers := slices.Sorted(maps.Keys(left)) // of the objects that were not matched yet
	below := func(n segment.Number, all bool) error {
		for len(numbers) > 0 && (all || numbers[0] < n) {
			if err := l.judge(ctx, p, numbers[0], nil, left[numbers[0]], take); err != nil {
				return err
			}
			numbers = numbers[1:]
		}
		return nil
	}
	err = l.entries(ctx, p, func(s segment.Stored) error {
		if err := below(s.Number, false); err != nil {
			return err
		}
		if len(numbers) > 0 && numbers[0] == s.Number {
			numbers = numbers[1:]
		}
		return l.judge(ctx, p, s.Number, &s, left[s.Number], take)
	})
	if err == nil {
		err = below(0, true)
	}
	for _, a := range g.Alien {
		if l.what.some(p) {
			break
		}
		l.fault("object %s: it is no file of a segment", a.Key)
	}
	return err
}

// judge matches one segment, and looks once more where something is wrong.
func (l *listing) judge(ctx context.Context, p segment.Partition, n segment.Number, s *segment.Stored, objects []catalog.Object, take func(catalog.Row) error) error {
	rows := catalog.Match(n, s, objects)
	if slices.ContainsFunc(rows, func(r catalog.Row) bool { return r.Verdict.Wrong() }) {
		var err error
		if rows, err = l.again(ctx, p, n); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if r.Verdict.Wrong() {
			l.fault("segment %s/%s: %s", p, n, wrongLine(r))
		}
		if err := take(r); err != nil {
			return err
		}
	}
	return nil
}

// again reads one segment anew: its objects, then its entry.
func (l *listing) again(ctx context.Context, p segment.Partition, n segment.Number) ([]catalog.Row, error) {
	objects, err := objectsOf(ctx, l.store, l.layout, p, n)
	if err != nil {
		return nil, err
	}
	stored, err := l.peek(ctx, p, []segment.Number{n})
	if err != nil {
		return nil, err
	}
	if len(stored) == 0 { // an entry goes only after its object: if that was it, it is gone by now
		objects, err = objectsOf(ctx, l.store, l.layout, p, n)
		return catalog.Match(n, nil, objects), err
	}
	e := stored[0].Entry
	if e.Object != nil && !slices.ContainsFunc(objects, func(o catalog.Object) bool { return o.Info.Key == e.Object.Path }) {
		info, err := l.store.Stat(ctx, e.Object.Path) // it may have been put since, or lie elsewhere
		if name, ok := segment.ParseObjectPath(e.Object.Path); err == nil && ok {
			info.Key = e.Object.Path
			objects = append(objects, catalog.Object{ObjectName: name, Info: info})
		} else if err != nil && s3sink.ClassOf(err) != s3sink.ClassMissing {
			return nil, fmt.Errorf("look at object %s: %w", e.Object.Path, err)
		}
	}
	return catalog.Match(n, &stored[0], objects), nil
}

// objectsOf lists the objects of one segment.
func objectsOf(ctx context.Context, store s3sink.Store, layout segment.Layout, p segment.Partition, n segment.Number) (all []catalog.Object, err error) {
	folder := layout.Folder(p)
	for _, prefix := range []string{folder + "/" + n.String() + ".", folder + "/" + n.String() + "-"} {
		for info, err := range store.List(ctx, prefix) {
			if err != nil {
				return nil, fmt.Errorf("list the objects of %s/%s: %w", p, n, err)
			}
			if name, ok := segment.ParseObjectPath(info.Key); ok && name.Folder == folder && name.Segment == n {
				all = append(all, catalog.Object{ObjectName: name, Info: info})
			}
		}
	}
	return all, nil
}

// wrongLine says what is wrong about a row.
func wrongLine(r catalog.Row) string {
	switch r.Verdict {
	case catalog.Missing:
		return fmt.Sprintf("its entry names object %s, which is not there", r.Stored.Entry.Object.Path)
	case catalog.OtherSize:
		return fmt.Sprintf("its entry says that object %s has %s, and it has %d", r.Object.Info.Key, words.Count(r.Stored.Entry.Object.Bytes, "byte"), r.Object.Info.Size)
	case catalog.Unnamed:
		return fmt.Sprintf("there is no entry of it, and object %s lies there", r.Object.Info.Key)
	case catalog.Illegal:
		if r.Stored != nil {
			return r.Stored.Err.Error()
		}
		return fmt.Sprintf("its entry can't be read, and object %s lies there", r.Object.Info.Key)
	}
	return string(r.Verdict)
}
