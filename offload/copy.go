package offload

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"korvet-offload/segment"
)

// maxPaths is how many paths of one segment are tried in one attempt. More
// than a few mean that something else writes there, and that a person should
// look.
const maxPaths = 8

// errLostRace: the entry was changed by somebody else. That is how two
// workers get along, and no failure.
var errLostRace = errors.New("lost the race for the manifest entry")

// copying is one attempt at one segment. Its steps run in the order of
// design rule "copy, verify, flip"; each may be the last.
type copying struct {
	w     *Worker
	job   Job
	entry segment.Entry // changes only together with raw
	raw   string        // as it stands in the manifest
	key   string        // of the stream
	of    FileOf

	folder   string     // of its objects
	from, to segment.ID // what of the stream is the segment
	before   segment.StreamInfo
	spool    *spool
	bytesIn  int64
	contents segment.Contents
	digest   uint32 // of a range
	path     string
	object   ObjectInfo
	result   Result
}

// copySegment brings one segment from LOCAL to REMOTE. Whatever it returns,
// the entry is either as it was, or on its next copy, or REMOTE with a
// verified object.
func (w *Worker) copySegment(ctx context.Context, job Job) (Outcome, error) {
	e := job.Stored.Entry
	c := &copying{
		w: w, job: job, entry: e, raw: job.Stored.Raw, key: w.key(job.Partition, job.Stored.Number, e.Key),
		of:     FileOf{StreamKey: w.layout.StreamKey(job.Partition), Segment: job.Stored.Number},
		folder: w.layout.Folder(job.Partition), from: segment.ID{}, to: segment.MaxID(),
		spool: w.spools.open(), result: Copied,
	}
	defer c.spool.close()
	if e.Shared() {
		c.from, c.to = e.From, e.To
	}
	err := c.run(ctx)
	if errors.Is(err, errLostRace) {
		c.result, err = LostRace, nil
	}
	out := Outcome{Result: c.result, Contents: c.contents, Path: c.path, BytesIn: c.bytesIn, BytesOut: c.spool.size, raw: c.raw}
	if e.Shared() {
		out.Missing = max(0, e.Count-c.contents.Count)
	}
	return out, err
}

func (c *copying) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.look,      // the stream is there and whole
		c.encode,    // stream -> file in the spool
		c.recheck,   // the file can be read again and holds what was read
		c.unchanged, // not worth an upload otherwise
		c.store,     // file -> object, create-only
		c.verify,    // the store shows that object
		c.unchanged, // the object is the whole segment
		c.flip,      // the commit point
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// look refuses a stream that is missing or short before anything is read.
func (c *copying) look(ctx context.Context) error {
	free, err := c.choosePath(ctx)
	if err != nil {
		return err
	}
	if c.before, err = c.w.ports.Streams.StreamInfo(ctx, c.key); err != nil {
		return err
	}
	if c.entry.Shared() {
		return checkRange(c.entry, c.key, c.before)
	}
	err = checkSource(c.entry, c.key, c.before)
	if !free && errors.Is(err, segment.ErrSourceMissing) { // a failover can forget a flip whose stream was removed since
		err = fmt.Errorf("%w; but object %s is on the store, and may hold it if redis has failed over: then keep the entry and the object", err, c.path)
	}
	return err
}

// encode writes the stream into the spool, the next page being fetched while
// this one is encoded.
func (c *copying) encode(ctx context.Context) error {
	enc := c.w.ports.Encoding.NewEncoder(c.spool, c.of)
	err := c.w.pages.each(ctx, c.w.ports.Streams.Pages(c.key, c.from, c.to), func(p *segment.Page) error {
		c.bytesIn += int64(p.Bytes())
		c.w.observer.Advanced(p.Len(), p.Bytes())
		if c.entry.Shared() {
			c.digest = p.Digest(c.digest)
		}
		return enc.Write(p)
	})
	contents, cerr := enc.Close()
	if err == nil {
		err = cerr // after an error of the reading this one would only follow from it
	}
	if err != nil {
		return fmt.Errorf("copy stream %s: %w", c.key, err)
	}
	if err := c.spool.finish(); err != nil {
		return err
	}
	c.contents = contents
	if c.entry.Shared() {
		return c.checkRead()
	}
	if contents.Count != c.before.Length || contents.LastID.Compare(c.before.LastID) > 0 {
		return fmt.Errorf("%w: stream %s had %d entries up to %s, and %d up to %s were read",
			segment.ErrStreamChanged, c.key, c.before.Length, c.before.LastID, contents.Count, contents.LastID)
	}
	return nil
}

// checkRead looks at what came of a range. One that is empty was lost.
func (c *copying) checkRead() error {
	switch n := c.contents.Count; {
	case n == 0 && c.entry.Count != 0:
		return fmt.Errorf("%w: stream %s has no entries from %s to %s any more: something trims it before it is copied, or it was deleted and made anew; trim later; if what is lost is not wanted: HDEL %s %s",
			segment.ErrSourceMissing, c.key, c.entry.From, c.entry.To, c.w.layout.ManifestKey(c.job.Partition), c.job.Stored.Number)
	case c.entry.Count >= 0 && n > c.entry.Count:
		return fmt.Errorf("%w: stream %s has %d entries from %s to %s, and had %d when the range was sealed: it was made anew",
			segment.ErrStreamChanged, c.key, n, c.entry.From, c.entry.To, c.entry.Count)
	}
	return nil
}

// recheck reads the footer of the finished file again and counts its rows.
func (c *copying) recheck(context.Context) error {
	found, err := c.w.ports.Encoding.Check(c.spool, c.spool.size, c.of)
	if err != nil {
		return fmt.Errorf("read back the file of stream %s: %w", c.key, err)
	}
	if found != c.contents {
		return fmt.Errorf("read back the file of stream %s: it holds %d entries from %s to %s, and %d from %s to %s were written",
			c.key, found.Count, found.FirstID, found.LastID, c.contents.Count, c.contents.FirstID, c.contents.LastID)
	}
	return nil
}

