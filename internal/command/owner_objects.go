package command

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/redisstore"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// fewObjects is how many objects that are missing, each of another partition,
// tell that the root is another one. One alone may have been deleted.
const fewObjects = 3

const anotherRootHint = "there is no owner marker, and segment %s should be in %s, which is not there: mount the disk, or mend korvet.storage.remote-path; " +
	"if the objects are lost, and this Redis is to go on with an empty root, claim it with `korvet-offload restore --claim --yes`"

// whereObjects looks whether a root is the one in which the objects are that the
// manifests tell of. A folder that is not mounted looks like an empty one: copies
// would go below the mount point, and what retention deletes would be taken for
// deleted.
type whereObjects struct {
	redis  *redisstore.Store
	store  s3sink.Store
	layout segment.Layout
}

// check is s3sink.ErrAnotherRoot when none of a few objects is in the root, each
// of another partition, and there should be at least one. What the store may not
// say proves nothing.
func (w whereObjects) check(ctx context.Context) error {
	topics, err := offload.AllTopics(ctx, w.redis) // what has left the registry is deleted, too
	if err != nil {
		return err
	}
	var missing error
	looked := 0
	for _, t := range topics {
		for n := range t.Settings.Partitions {
			found, err := remoteIn(ctx, w.redis, w.layout, t.Partition(n))
			if class := redisstore.ClassOf(err); err != nil && class != redisstore.WrongType && class != redisstore.Permission {
				return err
			}
			if found.object == "" {
				continue
			}
			switch _, err := w.store.Stat(ctx, found.object); {
			case err == nil, s3sink.ClassOf(err) == s3sink.ClassDenied: // or, without the right to list, nobody can tell
				return nil
			case s3sink.ClassOf(err) != s3sink.ClassMissing:
				return err
			}
			if any, err := w.anyOf(ctx, t.Partition(n)); any || err != nil {
				return err // one object may have been deleted; here are others beside it
			}
			missing = fmt.Errorf("%w: "+anotherRootHint, s3sink.ErrAnotherRoot, found.segment, found.object)
			if looked++; looked == fewObjects {
				return missing
			}
		}
	}
	return missing
}

// anyOf says whether the root has any object of a partition.
func (w whereObjects) anyOf(ctx context.Context, p segment.Partition) (bool, error) {
	for _, err := range w.store.List(ctx, w.layout.Folder(p)+"/") {
		return err == nil, err
	}
	return false, nil
}

// checkRoot refuses the start with a root that has no marker and is not the one
// with the objects. What can't be found out now is asked again by the first
// upload.
func (s *session) checkRoot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	m, err := s3sink.ReadMarker(ctx, s.store)
	if err != nil || m != (s3sink.Marker{}) {
		return nil //nolint:nilerr // there is a marker, or nobody knows
	}
	if err := s.owner.objects(ctx); errors.Is(err, s3sink.ErrAnotherRoot) {
		return cmdline.UsageError{Err: fmt.Errorf("use %s: %w", s.cfg.Store.URL, err)}
	}
	return nil
}

// remoteSegment is a segment whose entry is REMOTE; the zero value is none.
type remoteSegment struct{ segment, object string }

// remoteIn looks no further than it must: a manifest may have millions of
// entries.
func remoteIn(ctx context.Context, s *redisstore.Store, l segment.Layout, p segment.Partition) (found remoteSegment, err error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	_, err = s.Each(ctx, p, func(field, value string) {
		number, noNumber := segment.ParseNumber(field)
		e, err := segment.ParseEntry([]byte(value))
		if noNumber != nil || err != nil || e.Tier != segment.Remote || e.Object == nil || !segment.IsObjectOf(e.Object.Path, l.Folder(p), number) || found != (remoteSegment{}) {
			return // what can't be read is as good as none
		}
		found = remoteSegment{segment: p.String() + "/" + field, object: e.Object.Path}
		enough()
	})
	if found != (remoteSegment{}) {
		return found, nil
	}
	return found, err
}
