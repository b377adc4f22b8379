package offload

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/segment"
)

// maxCuts is how many segments are cut off a plain stream in one pass: the
// next scan has to find them all.
const maxCuts = probes - 1

// errEnough ends a reading early.
var errEnough = errors.New("enough")

// create gives a partition its first entry, unless somebody was faster: an
// OPEN segment with a stream of its own, or the stream that already lies under
// the partition's own key. The latter may have come only after the entry, from
// somebody who knows of no segments; while the entry's own stream is empty, it
// can still take its place.
func (w *Worker) create(ctx context.Context, j Job) (Outcome, error) {
	now, err := w.ports.Clock.Now(ctx)
	if err != nil {
		return Outcome{}, fmt.Errorf("read the redis clock: %w", err)
	}
	first, err := w.firstEntry(ctx, j, now.UnixMilli())
	if err != nil {
		return Outcome{}, err
	}
	c := segment.Change{Old: j.Stored.Raw, New: string(first.Encode()), First: j.Stored.Raw == ""}
	ok, err := w.ports.Manifests.Change(ctx, j.Partition, c)
	return outcome(Created, ok), err
}

func (w *Worker) firstEntry(ctx context.Context, j Job, now int64) (segment.Entry, error) {
	key := w.layout.StreamKey(j.Partition)
	info, err := w.ports.Streams.StreamInfo(ctx, key)
	if err != nil {
		return segment.Entry{}, err
	}
	if !j.Adopts && info.Length == 0 { // it may have come since the scan
		return segment.NewOpen("", now), nil
	}
	opened := now
	if ms := info.FirstID.Ms; segment.IsTime(ms) && ms <= uint64(now) { //nolint:gosec // a time after 1970
		opened = int64(ms) //nolint:gosec // at most now
	}
	if j.Partition.Plain {
		s := segment.Source{LastID: info.LastID, Added: -1}
		if info.EntriesAdded >= 0 {
			s.Added = info.EntriesAdded - info.Length
		}
		return segment.NewOpenRange(key, segment.ID{Seq: 1}, s, opened), nil
	}
	other := w.layout.SegmentKey(j.Partition, 0)
	usual, err := w.ports.Streams.StreamInfo(ctx, other)
	if err == nil && usual.Length > 0 {
		err = fmt.Errorf("%w: both %s and %s have entries, and there is no manifest that says which is the first segment; write it",
			errAmbiguous, key, other)
	}
	first := segment.NewOpen(key, opened)
	if j.Stored.Raw != "" {
		first = j.Stored.Entry.Adopt(key, opened)
	}
	return first, err
}

// outcome is that of a change that was made, or lost the race.
func outcome(r Result, ok bool) Outcome {
	if !ok {
		r = LostRace
	}
	return Outcome{Result: r}
}

// roll seals an OPEN segment and opens the next.
func (w *Worker) roll(ctx context.Context, j Job) (Outcome, error) {
	if j.Partition.Plain {
		return w.cut(ctx, j)
	}
	info, err := w.ports.Streams.StreamInfo(ctx, w.key(j.Partition, j.Stored.Number, j.Stored.Entry.Key))
	if err != nil || info.Length == 0 {
		return Outcome{Result: Nothing}, err
	}
	held := segment.Contents{FirstID: info.FirstID, LastID: info.LastID, Count: info.Length}
	ok, _, err := w.seal(ctx, j, held, func(now int64) segment.Entry { return segment.NewOpen("", now) })
	out := outcome(Rolled, ok)
	out.Contents = held
	return out, err
}

// seal changes the manifest: the segment is SEALED with what it holds, and the
// next one is OPEN.
func (w *Worker) seal(ctx context.Context, j Job, held segment.Contents, next func(now int64) segment.Entry) (bool, segment.Stored, error) {
	now, err := w.ports.Clock.Now(ctx)
	if err != nil {
		return false, segment.Stored{}, fmt.Errorf("read the redis clock: %w", err)
	}
	sealed, err := j.Stored.Entry.Seal(held, now.UnixMilli())
	if err != nil {
		return false, segment.Stored{}, err
	}
	open := segment.Stored{Number: j.Next, Entry: next(now.UnixMilli())}
	open.Raw = string(open.Entry.Encode())
	ok, err := w.ports.Manifests.Change(ctx, j.Partition, segment.Change{
		Number: j.Stored.Number, Old: j.Stored.Raw, New: string(sealed.Encode()), Next: open.Number, Open: open.Raw,
	})
	return ok, open, err
}

