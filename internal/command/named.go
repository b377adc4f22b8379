package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"korvet-offload/segment"
)

// nothingKnown says that there is nothing to look at, which is not as it should be.
func nothingKnown(l segment.Layout) string {
	return fmt.Sprintf("namespace %s has no topic and no plain stream: is that its name, and has redis lost its data? korvet-offload doctor looks closer", l.Namespace)
}

// mustKnow refuses names that nothing knows: of what is misspelt nothing is wrong.
func (s *session) mustKnow(ctx context.Context, scope segment.Scope, partitions []segment.Partition) error {
	partitions = slices.Clone(partitions)
	switch {
	case scope.Stream != "":
		partitions = append(partitions, segment.Partition{Topic: scope.Stream, Plain: true})
	case scope.Topic != "":
		partitions = append(partitions, segment.Partition{Topic: scope.Topic})
	}
	if len(partitions) == 0 {
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
	for _, p := range partitions {
		registered := slices.ContainsFunc(topics, func(t segment.Topic) bool {
			return t.Name == p.Topic && t.Plain == p.Plain && (p.Plain || p.Number == 0 || t.Err != nil || p.Number < t.Settings.Partitions)
		})
		if _, was := known[p.Topic]; registered || was && !p.Plain && p.Number == 0 {
			continue
		}
		if err := s.mustBe(ctx, p, scope.Topic != ""); err != nil {
			return err
		}
	}
	return nil
}

// mustBe looks for a manifest, or an object, of a partition that no registry has;
// with all, for an object of any partition of its topic.
func (s *session) mustBe(ctx context.Context, p segment.Partition, all bool) error {
	fields, err := s.redis.Each(ctx, p, func(string, string) {})
	if err != nil || fields > 0 {
		return err
	}
	prefix, what := s.cfg.Redis.Layout.Folder(p)+"/", "partition "+p.String()
	switch {
	case p.Plain:
		what = "stream " + p.String()
	case all:
		prefix, what = strings.TrimSuffix(s.cfg.Redis.Layout.Folder(p), "0"), "topic "+p.Topic
	}
	for _, err := range s.store.List(ctx, prefix) {
		return err
	}
	return fmt.Errorf("%s: it is in no registry, has no manifest, and there is no object of it on the store; is the name right?", what)
}
