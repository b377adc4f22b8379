package restore

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// Done is what was done with one segment.
type Done struct {
	Step
	Written int64 // messages that were written now
	There   int64 // that were there already, and were compared
	Err     error // why it was not restored
}

// Run does what a plan says, and tells of each segment when it is done with it. A
// plan that is refused is an error. What goes wrong with a segment ends a restore
// to one key; of those that get their own streams back, the others go on.
func (r *Restorer) Run(ctx context.Context, p Plan, told func(Done)) error {
	if err := errors.Join(p.Refused...); err != nil {
		return err
	}
	if p.Original {
		return r.originals(ctx, p, told)
	}
	return r.oneStream(ctx, p, told)
}

// oneStream brings all segments into one stream.
func (r *Restorer) oneStream(ctx context.Context, p Plan, told func(Done)) error {
	var steps []Step
	for _, s := range p.Steps {
		if s.Fault != nil {
			return fmt.Errorf("segment %s/%s: %w", p.Partition, s.Number, s.Fault)
		}
		if s.does() {
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	last := steps[len(steps)-1].Entry.LastID
	if to := p.Between.To; !to.IsZero() && to.Compare(last) < 0 {
		last = to
	}
	f, err := r.fill(ctx, p.Key, last)
	if err != nil {
		return err
	}
	defer func() { f.close() }()
	for _, s := range steps {
		before, written := f.length, f.written
		err := r.segment(ctx, p, s, f)
		d := Done{Step: s, Written: f.written - written, Err: err}
		d.There = f.length - before - d.Written
		told(d)
		if err != nil {
			return fmt.Errorf("segment %s/%s: %w", p.Partition, s.Number, err)
		}
	}
	_, err = f.finish(ctx)
	return err
}

// segment adds one segment's messages, all of them written.
func (r *Restorer) segment(ctx context.Context, p Plan, s Step, f *filling) error {
	if err := r.mayGoOn(ctx, p, s.Messages-f.ahead()); err != nil {
		return err
	}
	file, err := r.fetchSegment(ctx, p.Partition, s)
	if err != nil {
		return err
	}
	defer file.close()
	if err := f.add(ctx, file.File, p.Between); err != nil {
		return err
	}
	return f.flush(ctx)
}

// mayGoOn looks again at what may have changed since the plan was made. So many
// messages are to be written.
func (r *Restorer) mayGoOn(ctx context.Context, p Plan, messages int64) error {
	if why := r.Server.Evicts(ctx); why != "" {
		return refuse("%s", why)
	}
	used, most, err := r.Server.Room(ctx)
	if err != nil {
		return ctx.Err() // the plan says that it is not known; the server itself refuses what is too much
	}
	needs := p.Memory.of(max(0, messages))
	if now := (Memory{Used: used, Most: most}); now.short(needs) {
		return refuse("its messages need about %d bytes of Redis' memory, and of its %d bytes %d are in use: raise maxmemory and call again", needs, most, used)
	}
	return nil
}

// fetchSegment reads a segment's file, which has to be what its entry says.
func (r *Restorer) fetchSegment(ctx context.Context, p segment.Partition, s Step) (*fetched, error) {
	e := s.Entry
	file, err := r.fetch(ctx, e.Object.Path, Object{Size: e.Object.Bytes, SHA256: e.Object.SHA256}, r.fileOf(p, s.Number))
	if err != nil {
		return nil, err
	}
	if want := (segment.Contents{FirstID: e.FirstID, LastID: e.LastID, Count: e.Count}); file.Meta().Contents != want {
		file.close()
		return nil, fmt.Errorf("object %s: %w: it holds %d messages from %s to %s, and the entry says %d from %s to %s", e.Object.Path, parquetfile.ErrDamaged,
			file.Rows(), file.First(), file.Last(), e.Count, e.FirstID, e.LastID)
	}
	return file, nil
}

// originals gives segments their own streams back.
func (r *Restorer) originals(ctx context.Context, p Plan, told func(Done)) error {
	var errs []error
	for _, s := range p.Steps {
		d := Done{Step: s, Err: s.Fault}
		if s.does() {
			d.Written, d.There, d.Err = r.original(ctx, p, s)
		}
		if s.does() || s.Fault != nil {
			told(d)
		}
		if d.Err != nil {
			errs = append(errs, fmt.Errorf("segment %s/%s: %w", p.Partition, s.Number, d.Err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// original fills the stream of a segment, and then, only then, lets its entry say
// that it is there. A crash between the two leaves a whole stream, which the next
// call compares and goes on with; the worker may also remove it, which costs
// nothing but the work.
func (r *Restorer) original(ctx context.Context, p Plan, s Step) (written, there int64, err error) {
	raw, err := r.entry(ctx, p.Partition, s.Number)
	if err != nil {
		return 0, 0, err
	}
	if raw != s.Raw {
		return 0, 0, refuse("its entry has changed since the plan was made: call again")
	}
	f, err := r.fill(ctx, s.Key, s.Entry.LastID)
	if err != nil {
		return 0, 0, err
	}
	defer func() { f.close() }()
	if err = r.segment(ctx, p, s, f); err == nil {
		var is segment.StreamInfo
		if is, err = f.finish(ctx); err == nil {
			err = r.present(ctx, p.Partition, s, is)
		}
	}
	return f.written, f.length - f.written, err
}

// present writes that the local copy is there. Whoever took the stream for a
// leftover may have removed it at the last moment; then the entry says so again.
func (r *Restorer) present(ctx context.Context, p segment.Partition, s Step, is segment.StreamInfo) error {
	next, err := s.Entry.Restore(is)
	if err != nil {
		return err
	}
	raw := string(next.Encode())
	ok, err := r.Manifests.Change(ctx, p, segment.Change{Number: s.Number, Old: s.Raw, New: raw})
	if err != nil {
		return fmt.Errorf("change the entry: %w; stream %s is there and whole, the same call goes on with it", err, s.Key)
	}
	if !ok {
		return refuse("its entry has changed meanwhile, so it does not say that stream %s is there: call again", s.Key)
	}
	now, err := r.Streams.StreamInfo(ctx, s.Key)
	if err != nil || now.Exists {
		return err
	}
	gone, err := next.Dropped()
	if err != nil {
		return err
	}
	if _, err := r.Manifests.Change(ctx, p, segment.Change{Number: s.Number, Old: raw, New: string(gone.Encode())}); err != nil {
		return fmt.Errorf("change the entry back: %w", err)
	}
	return refuse("stream %s was removed as soon as it was whole; its entry is as it was: call again while no worker runs", s.Key)
}

// entry is the value of an entry as it is now.
func (r *Restorer) entry(ctx context.Context, p segment.Partition, n segment.Number) (string, error) {
	raw, err := r.Manifests.Entry(ctx, p, n)
	if err != nil {
		return "", fmt.Errorf("read the entry: %w", err)
	}
	return raw, nil
}
