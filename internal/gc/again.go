package gc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"korvet-offload/internal/catalog"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// seen is what Redis says of one candidate at one moment.
type seen struct {
	raw    string // its segment's entry; "" = there is none
	fields int64  // of the whole manifest
	bounds bool   // the manifest's first or last entry of before is still there
	err    error
}

// entries reads, for each candidate, its segment's entry.
func (c *Collector) entries(ctx context.Context, batch []*Candidate) ([]seen, error) {
	questions := make([]segment.Peek, len(batch))
	for i, one := range batch {
		questions[i] = segment.Peek{Partition: one.Partition, Numbers: []segment.Number{one.Object.Segment, one.first, one.last}}
	}
	answers, err := c.ports.Manifests.Peek(ctx, questions)
	if err != nil {
		return nil, fmt.Errorf("read entries again: %w", err)
	}
	all := make([]seen, len(batch))
	for i, a := range answers {
		switch {
		case isOutage(a.Err):
			return nil, fmt.Errorf("read the entry of %s/%s again: %w", batch[i].Partition, batch[i].Object.Segment, a.Err)
		case a.Err != nil:
			all[i].err = a.Err
		default:
			all[i] = seen{raw: a.Raw[0], fields: a.Fields, bounds: a.Raw[1] != "" || a.Raw[2] != ""}
		}
	}
	return all, nil
}

// again says why a candidate is none any more, by what Redis says now; "" if it
// still is one. An error means that Redis has lost what it had. It is pure.
func (s seen) again(l segment.Layout, c *Candidate) (named *segment.Object, why string, err error) {
	switch {
	case s.err != nil:
		return nil, fmt.Sprintf("its entry can't be read: %s", s.err), nil //nolint:nilerr // it is the answer
	case c.Class == Removed && s.fields > 0:
		return nil, "its partition has a manifest now", nil
	case c.Class == Removed:
		return nil, "", nil
	case s.fields == 0:
		return nil, "", fmt.Errorf("%s: %w", c.Partition, ErrMoved)
	case c.Class != Replaced && s.raw != "":
		return nil, "its segment has an entry now", nil
	case c.Class != Replaced && !s.bounds:
		return nil, "the manifest has neither the first nor the last entry any more that it had", nil
	case c.Class != Replaced:
		return nil, "", nil
	}
	e, perr := segment.ParseEntry([]byte(s.raw))
	if perr != nil {
		return nil, "its segment's entry is gone, or can't be read", nil //nolint:nilerr // it stays
	}
	m := newManifest(l, c.Partition)
	m.entries[c.Object.Segment] = m.note(c.Object.Segment, e)
	m.fields = s.fields
	if class, _ := m.judge(c.Object); class != Replaced {
		return nil, "its segment's entry has changed", nil
	}
	return e.Object, "", nil
}

// recheck says of each candidate why it stays after all; "" where it may go. It
// reads the entries before and after it looks at the objects: what they said must
// hold all the time.
func (c *Collector) recheck(ctx context.Context, batch []*Candidate) ([]string, error) {
	before, err := c.entries(ctx, batch)
	if err != nil {
		return nil, err
	}
	why := make([]string, len(batch))
	for i, one := range batch {
		var named *segment.Object
		if named, why[i], err = before[i].again(c.layout, one); err != nil {
			return nil, err
		}
		if why[i] != "" {
			continue
		}
		if why[i], err = c.depends(ctx, one, named); err != nil {
			return nil, err
		}
	}
	after, err := c.entries(ctx, batch)
	if err != nil {
		return nil, err
	}
	for i, one := range batch {
		_, changed, err := after[i].again(c.layout, one)
		switch {
		case err != nil:
			return nil, err
		case why[i] != "":
		case changed != "":
			why[i] = changed
		case after[i].raw != before[i].raw:
			why[i] = "its segment's entry has changed"
		}
	}
	return why, nil
}

