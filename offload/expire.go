package offload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"korvet-offload/segment"
)

// hide marks a segment DELETING: from now on readers do not see it, and after
// the grace its object goes. Of a segment that is LOCAL the entry takes what
// its stream is now, which must not change until it goes.
func (w *Worker) hide(ctx context.Context, j Job) (Outcome, error) {
	e := j.Stored.Entry
	legal := j.Gone || e.State == segment.Deleting || e.Tier == segment.Local || e.Local == segment.Gone
	if e.Shared() && (e.Tier == segment.Local || e.Local != segment.Gone) {
		return Outcome{}, fmt.Errorf("%w: it is a range of stream %s, and is removed from there first", segment.ErrIllegalEntry,
			w.key(j.Partition, j.Stored.Number, e.Key))
	}
	if !legal {
		return Outcome{}, fmt.Errorf("hide a segment that is %s %s %s: its local copy goes first", e.State, e.Tier, e.Local)
	}
	var info StreamInfo
	if e.Tier == segment.Local {
		var err error
		if info, err = w.ports.Streams.StreamInfo(ctx, w.key(j.Partition, j.Stored.Number, e.Key)); err != nil {
			return Outcome{}, err
		}
		if !j.Gone && !info.Exists && e.Count != 0 {
			return Outcome{}, fmt.Errorf("%w: it was never copied, and stream %s is not there: what is lost must not look as if it had expired",
				segment.ErrSourceMissing, w.key(j.Partition, j.Stored.Number, e.Key))
		}
		if !j.Gone && e.State == segment.Sealed && info.LastID.Compare(e.LastID) > 0 {
			return w.renew(ctx, j, e, info, Nothing) // younger than the plan knew
		}
		if info.Exists {
			e.FirstID = info.FirstID
		}
	}
	now, err := w.ports.Clock.Now(ctx)
	if err != nil {
		return Outcome{}, fmt.Errorf("read the redis clock: %w", err)
	}
	hidden := e.Delete
	if j.Gone {
		hidden = e.DeleteWithTopic
	}
	next, err := hidden(info, now.UnixMilli())
	if err != nil {
		return Outcome{}, err
	}
	next.Aged = next.Aged || j.aged
	raw := string(next.Encode())
	ok, err := w.ports.Manifests.Change(ctx, j.Partition, segment.Change{Number: j.Stored.Number, Old: j.Stored.Raw, New: raw})
	out := outcome(Hidden, ok)
	out.raw = raw
	return out, err
}

// bringBack undoes hide. A segment whose only copy was its object, and whose
// object has gone already, stays hidden, and goes. What else may be wrong with
// it shows as with any other segment.
func (w *Worker) bringBack(ctx context.Context, j Job) (Outcome, error) {
	e := j.Stored.Entry
	whole := true
	if e.Tier == segment.Remote && e.Local == segment.Gone && e.Object != nil {
		info, err := w.ports.Store.Stat(ctx, e.Object.Path)
		switch {
		case errors.Is(err, ErrObjectMissing):
			whole = false
		case err != nil:
			return Outcome{}, fmt.Errorf("look at the object: %w", err)
		case info.Size != e.Object.Bytes:
			return Outcome{}, fmt.Errorf("%w: %s has %d bytes, and %d were put; it is neither brought back nor deleted; restore it",
				errObject, e.Object.Path, info.Size, e.Object.Bytes)
		}
	}
	next, err := e.Return(whole)
	if err != nil {
		return Outcome{}, err
	}
	ok, err := w.ports.Manifests.Change(ctx, j.Partition, segment.Change{
		Number: j.Stored.Number, Old: j.Stored.Raw, New: string(next.Encode()),
	})
	if !whole {
		return outcome(Nothing, ok), err
	}
	return outcome(Returned, ok), err
}

