package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"korvet-offload/internal/words"
	"korvet-offload/segment"
)

// ahead is how many numbers behind the last file are looked at for streams.
const ahead = 8

// longGap is how many numbers of a gap between two files are looked at, atOnce how
// many at a time.
const (
	longGap = 10_000
	atOnce  = 1000
)

// checkStreams refuses a partition of which Redis still has streams: they would be
// in no segment, or taken for leftovers. The stream of the new OPEN segment may be
// there, since nothing is said of it but that it is open.
func (r *Restorer) checkStreams(ctx context.Context, b *Rebuild, s Survey, now time.Time) error {
	if s.Partition.Plain {
		return r.openRange(ctx, b, s, now)
	}
	for some := range slices.Chunk(mayHaveStreams(s, b.Open), atOnce) {
		var keys []segment.SizeQuery
		for _, n := range some {
			keys = append(keys, segment.SizeQuery{Key: r.layout.SegmentKey(s.Partition, n)})
		}
		sizes, err := r.Streams.Sizes(ctx, keys)
		if err != nil {
			return fmt.Errorf("look for streams of %s: %w", s.Partition, err)
		}
		for i, size := range sizes {
			switch {
			case size.Err != nil:
				b.Refused = append(b.Refused, refuse("%s: %w", b.Partition, size.Err))
			case size.Length > 0:
				b.refuse("stream %s is there, with %s, and would be in no segment: rename it to %s where producers go on, if that is free, or delete it if its messages are on the store",
					keys[i].Key, words.Count(size.Length, "message"), r.layout.SegmentKey(s.Partition, b.Open))
				return nil
			}
		}
	}
	return r.adopt(ctx, b, s, now)
}

// mayHaveStreams are the numbers of which a stream may be there, but for the OPEN
// one: those of the files, of the gaps between them as far as these are short, and
// some behind the last. A number is only a file's name, and may be as large as it
// likes.
func mayHaveStreams(s Survey, open segment.Number) (all []segment.Number) {
	next := segment.Number(0)
	upTo := func(end segment.Number) { // exclusive
		for n := next; n < end && n < next+longGap; n++ {
			if n != open {
				all = append(all, n)
			}
		}
	}
	for _, f := range s.Segments {
		upTo(f.Number)
		all = append(all, f.Number)
		next = f.Number + 1
	}
	upTo(open + ahead)
	return all
}

// adopt lets the OPEN entry have the stream under the partition's own key, where
// that holds messages that came after the loss: a broker writes there that knows of
// no segments.
func (r *Restorer) adopt(ctx context.Context, b *Rebuild, s Survey, now time.Time) error {
	key, own := r.layout.StreamKey(s.Partition), r.layout.SegmentKey(s.Partition, b.Open)
	is, err := r.Streams.StreamInfo(ctx, key)
	if errors.Is(err, segment.ErrWrongType) {
		return nil // some layouts have something else there
	}
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", key, err)
	}
	if is.Length == 0 || key == own {
		return nil
	}
	usual, err := r.Streams.StreamInfo(ctx, own)
	switch {
	case err != nil:
		return fmt.Errorf("look at stream %s: %w", own, err)
	case is.FirstID.Compare(lastOf(s)) <= 0:
		b.refuse("stream %s is there, with messages from %s on, and the files go up to %s: Redis has not lost it", key, is.FirstID, lastOf(s))
	case usual.Length > 0:
		b.refuse("both %s and %s have messages, and only one can be the open segment: rename one of them, or move its messages", key, own)
	default:
		b.OpenEntry = segment.NewOpen(key, now.UnixMilli())
	}
	return nil
}

// lastOf is the highest id of all files.
func lastOf(s Survey) (last segment.ID) {
	for _, f := range s.whole() {
		if f.Contents.LastID.Compare(last) > 0 {
			last = f.Contents.LastID
		}
	}
	return last
}

// openRange makes the OPEN entry of a plain stream: the range behind the last file.
func (r *Restorer) openRange(ctx context.Context, b *Rebuild, s Survey, now time.Time) error {
	key := s.Partition.Topic
	last := lastOf(s)
	is, err := r.Streams.StreamInfo(ctx, key)
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", s.Partition, err)
	}
	from, more := last.Next()
	switch {
	case !more:
		b.refuse("its last file ends with the largest id there is")
	case is.Length > 0 && is.FirstID.Compare(last) <= 0:
		b.refuse("the stream has messages from %s on, and the files go up to %s: Redis has not lost it, so its manifest can't be made of the files alone", is.FirstID, last)
	case is.Length > 0 && b.Replace != "":
		b.refuse("its manifest has an OPEN entry 0, and the stream has %s: delete that entry if it was made after the loss", words.Count(is.Length, "message"))
	}
	before := segment.Source{LastID: last, Added: 0}
	if is.Exists {
		before.Added = -1
		if is.EntriesAdded >= 0 {
			before.Added = is.EntriesAdded - is.Length
		}
	}
	b.OpenEntry = segment.NewOpenRange(key, from, before, now.UnixMilli())
	return nil
}
