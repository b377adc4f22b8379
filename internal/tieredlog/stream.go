package tieredlog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"korvet-offload/segment"
)

// look describes the stream of the segment, as it was while the entry was what
// it is; errMoved means that the entry has changed. Where nothing local is to be
// read there is no stream, and neither where the key holds something else.
func (r *reading) look(ctx context.Context) (segment.StreamInfo, error) {
	var info segment.StreamInfo
	if r.query.Tier != Remote && r.log.ports.Streams != nil {
		var err error
		if info, err = r.describe(ctx); err != nil {
			return info, err
		}
	}
	now, there, err := r.log.entry(ctx, r.partition, r.segment.Number)
	if err == nil && (!there || now.Raw != r.segment.Raw) {
		err = errMoved
	}
	return info, err
}

func (r *reading) describe(ctx context.Context) (segment.StreamInfo, error) {
	info, err := r.log.ports.Streams.StreamInfo(ctx, r.segment.Key)
	if errors.Is(err, segment.ErrWrongType) {
		return segment.StreamInfo{}, nil // no stream of that name
	}
	if err != nil {
		return info, fmt.Errorf("stream %s: %w", r.segment.Key, err)
	}
	return info, nil
}

// local reads a segment that is in Redis alone.
func (r *reading) local(ctx context.Context) error {
	if r.query.Tier == Remote || r.log.ports.Streams == nil {
		return nil
	}
	info, err := r.look(ctx)
	if err != nil {
		return err
	}
	if err := checkSource(r.segment, info); err != nil {
		if err := r.lost(err); err != nil {
			return err
		}
	}
	if !info.Exists {
		return nil
	}
	return r.stream(ctx, info, segment.ID{}) // what is there of it
}

// checkSource says what a LOCAL segment has lost, by the rules by which it
// would not be copied either. Fewer entries than the entry counts are normal
// (XDEL).
func checkSource(s Segment, info segment.StreamInfo) error {
	e := s.Entry
	last, count := e.LastID, e.Count
	if e.Shared() {
		last = e.To
	}
	switch {
	case e.State == segment.Open, !e.Shared() && info.Length == 0 && count == 0:
		return nil
	case !info.Exists, !e.Shared() && info.Length == 0:
		return fmt.Errorf("%w: stream %s has no entries, and the segment is nowhere else", segment.ErrSourceMissing, s.Key)
	case e.Shared() && count > 0 && (info.FirstID.IsZero() || info.FirstID.Compare(e.To) > 0):
		return fmt.Errorf("%w: stream %s has no entries from %s to %s any more, and they are nowhere else", segment.ErrSourceMissing, s.Key, e.From, e.To)
	case info.LastID.Compare(last) < 0:
		return fmt.Errorf("%w: stream %s has only come to %s, and the segment ends at %s", segment.ErrShortStream, s.Key, info.LastID, last)
	case e.Shared() || count <= 0 || info.EntriesAdded < 0 || info.Length >= count:
		return nil
	case info.EntriesAdded < count:
		return fmt.Errorf("%w: stream %s has only ever had %d entries, and the segment had %d: it was lost and made again", segment.ErrShortStream, s.Key, info.EntriesAdded, count)
	case info.MaxDeletedID.IsZero():
		return fmt.Errorf("%w: stream %s was trimmed to %d entries, and the segment had %d", segment.ErrShortStream, s.Key, info.Length, count)
	}
	return nil
}

// stream reads what is left of the segment from its stream, from an id on.
func (r *reading) stream(ctx context.Context, info segment.StreamInfo, from segment.ID) error {
	e := r.segment.Entry
	to := segment.MaxID()
	if e.Shared() {
		if e.From.Compare(from) > 0 {
			from = e.From
		}
		if !e.To.IsZero() {
			to = e.To
		}
	}
	if info.LastID.Compare(to) < 0 {
		to = info.LastID // a producer may be faster than the reader, which would not end
	}
	if r.partition.Plain && e.State == segment.Open && !r.bounded {
		if r.bounded = true; to.Compare(r.query.to()) < 0 { // nor if it is sealed again and again
			r.query.To = to
		}
	}
	r.first = info.FirstID
	lo, hi, ok := r.rest(from, to)
	switch {
	case !ok:
		return nil
	case r.query.Reverse:
		return r.back(ctx, lo, hi)
	}
	return r.forward(ctx, lo, hi)
}

