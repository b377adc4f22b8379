// Package catalog says what lies on the object store: which objects are files
// of which segments, by their paths alone.
//
// Guarantees: it reads listings and nothing else, one partition of it in memory
// at a time; an object whose path is not one of a segment's is given as Alien
// and never guessed about.
//
// Non-guarantees: that a path is that of a segment does not mean that the object
// is a segment's file, or that an entry names it.
package catalog

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// Lister lists objects; every s3sink.Store does.
type Lister interface {
	List(ctx context.Context, prefix string) iter.Seq2[s3sink.Info, error]
}

// Object is an object whose path is that of a segment's file.
type Object struct {
	segment.ObjectName
	Info s3sink.Info // its Key is the path
}

// Group is what lies in one folder.
type Group struct {
	Folder    string
	Partition segment.Partition // of which the folder is
	Known     bool              // false: no partition has such a folder, and all is Alien
	Objects   []Object          // in the order of their segments, then copies, then suffixes
	Alien     []s3sink.Info     // what is no file of a segment, by its path
}

// List lists the folder of one partition.
func List(ctx context.Context, from Lister, l segment.Layout, p segment.Partition) (Group, error) {
	g := Group{Folder: l.Folder(p), Partition: p, Known: true}
	for info, err := range from.List(ctx, g.Folder+"/") {
		if err != nil {
			return g, fmt.Errorf("list the objects of %s: %w", p, err)
		}
		g.add(info)
	}
	g.sort()
	return g, nil
}

// All lists the whole root, folder by folder, each once: a folder comes behind
// those that lie in it, and otherwise in the order of their names. It ends at the
// first error. Objects that lie in no folder are in a Group whose Folder is empty.
// What is in memory is one folder, and those around it.
func All(ctx context.Context, from Lister, l segment.Layout) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		var open []*Group // each lies in the one before
		last := func() *Group { return open[len(open)-1] }
		closed := func() bool {
			g := last()
			open = open[:len(open)-1]
			g.sort()
			return yield(*g, nil)
		}
		for info, err := range from.List(ctx, "") {
			if err != nil {
				yield(Group{}, fmt.Errorf("list the root: %w", err))
				return
			}
			folder := folderOf(info.Key)
			for len(open) > 0 && !last().around(folder) {
				if !closed() {
					return
				}
			}
			if len(open) == 0 || last().Folder != folder {
				g := &Group{Folder: folder}
				g.Partition, g.Known = l.PartitionOf(folder)
				open = append(open, g)
			}
			last().add(info)
		}
		for len(open) > 0 && closed() {
		}
	}
}

// around says whether a folder is this one, or lies in it.
func (g *Group) around(folder string) bool {
	return g.Folder == "" || folder == g.Folder || strings.HasPrefix(folder, g.Folder+"/")
}

// folderOf is all of a key before its last slash.
func folderOf(key string) string {
	at := strings.LastIndexByte(key, '/')
	return key[:max(at, 0)]
}

func (g *Group) add(info s3sink.Info) {
	name, ok := segment.ParseObjectPath(info.Key)
	if !ok || !g.Known || name.Folder != g.Folder {
		g.Alien = append(g.Alien, info)
		return
	}
	g.Objects = append(g.Objects, Object{name, info})
}

// sort orders the objects by their segments: the listing has 10 before 9.
func (g *Group) sort() {
	slices.SortFunc(g.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Copy, b.Copy), cmp.Compare(a.Suffix, b.Suffix))
	})
}
