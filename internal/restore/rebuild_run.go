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

// RunManifest does what PlanManifest says, entry by entry. The first of them and
// the OPEN entry are put last, in one step: until then the manifest has none, and
// the same call goes on with it.
func (r *Restorer) RunManifest(ctx context.Context, b Rebuild) error {
	if err := errors.Join(b.Refused...); err != nil || !b.Does() {
		return err
	}
	rest, first := b.Add, segment.Change{Next: b.Open, Open: string(b.OpenEntry.Encode()), Old: b.Replace}
	if len(rest) > 0 && (b.Replace == "" || rest[0].Number == 0) {
		first.Number, first.New = rest[0].Number, string(entryOf(b.Partition, rest[0]).Encode())
		rest = rest[1:]
	}
	for _, f := range rest {
		if err := r.put(ctx, b.Partition, segment.Change{Number: f.Number, New: string(entryOf(b.Partition, f).Encode())}); err != nil {
			return err
		}
	}
	if first.New == "" && first.Old == "" { // all were there but the OPEN one
		first = segment.Change{Number: b.Open, New: first.Open}
	}
	if err := r.stillEmpty(ctx, b); err != nil {
		return err
	}
	if err := r.put(ctx, b.Partition, first); err != nil {
		return err
	}
	return r.stillEmpty(ctx, b)
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
