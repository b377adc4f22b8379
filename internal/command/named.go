package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"korvet-offload/internal/catalog"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// nothingKnown says that there is nothing to look at, which is not as it should be.
func nothingKnown(l segment.Layout) string {
	return fmt.Sprintf("namespace %s has no topic and no plain stream: is that its name, and has redis lost its data? korvet-offload doctor looks closer", l.Namespace)
}

// mustKnow refuses names that nothing knows: of what is misspelt nothing is wrong.
func (s *session) mustKnow(ctx context.Context, all names) error {
	if len(all) == 0 {
		return nil
	}
	topics, err := s.redis.Topics(ctx)
	if err != nil {
		return err
	}
	known, err := s.redis.Known(ctx)
	if err != nil {
		return err
	}
	for _, n := range all {
		p := n.partition
		registered := slices.ContainsFunc(topics, func(t segment.Topic) bool {
			return t.Name == p.Topic && t.Plain == p.Plain && (p.Plain || p.Number == 0 || t.Err != nil || p.Number < t.Settings.Partitions)
		})
		if _, was := known[p.Topic]; !registered && (!was || p.Plain || p.Number != 0) {
			if err := s.mustBe(ctx, n); err != nil {
				return err
			}
		}
		if err := s.mustHave(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// mustBe looks for a manifest, or an object, of what no registry has.
func (s *session) mustBe(ctx context.Context, n name) error {
	fields, err := s.redis.Each(ctx, n.partition, func(string, string) {})
	if err != nil || fields > 0 {
		return err
	}
	prefix := s.cfg.Redis.Layout.Folder(n.partition) + "/"
	if n.topic {
		prefix = strings.TrimSuffix(s.cfg.Redis.Layout.Folder(n.partition), "0")
	}
	for _, err := range s.store.List(ctx, prefix) {
		return err
	}
	return fmt.Errorf("%s: it is in no registry, has no manifest, and there is no object of it on the store; is the name right?", n)
}

// mustHave looks for the segments of a name: of each range there has to be one.
func (s *session) mustHave(ctx context.Context, n name) error {
	left := n.segments
	if len(left) == 0 {
		return nil
	}
	if _, err := s.redis.Each(ctx, n.partition, func(field, _ string) {
		if number, err := segment.ParseNumber(field); err == nil {
			left = left.without(number)
		}
	}); err != nil || len(left) == 0 {
		return err
	}
	group, err := catalog.List(ctx, s.store, s.cfg.Redis.Layout, n.partition)
	if err != nil {
		return err
	}
	for _, o := range group.Objects {
		left = left.without(o.Segment)
	}
	if len(left) > 0 {
		return fmt.Errorf("segment %s/%s: it has no entry, and there is no object of it on the store; korvet-offload ls lists those that there are", n.partition, left)
	}
	return nil
}

// partitionsOf are the partitions that are named, those of topics as far as they
// have a manifest.
func (s *session) partitionsOf(ctx context.Context, all names) (parts []segment.Partition, err error) {
	counts := map[string]int{}
	if all.anyTopic() {
		if counts, err = s.partitionCounts(ctx); err != nil {
			return nil, err
		}
	}
	for _, n := range all {
		if !n.topic {
			parts = append(parts, n.partition)
			continue
		}
		begun := len(parts)
		for number := range max(1, counts[n.partition.Topic]) {
			p := segment.Partition{Topic: n.partition.Topic, Number: number}
			if fields, err := s.redis.Each(ctx, p, func(string, string) {}); err != nil {
				return nil, err
			} else if fields > 0 {
				parts = append(parts, p)
			}
		}
		if len(parts) == begun {
			return nil, fmt.Errorf("%s: no partition of it has a manifest; after a loss of redis, restore --manifests comes first", n)
		}
	}
	slices.SortFunc(parts, func(a, b segment.Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(boolInt(a.Plain), boolInt(b.Plain)), cmp.Compare(a.Number, b.Number))
	})
	return slices.Compact(parts), nil
}

// partitionCounts are how many partitions topics have that are, or were, offloaded.
func (s *session) partitionCounts(ctx context.Context) (map[string]int, error) {
	topics, err := offload.AllTopics(ctx, s.redis)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, t := range topics {
		if !t.Plain {
			counts[t.Name] = t.Settings.Partitions
		}
	}
	return counts, nil
}
