package repair

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// enter begins to change something of a partition, if it is not paused.
func (p *part) enter(a Action) (leave func(), err error) {
	if p.ports.Gate == nil {
		return func() {}, nil
	}
	leave, ok := p.ports.Gate.Enter(p.partition)
	if !ok {
		return nil, fmt.Errorf("repair segment %s/%s: it is %w; resume it first (korvet-offload resume)", p.partition, a.Segment, offload.ErrPaused)
	}
	return leave, nil
}

// act carries an action out: first it looks again at all that the action relies
// on, then it makes the one change, and then the segment is copied if its entry
// has gone back to LOCAL for that.
func (p *part) act(ctx context.Context, a Action) (Result, offload.Outcome, error) {
	var none offload.Outcome
	leave, err := p.enter(a)
	if err != nil {
		return Failed, none, err
	}
	defer leave()
	if err := p.ports.Store.Owner(ctx); err != nil { // a folder may be mounted no more: all of it would be missing
		return Failed, none, fmt.Errorf("look again before %s of %s/%s: %w", a.Deed, p.partition, a.Segment, err)
	}
	same, err := p.still(ctx, a)
	if err != nil {
		return Failed, none, fmt.Errorf("look again before %s of %s/%s: %w", a.Deed, p.partition, a.Segment, err)
	}
	if !same {
		return LostRace, none, nil
	}
	ok, err := p.change(ctx, a)
	switch {
	case err != nil:
		return Failed, none, err
	case !ok:
		return LostRace, none, nil
	case a.entry.Tier != segment.Local: // else it is copied now
		return Done, none, nil
	}
	out, err := p.ports.Copier.CopyNow(ctx, p.partition, a.Segment)
	if err != nil {
		return Failed, out, fmt.Errorf("the entry of %s/%s is LOCAL again, and run goes on from there; copy it: %w", p.partition, a.Segment, err)
	}
	return Done, out, nil
}

// change makes the one change of an action. False means that somebody else was
// faster, and that nothing was changed.
func (p *part) change(ctx context.Context, a Action) (bool, error) {
	if a.Deed == Unstray {
		ok, err := p.ports.Removals.Remove(ctx, a.key, a.held.Info)
		if err != nil {
			return ok, fmt.Errorf("remove stray stream %s: %w", a.key, err)
		}
		return ok, nil
	}
	ok, err := p.ports.Manifests.Change(ctx, p.partition, segment.Change{Number: a.Segment, Old: a.Old, New: a.New})
	if err != nil {
		return ok, fmt.Errorf("change the entry of %s/%s: %w", p.partition, a.Segment, err)
	}
	return ok, nil
}

// still says whether all that an action relies on is what was read: the object,
// the stream, the entries beside it, and last the entry itself.
func (p *part) still(ctx context.Context, a Action) (bool, error) {
	read := reader{store: p.ports.Store, dir: p.opt.SpoolDir}
	if a.file != nil {
		if same, err := read.unchanged(ctx, a.file); err != nil || !same {
			return false, err
		}
	}
	if a.absent != "" {
		if f, err := read.stat(ctx, a.absent); err != nil || !f.Missing {
			return false, err
		}
	}
	if a.held != nil {
		if same, err := p.sameStream(ctx, a); err != nil || !same {
			return false, err
		}
	}
	numbers, raw := []segment.Number{a.Segment}, []string{a.Old}
	if a.place != nil {
		for _, n := range []*Neighbor{a.place.Before, a.place.After} {
			if n != nil && n.Raw != "" {
				numbers, raw = append(numbers, n.Number), append(raw, n.Raw)
			}
		}
	}
	now, err := p.peek(ctx, numbers...)
	if err != nil {
		return false, err
	}
	for i := range raw {
		if now[i] != raw[i] {
			return false, nil
		}
	}
	return true, nil
}

// sameStream says whether the stream is what was read. Into a range of a shared
// stream nothing ever comes; it must not have been trimmed, or made anew.
func (p *part) sameStream(ctx context.Context, a Action) (bool, error) {
	now, err := p.ports.Streams.StreamInfo(ctx, a.key)
	if errors.Is(err, segment.ErrWrongType) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	was := a.held.Info
	if !a.before.Shared() && !a.entry.Shared() {
		return now == was, nil
	}
	return now.Exists == was.Exists && now.LastID.Compare(was.LastID) >= 0 && now.MaxDeletedID == was.MaxDeletedID &&
		(a.held.Contents.Count == 0 || now.FirstID.Compare(a.held.Contents.FirstID) <= 0), nil
}
