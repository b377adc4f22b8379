package tieredlog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"korvet-offload/segment"
)

// maxMoves bounds how often the entry of one segment may change while the
// segment is read. From OPEN to GONE it changes five times.
const maxMoves = 32

// errMoved: what was being read is not there any more, or not whole.
var errMoved = errors.New("the segment has moved")

// reading is one call of Read.
type reading struct {
	output
	log       *Log
	partition segment.Partition
	listed    bool           // the manifest was read before
	highest   segment.Number // that it had then
	from      segment.Number // the segment that the reading has come to
	bounded   bool           // what is newer than the reading is left out

	// Of the segment that is being read.
	segment Segment
	unmoved bool       // its entry was read again after errMoved, and is the same
	first   segment.ID // of its stream's entries, when that was looked at last
	page    segment.Page
	leaf    segment.Page
}

// all reads the segments that the manifest lists. It asks to be called again when
// an open range has been sealed while it was read: what it had may now be several
// ranges, which only the manifest of now tells.
func (r *reading) all(ctx context.Context) (again bool, err error) {
	list, err := r.log.Segments(ctx, r.partition)
	if err != nil {
		return false, err
	}
	if r.listed {
		list = slices.DeleteFunc(list, func(s Segment) bool { return r.past(s.Number) })
	}
	if r.query.Segments != nil {
		list = slices.DeleteFunc(list, func(s Segment) bool { return !r.query.Segments(s.Number) })
	}
	if len(list) == 0 {
		return false, nil
	}
	r.listed, r.highest = true, max(r.highest, list[len(list)-1].Number)
	if r.query.Reverse {
		slices.Reverse(list)
	}
	for _, s := range list {
		r.from = s.Number
		err := r.read(ctx, s)
		if errors.Is(err, errSealed) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// past says whether a segment was read when the reading had come to where it is.
func (r *reading) past(n segment.Number) bool {
	if r.query.Reverse {
		return n > r.from && n <= r.highest
	}
	return n < r.from
}

// errSealed: an open range was sealed while it was read.
var errSealed = errors.New("the open range was sealed")

// read reads one segment, wherever it goes meanwhile.
func (r *reading) read(ctx context.Context, s Segment) error {
	r.begin(s)
	r.segment, r.unmoved = s, false
	for range maxMoves {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := r.attempt(ctx)
		if !errors.Is(err, errMoved) {
			return r.named(err)
		}
		next, there, err := r.log.entry(ctx, r.partition, s.Number)
		if err != nil {
			return err
		}
		if !there {
			return nil // deleted by retention meanwhile, or by a person
		}
		r.unmoved = next.Raw == r.segment.Raw
		if !r.unmoved && r.segment.Entry.State == segment.Open && r.segment.Entry.Shared() {
			return errSealed
		}
		r.segment = next
	}
	return r.named(fmt.Errorf("its entry was changed %d times while it was read; try again", maxMoves))
}

// attempt reads what is left of the segment as its entry says. errMoved asks for
// the entry to be read again; where that is the same again, attempt knows.
func (r *reading) attempt(ctx context.Context) error {
	s := r.segment
	switch {
	case s.Err != nil:
		return r.lost(s.Err)
	case s.Entry.State == segment.Deleting, r.outside():
		return nil
	case s.Entry.Tier == segment.Local:
		return r.local(ctx)
	}
	return r.remote(ctx)
}

// outside says whether no message of the segment can be in the query, by its
// entry alone. To a stream of its own entries may be added at any time.
func (r *reading) outside() bool {
	e := r.segment.Entry
	var from segment.ID
	to := segment.MaxID()
	switch {
	case e.Shared():
		from = e.From
		if !e.To.IsZero() {
			to = e.To
		}
	case e.Tier == segment.Remote && e.Count == 0 && e.Local == segment.Gone:
		return true
	default:
		from = e.FirstID
		if e.Tier == segment.Remote && e.Local == segment.Gone && !e.LastID.IsZero() {
			to = e.LastID
		}
	}
	_, _, ok := r.rest(from, to)
	return !ok
}

// remote reads a segment that has an object: from its stream, where that is
// whole, and otherwise from the object and what came to the stream later.
func (r *reading) remote(ctx context.Context) error {
	e := r.segment.Entry
	var info segment.StreamInfo
	if e.Local != segment.Gone {
		var err error
		if info, err = r.look(ctx); err != nil {
			return err
		}
	}
	switch {
	case r.query.Tier == Local && !info.Exists:
		return nil
	case r.query.Tier == Local, !r.unmoved && whole(e, info):
		return r.stream(ctx, info, segment.ID{})
	}
	parts := []func(context.Context) error{r.object, func(ctx context.Context) error { return r.late(ctx, info) }}
	if r.query.Reverse {
		parts[0], parts[1] = parts[1], parts[0]
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// late reads what came to a stream after it was copied. Nothing is added to a range.
func (r *reading) late(ctx context.Context, info segment.StreamInfo) error {
	e := r.segment.Entry
	if e.Shared() || !info.Exists || info.LastID.Compare(e.LastID) <= 0 {
		return nil
	}
	behind, _ := e.LastID.Next() // there is one, or nothing could be above it
	return r.stream(ctx, info, behind)
}

// whole says whether a stream holds all that was copied of it, and perhaps more,
// as far as the server tells.
func whole(e segment.Entry, info segment.StreamInfo) bool {
	switch {
	case !info.Exists || e.Count == segment.NoCount:
		return false
	case e.Count == 0:
		return true
	case e.Shared():
		return !info.FirstID.IsZero() && info.FirstID.Compare(e.FirstID) <= 0 && info.LastID.Compare(e.LastID) >= 0
	case info.FirstID != e.FirstID || info.LastID.Compare(e.LastID) < 0 || info.Length < e.Count:
		return false
	case e.Source != nil && e.Source.Added >= 0 && info.EntriesAdded >= 0:
		return info.Length == e.Count+info.EntriesAdded-e.Source.Added
	}
	return true
}

// lost tells of a segment that can't be read; nil means that the reading goes on.
func (r *reading) lost(err error) error {
	err = r.named(err)
	var of *SegmentError
	if r.query.Unreadable == nil || !errors.As(err, &of) {
		return err
	}
	if err := r.query.Unreadable(of); err != nil {
		r.failed = err
		return errEnough
	}
	return nil
}

// named says which segment an error is about.
func (r *reading) named(err error) error {
	var named *SegmentError
	switch {
	case err == nil, errors.Is(err, errEnough), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &named):
		return err
	}
	return &SegmentError{r.partition, r.segment.Number, err}
}
