package restore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// Found is what the store has of one segment.
type Found struct {
	Number   segment.Number
	Object   *segment.Object // the copy that was chosen; nil = none of them is whole
	Copy     int64
	At       int64 // when it was written, epoch ms by the store's clock
	Contents segment.Contents
	Older    []string // paths of whole and damaged copies that were not chosen
	Damaged  []error  // why copies were passed over
}

// Survey is what the store has of one partition.
type Survey struct {
	Partition segment.Partition
	Segments  []Found // in the order of their numbers
	Alien     int     // objects in its folder that are no segment's files
}

// last is the last number of which there is any object, whole or not.
func (s *Survey) last() segment.Number { return s.Segments[len(s.Segments)-1].Number }

// whole are the segments that have a whole file.
func (s *Survey) whole() []Found {
	return slices.DeleteFunc(slices.Clone(s.Segments), func(f Found) bool { return f.Object == nil })
}

// Survey looks at the files of one partition. Of a segment it takes the copy with
// the highest number that is whole: by its footer and its size, where there is one
// copy only and the store tells its SHA-256; read from end to end, where there are
// several, the store does not tell, or deep is set. Nothing is changed.
func (r *Restorer) Survey(ctx context.Context, g catalog.Group, deep bool) (Survey, error) {
	s := Survey{Partition: g.Partition, Alien: len(g.Alien)}
	for objects := range groups(g.Objects) {
		f, err := r.find(ctx, g.Partition, objects, deep)
		if err != nil {
			return s, err
		}
		s.Segments = append(s.Segments, f)
	}
	return s, nil
}

// groups gives the objects of one segment after the other.
func groups(all []catalog.Object) func(yield func([]catalog.Object) bool) {
	return func(yield func([]catalog.Object) bool) {
		for len(all) > 0 {
			n := 1
			for n < len(all) && all[n].Segment == all[0].Segment {
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// find chooses among the copies of a segment. An error is one of the store.
func (r *Restorer) find(ctx context.Context, p segment.Partition, objects []catalog.Object, deep bool) (Found, error) {
	f := Found{Number: objects[0].Segment}
	newest := slices.Clone(objects)
	slices.SortStableFunc(newest, func(a, b catalog.Object) int { // of one copy, attempts have the same number
		return cmp.Or(cmp.Compare(b.Copy, a.Copy), b.Info.ModTime.Compare(a.Info.ModTime), cmp.Compare(b.Suffix, a.Suffix))
	})
	for _, o := range newest {
		if f.Object != nil {
			f.Older = append(f.Older, o.Info.Key)
			continue
		}
		object, c, err := r.inspect(ctx, p, o, deep || len(objects) > 1)
		switch {
		case err == nil:
			f.Object, f.Contents = &object, c
			f.Copy, f.At = o.Copy, o.Info.ModTime.UnixMilli()
		case damaged(err):
			f.Damaged = append(f.Damaged, fmt.Errorf("object %s: %w", o.Info.Key, err))
		default:
			return f, fmt.Errorf("look at object %s: %w", o.Info.Key, err)
		}
	}
	return f, nil
}

// inspect says what an entry is to tell of an object, and what is in it.
func (r *Restorer) inspect(ctx context.Context, p segment.Partition, o catalog.Object, whole bool) (segment.Object, segment.Contents, error) {
	is, err := r.Objects.Look(ctx, o.Info.Key)
	if err != nil {
		return segment.Object{}, segment.Contents{}, err
	}
	object := segment.Object{Path: o.Info.Key, Bytes: is.Size, ETag: is.ETag, SHA256: is.SHA256}
	of := r.fileOf(p, o.Segment)
	if whole || is.SHA256 == "" || is.ETag == "" { // a folder has no ETag, and its SHA-256 is of what lies there now
		f, err := r.fetch(ctx, o.Info.Key, is, of)
		if err != nil {
			return object, segment.Contents{}, err
		}
		defer f.close()
		object.SHA256 = f.sha256
		return object, f.Meta().Contents, nil
	}
	source := objectfile.New(ctx, r.Objects, o.Info.Key, is.Size)
	defer source.Close()
	c, err := parquetfile.Check(source, is.Size, of)
	return object, c, err
}
