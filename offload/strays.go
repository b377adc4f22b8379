package offload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"korvet-offload/segment"
)

// A producer that still holds on to a segment after its stream was removed
// makes a new stream under the same key. Keys are watched for strayTime after
// the removal, the last maxWatched of them.
const (
	strayTime  = 10 * time.Minute
	maxWatched = 1000
)

// dropped is a stream that was removed.
type dropped struct {
	partition segment.Partition
	number    segment.Number
	key       string
	until     time.Time
}

// stray is a stream that is there again, and what is said of it.
type stray struct {
	dropped
	problem Problem
}

// watch has a key looked at in the passes that follow.
func (w *Worker) watch(p segment.Partition, n segment.Number, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory.dropped = slices.DeleteFunc(w.memory.dropped, func(d dropped) bool { return d.key == key })
	w.memory.dropped = append(w.memory.dropped, dropped{p, n, key, w.now().Add(strayTime)})
	if extra := len(w.memory.dropped) - maxWatched; extra > 0 {
		w.memory.dropped = w.memory.dropped[extra:]
	}
}

// watchLast has the streams watched that were dropped last, as far as a
// manifest tells: whoever dropped them may have been stopped since.
func (w *Worker) watchLast(p segment.Partition, x *index) {
	const last = 4
	if p.Plain || len(w.memory.dropped) > maxWatched/2 { // those just dropped come first
		return
	}
	for _, s := range x.gone.list[max(0, len(x.gone.list)-last):] {
		w.watch(p, s.number, w.key(p, s.number, s.key))
	}
}

// isGone says whether the segment is still one without a local copy: a topic
// that was made anew has segments with the same numbers and keys.
func (m *memory) isGone(d dropped) bool {
	x := m.indexes[d.partition]
	if x == nil {
		return false
	}
	if _, gone := x.gone.find(d.number); gone {
		return true
	}
	return slices.ContainsFunc(x.active, func(s segment.Stored) bool { // on its way there
		return s.Number == d.number && s.Err == nil && s.Entry.Tier == segment.Remote
	})
}

// lookForStrays finds the removed streams that came back. They are never
// deleted, for what is in them was acknowledged to a producer, except by
// leftovers.
func (w *Worker) lookForStrays(ctx context.Context) ([]stray, error) {
	var q []segment.SizeQuery
	w.memory.dropped = slices.DeleteFunc(w.memory.dropped, func(d dropped) bool { return !w.memory.isGone(d) })
	for _, d := range w.memory.dropped {
		q = append(q, segment.SizeQuery{Key: d.key})
	}
	if len(q) == 0 {
		return nil, nil
	}
	sizes, err := w.ports.Streams.Sizes(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("look at the streams that were dropped: %w", err)
	}
	var found []stray
	keep := w.memory.dropped[:0]
	for i, d := range w.memory.dropped {
		if sizes[i].Length > 0 {
			found = append(found, stray{d, problemOf(d.partition, d.number.String(), strayError(d.key, sizes[i].Length))})
		} else if !w.now().Before(d.until) {
			continue
		}
		keep = append(keep, d)
	}
	w.memory.dropped = keep
	return found, nil
}

// leftovers removes the strays that are none: a failover of Redis can lose the
// removal of a stream and keep the GONE that was written after it. Such a
// stream is the very one that was copied, and goes as in any drop.
func (p *pass) leftovers(ctx context.Context, strays []stray) {
	for _, s := range strays {
		if !p.goesOn(ctx) {
			return
		}
		if p.report.Plan.Paused.Covers(s.partition) {
			continue
		}
		leave, open := p.worker.enter(s.partition)
		if !open {
			continue
		}
		out, err := p.worker.removeLeftover(ctx, s.dropped)
		leave()
		if err != nil {
			p.fault(problemOf(s.partition, s.number.String(), err))
		}
		if isOutage(err) { // rolls and copies need not wait for so little
			return
		}
		if err != nil || out.Result != Dropped {
			continue
		}
		p.report.Problems = slices.DeleteFunc(p.report.Problems, func(o Problem) bool { return o == s.problem })
		p.worker.observer.Finished(out)
		p.report.Outcomes = append(p.report.Outcomes, out)
	}
}

// removeLeftover removes a stream whose entry is GONE, if it is what was copied
// and the object is there. Result Nothing: it is not, and stays.
func (w *Worker) removeLeftover(ctx context.Context, d dropped) (Outcome, error) {
	out := Outcome{Action: Drop, Result: Nothing, Partition: d.partition, Segment: d.number}
	raw, err := w.entries(ctx, []Job{{Partition: d.partition, Stored: segment.Stored{Number: d.number}}})
	if err != nil {
		return out, err
	}
	e, err := segment.ParseEntry([]byte(raw[0]))
	if err != nil || e.Local != segment.Gone || e.Object == nil || e.Shared() {
		return out, nil //nolint:nilerr // it is another entry by now, and the next scan sees what is wrong with it
	}
	info, err := w.ports.Streams.StreamInfo(ctx, d.key)
	if err != nil || compare(e, info) != intact {
		return out, err
	}
	if err := w.checkObject(ctx, e); err != nil {
		return out, err
	}
	removed, err := w.ports.Removals.Remove(ctx, d.key, info)
	if removed {
		out.Result, out.Path, out.BytesOut = Dropped, e.Object.Path, e.Object.Bytes
		out.Contents = segment.Contents{FirstID: e.FirstID, LastID: e.LastID, Count: e.Count}
	}
	return out, err
}
