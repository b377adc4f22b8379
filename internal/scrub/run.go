package scrub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/words"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// run is the state of one Run.
type run struct {
	*Scrubber
	found  func(Finding)
	pace   pace
	report Report

	topics    map[string]segment.Topic // of the registry, by topicOf
	gone      map[string]bool          // remembered, and not in the registry
	parts     []segment.Partition
	remembers bool      // redis remembers topics that were offloaded
	later     []Finding // of folders that no manifest and no topic knows

	remote   int64 // entries that name an object
	progress Progress
	faults   []error
}

// maxFaults is how many errors are told of.
const maxFaults = 10

// topicOf tells topics and plain streams apart.
func topicOf(p segment.Partition) string {
	if p.Plain {
		return "stream " + p.Topic
	}
	return "topic " + p.Topic
}

func (r *run) all(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.readTopics, r.readFolders} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	r.list()
	for _, p := range r.parts {
		if !r.wants(p) || r.opt.PassOver != nil && r.opt.PassOver(p) { // who it belongs to may have changed
			r.report.Skipped++
			continue
		}
		r.progress.Partition = p
		if err := r.tolerate(r.partition(ctx, p)); err != nil {
			return err
		}
		r.progress.Done++
		r.tell()
	}
	for _, f := range r.later {
		f.Note = r.report.Segments > 0 || r.remembers || r.opt.Only != nil // otherwise redis is empty
		r.emit(f)
	}
	if err := r.tolerate(r.owner(ctx)); err != nil { // after what lies there: whoever puts an object has put the marker before
		return err
	}
	return errors.Join(r.faults...)
}

// tolerate lets a Run go on after what one segment is to blame for.
func (r *run) tolerate(err error) error {
	if err == nil || errors.Is(err, offload.ErrRedisDown) || errors.Is(err, offload.ErrStoreDown) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	r.report.Unread++
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, err)
	}
	return nil
}

func (r *run) emit(f Finding) {
	if f.Note {
		r.report.Notes++
	} else {
		r.report.Findings[f.Kind]++
	}
	r.found(f)
}

// owner looks whether the root is ours. What lies there is compared all the same.
// A root that nothing was ever copied to has no owner.
func (r *run) owner(ctx context.Context) error {
	err := r.ports.Store.Owner(ctx)
	if errors.Is(err, ErrNoOwner) && r.report.Objects == 0 && r.remote == 0 {
		return nil
	}
	if errors.Is(err, ErrForeign) || errors.Is(err, ErrNoOwner) {
		r.emit(Finding{Kind: Owner, Detail: err.Error()})
		return nil
	}
	return err
}

func (r *run) readTopics(ctx context.Context) error {
	topics, err := r.ports.Registry.Topics(ctx)
	if err != nil {
		return fmt.Errorf("read the topics: %w", err)
	}
	known, err := r.ports.Known.Known(ctx)
	if err != nil {
		return fmt.Errorf("read the topics that were offloaded before: %w", err)
	}
	r.remembers = len(known) > 0
	r.topics, r.gone = map[string]segment.Topic{}, map[string]bool{}
	for _, t := range topics {
		r.topics[topicOf(t.Partition(0))] = t
		_, was := known[t.Name]
		if t.Err == nil && t.Settings.RemoteStorage || was && !t.Plain {
			r.add(t)
		}
	}
	for _, t := range offload.Remembered(topics, known) {
		r.gone[topicOf(t.Partition(0))] = true
		r.add(t)
	}
	return nil
}

func (r *run) add(t segment.Topic) {
	for n := range max(1, t.Settings.Partitions) {
		r.parts = append(r.parts, t.Partition(n))
	}
}

// readFolders sees what lies on the store, where it is not said what to look at.
func (r *run) readFolders(ctx context.Context) error {
	if !r.lists() {
		return nil
	}
	for g, err := range catalog.All(ctx, r.ports.Store, r.layout) {
		if err != nil {
			return err
		}
		r.report.Objects += int64(len(g.Objects) + len(g.Alien))
		if g.Known && r.wants(g.Partition) {
			r.parts = append(r.parts, g.Partition)
			for _, o := range g.Objects {
				r.progress.Of += o.Info.Size
			}
		}
		if !g.Known && r.opt.Only == nil {
			r.foreignFolder(g)
		}
	}
	return nil
}

// foreignFolder tells of what lies where no partition's objects are.
func (r *run) foreignFolder(g catalog.Group) {
	var bytes int64
	for _, o := range g.Alien {
		bytes += o.Size
	}
	r.later = append(r.later, Finding{Kind: Unknown, Path: g.Alien[0].Key,
		Detail: fmt.Sprintf("%s (%s) in folder %q, which is no partition's", words.Count(len(g.Alien), "object"), words.Size(bytes), g.Folder)})
}

func (r *run) wants(p segment.Partition) bool {
	return r.opt.Only == nil || r.opt.Only(p) || slices.Contains(r.opt.Partitions, p)
}

// lists says whether topics and folders say what is looked at.
func (r *run) lists() bool { return r.opt.Partitions == nil || r.opt.Only != nil }

// meant says whether a segment is to be told of.
func (r *run) meant(p segment.Partition, n segment.Number) bool {
	return r.opt.Segments == nil || r.opt.Segments(p, n)
}

// told are the findings that are to be told of.
func (r *run) told(all []Finding) []Finding {
	return slices.DeleteFunc(all, func(f Finding) bool { return !r.opt.tells(f) })
}

// list puts the partitions into order, each once.
func (r *run) list() {
	if !r.lists() {
		r.parts = nil
	}
	r.parts = append(r.parts, r.opt.Partitions...)
	there := map[segment.Partition]bool{}
	for _, p := range r.parts {
		if r.wants(p) {
			there[p] = true
		}
	}
	r.parts = slices.SortedFunc(maps.Keys(there), func(a, b segment.Partition) int {
		return cmp.Or(cmp.Compare(topicOf(a), topicOf(b)), cmp.Compare(a.Number, b.Number))
	})
	r.progress.All = int64(len(r.parts))
	if !r.deep() {
		r.progress.Of = 0
	}
}

func (r *run) deep() bool { return r.opt.Deep || r.opt.CompareLocal }

func (r *run) advanced(n int) {
	r.report.Bytes += int64(n)
	r.progress.Read += int64(n)
	r.tell()
}

func (r *run) tell() {
	if r.opt.Progress != nil {
		r.opt.Progress(r.progress)
	}
}

func (r *run) waitAgain(ctx context.Context) error {
	if r.opt.Again <= 0 {
		return ctx.Err()
	}
	return r.pace.sleep(ctx, r.opt.Again)
}