// clear removes what a segment that is DELETING still has in Redis, and
// refuses where that is not what is to go. Only then may its object go.
func (w *Worker) clear(ctx context.Context, j Job) (Outcome, error) {
	e := j.Stored.Entry
	if e.Object != nil && !segment.IsObjectOf(e.Object.Path, w.layout.Folder(j.Partition), j.Stored.Number) {
		return Outcome{}, fmt.Errorf("%w: %q is no object of this segment, so it is not deleted; correct the entry", errForeign, e.Object.Path)
	}
	key := w.key(j.Partition, j.Stored.Number, e.Key)
	if e.Shared() && (e.Tier == segment.Local || e.Local != segment.Gone) {
		return Outcome{}, fmt.Errorf("%w: a range of stream %s was hidden before it was removed from there; it stays", segment.ErrIllegalEntry, key)
	}
	if e.Shared() {
		return Outcome{}, nil
	}
	now, err := w.ports.Streams.StreamInfo(ctx, key)
	switch {
	case err != nil:
		return Outcome{}, err
	case !now.Exists, e.Local == segment.Gone && now.Length == 0:
		return Outcome{}, nil
	}
	like := compare(e, now)
	if e.Local == segment.Gone && like != intact { // the very stream: a failover has brought it back
		return Outcome{}, strayError(key, now.Length)
	}
	if like == intact || like == lessened {
		removed, err := w.ports.Removals.Remove(ctx, key, now)
		if err != nil || removed {
			return Outcome{}, err
		}
	}
	if e.Tier == segment.Local {
		return w.undelete(ctx, j, now)
	}
	return Outcome{}, fmt.Errorf("%w: stream %s of a segment that is to be deleted (%s); it stays; see who writes there",
		segment.ErrStreamChanged, key, describe(e, now))
}

// undelete takes back the deletion of a segment that was written to.
func (w *Worker) undelete(ctx context.Context, j Job, now StreamInfo) (Outcome, error) {
	if j.Stored.Entry.WithTopic == segment.Open { // it was not sealed, and still is not
		next, err := j.Stored.Entry.Return(true)
		if err != nil {
			return Outcome{}, err
		}
		ok, err := w.ports.Manifests.Change(ctx, j.Partition, segment.Change{
			Number: j.Stored.Number, Old: j.Stored.Raw, New: string(next.Encode()),
		})
		return outcome(Reopened, ok), err
	}
	next, err := j.Stored.Entry.Undelete()
	if err != nil {
		return Outcome{}, err
	}
	return w.renew(ctx, j, next, now, Reopened)
}

// renew writes what the stream of a LOCAL segment is now, so that the segment
// is as old as what came last, and not as what was there when it was sealed.
func (w *Worker) renew(ctx context.Context, j Job, next segment.Entry, now StreamInfo, r Result) (Outcome, error) {
	next.FirstID, next.LastID, next.Count = now.FirstID, now.LastID, now.Length
	next.Rev = j.Stored.Entry.Rev + 1
	ok, err := w.ports.Manifests.Change(ctx, j.Partition, segment.Change{
		Number: j.Stored.Number, Old: j.Stored.Raw, New: string(next.Encode()),
	})
	return outcome(r, ok), err
}

// entries reads the entries of jobs as they are now; "" for one that is not
// there, or could not be read.
func (w *Worker) entries(ctx context.Context, jobs []Job) ([]string, error) {
	at := map[segment.Partition][]int{}
	for i, j := range jobs {
		at[j.Partition] = append(at[j.Partition], i)
	}
	var q []segment.Peek
	for part, places := range at {
		peek := segment.Peek{Partition: part}
		for _, i := range places {
			peek.Numbers = append(peek.Numbers, jobs[i].Stored.Number)
		}
		q = append(q, peek)
	}
	raw := make([]string, len(jobs))
	if len(q) == 0 {
		return raw, nil
	}
	answers, err := w.ports.Manifests.Peek(ctx, q)
	if err != nil {
		return raw, fmt.Errorf("read manifests: %w", err)
	}
	for k, a := range answers {
		for n, i := range at[q[k].Partition] {
			if a.Err == nil {
				raw[i] = a.Raw[n]
			}
		}
	}
	return raw, nil
}

// expire deletes segments whose grace is over: what is left in Redis, then
// the objects in batches, then the entries, each only if all before it went.
func (p *pass) expire(ctx context.Context, jobs []Job) {
	for batch := range slices.Chunk(p.cleared(ctx, jobs), deleteBatch) {
		p.deleteBatch(ctx, batch)
	}
}

// deleteBatch is how many objects the store is asked to delete at once.
const deleteBatch = 1000

func (p *pass) deleteBatch(ctx context.Context, jobs []Job) {
	if !p.goesOn(ctx) {
		p.skip(len(jobs))
		return
	}
	ready := p.unchanged(ctx, jobs)
	ready, leave := p.entered(ready)
	failed := p.worker.deleteObjects(ctx, ready)
	leave()
	p.each(ctx, ready, func(ctx context.Context, j Job, i int) (Outcome, error) {
		if failed[i] != nil {
			return Outcome{}, failed[i]
		}
		return p.worker.erase(ctx, j)
	})
}

