package repair

import (
	"context"
	"fmt"
	"slices"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// part is the partition that is worked on, and what was read of it so far.
type part struct {
	*Repairer
	partition segment.Partition

	numbers []segment.Number                    // of its entries, ascending; nil = not read
	objects map[segment.Number][]catalog.Object // nil = not read
	planned map[segment.Number]segment.Entry    // entries that were added, or would be
}

// plan gathers the facts of a segment until there is an action.
func (p *part) plan(ctx context.Context, n segment.Number, findings []scrub.Finding) (Action, error) {
	f, err := p.facts(ctx, n, findings)
	for err == nil {
		a, need := Plan(f)
		if need == NeedNothing {
			return a, nil
		}
		err = p.fetch(ctx, &f, need)
	}
	return f.action(Leave, "%v", err), err
}

// facts are what is known without reading much.
func (p *part) facts(ctx context.Context, n segment.Number, findings []scrub.Finding) (Facts, error) {
	f := Facts{
		Partition: p.partition, Segment: n, Findings: findings, IncludeExpired: p.opt.IncludeExpired,
		Folder: p.layout.Folder(p.partition), StreamKey: p.layout.StreamKey(p.partition),
	}
	now, err := p.ports.Clock.Now(ctx)
	if err != nil {
		return f, fmt.Errorf("read the redis clock: %w", err)
	}
	f.Now = now.UnixMilli()
	raw, err := p.peek(ctx, n)
	if err != nil {
		return f, err
	}
	if f.Raw = raw[0]; f.Raw != "" {
		f.Entry, f.Err = segment.ParseEntry([]byte(f.Raw))
	}
	f.Key = p.keyOf(n, f.Entry.Key)
	return f, nil
}

// keyOf is the key of a segment's stream; own is what its entry says.
func (p *part) keyOf(n segment.Number, own string) string {
	if own != "" {
		return own
	}
	return p.layout.SegmentKey(p.partition, n)
}

// peek reads entries as they are now; "" for one that is not there.
func (p *part) peek(ctx context.Context, n ...segment.Number) ([]string, error) {
	answers, err := p.ports.Manifests.Peek(ctx, []segment.Peek{{Partition: p.partition, Numbers: n}})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", p.partition, err)
	}
	return answers[0].Raw, nil
}

// fetch adds what was asked for to the facts.
func (p *part) fetch(ctx context.Context, f *Facts, need Need) (err error) {
	read := reader{p.ports.Store, p.opt.SpoolDir, f.Entry.LastID}
	of := parquetfile.FileID{StreamKey: f.StreamKey, Segment: f.Segment}
	switch need {
	case NeedPlace:
		f.Place, err = p.place(ctx, f.Segment)
	case NeedStream:
		f.Held, err = hold(ctx, p.ports.Streams, f.Key, p.extent(f))
	case NeedStat:
		f.Own, err = read.stat(ctx, f.Entry.Object.Path)
	case NeedOwn:
		if f.Entry.Object == nil {
			f.Own = &File{Missing: true, Damage: errMissing, Lacks: -1}
			return nil
		}
		f.Own, err = read.read(ctx, f.Entry.Object.Path, of, f.Entry.Object.SHA256, f.Held)
	case NeedOthers:
		f.Others, err = p.others(ctx, f, read, of)
		f.OthersRead = true
	default:
		err = fmt.Errorf("plan segment %s/%s: unknown need %d", f.Partition, f.Segment, need)
	}
	return err
}

// extent is the entry by which the stream is read. Of a range that has no entry
// it is what lies between its neighbors.
func (p *part) extent(f *Facts) segment.Entry {
	e := f.Entry
	if f.Raw != "" || !p.partition.Plain {
		return e
	}
	e.From, e.To = segment.ID{Seq: 1}, segment.ID{Seq: 1}
	if b := f.Place.Before; b != nil {
		e.From, _ = b.To.Next()
	}
	if a := f.Place.After; a != nil {
		e.To, _ = a.From.Prev()
	}
	return e
}

