package command

import (
	"context"
	"slices"
	"strings"

	"go.uber.org/zap"

	"korvet-offload/internal/redisstore"
	"korvet-offload/segment"
)

// sayLacks writes down at the start what the Redis user may not do: some
// commands are needed only after days, when retention is due. It asks with the
// keys of a topic that is to be offloaded, since a user may be confined to some;
// without such a topic there is nothing that it could lack.
func sayLacks(ctx context.Context, s *redisstore.Store, log *zap.Logger) {
	topics, err := s.Topics(ctx)
	if err != nil {
		return // the pass says so
	}
	i := slices.IndexFunc(topics, func(t segment.Topic) bool { return t.Err == nil && !t.Plain && t.Settings.RemoteStorage })
	if i < 0 {
		return
	}
	if lacks := s.Lacks(ctx, topics[i].Name); len(lacks) > 0 {
		log.Warn("the redis user's ACL lacks " + strings.Join(lacks, ", ") + ": what needs them will fail; see docs/redis-acl.txt")
	}
}
