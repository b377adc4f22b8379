package scrub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"korvet-offload/internal/catalog"
	"korvet-offload/segment"
)

// maxLooks is how often a partition is looked at in which something seems to be
// wrong, and is different at each look.
const maxLooks = 5

// suspicion is a finding that one look has shown.
type suspicion struct {
	Finding
	sum     uint64 // of the entry's bytes that it was found by; 0 = there was none
	changed bool   // they were others after the look
}

// same says whether two looks have shown the same.
func (s suspicion) same(o suspicion) bool {
	return !s.changed && !o.changed && s.sum == o.sum && s.Kind == o.Kind && s.Note == o.Note &&
		s.Segment == o.Segment && s.HasSegment == o.HasSegment && s.Path == o.Path
}

// partition looks at a partition until two looks have shown the same: while a
// worker moves segments, what one look shows may be something in between.
func (r *run) partition(ctx context.Context, p segment.Partition) error {
	before, err := r.look(ctx, p, nil)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(before, func(s suspicion) bool { return !s.Note }) {
		for _, s := range before {
			r.emit(s.Finding)
		}
		return nil
	}
	var sure []suspicion
	for range maxLooks - 1 {
		if err := r.waitAgain(ctx); err != nil {
			return err
		}
		now, err := r.look(ctx, p, before)
		if err != nil {
			return err
		}
		var open []suspicion
		for _, s := range now {
			switch {
			case slices.ContainsFunc(sure, s.same):
			case slices.ContainsFunc(before, s.same):
				sure = append(sure, s)
			default:
				open = append(open, s)
			}
		}
		if before = open; len(open) == 0 {
			break
		}
	}
	r.report.Unsteady += int64(len(before))
	slices.SortFunc(sure, func(a, b suspicion) int { return order(a.Finding, b.Finding) })
	for _, s := range sure {
		r.emit(s.Finding)
	}
	return nil
}

// round is one look at a partition.
type round struct {
	run   *run
	f     facts
	again map[segment.Number]bool // whose objects are read again; nil = this is the first look
}

// passes says whether the object of a segment is not read again.
func (r *round) passes(n segment.Number) bool { return r.again != nil && !r.again[n] }

// look looks at a partition once. The store is listed before the manifest is read:
// an object that is there belongs to an entry that was there, unless it goes.
func (r *run) look(ctx context.Context, p segment.Partition, before []suspicion) ([]suspicion, error) {
	w := &round{run: r}
	if before != nil {
		w.again = map[segment.Number]bool{}
		for _, s := range before {
			w.again[s.Segment] = !s.Note || s.Kind == StreamDiffers || w.again[s.Segment] // other notes are nothing that was read
		}
	}
	if err := w.read(ctx, p); err != nil {
		return nil, err
	}
	if w.again == nil {
		r.report.Partitions++
		w.count()
	}
	if w.f.manifest.empty() && !r.knows(p) {
		if w.again == nil {
			r.later = append(r.later, r.told(judge(&w.f))...)
		}
		return nil, nil
	}
	all := append(judge(&w.f), w.unopened()...)
	objects, err := w.objects(ctx, all)
	if err != nil {
		return nil, err
	}
	streams, err := w.streams(ctx)
	if err != nil {
		return nil, err
	}
	var overlaps []Finding
	if r.deep() {
		if overlaps, err = w.overlaps(ctx); err != nil {
			return nil, err
		}
	}
	return w.sort(ctx, r.told(slices.Concat(all, objects, streams, overlaps)))
}

// count counts what there is.
func (r *round) count() {
	p, report := r.f.partition, &r.run.report
	for _, x := range r.f.manifest.rows {
		if r.run.meant(p, x.number) {
			report.Segments++
		}
		if x.err == nil && x.entry.Object != nil {
			r.run.remote++
		}
	}
	if r.run.lists() {
		return // they were counted when they were listed
	}
	for _, o := range r.f.group.Objects {
		if r.run.meant(p, o.Segment) {
			report.Objects++
		}
	}
	if r.run.opt.Segments == nil {
		report.Objects += int64(len(r.f.group.Alien))
	}
}

// knows says whether there is such a topic or plain stream, or was one.
func (r *run) knows(p segment.Partition) bool {
	t, listed := r.topics[topicOf(p)]
	return listed && (t.Err != nil || t.Settings.RemoteStorage) || r.gone[topicOf(p)] || slices.Contains(r.opt.Partitions, p)
}

// read gathers the facts.
func (r *round) read(ctx context.Context, p segment.Partition) error {
	group, err := catalog.List(ctx, r.run.ports.Store, r.run.layout, p)
	if err != nil {
		return err
	}
	m, err := readManifest(ctx, r.run.ports.Manifests, p)
	if err != nil {
		return err
	}
	now, err := r.run.ports.Clock.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the redis clock: %w", err)
	}
	t, listed := r.run.topics[topicOf(p)]
	r.f = facts{partition: p, folder: r.run.layout.Folder(p), topic: t, listed: listed && t.Err == nil,
		manifest: m, group: group, now: now.UnixMilli(), grace: r.run.opt.DeleteGrace}
	return nil
}

// objects looks at what the entries name, but for what was judged already.
func (r *round) objects(ctx context.Context, judged []Finding) (all []Finding, err error) {
	foreign := map[segment.Number]bool{}
	for _, f := range judged {
		if f.Kind == IllegalEntry || f.Kind == DuplicatePath {
			foreign[f.Segment] = f.HasSegment
		}
	}
	for _, w := range r.f.manifest.rows {
		if !w.sealed() || w.entry.Tier != segment.Remote || foreign[w.number] || !r.run.meant(r.f.partition, w.number) {
			continue
		}
		f, err := r.object(ctx, w)
		if f != nil {
			all = append(all, *f)
		}
		if err := r.run.tolerate(err); err != nil {
			return all, err
		}
	}
	return all, nil
}

// sort notes by which entries the findings were found, and whether these are
// still the same.
func (r *round) sort(ctx context.Context, found []Finding) ([]suspicion, error) {
	slices.SortStableFunc(found, order)
	all := make([]suspicion, len(found))
	q := segment.Peek{Partition: r.f.partition}
	for i, f := range found {
		all[i].Finding = f
		if f.HasSegment {
			q.Numbers = append(q.Numbers, f.Segment)
		}
	}
	if len(q.Numbers) == 0 {
		return all, nil
	}
	answers, err := r.run.ports.Manifests.Peek(ctx, []segment.Peek{q})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", r.f.partition, err)
	}
	raws := answers[0].Raw
	for i := range all {
		if !all[i].HasSegment {
			continue
		}
		raw := raws[0]
		raws = raws[1:]
		w, there := r.f.manifest.find(all[i].Segment)
		all[i].Raw, all[i].changed = raw, raw != ""
		if there {
			all[i].sum, all[i].changed = w.sum, !w.holds(raw)
		}
	}
	return all, nil
}

// defaultAgain is the time between two looks.
const defaultAgain = 500 * time.Millisecond