// depends looks at what the store must show for a candidate to go: the object as
// it was listed, and what it may be given up for.
func (c *Collector) depends(ctx context.Context, one *Candidate, named *segment.Object) (why string, err error) {
	info, err := c.ports.Store.Stat(ctx, one.Object.Info.Key)
	switch {
	case s3sink.ClassOf(err) == s3sink.ClassMissing:
		return "it is gone already", nil
	case err != nil:
		return c.unseen(ctx, one.Object.Info.Key, err)
	case !same(info, one.Object.Info):
		return "it is not the object that was listed", nil
	}
	switch one.Class {
	case Replaced:
		return c.covered(ctx, one, named)
	case Removed:
		_, why, err = c.isFile(ctx, one.Partition, one.Object)
		return why, err
	case Expired:
		return c.past(ctx, one)
	}
	return "", nil
}

// past says why retention can't have taken a segment before the first entry: an
// entry may be gone for other reasons, and its object was skipped when manifests
// were rebuilt if it is damaged.
func (c *Collector) past(ctx context.Context, one *Candidate) (why string, err error) {
	holds, why, err := c.isFile(ctx, one.Partition, one.Object)
	if why != "" || err != nil {
		return why, err
	}
	put := one.Object.Info.ModTime
	at, newest := put.Add(one.Age).UnixMilli(), uint64(max(0, put.UnixMilli())) //nolint:gosec // not below 0
	if segment.IsTime(holds.LastID.Ms) {
		newest = holds.LastID.Ms
	}
	if newest > uint64(max(0, at-one.retention)) { //nolint:gosec // not below 0
		return fmt.Sprintf("its newest message, %s, is not past retention.ms, so that something else has taken its entry; this may be the only copy: see korvet-offload repair --include-expired", holds.LastID), nil
	}
	return "", nil
}

// covered says why a replaced copy is needed yet beside the object that its entry
// names.
func (c *Collector) covered(ctx context.Context, one *Candidate, named *segment.Object) (why string, err error) {
	if why, err = c.stands(ctx, named); why != "" || err != nil {
		return why, err
	}
	return c.reads(ctx, one.Object.Info.Key, c.ports.Earlier(ctx, one.Partition, one.Object, *named))
}

// stands says why the object that an entry names is not one for which a copy of it
// can be given up.
func (c *Collector) stands(ctx context.Context, named *segment.Object) (why string, err error) {
	info, err := c.ports.Store.Stat(ctx, named.Path)
	differs := func(a, b string) bool { return a != "" && b != "" && !strings.EqualFold(a, b) }
	switch {
	case s3sink.ClassOf(err) == s3sink.ClassMissing:
		return fmt.Sprintf("%s, which the entry names, is not there; this may be the only copy: see korvet-offload verify and repair", named.Path), nil
	case err != nil:
		return c.unseen(ctx, named.Path, err)
	case info.Size != named.Bytes, differs(info.SHA256, named.SHA256), differs(info.ETag, named.ETag):
		return fmt.Sprintf("%s is not what its entry tells of; this may be the only copy: see korvet-offload verify and repair", named.Path), nil
	}
	return "", nil
}

func (c *Collector) isFile(ctx context.Context, p segment.Partition, o catalog.Object) (holds segment.Contents, why string, err error) {
	if holds, err = c.ports.File(ctx, p, o); err != nil {
		err = fmt.Errorf("it is no file of this segment that can be read: %w", err)
	}
	why, err = c.reads(ctx, o.Info.Key, err)
	return holds, why, err
}

// reads tells an object that is not what it should be from a store that can't be
// read.
func (c *Collector) reads(ctx context.Context, key string, err error) (why string, _ error) {
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case isOutage(err):
		return "", fmt.Errorf("read %s: %w", key, err)
	}
	return err.Error(), nil
}

// unseen is for an object that the store does not show.
func (c *Collector) unseen(ctx context.Context, key string, err error) (why string, _ error) {
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case isOutage(err):
		return "", fmt.Errorf("look at %s: %w", key, err)
	}
	return fmt.Sprintf("%s can't be looked at: %s", key, err), nil
}

// same says whether an object is the one that was listed. A listing has fractions
// of a second that a look may not have.
func same(now, listed s3sink.Info) bool {
	apart := now.ModTime.Sub(listed.ModTime).Abs()
	exact := listed.ETag == "" && now.ETag == "" // a folder: nothing but the time tells
	return now.Size == listed.Size && now.ETag == listed.ETag && (apart == 0 || !exact && apart < time.Second)
}
