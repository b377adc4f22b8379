package offload

import (
	"context"
	"fmt"

	"korvet-offload/segment"
)

// How much of a plain stream is removed in one script, which holds the server
// while it counts.
const (
	pieceEntries = 250
	pieceBytes   = 64 << 10
)

// dropRange removes a range from the beginning of a shared stream. The range
// is counted first; then it goes in pieces, and the script of each proves that
// the stream begins with just these entries.
func (d *dropping) dropRange(ctx context.Context, damage error) error {
	pieces, digest, err := d.pieces(ctx, d.entry.From, d.entry.To)
	if err != nil {
		return err
	}
	info, err := d.w.ports.Streams.StreamInfo(ctx, d.key) // afterwards: a failover while it was counted shows
	if err != nil {
		return err
	}
	switch n := total(pieces); {
	case damage != nil && n == d.entry.Count && d.wasCopied(info, pieces, digest):
		return d.recopy(ctx, damage)
	case damage != nil:
		return fmt.Errorf("%w; and stream %s has %d of its %d entries: restore the object", damage, d.key, n, d.entry.Count)
	case !d.wasCopied(info, pieces, digest):
		return fmt.Errorf("%w: stream %s has %d entries from %s to %s that are not the %d that were copied; they stay; compare them with object %s",
			segment.ErrStreamChanged, d.key, n, d.entry.From, d.entry.To, d.entry.Count, d.entry.Object.Path)
	}
	if err := d.mark(ctx); err != nil {
		return err
	}
	for _, piece := range pieces {
		if err := d.fresh(ctx); err != nil {
			return err
		}
		trimmed, err := d.w.ports.Removals.Trim(ctx, d.key, piece)
		if err != nil {
			return err
		}
		if !trimmed {
			return fmt.Errorf("%w: stream %s does not begin with the %d entries from %s to %s, but with %s; the rest stays until the next look; what lies before them is in no segment, unless somebody has just deleted some",
				segment.ErrStreamChanged, d.key, piece.Count, piece.First, piece.Last, d.firstID(ctx))
		}
	}
	return d.gone(ctx)
}

// firstID is where the stream begins, for a message.
func (d *dropping) firstID(ctx context.Context) segment.ID {
	info, err := d.w.ports.Streams.StreamInfo(ctx, d.key)
	if err != nil {
		return segment.ID{}
	}
	return info.FirstID
}

// wasCopied says whether the entries that are in the range now are, for
// certain, among those that were copied: all of them, and the same; or fewer,
// where that is because this program was interrupted or because some were
// deleted or trimmed, from the very same stream: its counters never go back.
func (d *dropping) wasCopied(info StreamInfo, pieces []segment.Piece, digest uint32) bool {
	var was segment.Source
	if was = (segment.Source{Added: -1}); d.entry.Source != nil {
		was = *d.entry.Source
	}
	tells := was.Added >= 0 && info.EntriesAdded >= 0
	same := tells && info.EntriesAdded >= was.Added && info.LastID.Compare(was.LastID) >= 0
	switch n := total(pieces); {
	case n == 0:
		return true
	case n > d.entry.Count:
		return false
	case n == d.entry.Count && was.CRC32C != 0:
		return was.CRC32C == int64(digest)
	case n == d.entry.Count || d.job.Stored.Entry.Local == segment.Dropping:
		return same || !tells
	}
	deleted := deletedFrom(was, info) && (!was.MaxDeletedID.IsZero() || info.MaxDeletedID.Compare(d.entry.From) >= 0)
	trimmed := pieces[0].First.Compare(d.entry.FirstID) > 0 && pieces[len(pieces)-1].Last == d.entry.LastID
	return same && (deleted || trimmed)
}

// pieces counts the entries between two ids, both inclusive, and where they
// can be cut. The digest is that of all of them.
func (d *dropping) pieces(ctx context.Context, from, to segment.ID) (all []segment.Piece, digest uint32, err error) {
	room := 0 // bytes that still fit into the last piece
	err = d.w.pages.each(ctx, d.w.ports.Streams.Pages(d.key, from, to), func(p *segment.Page) error {
		digest = p.Digest(digest)
		entry := p.Bytes() / max(1, p.Len()) // on the average
		for i := range p.Len() {
			if len(all) == 0 || room < entry || all[len(all)-1].Count == d.w.piece {
				all = append(all, segment.Piece{First: p.ID(i)})
				room = max(pieceBytes, entry)
			}
			last := &all[len(all)-1]
			last.Last = p.ID(i)
			last.Count++
			room -= entry
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("count stream %s: %w", d.key, err)
	}
	return all, digest, nil
}

func total(pieces []segment.Piece) int64 {
	var n int64
	for _, p := range pieces {
		n += p.Count
	}
	return n
}
