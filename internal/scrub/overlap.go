package scrub

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"

	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// maxCompared is how many messages of an overlap are compared.
const maxCompared = 100_000

// errEnough ends a reading early.
var errEnough = errors.New("enough")

// overlaps reads the objects of segments whose ranges overlap: the same message in
// both is there twice.
func (r *round) overlaps(ctx context.Context) (all []Finding, err error) {
	for a, b := range r.f.overlapping() {
		if r.passes(b.number) || !r.run.meant(r.f.partition, b.number) || a.entry.Tier != segment.Remote || b.entry.Tier != segment.Remote {
			continue
		}
		id, twice, err := r.twice(ctx, a, b)
		if err := r.run.tolerate(err); err != nil {
			return all, err
		}
		if twice {
			all = append(all, r.f.finding(Overlap, b.number, "message %s is in segment %s, too", id, a.number))
		}
	}
	return all, nil
}

// maxOverlapping is with how many others of a topic's segments one is compared.
const maxOverlapping = 64

// overlapping gives a topic's segments two by two whose ranges of ids overlap, the
// one with the lower number first. Of more than maxOverlapping that reach to one
// place those count that go on for longest.
func (f *facts) overlapping() iter.Seq2[row, row] {
	rows := slices.DeleteFunc(slices.Clone(f.manifest.rows), func(r row) bool { return !r.ranged() || r.entry.Shared() })
	slices.SortStableFunc(rows, func(a, b row) int { return a.entry.FirstID.Compare(b.entry.FirstID) })
	ends := func(a, b row) int { return a.entry.LastID.Compare(b.entry.LastID) }
	return func(yield func(a, b row) bool) {
		var open []row // that reach to where the next one begins, by where they end
		for _, r := range rows {
			open = slices.DeleteFunc(open, func(o row) bool { return o.entry.LastID.Compare(r.entry.FirstID) < 0 })
			for _, o := range open {
				a, b := o, r
				if b.number < a.number {
					a, b = b, a
				}
				if !yield(a, b) {
					return
				}
			}
			at, _ := slices.BinarySearchFunc(open, r, ends)
			open = slices.Insert(open, at, r)
			open = open[max(0, len(open)-maxOverlapping):]
		}
	}
}

// twice is the first message that is in both of two segments.
func (r *round) twice(ctx context.Context, a, b row) (same segment.ID, twice bool, err error) {
	from, to := a.entry.FirstID, a.entry.LastID
	if b.entry.FirstID.Compare(from) > 0 {
		from = b.entry.FirstID
	}
	if b.entry.LastID.Compare(to) < 0 {
		to = b.entry.LastID
	}
	ids, seed := map[segment.ID]uint64{}, maphash.MakeSeed()
	err = r.between(ctx, a, from, to, func(p *segment.Page, i int) error {
		if len(ids) == maxCompared {
			return errEnough
		}
		ids[p.ID(i)] = digest(seed, p, i)
		return nil
	})
	if err == nil && len(ids) > 0 {
		err = r.between(ctx, b, from, to, func(p *segment.Page, i int) error {
			if sum, there := ids[p.ID(i)]; there && sum == digest(seed, p, i) {
				same, twice = p.ID(i), true
				return errEnough
			}
			return nil
		})
	}
	return same, twice, err
}

// between reads a part of a segment's object. What is wrong with the object
// itself was found before.
func (r *round) between(ctx context.Context, w row, from, to segment.ID, each func(p *segment.Page, i int) error) error {
	o := objectfile.New(ctx, r.run.ports.Store, w.entry.Object.Path, w.entry.Object.Bytes)
	defer o.Close()
	f, err := parquetfile.Open(o, w.entry.Object.Bytes)
	if err != nil {
		return nil //nolint:nilerr // that is another finding
	}
	err = f.ReadBetween(ctx, parquetfile.Between{From: from, To: to}, func(p *segment.Page, lo, hi int) error {
		if err := r.run.pace.wait(ctx, p.Bytes()); err != nil {
			return err
		}
		for i := lo; i < hi; i++ {
			if err := each(p, i); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errEnough), errors.Is(err, parquetfile.ErrDamaged):
		return nil
	case err != nil:
		return fmt.Errorf("read object %s: %w", w.entry.Object.Path, err)
	}
	return nil
}

// digest tells the fields of an entry from those of others.
func digest(seed maphash.Seed, p *segment.Page, i int) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var n [8]byte
	text := func(b []byte) {
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		_, _ = h.Write(n[:]) // never fails
		_, _ = h.Write(b)
	}
	lo, hi := p.Fields(i)
	for j := lo; j < hi; j++ {
		text(p.Name(j))
		text(p.Value(j))
	}
	return h.Sum64()
}