// entered are the jobs whose partitions the gate lets in, until leave is called.
func (p *pass) entered(jobs []Job) (in []Job, leave func()) {
	var leaves []func()
	for _, j := range jobs {
		if one, open := p.worker.enter(j.Partition); open {
			in, leaves = append(in, j), append(leaves, one)
		}
	}
	p.skip(len(jobs) - len(in))
	return in, func() {
		for _, one := range leaves {
			one()
		}
	}
}

// deleteObjects deletes the objects of jobs, and says of each job why that has
// failed.
func (w *Worker) deleteObjects(ctx context.Context, jobs []Job) []error {
	var paths []string
	var whose []int
	for i, j := range jobs {
		if o := j.Stored.Entry.Object; o != nil {
			paths, whose = append(paths, o.Path), append(whose, i)
		}
	}
	failed := make([]error, len(jobs))
	if len(paths) > 0 {
		for k, err := range w.ports.Store.Delete(ctx, paths) {
			failed[whose[k]] = err
		}
	}
	return failed
}

// cleared returns the segments of which nothing is left in Redis.
func (p *pass) cleared(ctx context.Context, jobs []Job) []Job {
	clear := make([]bool, len(jobs))
	p.each(ctx, jobs, func(ctx context.Context, j Job, i int) (Outcome, error) {
		out, err := p.worker.clear(ctx, j)
		clear[i] = err == nil && out.Result == ""
		return out, err
	})
	var ready []Job
	for i, j := range jobs {
		if clear[i] {
			ready = append(ready, j)
		}
	}
	return ready
}

// unchanged reads the entries once more, right before objects are deleted,
// which nothing can make conditional: a leader that has slept must not delete
// what another one has put at a path that had become free.
func (p *pass) unchanged(ctx context.Context, jobs []Job) []Job {
	raw, err := p.worker.entries(ctx, jobs)
	if err != nil {
		p.fault(Problem{Partition: -1, Reason: ReasonOf(err), Err: err})
	}
	var same []Job
	for i, j := range jobs {
		if err == nil && raw[i] == j.Stored.Raw {
			same = append(same, j)
		}
	}
	p.skip(len(jobs) - len(same))
	return same
}

// erase removes the entry of a segment of which nothing else is left.
func (w *Worker) erase(ctx context.Context, j Job) (Outcome, error) {
	e := j.Stored.Entry
	ok, err := w.ports.Manifests.Change(ctx, j.Partition, segment.Change{Number: j.Stored.Number, Old: j.Stored.Raw})
	result := Expired
	if e.Tier == segment.Local {
		result = ExpiredUnuploaded
	}
	out := outcome(result, ok)
	out.Contents = segment.Contents{FirstID: e.FirstID, LastID: e.LastID, Count: max(0, e.Count)}
	if e.Object != nil {
		out.Path, out.BytesOut = e.Object.Path, e.Object.Bytes
	}
	return out, err
}

// forget drops the records of topics of which nothing is left.
func (p *pass) forget(ctx context.Context, topics []string) {
	for _, t := range topics {
		if !p.goesOn(ctx) {
			return
		}
		if err := p.worker.remember(ctx, note{topic: t, old: p.worker.memory.known[t]}); err != nil {
			p.fault(Problem{Topic: t, Partition: -1, Reason: ReasonOf(err), Err: err})
		}
	}
}

// remember writes what is known of a topic.
func (w *Worker) remember(ctx context.Context, n note) error {
	ok, err := w.ports.Known.SwapKnown(ctx, n.topic, n.old, n.new)
	switch {
	case err != nil:
		return fmt.Errorf("remember topic %s: %w", n.topic, err)
	case !ok:
		w.memory.known = nil // somebody else has written; read it again
		return nil
	}
	w.memory.recalled.note(n.topic, n.new)
	switch {
	case w.memory.known == nil: // the next scan reads it again
	case n.new == "":
		delete(w.memory.known, n.topic)
	default:
		w.memory.known[n.topic] = n.new
	}
	return nil
}

func strayError(key string, entries int64) error {
	return fmt.Errorf("%w: %s has entries again (%d), after it was copied and removed; no reader finds them there; move them on or delete the key",
		errStray, key, entries)
}