// others reads the objects at the paths of the segment, but for the one that its
// entry names.
func (p *part) others(ctx context.Context, f *Facts, read reader, of parquetfile.FileID) ([]File, error) {
	if p.objects == nil {
		group, err := catalog.List(ctx, p.ports.Store, p.layout, p.partition)
		if err != nil {
			return nil, err
		}
		p.objects = map[segment.Number][]catalog.Object{}
		for _, o := range group.Objects {
			p.objects[o.Segment] = append(p.objects[o.Segment], o)
		}
	}
	known := ""
	if f.Entry.Object != nil {
		known = f.Entry.Object.SHA256
	}
	var files []File
	for _, o := range p.objects[f.Segment] {
		path := o.Path()
		if f.Entry.Object != nil && f.Entry.Object.Path == path {
			continue
		}
		file, err := read.read(ctx, path, of, known, f.Held)
		if err != nil {
			return nil, err
		}
		files = append(files, *file)
	}
	return files, nil
}

// place looks where a segment without entry stands in the manifest.
func (p *part) place(ctx context.Context, n segment.Number) (*Place, error) {
	if err := p.readNumbers(ctx); err != nil {
		return nil, err
	}
	all := slices.Clone(p.numbers)
	for added := range p.planned {
		if at, there := slices.BinarySearch(all, added); !there {
			all = slices.Insert(all, at, added)
		}
	}
	if len(all) == 0 {
		return &Place{Empty: true}, nil
	}
	at, _ := slices.BinarySearch(all, n)
	place := &Place{First: all[0], Last: all[len(all)-1]}
	before := slices.Clone(all[:at])
	slices.Reverse(before)
	var err error
	if place.Before, err = p.nearest(ctx, before); err == nil {
		place.After, err = p.nearest(ctx, all[at:])
	}
	return place, err
}

// nearest is the first of the segments that holds anything; nil = none does.
func (p *part) nearest(ctx context.Context, numbers []segment.Number) (*Neighbor, error) {
	for _, n := range numbers {
		b, holds, err := p.neighbor(ctx, n)
		if err != nil || holds {
			return &b, err
		}
	}
	return nil, nil //nolint:nilnil // it is a fact, and Place says so
}

// readNumbers reads which segments have entries.
func (p *part) readNumbers(ctx context.Context) error {
	if p.numbers != nil {
		return nil
	}
	there := map[string]struct{}{}
	fields, err := p.ports.Manifests.Each(ctx, p.partition, func(field, _ string) { there[field] = struct{}{} })
	if err != nil {
		return fmt.Errorf("read the manifest of %s: %w", p.partition, err)
	}
	if int64(len(there)) < fields {
		return fmt.Errorf("read the manifest of %s: %d fields came, and it has %d: it changes faster than it can be read; run it again", p.partition, len(there), fields)
	}
	p.numbers = []segment.Number{}
	for field := range there {
		if n, err := segment.ParseNumber(field); err == nil {
			p.numbers = append(p.numbers, n)
		}
	}
	slices.Sort(p.numbers)
	return nil
}

// neighbor is what another segment holds; false: nothing at all.
func (p *part) neighbor(ctx context.Context, n segment.Number) (b Neighbor, holds bool, err error) {
	raw, err := p.peek(ctx, n)
	if err != nil {
		return b, false, err
	}
	b = Neighbor{Number: n, Raw: raw[0]}
	e, bad := segment.ParseEntry([]byte(b.Raw))
	if planned, there := p.planned[n]; there && b.Raw == "" {
		e, bad = planned, nil
	}
	b.From, b.To, b.First, b.Last = e.From, e.To, e.FirstID, e.LastID
	switch {
	case bad != nil:
		return b, true, nil //nolint:nilerr // nobody knows what it holds, and that is the answer
	case !e.FirstID.IsZero() && !e.LastID.IsZero(), e.Shared():
		b.Known = true
		return b, true, nil
	case e.Count == 0:
		return b, false, nil
	case e.Tier == segment.Remote:
		return b, true, nil
	}
	return p.neighborStream(ctx, b, e)
}

// neighborStream asks the stream of a LOCAL segment whose entry does not say what
// it holds.
func (p *part) neighborStream(ctx context.Context, b Neighbor, e segment.Entry) (_ Neighbor, holds bool, err error) {
	key := p.keyOf(b.Number, e.Key)
	info, err := p.ports.Streams.StreamInfo(ctx, key)
	switch {
	case err != nil:
		return b, false, fmt.Errorf("look at stream %s: %w", key, err)
	case info.Length > 0:
		b.Known, b.First, b.Last = true, info.FirstID, info.LastID
	case e.State == segment.Open:
		return b, false, nil // it holds nothing yet
	}
	return b, true, nil
}