func (r *reading) forward(ctx context.Context, lo, hi segment.ID) error {
	pages := r.log.ports.Streams.Pages(r.segment.Key, lo, hi)
	defer pages.Close()
	for {
		err := pages.Next(ctx, &r.page)
		if err == io.EOF { //nolint:errorlint // the bare io.EOF is the end; one inside another error is a broken connection
			return r.vouch(ctx, lo)
		}
		if err != nil {
			return fmt.Errorf("stream %s: %w", r.segment.Key, err)
		}
		if err := r.vouch(ctx, lo); err != nil {
			return err
		}
		if err := r.give(&r.page, 0, r.page.Len()); err != nil {
			return err
		}
		next, more := r.last.Next()
		if !more {
			return nil
		}
		lo = next
	}
}

// leafBytes is how much of a stream is read at once on the way back.
const leafBytes = 1 << 20

// back reads a range from its end to its beginning with ranges that go forward:
// what is more than a leaf is halved by its ids, the later half first. It needs
// no command that forward does not need, and no more memory.
func (r *reading) back(ctx context.Context, lo, hi segment.ID) error {
	all, err := r.collect(ctx, lo, hi)
	if err != nil {
		return err
	}
	if all {
		if err := r.vouch(ctx, lo); err != nil {
			return err
		}
		return r.give(&r.leaf, 0, r.leaf.Len())
	}
	// All that was collected goes into the earlier half, and something of what
	// was not into the later one, if there is any.
	middle := between(r.leaf.ID(r.leaf.Len()-1), hi)
	later, _ := middle.Next() // it is below hi
	if err := r.back(ctx, later, hi); err != nil {
		return err
	}
	return r.back(ctx, lo, middle)
}

// collect reads a leaf, and says whether it is all of the range.
func (r *reading) collect(ctx context.Context, lo, hi segment.ID) (bool, error) {
	pages := r.log.ports.Streams.Pages(r.segment.Key, lo, hi)
	defer pages.Close()
	r.leaf.Reset()
	for {
		err := pages.Next(ctx, &r.page)
		if err == io.EOF { //nolint:errorlint // as in forward
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("stream %s: %w", r.segment.Key, err)
		}
		if err := appendPage(&r.leaf, &r.page); err != nil {
			return false, err
		}
		if last := r.leaf.ID(r.leaf.Len() - 1); last == hi {
			return true, nil
		}
		if r.leaf.Bytes() > leafBytes {
			return false, nil
		}
	}
}

func appendPage(to, p *segment.Page) error {
	for i := range p.Len() {
		to.Entry(p.ID(i))
		lo, hi := p.Fields(i)
		for j := lo; j < hi; j++ {
			if err := to.Field(p.Name(j), p.Value(j)); err != nil {
				return err
			}
		}
	}
	return nil
}

// between is an id from a to b, b not included, about in the middle; a is below b.
func between(a, b segment.ID) segment.ID {
	ms, seq := b.Ms-a.Ms, b.Seq-a.Seq
	if b.Seq < a.Seq {
		ms--
	}
	// Half of the 128-bit difference.
	seq = seq>>1 | ms<<63
	ms >>= 1
	m := segment.ID{Ms: a.Ms + ms, Seq: a.Seq + seq}
	if m.Seq < a.Seq {
		m.Ms++
	}
	return m
}

// vouch is asked after a range was read and before it is given: it says whether
// nothing can have been removed from lo on meanwhile. A stream that still begins
// where it began, or before lo, has lost nothing of what was read but what
// somebody has deleted by its id. Otherwise the entry is read again: of a LOCAL
// segment this program removes nothing, so what is gone was removed by others; of
// any other errMoved is what follows, and the object is read.
func (r *reading) vouch(ctx context.Context, lo segment.ID) error {
	info, err := r.describe(ctx)
	if err != nil {
		return err
	}
	if info.Exists && (info.FirstID == r.first || !info.FirstID.IsZero() && info.FirstID.Compare(lo) < 0) {
		return nil
	}
	if r.query.Tier == Local && r.segment.Entry.Tier == segment.Remote {
		return nil // what has gone is wanted from nowhere else
	}
	now, there, err := r.log.entry(ctx, r.partition, r.segment.Number)
	if err != nil {
		return err
	}
	if !there || now.Raw != r.segment.Raw || now.Entry.Tier != segment.Local || !info.Exists {
		return errMoved
	}
	r.first = info.FirstID
	return nil
}
