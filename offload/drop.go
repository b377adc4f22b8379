package offload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"korvet-offload/segment"
)

// dropping is one attempt to remove the local copy of a segment. The order is
// that of the design: look at the object, look at the stream, write DROPPING,
// remove the stream if it still is what it was at the look, write GONE.
type dropping struct {
	w      *Worker
	job    Job
	entry  segment.Entry // changes only together with raw
	raw    string
	key    string
	result Result
	cause  error // of a result that needs one

	checked time.Time // when the object was looked at
}

// drop removes the local copy. Whatever it returns, the entry is REMOTE and
// what it was, or DROPPING, or GONE with its stream removed; or LOCAL again
// where the object or the stream is not what it was at the copy.
func (w *Worker) drop(ctx context.Context, j Job) (Outcome, error) {
	e := j.Stored.Entry
	d := &dropping{w: w, job: j, entry: e, raw: j.Stored.Raw, key: w.key(j.Partition, j.Stored.Number, e.Key), result: Dropped}
	err := d.run(ctx)
	if errors.Is(err, errLostRace) {
		d.result, err = LostRace, nil
	}
	out := Outcome{Result: d.result, Contents: segment.Contents{FirstID: e.FirstID, LastID: e.LastID, Count: e.Count}, Cause: d.cause, raw: d.raw}
	if e.Object != nil {
		out.Path, out.BytesOut = e.Object.Path, e.Object.Bytes
	}
	return out, err
}

func (d *dropping) run(ctx context.Context) error {
	if d.entry.Count == segment.NoCount || d.entry.Object == nil {
		return fmt.Errorf("%w: the entry does not say what was copied, or where to; the local copy stays", segment.ErrIllegalEntry)
	}
	group, needed, err := d.neededBy(ctx)
	if err != nil || needed {
		d.result, d.cause = Held, fmt.Errorf("consumer group %q of stream %s", group, d.key)
		return err
	}
	d.checked = d.w.now()
	damage := d.w.checkObject(ctx, d.entry)
	if damage != nil && !errors.Is(damage, errObject) {
		return damage
	}
	if d.entry.Shared() {
		return d.dropRange(ctx, damage)
	}
	return d.dropStream(ctx, damage)
}

// neededBy is a consumer group that still needs the local copy, if there is one.
func (d *dropping) neededBy(ctx context.Context) (string, bool, error) {
	if !d.w.cfg.HoldPending {
		return "", false, nil
	}
	groups, err := d.w.ports.Streams.Groups(ctx, d.key)
	for _, g := range groups {
		if _, needs := g.Needs(d.entry.LastID); needs {
			return g.Name, true, err
		}
	}
	return "", false, err
}

// checkObject looks whether the object of an entry still is what was put. An
// ETag that is the same is enough; where there is none, or another one, the
// object is read. errObject means that it is not, and that this is certain.
func (w *Worker) checkObject(ctx context.Context, e segment.Entry) error {
	o := e.Object
	info, err := w.ports.Store.Stat(ctx, o.Path)
	switch {
	case errors.Is(err, ErrObjectMissing):
		return fmt.Errorf("%w: %s is not there any more", errObject, o.Path)
	case errors.Is(err, ErrObjectUnknown):
		return fmt.Errorf("%w: %w", ErrStoreDown, err) // no object can be verified
	case err != nil:
		return fmt.Errorf("look at the object: %w", err)
	case info.Size != o.Bytes || info.SHA256 != "" && info.SHA256 != o.SHA256:
		return fmt.Errorf("%w: %s has %d bytes and SHA-256 %q, and %d bytes with %s were put",
			errObject, o.Path, info.Size, info.SHA256, o.Bytes, o.SHA256)
	case info.ETag != "" && info.ETag == o.ETag:
		return nil
	}
	sum, err := w.sumOf(ctx, o.Path, o.Bytes)
	if err == nil && sum != o.SHA256 {
		err = fmt.Errorf("%w: %s has SHA-256 %s, and %s was put", errObject, o.Path, sum, o.SHA256)
	}
	return err
}

