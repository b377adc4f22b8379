package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"golang.org/x/sync/errgroup"

	"korvet-offload/internal/cmdline"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// registration brings a table up to what the manifests of a topic say.
type registration struct {
	options
	root      root
	layout    segment.Layout
	redis     manifests
	store     objects
	catalog   catalog.Catalog
	committed func() // told before a commit; nil = nobody is
	wait      func(ctx context.Context, attempt int) error
}

// attempts bounds how often a run begins anew because somebody else has changed the
// table meanwhile.
const attempts = 8

// errConflict says that somebody else has changed the table meanwhile.
var errConflict = errors.New("somebody else changes the table all the time; run it again")

// run makes at most one snapshot. It begins from the beginning, manifests and all,
// when the table was changed meanwhile: what was read of Redis before that may be older than
// what another run has committed.
func (r *registration) run(ctx context.Context) (result, error) {
	created, err := r.prepare(ctx)
	if err != nil {
		return result{}, err
	}
	for attempt := 1; ; attempt++ {
		done, err := r.once(ctx)
		done.created = created
		if !errors.Is(err, errConflict) || attempt == attempts {
			return done, err
		}
		if err := r.wait(ctx, attempt); err != nil {
			return result{}, err
		}
	}
}

// backOff waits longer with each attempt, and not as long as others do.
func backOff(ctx context.Context, attempt int) error {
	timer := time.NewTimer(time.Duration((0.5 + rand.Float64()) * float64(50*time.Millisecond) * float64(int(1)<<attempt)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// prepare makes the table if there is none, and says whether it did, or would.
func (r *registration) prepare(ctx context.Context) (created bool, err error) {
	_, err = loadTable(ctx, r.catalog, r.table, r.root)
	if !errors.Is(err, errNoTable) || r.dryRun {
		if errors.Is(err, errNoTable) {
			return true, nil
		}
		return false, err
	}
	// A topic that is not there gets no table.
	if _, err := partitionsOf(ctx, r.redis, r.topic); err != nil {
		return false, err
	}
	return true, createTable(ctx, r.catalog, r.options, r.root)
}

// once loads the table, reads the manifests after that, and commits what differs
// if the table is still the one that was loaded. The order matters: what is
// committed by somebody else between the two shows as a conflict, and what was committed before
// came of manifests that were read earlier than ours.
func (r *registration) once(ctx context.Context) (result, error) {
	t, live, err := r.current(ctx)
	if err != nil {
		return result{}, err
	}
	if other := r.otherTopic(live); other != "" && !r.named {
		return result{}, cmdline.UsageError{Err: fmt.Errorf("table %s holds files of topic %s: topics whose names differ in capitals, dots and dashes alone need a table each, and --table to name it", dotted(r.table), other)}
	}
	told, err := readManifests(ctx, r.redis, r.layout, r.topic)
	if err != nil {
		return result{}, err
	}
	p := r.difference(told, live)
	if err := describe(ctx, r.store, r.layout, t, p.add); err != nil {
		return result{}, err
	}
	if err := r.decide(ctx, told, &p); err != nil {
		return result{}, err
	}
	done := r.outcome(t, told, p)
	if r.dryRun || len(done.added)+len(done.removed) == 0 {
		return done, nil
	}
	after, err := r.commit(ctx, t, done)
	if err != nil {
		return done, r.conflict(ctx, t, err)
	}
	done.snapshot = after.CurrentSnapshot().SnapshotID
	return done, nil
}

// current is the table and its files. With --dry-run it may be one that is not there.
func (r *registration) current(ctx context.Context) (*table.Table, map[string]iceberg.DataFile, error) {
	t, err := loadTable(ctx, r.catalog, r.table, r.root)
	if errors.Is(err, errNoTable) && r.dryRun {
		meta, err := table.NewMetadata(tableSchema(), iceberg.UnpartitionedSpec, table.UnsortedSortOrder, "file:///nowhere", newProperties(r.root))
		if err != nil {
			return nil, nil, fmt.Errorf("make table %s up: %w", dotted(r.table), err)
		}
		return table.New(r.table, meta, "", nil, nil), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	live, err := liveFiles(ctx, t)
	return t, live, err
}

// plan is what differs.
type plan struct {
	add    []candidate
	remove []iceberg.DataFile
	doubt  []iceberg.DataFile // no entry says that they are over: decide
	same   int
	kept   map[segment.Partition]int // files of partitions without a manifest, which stay
}

// difference compares the manifests with the table. Only files of the topic's
// partitions, below the root, are ever taken out.
func (r *registration) difference(t *told, live map[string]iceberg.DataFile) plan {
	p := plan{kept: map[segment.Partition]int{}}
	for path, seg := range t.remote {
		location := r.root.object(path)
		if _, there := live[location]; there {
			p.same++
			continue
		}
		p.add = append(p.add, candidate{remote: seg, location: location})
	}
	for location, file := range live {
		name, ours := r.ours(location)
		if !ours {
			continue
		}
		switch _, named := t.remote[name.path]; {
		case named, t.unread[name.segmentName]:
		case t.bare[name.partition] || !t.parts[name.partition]:
			p.kept[name.partition]++
		case name.copy >= t.ended[name.segmentName]:
			p.doubt = append(p.doubt, file)
		default:
			p.remove = append(p.remove, file)
		}
	}
	slices.SortFunc(p.add, func(a, b candidate) int { return strings.Compare(a.location, b.location) })
	slices.SortFunc(p.remove, func(a, b iceberg.DataFile) int { return strings.Compare(a.FilePath(), b.FilePath()) })
	return p
}

// decide takes out the files that no entry says are over, if their objects have gone. An
// entry goes after its object: where the object is still there, no retention took the
// entry, and Redis was emptied, its manifest is being rebuilt, or a failover lost a flip.
func (r *registration) decide(ctx context.Context, t *told, p *plan) error {
	errs := make([]error, len(p.doubt))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(footersAtOnce)
	for i, file := range p.doubt {
		g.Go(func() error {
			name, _ := r.ours(file.FilePath())
			_, errs[i] = r.store.Stat(ctx, name.path)
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("look at the objects: %w", err)
	}
	for i, file := range p.doubt {
		name, _ := r.ours(file.FilePath())
		switch {
		case s3sink.ClassOf(errs[i]) == s3sink.ClassMissing:
			p.remove = append(p.remove, file)
		case errs[i] != nil:
			t.problem("%s/%s: no entry says that it is over, and its file stays in the table: %v", name.partition, name.number, errs[i])
		default:
			t.problem("%s/%s: no entry says that it is over, and its object %s is there, so its file stays in the table; see korvet-offload verify, and after a loss of Redis restore --manifests", name.partition, name.number, name.path)
		}
	}
	return nil
}

// otherTopic is another topic of which a table has a file; "" = there is none.
func (r *registration) otherTopic(live map[string]iceberg.DataFile) string {
	for location := range live {
		if path, below := r.root.key(location); below {
			if o, ok := segment.ParseObjectPath(path); ok {
				if p, ok := r.layout.PartitionOf(o.Folder); ok && !p.Plain && p.Topic != r.topic {
					return p.Topic
				}
			}
		}
	}
	return ""
}

// ownFile is what the location of one of the topic's files says.
type ownFile struct {
	segmentName
	path string
	copy int64
}

// ours says whether a file is one of a segment of the topic.
func (r *registration) ours(location string) (ownFile, bool) {
	path, below := r.root.key(location)
	if !below {
		return ownFile{}, false
	}
	o, ok := segment.ParseObjectPath(path)
	if !ok {
		return ownFile{}, false
	}
	p, ok := r.layout.PartitionOf(o.Folder)
	return ownFile{segmentName{p, o.Segment}, path, o.Copy}, ok && p.Topic == r.topic && !p.Plain
}

// commit adds and takes out in one snapshot. The library would repeat a commit that
// meets a conflict on top of what the other has done, and add what that has added; the
// assertion keeps it from that.
func (r *registration) commit(ctx context.Context, t *table.Table, d result) (*table.Table, error) {
	tx := t.NewTransaction()
	if err := tx.AssertRefSnapshotID(table.MainBranch); err != nil {
		return nil, err
	}
	if t.Properties().Get(rootProperty, "") == "" {
		if err := tx.SetProperties(iceberg.Properties{rootProperty: r.root.url}); err != nil {
			return nil, err
		}
	}
	added := make([]iceberg.DataFile, len(d.added))
	for i, c := range d.added {
		added[i] = c.file
	}
	summary := iceberg.Properties{topicProperty: r.topic}
	if err := tx.ReplaceDataFilesWithDataFiles(ctx, d.removed, added, summary); err != nil {
		return nil, err
	}
	if r.committed != nil {
		r.committed()
	}
	return tx.Commit(ctx)
}

// conflict tells a table that somebody has changed from one that can't be changed. Where the
// answer to a commit was lost it may be this run that has: the next attempt finds nothing
// to do.
func (r *registration) conflict(ctx context.Context, before *table.Table, why error) error {
	why = fmt.Errorf("commit to table %s: %w", dotted(r.table), why)
	now, err := loadTable(ctx, r.catalog, r.table, r.root)
	if err != nil {
		return errors.Join(why, err)
	}
	if now.MetadataLocation() != before.MetadataLocation() || errors.Is(why, table.ErrCommitFailed) {
		return fmt.Errorf("%w: %w", errConflict, why)
	}
	return why
}
