package command

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/words"
	"korvet-offload/segment"
)

func (d *describing) lookAtEntry(ctx context.Context) error {
	if d.redis == nil {
		return nil
	}
	stored, err := d.peek(ctx, d.partition, []segment.Number{d.number})
	if err != nil || len(stored) == 0 {
		return err
	}
	d.stored = &stored[0]
	d.view.Entry = &entryView{Manifest: d.layout.ManifestKey(d.partition), Raw: d.stored.Raw}
	if d.view.Where = whereabouts(d.stored.Entry); d.stored.Err != nil {
		d.view.Where, d.view.Entry.Problem = whereIllegal, d.stored.Err.Error()
		d.differs("the entry is none: %v", d.stored.Err)
	}
	return nil
}

func (d *describing) lookAtStream(ctx context.Context) error {
	if d.streams == nil {
		return nil
	}
	key, shared := d.layout.SegmentKey(d.partition, d.number), false
	if d.stored != nil && d.stored.Err == nil {
		if shared = d.stored.Entry.Shared(); d.stored.Entry.Key != "" {
			key = d.stored.Entry.Key
		}
	}
	info, err := d.streams.StreamInfo(ctx, key)
	if errors.Is(err, segment.ErrWrongType) {
		d.differs("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	v := &streamView{Key: key, Exists: info.Exists, Shared: shared, Length: info.Length, FirstID: idText(info.FirstID), LastID: idText(info.LastID), MaxDeletedID: idText(info.MaxDeletedID)}
	if info.EntriesAdded >= 0 {
		v.EntriesAdded = &info.EntriesAdded
	}
	d.view.Stream = v
	if info.Exists {
		sizes, err := d.streams.Sizes(ctx, []segment.SizeQuery{{Key: key, Memory: true}})
		if err != nil {
			return err
		}
		if sizes[0].Err == nil && sizes[0].Bytes >= 0 {
			v.Memory = &sizes[0].Bytes
		}
	}
	d.judgeStream(info)
	return nil
}

// judgeStream says what is not as the entry has it. Of a range in a shared stream,
// and of an open segment, nothing can be said.
func (d *describing) judgeStream(info segment.StreamInfo) {
	if d.stored == nil || d.stored.Err != nil || d.stored.Entry.Shared() {
		return
	}
	e := d.stored.Entry
	switch where := whereabouts(e); {
	case (where == whereWaiting && e.Count != 0 || where == whereBoth && e.Local == segment.Present) && !info.Exists:
		d.differs("the entry says that its stream is in Redis, and there is none")
	case (where == whereWaiting || where == whereBoth) && info.Exists && info.LastID.Compare(e.LastID) < 0:
		d.differs("the entry says that the stream has reached %s, and it ends at %s", e.LastID, info.LastID)
	case where == whereRemote && info.Exists:
		d.differs("the stream was dropped, and there is one again, with %s: somebody appends to it", words.Count(info.Length, "entry"))
	}
}

func (d *describing) lookAtObjects(ctx context.Context) error {
	if d.store == nil {
		return nil
	}
	var rows []catalog.Row
	objects, err := objectsOf(ctx, d.store, d.layout, d.partition, d.number)
	if err == nil && d.redis != nil {
		rows, err = d.again(ctx, d.partition, d.number)
	} else if g := (catalog.Group{Objects: objects}); err == nil && len(objects) > 0 {
		current := g.Current()[0]
		for i := range objects {
			r := catalog.Row{Segment: d.number, Object: &objects[i], Verdict: catalog.Replaced}
			if objects[i].Info.Key == current.Info.Key {
				r.Verdict = "current"
			}
			rows = append(rows, r)
		}
	}
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := d.row(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// row takes an object, and reads the footer of the one that counts.
func (d *describing) row(ctx context.Context, r catalog.Row) error {
	if r.Verdict.Wrong() && r.Verdict != catalog.Illegal {
		d.differs("%s", wrongLine(r))
	}
	if r.Object == nil {
		return nil
	}
	info, err := d.store.Stat(ctx, r.Object.Info.Key)
	if err != nil {
		return fmt.Errorf("look at object %s: %w", r.Object.Info.Key, err)
	}
	named := r.Stored != nil && r.Stored.Err == nil && r.Stored.Entry.Object != nil
	d.view.Objects = append(d.view.Objects, objectView{Path: r.Object.Info.Key, Copy: r.Object.Copy, Named: named, Bytes: info.Size,
		Put: r.Object.Info.ModTime.UTC(), ETag: info.ETag, SHA256: info.SHA256, Verdict: string(r.Verdict)})
	if named && info.SHA256 != "" && r.Stored.Entry.Object.SHA256 != "" && info.SHA256 != r.Stored.Entry.Object.SHA256 {
		d.differs("the entry says that the object has SHA-256 %s, and it has %s", r.Stored.Entry.Object.SHA256, info.SHA256)
	}
	if named || d.view.File == nil && r.Verdict != catalog.Replaced {
		d.lookAtFile(ctx, *r.Object, named)
	}
	return ctx.Err()
}

// lookAtFile reads a footer.
func (d *describing) lookAtFile(ctx context.Context, o catalog.Object, named bool) {
	f := d.footer(ctx, d.partition, o)
	m := f.meta
	d.view.File = &fileView{Path: o.Info.Key, Version: m.Version, StreamKey: m.StreamKey, Segment: m.Segment, Messages: m.Count,
		FirstID: idText(m.FirstID), LastID: idText(m.LastID), Problem: f.problem()}
	if f.err != nil {
		d.differs("object %s: %v", o.Info.Key, f.err)
		return
	}
	if !named {
		return
	}
	if e := d.stored.Entry; e.Count != m.Count || e.FirstID != m.FirstID || e.LastID != m.LastID {
		d.differs("the entry says %s from %s to %s, and the file's footer %d from %s to %s", words.Count(e.Count, "message"), e.FirstID, e.LastID, m.Count, m.FirstID, m.LastID)
	}
}

// idText is an id; "" where there is none.
func idText(id segment.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}