// sumOf reads a whole object of a known size. A body that is cut says nothing
// about the object.
func (w *Worker) sumOf(ctx context.Context, path string, size int64) (string, error) {
	body, err := w.ports.Store.Open(ctx, path)
	if err != nil {
		return "", fmt.Errorf("read object %s: %w", path, err)
	}
	defer body.Close()
	sum := sha256.New()
	switch n, err := io.Copy(sum, body); {
	case err != nil:
		return "", fmt.Errorf("read object %s: %w", path, err)
	case n != size:
		return "", fmt.Errorf("read object %s: %d bytes came, and the store says that it has %d: %w", path, n, size, io.ErrUnexpectedEOF)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// likeness is how a stream stands to what was copied of it.
type likeness int

const (
	intact    likeness = iota // the same
	lessened                  // entries were deleted since, none was added: all that is left was copied
	grown                     // entries were added since, and none was trimmed
	perhaps                   // grown by the number alone: to be counted before it is believed
	thinned                   // grown, with entries deleted: what came is counted before that is believed
	absent                    // it is not there
	different                 // anything else
)

// compare tells by what the server remembers, without reading. A stream that was
// lost and made again can have the right numbers; it does not have the first
// entry. Trimming takes the oldest entries first, too: where the first one is
// still there, what is missing was deleted by id, on purpose.
func compare(e segment.Entry, now StreamInfo) likeness {
	was := segment.Source{LastID: e.LastID, Added: -1}
	if e.Source != nil {
		was = *e.Source
	}
	tells := was.Added >= 0 && now.EntriesAdded >= 0
	added := now.EntriesAdded - was.Added
	deleted := !e.FirstID.IsZero() && now.FirstID == e.FirstID && deletedFrom(was, now) // and not trimmed
	switch order := now.LastID.Compare(was.LastID); {
	case !now.Exists:
		return absent
	case order == 0 && now.Length == e.Count && (!tells || added == 0) && (e.Source == nil || now.MaxDeletedID == was.MaxDeletedID):
		return intact
	case order == 0 && now.Length < e.Count && tells && added == 0:
		return lessened
	case order > 0 && tells && now.Length < e.Count+added && deleted:
		return thinned
	case order > 0 && tells && now.Length == e.Count+added, order > 0 && !tells && now.Length > e.Count:
		return perhaps
	}
	return different
}

// deletedFrom says whether entries were ever deleted by id from the very stream
// that was copied: one that was made anew has begun with none.
func deletedFrom(was segment.Source, now StreamInfo) bool {
	return !now.MaxDeletedID.IsZero() && now.MaxDeletedID.Compare(was.MaxDeletedID) >= 0
}

// dropStream removes a stream of its own.
func (d *dropping) dropStream(ctx context.Context, damage error) error {
	now, err := d.w.ports.Streams.StreamInfo(ctx, d.key)
	if err != nil {
		return err
	}
	like := compare(d.entry, now)
	switch like {
	case perhaps:
		like, err = d.countGrown(ctx)
	case thinned:
		like, err = d.countLate(ctx, now)
	}
	if err != nil {
		return err
	}
	switch {
	case like == grown:
		return d.recopy(ctx, fmt.Errorf("%w: entries came late (%s)", segment.ErrStreamChanged, describe(d.entry, now)))
	case damage != nil && like == intact:
		return d.recopy(ctx, damage)
	case damage != nil:
		return fmt.Errorf("%w; and stream %s is no whole copy any more (%s): restore one of the two", damage, d.key, describe(d.entry, now))
	case like == absent:
		return d.gone(ctx)
	case like == different && d.begunAnew(now):
		return d.gone(ctx) // and reported as a stray one from then on
	case like == different:
		return fmt.Errorf("%w: stream %s is not what was copied (%s), so it stays; compare it with object %s",
			segment.ErrStreamChanged, d.key, describe(d.entry, now), d.entry.Object.Path)
	}
	if err := d.mark(ctx); err != nil {
		return err
	}
	if err := d.fresh(ctx); err != nil {
		return err
	}
	removed, err := d.w.ports.Removals.Remove(ctx, d.key, now)
	if err != nil {
		return err
	}
	if !removed {
		return fmt.Errorf("%w: stream %s, while it was being dropped; it stays until the next look", segment.ErrStreamChanged, d.key)
	}
	return d.gone(ctx)
}

// begunAnew says whether the stream holds nothing of what was copied, and only
// what came later, while it was being removed: it was, and GONE was not written.
func (d *dropping) begunAnew(now StreamInfo) bool {
	return d.job.Stored.Entry.Local == segment.Dropping && now.Length > 0 && now.FirstID.Compare(d.entry.LastID) > 0
}

func describe(e segment.Entry, now StreamInfo) string {
	if !now.Exists {
		return "it is not there"
	}
	return fmt.Sprintf("%d entries up to %s now, %d up to %s then", now.Length, now.LastID, e.Count, e.LastID)
}

// countGrown counts what is left of the copied entries: copying again must
// not lose some that were deleted meanwhile and are in the object.
func (d *dropping) countGrown(ctx context.Context) (likeness, error) {
	pieces, _, err := d.pieces(ctx, segment.ID{}, d.entry.LastID)
	if err != nil || total(pieces) != d.entry.Count {
		return different, err
	}
	return grown, nil
}

// countLate counts what came behind the copied entries. More than the server
// has added since means that it had lost some of those in a failover.
func (d *dropping) countLate(ctx context.Context, now StreamInfo) (likeness, error) {
	from, more := d.entry.LastID.Next()
	if !more {
		return different, nil
	}
	pieces, _, err := d.pieces(ctx, from, segment.MaxID())
	if err != nil || total(pieces) > now.EntriesAdded-d.entry.Source.Added {
		return different, err
	}
	return grown, nil
}

// fresh looks at the object again where the last look is too long ago: the
// process may have been stopped since.
func (d *dropping) fresh(ctx context.Context) error {
	if d.w.now().Sub(d.checked) < lookAge {
		return nil
	}
	d.checked = d.w.now()
	return d.w.checkObject(ctx, d.entry)
}

// lookAge is how long a look at an object counts.
const lookAge = 30 * time.Second

// recopy sends the segment back to LOCAL.
func (d *dropping) recopy(ctx context.Context, cause error) error {
	next, err := d.entry.Recopy()
	if err != nil {
		return err
	}
	d.result, d.cause = Reopened, cause
	return d.change(ctx, next, false)
}

// mark writes DROPPING, on as many replicas as were asked for: from here on a
// crash leaves an entry that says what was going on.
func (d *dropping) mark(ctx context.Context) error {
	next, err := d.entry.Drop()
	if err != nil {
		return err
	}
	return d.change(ctx, next, true)
}

// gone writes that there is no local copy, and has the key looked at again.
func (d *dropping) gone(ctx context.Context) error {
	next, err := d.entry.Dropped()
	if err != nil {
		return err
	}
	if err := d.change(ctx, next, false); err != nil {
		return err
	}
	if !d.entry.Shared() {
		d.w.watch(d.job.Partition, d.job.Stored.Number, d.key)
	}
	return nil
}

func (d *dropping) change(ctx context.Context, next segment.Entry, durable bool) error {
	raw := string(next.Encode())
	ok, err := d.w.ports.Manifests.Change(ctx, d.job.Partition, segment.Change{
		Number: d.job.Stored.Number, Old: d.raw, New: raw, Durable: durable,
	})
	if err == nil && !ok {
		return errLostRace
	}
	if err == nil || errors.Is(err, ErrNotReplicated) {
		d.entry, d.raw = next, raw
	}
	return err
}
