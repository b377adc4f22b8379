package command

import (
	"context"

	"korvet-offload/internal/config"
	"korvet-offload/internal/doctor"
	"korvet-offload/internal/redisstore"
	"korvet-offload/segment"
)

// lookForObjects asks Redis whether there should be objects: of topics that it
// remembers, and of segments that are REMOTE. What it does not tell in time is as
// good as none.
func lookForObjects(ctx context.Context, cfg config.Config, d depth, topics []segment.Topic) doctor.Past {
	ctx, cancel := context.WithTimeout(ctx, redisTime)
	defer cancel()
	s := d.redis
	if s == nil {
		var err error
		if s, err = openAnyMode(ctx, cfg); err != nil {
			return doctor.Past{}
		}
		defer s.Close()
	}
	past := doctor.Past{Remote: anyRemote(ctx, s, cfg.Redis.Layout, topics)}
	if known, err := s.Known(ctx); err == nil {
		past.Topics = len(known)
	}
	return past
}

// anyRemote names a segment whose entry is REMOTE, the first that is met; "" if
// there is none.
func anyRemote(ctx context.Context, s *redisstore.Store, l segment.Layout, topics []segment.Topic) string {
	for _, t := range topics {
		for n := range t.Settings.Partitions {
			if found, _ := remoteIn(ctx, s, l, t.Partition(n)); found.segment != "" { // what can't be read is as good as none
				return found.segment
			}
		}
	}
	return ""
}