// unchanged refuses to go on when the stream is not what it was before the
// first page: the file would lack a late append.
func (c *copying) unchanged(ctx context.Context) error {
	now, err := c.w.ports.Streams.StreamInfo(ctx, c.key)
	if err != nil {
		return err
	}
	if c.entry.Shared() {
		return checkRange(c.entry, c.key, now)
	}
	if now != c.before {
		return fmt.Errorf("%w: stream %s had %d entries up to %s, and has %d up to %s; it is copied again",
			segment.ErrStreamChanged, c.key, c.before.Length, c.before.LastID, now.Length, now.LastID)
	}
	return nil
}

// store puts the file at a path that is free, or finds it there already.
func (c *copying) store(ctx context.Context) error {
	for range maxPaths {
		free, err := c.choosePath(ctx)
		if err != nil {
			return err
		}
		if free {
			_, err = c.w.ports.Store.Put(ctx, c.upload())
			if !errors.Is(err, ErrObjectExists) {
				return err
			}
		}
		same, err := c.same(ctx)
		if err != nil {
			return err
		}
		if same {
			c.result = Adopted
			return nil
		}
		if err := c.nextCopy(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w, the last being %s; see what writes there", errConflict, c.path)
}

// choosePath sets the path of this copy and says whether it looks free. It is
// asked before the stream is read too, since a store that does not answer is
// better found then.
func (c *copying) choosePath(ctx context.Context) (free bool, err error) {
	createOnly, err := c.w.ports.Store.CreateOnly(ctx)
	if err != nil {
		return false, err
	}
	if !createOnly {
		if c.path == "" {
			c.path = segment.ObjectPath(c.folder, c.of.Segment, c.entry.Copy, c.w.token())
		}
		return true, nil
	}
	c.path = segment.ObjectPath(c.folder, c.of.Segment, c.entry.Copy, "")
	_, err = c.w.ports.Store.Stat(ctx, c.path)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, ErrObjectMissing), errors.Is(err, ErrObjectUnknown):
		return true, nil // the put decides
	}
	return false, err
}

func (c *copying) upload() Upload {
	meta := map[string]string{
		"stream-key": c.of.StreamKey,
		"segment":    c.of.Segment.String(),
		"count":      strconv.FormatInt(c.contents.Count, 10),
	}
	if c.contents.Count > 0 {
		meta["first-id"] = c.contents.FirstID.String()
		meta["last-id"] = c.contents.LastID.String()
	}
	return Upload{Path: c.path, Body: c.spool, Size: c.spool.size, SHA256: c.spool.sha256(), Meta: meta}
}

// same says whether the object at the path is, byte for byte, the file in
// the spool. An object of this size and checksum is read whole: what it says
// of itself is not trusted.
func (c *copying) same(ctx context.Context) (bool, error) {
	info, err := c.w.ports.Store.Stat(ctx, c.path)
	if errors.Is(err, ErrObjectMissing) {
		return false, nil // the path is taken by something that is no object
	}
	if err != nil {
		return false, err
	}
	if !c.matches(info) {
		return false, nil
	}
	sum, err := c.w.sumOf(ctx, c.path, info.Size)
	return sum == c.spool.sha256(), err
}

// matches compares what the store says of an object with the file.
func (c *copying) matches(info ObjectInfo) bool {
	return info.Size == c.spool.size && (info.SHA256 == "" || info.SHA256 == c.spool.sha256())
}

// nextCopy moves the segment to its next path, in the manifest first: a path
// is used by nobody who has not written it down.
func (c *copying) nextCopy(ctx context.Context) error {
	next, err := c.entry.NextCopy()
	if err != nil {
		return err
	}
	return c.swap(ctx, next)
}

// verify asks the store what it holds now.
func (c *copying) verify(ctx context.Context) error {
	info, err := c.w.ports.Store.Stat(ctx, c.path)
	if errors.Is(err, ErrObjectUnknown) {
		err = fmt.Errorf("%w: %w", ErrStoreDown, err) // no object can be verified
	}
	if err != nil {
		return fmt.Errorf("look at the object that was just put: %w", err)
	}
	whole := c.matches(info)
	if whole && info.SHA256 == "" { // the store keeps no checksum: read it back
		if whole, err = c.same(ctx); err != nil {
			return err
		}
	}
	if !whole {
		return fmt.Errorf("%w: %s has %d bytes and SHA-256 %q, and %d bytes with %s were put",
			errObject, c.path, info.Size, info.SHA256, c.spool.size, c.spool.sha256())
	}
	c.object = info
	return nil
}

// flip is the commit point.
func (c *copying) flip(ctx context.Context) error {
	now, err := c.w.ports.Clock.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the redis clock: %w", err)
	}
	remote, err := c.entry.Flip(c.contents, c.before, segment.Object{
		Path: c.path, Bytes: c.spool.size, ETag: c.object.ETag, SHA256: c.spool.sha256(),
	}, now.UnixMilli())
	if err != nil {
		return err
	}
	if remote.Shared() {
		remote.Source.CRC32C = int64(c.digest)
	}
	return c.swap(ctx, remote)
}

func (c *copying) swap(ctx context.Context, next segment.Entry) error {
	raw := string(next.Encode())
	ok, err := c.w.ports.Manifests.Change(ctx, c.job.Partition, segment.Change{Number: c.job.Stored.Number, Old: c.raw, New: raw})
	if err != nil {
		return err
	}
	if !ok {
		return errLostRace
	}
	c.entry, c.raw = next, raw
	return nil
}
