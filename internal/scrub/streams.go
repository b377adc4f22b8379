package scrub

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/internal/words"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// asked is a stream that is looked for.
type asked struct {
	row  row
	key  string
	none bool // there is no entry of the segment
}

// The streams of numbers without an entry are looked for too, as far as that is
// cheap.
const (
	probesInGaps = 1000
	probesBefore = 16
)

// streams compares Redis' streams with the manifest.
func (r *round) streams(ctx context.Context) ([]Finding, error) {
	var all []Finding
	take := func(f *Finding, err error) error {
		if f != nil {
			all = append(all, *f)
		}
		return err
	}
	var others []asked // of which the length says enough for most
	for _, w := range r.f.manifest.rows {
		switch {
		case !r.run.meant(r.f.partition, w.number):
		case w.err != nil || w.entry.State != segment.Sealed && w.entry.State != segment.Deleting:
		case w.entry.Tier == segment.Local:
			if w.entry.State == segment.Sealed && r.works() {
				if err := r.run.tolerate(take(r.source(ctx, w))); err != nil {
					return all, err
				}
			}
		case !w.entry.Shared():
			others = append(others, asked{row: w, key: r.key(w)})
		}
	}
	others = append(others, r.unnamed()...)
	q := make([]segment.SizeQuery, len(others))
	for i, a := range others {
		q[i].Key = a.key
	}
	if len(q) == 0 {
		return all, nil
	}
	sizes, err := r.run.ports.Streams.Sizes(ctx, q)
	if err != nil {
		return all, fmt.Errorf("look for the streams of %s: %w", r.f.partition, err)
	}
	for i, a := range others {
		if err := r.run.tolerate(take(r.other(ctx, a, sizes[i]))); err != nil {
			return all, err
		}
	}
	return all, nil
}

// works says whether segments of the partition are copied: only then is what is
// LOCAL to be there. Of a topic that was switched off the broker may do with it
// what it wants.
func (r *round) works() bool { return r.f.listed && r.f.topic.Settings.RemoteStorage }

func (r *round) key(w row) string {
	if w.entry.Key != "" {
		return w.entry.Key
	}
	return r.run.layout.SegmentKey(r.f.partition, w.number)
}

// unnamed are the streams that would be those of numbers without an entry.
func (r *round) unnamed() (all []asked) {
	rows := r.f.manifest.rows
	if r.f.partition.Plain || len(rows) == 0 {
		return nil
	}
	add := func(n segment.Number) {
		all = append(all, asked{row: row{number: n}, key: r.run.layout.SegmentKey(r.f.partition, n), none: true})
	}
	first := rows[0].number
	for n := first - min(first, probesBefore); n < first; n++ {
		add(n)
	}
	for lo, hi := range r.f.missing() {
		for n := lo; n <= hi && len(all) < probesInGaps; n++ {
			add(n)
		}
	}
	return all
}

// source looks whether the stream of a LOCAL segment is there and whole.
func (r *round) source(ctx context.Context, w row) (*Finding, error) {
	key := r.key(w)
	info, err := r.run.ports.Streams.StreamInfo(ctx, key)
	switch {
	case errors.Is(err, segment.ErrWrongType):
		return r.wrong(SourceMissing, w, "key %s holds no stream", key), nil
	case err != nil:
		return nil, fmt.Errorf("look at stream %s: %w", key, err)
	}
	if err := offload.CheckSource(w.entry, key, info); err != nil {
		return r.wrong(SourceMissing, w, "%v", err), nil
	}
	return nil, nil //nolint:nilnil // nothing is wrong
}

// other looks at the stream of a segment that is REMOTE, or has no entry.
func (r *round) other(ctx context.Context, a asked, size segment.StreamSize) (*Finding, error) {
	e := a.row.entry
	switch wrongType := errors.Is(size.Err, segment.ErrWrongType); {
	case wrongType && e.Local == segment.Present:
		return r.wrong(StreamDiffers, a.row, "key %s holds no stream", a.key), nil
	case wrongType:
		return nil, nil //nolint:nilnil // whose it is, nobody knows
	case size.Err != nil:
		return nil, fmt.Errorf("look for stream %s: %w", a.key, size.Err)
	case a.none && size.Length > 0:
		f := r.f.finding(StrayStream, a.row.number, "stream %s has %s, and the manifest has no such segment: no reader finds them", a.key, words.Count(size.Length, "message"))
		return &f, nil
	case a.none:
		return nil, nil //nolint:nilnil // nothing is wrong
	case e.Local == segment.Dropping && e.State == segment.Sealed:
		return r.dropping(a, size), nil
	case size.Length == 0, size.Length == e.Count && !r.run.opt.Deep && e.Local == segment.Present:
		return nil, nil //nolint:nilnil // nothing is wrong: what is in the object need not be here
	}
	info, err := r.run.ports.Streams.StreamInfo(ctx, a.key)
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", a.key, err)
	}
	return r.compare(a, info), nil
}

// dropping is a local copy that is being removed, or was when something stopped it.
func (r *round) dropping(a asked, size segment.StreamSize) *Finding {
	if size.Length > 0 {
		return nil
	}
	f := r.wrong(HalfDeleted, a.row, "it is DROPPING, and stream %s is gone: the worker ends it at its next tick", a.key)
	f.Note = true
	return f
}

func (r *round) compare(a asked, info segment.StreamInfo) *Finding {
	e := a.row.entry
	switch {
	case info.Length == 0:
		return nil
	case e.Local == segment.Gone && offload.IsCopied(e, info):
		f := r.wrong(StrayStream, a.row, "stream %s is there again as it was copied: redis has lost its removal, which is made again", a.key)
		f.Note = true
		return f
	case e.Local == segment.Gone:
		return r.wrong(StrayStream, a.row, "stream %s has %s again, after it was copied and removed: no reader finds them", a.key, words.Count(info.Length, "message"))
	case e.Local == segment.Present && e.State == segment.Sealed && offload.IsOther(e, info):
		f := r.wrong(StreamDiffers, a.row, "stream %s has %s up to %s, and %d up to %s were copied", a.key, words.Count(info.Length, "message"), info.LastID, e.Count, e.LastID)
		f.Note = info.EntriesAdded < 0 && info.LastID.Compare(e.LastID) >= 0 // it may be that some were deleted by id
		return f
	}
	return nil
}
