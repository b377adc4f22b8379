package restore

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/segment"
)

// entryOf is the entry that tells of a file.
func entryOf(p segment.Partition, f Found) segment.Entry {
	e := segment.NewRemote(f.Contents, *f.Object, f.Copy, f.At)
	if p.Plain {
		e.Key, e.From, e.To = p.Topic, f.Contents.FirstID, f.Contents.LastID
	}
	return e
}

// RunManifest does what PlanManifest says, entry by entry, from the lowest number
// on: whatever lies before a manifest's first entry counts as past retention, and
// gc may remove it, also of a manifest that is not complete. The OPEN entry is put
// last, in one step with what takes the place of a worker's entry 0: until then
// the manifest has none of ours, and the same call goes on with it.
func (r *Restorer) RunManifest(ctx context.Context, b Rebuild) error {
	if err := errors.Join(b.Refused...); err != nil || !b.Does() {
		return err
	}
	rest, first := b.Add, segment.Change{Next: b.Open, Open: string(b.OpenEntry.Encode()), Old: b.Replace}
	if b.Replace != "" && len(rest) > 0 && rest[0].Number == 0 {
		first.Number, first.New = rest[0].Number, string(entryOf(b.Partition, rest[0]).Encode())
		rest = rest[1:]
	}
	for _, f := range rest {
		if err := r.put(ctx, b.Partition, segment.Change{Number: f.Number, New: string(entryOf(b.Partition, f).Encode())}); err != nil {
			return err
		}
	}
	lowest, err := r.allThere(ctx, b, rest)
	if err != nil {
		return err
	}
	if first.Old == "" { // nothing is replaced: the lowest entry must be there still
		first.Number, first.Old, first.New = lowest.Number, lowest.Raw, lowest.Raw
	}
	if err := r.stillEmpty(ctx, b); err != nil {
		return err
	}
	if err := r.put(ctx, b.Partition, first); err != nil {
		return err
	}
	return r.stillEmpty(ctx, b)
}

// allThere looks whether the manifest has all that was put, and that was there
// before, and returns the entry with the lowest number: a Redis that was emptied
// meanwhile, or has failed over, has not, and with an OPEN entry it would look
// complete.
func (r *Restorer) allThere(ctx context.Context, b Rebuild, put []Found) (lowest segment.Stored, err error) {
	m, err := r.entries(ctx, b.Partition)
	if err != nil {
		return lowest, err
	}
	missing, want := map[segment.Number]bool{}, b.There+len(put)
	for _, f := range put {
		missing[f.Number] = true
	}
	have := 0
	for _, e := range m.Entries {
		if delete(missing, e.Number); e.Raw != b.Replace || e.Number != 0 {
			have++
		}
	}
	if len(m.Entries) == 0 || len(missing) > 0 || have < want {
		return lowest, refuse("manifest of %s: it has %d of the %d entries that it had: redis has lost some meanwhile; call again", b.Partition, have, want)
	}
	return m.Entries[0], nil
}

func (r *Restorer) put(ctx context.Context, p segment.Partition, c segment.Change) error {
	ok, err := r.Manifests.Change(ctx, p, c)
	if err != nil {
		return fmt.Errorf("segment %s/%s: put the entry: %w; the same call goes on with it", p, c.Number, err)
	}
	if !ok {
		return refuse("segment %s/%s: somebody else has changed the manifest meanwhile: call again", p, c.Number)
	}
	return nil
}

// stillEmpty looks whether the stream of an entry that is replaced has got
// messages meanwhile.
func (r *Restorer) stillEmpty(ctx context.Context, b Rebuild) error {
	if b.Replace == "" {
		return nil
	}
	key := r.layout.SegmentKey(b.Partition, 0)
	is, err := r.Streams.StreamInfo(ctx, key)
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", key, err)
	}
	if is.Length > 0 && !b.Partition.Plain {
		return refuse("stream %s has got %d messages while its entry was to be replaced: stop the producers, rename it to %s where nothing is, and call again",
			key, is.Length, r.layout.SegmentKey(b.Partition, b.Open))
	}
	return nil
}
