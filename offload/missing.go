package offload

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"korvet-offload/segment"
)

// maxSources is how many streams of sealed segments are looked for. It is done
// for those who look, and not at every tick: a copy finds it out by itself.
const maxSources = 10_000

// source is where the messages of a segment are that is to be copied.
type source struct {
	part     *PartitionScan
	number   segment.Number
	entry    segment.Entry
	sealedAt int64
}

// lookForSources asks in one go whether the streams are there that are to be
// copied, those that were sealed first before others, and notes what is missing.
func (w *Worker) lookForSources(ctx context.Context, s *Scan) error {
	all := sources(s.Partitions)
	s.unlooked = max(0, len(all)-maxSources)
	if all = all[:len(all)-s.unlooked]; len(all) == 0 {
		return nil
	}
	q := make([]segment.SizeQuery, len(all))
	for i, one := range all {
		q[i].Key = w.key(one.part.Partition, one.number, one.entry.Key)
	}
	sizes, err := w.ports.Streams.Sizes(ctx, q)
	if err != nil {
		return fmt.Errorf("look for the streams of sealed segments: %w", err)
	}
	for i, one := range all {
		if err := missing(one.entry, q[i].Key, sizes[i]); err != nil {
			one.part.miss(one.number, err)
		}
	}
	return nil
}

// sources are those of all segments that are sealed, LOCAL and not empty, of
// what is worked on.
func sources(parts []PartitionScan) (all []source) {
	for i := range parts {
		p := &parts[i]
		if p.Err != nil || !p.Topic.Works() {
			continue
		}
		for _, s := range p.Active {
			if e := s.Entry; s.Err == nil && e.State == segment.Sealed && e.Tier == segment.Local && e.Count != 0 {
				all = append(all, source{p, s.Number, e, e.SealedAt})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b source) int { return cmp.Compare(a.sealedAt, b.sealedAt) })
	return all
}

// missing says why a segment can't be copied, as far as the size of its stream
// tells.
func missing(e segment.Entry, key string, size segment.StreamSize) error {
	switch {
	case size.Err != nil:
		return fmt.Errorf("look for stream %s: %w", key, size.Err)
	case size.Length > 0:
		return nil
	case e.Shared():
		return fmt.Errorf("%w: stream %s has no entries, and the manifest says that those from %s to %s are LOCAL; restore the stream, or delete the manifest entry if the data is not wanted",
			segment.ErrSourceMissing, key, e.From, e.To)
	}
	return checkSource(e, key, StreamInfo{})
}

func (p *PartitionScan) miss(n segment.Number, err error) {
	if p.missing == nil {
		p.missing = map[segment.Number]error{}
	}
	p.missing[n] = err
}

// unlookedWarning says that there was more than was looked for.
func unlookedWarning(n int) string {
	return fmt.Sprintf("it was looked for the streams of the %d segments that were sealed first, and not for those of %d others", maxSources, n)
}
