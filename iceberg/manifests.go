package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// manifests is what is needed of Redis.
type manifests interface {
	Topics(ctx context.Context) ([]segment.Topic, error)
	Known(ctx context.Context) (map[string]string, error)
	Each(ctx context.Context, p segment.Partition, take func(field, value string)) (fields int64, err error)
}

// remote is a segment with rows whose only valid copy for readers is, or may be, its
// object.
type remote struct {
	partition segment.Partition
	number    segment.Number
	entry     segment.Entry
}

func (r remote) String() string { return fmt.Sprintf("%s/%s", r.partition, r.number) }

// told is what the manifests of a topic say.
type told struct {
	remote   map[string]remote          // by the path of the object
	empty    int                        // REMOTE segments without rows: there is nothing to read in them
	bare     map[segment.Partition]bool // these have no manifest, or an empty one
	parts    map[segment.Partition]bool // these were read
	unread   map[segmentName]bool       // what these are can't be told
	ended    map[segmentName]int64      // copies below this one are over, by the entry; 0 = no entry says so
	problems []string
}

type segmentName struct {
	partition segment.Partition
	number    segment.Number
}

func newTold() *told {
	return &told{remote: map[string]remote{}, bare: map[segment.Partition]bool{}, parts: map[segment.Partition]bool{}, unread: map[segmentName]bool{}, ended: map[segmentName]int64{}}
}

func (t *told) problem(format string, args ...any) {
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

// readManifests reads all manifests of a topic.
func readManifests(ctx context.Context, redis manifests, layout segment.Layout, topic string) (*told, error) {
	partitions, err := partitionsOf(ctx, redis, topic)
	if err != nil {
		return nil, err
	}
	t := newTold()
	for n := range partitions {
		if err := t.read(ctx, redis, layout, segment.Partition{Topic: topic, Number: n}); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// partitionsOf is how many partitions a topic has that is registered, or was
// offloaded before.
func partitionsOf(ctx context.Context, redis manifests, topic string) (int, error) {
	all, err := offload.AllTopics(ctx, redis)
	if err != nil {
		return 0, fmt.Errorf("read the topics: %w", err)
	}
	i := slices.IndexFunc(all, func(t segment.Topic) bool { return t.Name == topic && !t.Partition(0).Plain })
	switch {
	case i < 0:
		return 0, fmt.Errorf("topic %s: it is in no registry, and was not offloaded before; is this the right Redis?", topic)
	case all[i].Err != nil:
		return 0, fmt.Errorf("topic %s: %w", topic, all[i].Err)
	}
	return max(1, all[i].Settings.Partitions), nil
}

// read adds the manifest of a partition. One that does not come whole is an error:
// what did not come would look as if it had gone.
func (t *told) read(ctx context.Context, redis manifests, layout segment.Layout, p segment.Partition) error {
	values := map[string]string{} // a field may come twice, the last counts
	fields, err := redis.Each(ctx, p, func(field, value string) { values[field] = value })
	if err != nil {
		return fmt.Errorf("read the manifest of %s: %w", p, err)
	}
	if int64(len(values)) < fields {
		return fmt.Errorf("read the manifest of %s: %d of its %d entries came; run it again", p, len(values), fields)
	}
	t.parts[p], t.bare[p] = true, len(values) == 0
	for field, value := range values {
		n, err := segment.ParseNumber(field)
		if err != nil {
			t.problem("%s: field %.40q of the manifest is no segment", p, field)
			continue
		}
		e, err := segment.ParseEntry([]byte(value))
		if err == nil {
			t.ended[segmentName{p, n}] = endedOf(e)
			err = t.take(layout, remote{p, n, e})
		}
		if err != nil {
			t.unread[segmentName{p, n}] = true
			t.problem("%s/%s: %v; what the table has of it stays", p, n, err)
		}
	}
	return nil
}

// endedOf is below which copy of a segment there is none for readers any more, unless the
// entry names it. One that is LOCAL and was not raised is what a failover leaves that has
// lost a flip: the very file may be all that there is.
func endedOf(e segment.Entry) int64 {
	switch {
	case e.State == segment.Open:
		return 0
	case e.State == segment.Sealed && e.Tier == segment.Local:
		return e.Copy
	}
	return math.MaxInt64
}

// take keeps an entry if it is one that readers are given from the object store: the
// flip to REMOTE is what makes an object count.
func (t *told) take(layout segment.Layout, r remote) error {
	e := r.entry
	switch {
	case e.State != segment.Sealed || e.Tier != segment.Remote:
		return nil
	case e.Object == nil || !segment.IsObjectOf(e.Object.Path, layout.Folder(r.partition), r.number):
		return fmt.Errorf("its entry is REMOTE and names no object of this segment")
	case e.Count == 0:
		t.empty++
		return nil
	}
	t.remote[e.Object.Path] = r
	return nil
}