// cut seals the open range of a plain stream where it is full, or at its last
// entry. Ids only ever grow, so nothing can come into a range that was sealed.
// What has piled up is cut into several segments; a rest that is not full
// stays open.
func (w *Worker) cut(ctx context.Context, j Job) (Outcome, error) {
	out := Outcome{Result: Nothing}
	for n := range maxCuts {
		info, err := w.ports.Streams.StreamInfo(ctx, j.Partition.Topic)
		if err != nil {
			return out, err
		}
		held, full, err := w.fill(ctx, j)
		if err != nil || held.Count == 0 || n > 0 && !full {
			return out, err
		}
		if n == 0 && !full && byCount(j) && j.Stored.Entry.Source != nil && info.EntriesAdded >= held.Count {
			return w.recount(ctx, j, info.EntriesAdded-held.Count)
		}
		from, more := held.LastID.Next()
		if !more {
			return out, fmt.Errorf("%w: stream %s ends with the largest id there is", errAmbiguous, j.Partition)
		}
		ok, open, err := w.seal(ctx, j, held, func(now int64) segment.Entry {
			return segment.NewOpenRange(j.Partition.Topic, from, sourceBehind(j.Stored.Entry, held, info, full), now)
		})
		if err != nil || !ok {
			return outcome(out.Result, ok), err
		}
		if src := j.Stored.Entry.Source; !full && src != nil && src.Added >= 0 {
			out.Missing = max(0, info.EntriesAdded-src.Added-held.Count)
		}
		out.Result, out.Contents, j.Stored, j.Next = Rolled, held, open, j.Next+1
		if !full {
			break
		}
	}
	return out, nil
}

// byCount says whether the range seemed to be full by a number of entries,
// which deleted ones make too large.
func byCount(j Job) bool {
	unit := j.Why.Unit()
	return unit == "entries" || unit == "bytes" && j.Settings.AverageMessageBytes > 0
}

// recount corrects how much the server had added when the open range began, so
// that what was deleted since does not make it seem full at every look.
func (w *Worker) recount(ctx context.Context, j Job, added int64) (Outcome, error) {
	e := j.Stored.Entry
	e.Source = &segment.Source{LastID: e.Source.LastID, Added: added, MaxDeletedID: e.Source.MaxDeletedID}
	e.Rev++
	ok, err := w.ports.Manifests.Change(ctx, j.Partition, segment.Change{
		Number: j.Stored.Number, Old: j.Stored.Raw, New: string(e.Encode()),
	})
	return outcome(Nothing, ok), err
}

// sourceBehind is what the server had told of the stream where the next range
// begins. In the middle of what has piled up it is reckoned.
func sourceBehind(e segment.Entry, held segment.Contents, info StreamInfo, full bool) segment.Source {
	s := segment.Source{LastID: held.LastID, Added: info.EntriesAdded}
	if full && s.Added >= 0 && e.Source != nil && e.Source.Added >= 0 {
		s.Added = min(s.Added, e.Source.Added+held.Count)
	}
	return s
}

// fill reads the open range until a segment is full, and says what is in it.
func (w *Worker) fill(ctx context.Context, j Job) (held segment.Contents, full bool, err error) {
	var bytes int64
	err = w.pages.each(ctx, w.ports.Streams.Pages(j.Partition.Topic, j.Stored.Entry.From, segment.MaxID()), func(p *segment.Page) error {
		n := p.Len()
		if most := j.Settings.SegmentEntries; most > 0 {
			n = int(min(int64(n), most-held.Count))
			full = held.Count+int64(n) == most
		}
		if held.Count == 0 {
			held.FirstID = p.ID(0)
		}
		held.LastID = p.ID(n - 1)
		held.Count += int64(n)
		bytes += int64(p.Bytes())
		if full = full || j.Settings.Size(held.Count, bytes) >= j.Settings.SegmentBytes; full {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("read stream %s: %w", j.Partition, err)
	}
	return held, full, err
}
