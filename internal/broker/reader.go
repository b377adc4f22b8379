package broker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// readPage is how many entries a reader asks for at once.
const readPage = 1000

// Sum is the checksum of one message: its names and values, in their order.
type Sum [sha256.Size]byte

// SumOf is the checksum of names and values in turn.
func SumOf[T ~string | ~[]byte](fields ...T) Sum {
	var all []byte
	for _, f := range fields {
		all = binary.BigEndian.AppendUint32(all, uint32(len(f))) //nolint:gosec // a field of Redis is shorter
		all = append(all, f...)
	}
	return sha256.Sum256(all)
}

// Entries reads the manifest of a partition, in the order of the segments. A
// field that is no segment's is an error: what the tests write has none.
func (b *Broker) Entries(ctx context.Context, p segment.Partition) ([]segment.Stored, error) {
	key := b.layout.ManifestKey(p)
	fields, err := b.client.Do(ctx, b.client.B().Hgetall().Key(key).Build()).AsStrMap()
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", p, err)
	}
	var all []segment.Stored
	for name, raw := range fields {
		s := segment.Stored{Raw: raw}
		if s.Number, err = segment.ParseNumber(name); err == nil {
			s.Entry, err = segment.ParseEntry([]byte(raw))
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", p, err)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b segment.Stored) int {
		if a.Number < b.Number {
			return -1
		}
		return 1
	})
	return all, nil
}

// Key is the key of a segment's stream.
func (b *Broker) Key(p segment.Partition, s segment.Stored) string {
	if s.Entry.Key != "" {
		return s.Entry.Key
	}
	return b.layout.SegmentKey(p, s.Number)
}

// Range reads the entries of a stream between two ids, both inclusive. A
// stream that is not there has none.
func (b *Broker) Range(ctx context.Context, key string, from, to segment.ID) (map[segment.ID]Sum, error) {
	found := map[segment.ID]Sum{}
	for start := from; ; {
		page, err := b.client.Do(ctx, b.client.B().Xrange().Key(key).Start(start.String()).End(to.String()).Count(readPage).Build()).AsXRangeSlices()
		if err != nil {
			return nil, fmt.Errorf("read stream %s: %w", key, err)
		}
		if err := sums(page, found); err != nil {
			return nil, fmt.Errorf("read stream %s: %w", key, err)
		}
		if len(page) < readPage {
			return found, nil
		}
		last, err := segment.ParseID(page[len(page)-1].ID)
		next, more := last.Next()
		if err != nil || !more {
			return found, err
		}
		start = next
	}
}

// sums adds the checksums of entries, by id.
func sums(entries []rueidis.XRangeSlice, to map[segment.ID]Sum) error {
	for _, e := range entries {
		id, err := segment.ParseID(e.ID)
		if err != nil {
			return err
		}
		fields := make([]string, 0, 2*len(e.FieldValues))
		for _, f := range e.FieldValues {
			fields = append(fields, f.Field, f.Value)
		}
		to[id] = SumOf(fields...)
	}
	return nil
}
