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
	past := doctor.Past{Remote: anyRemote(ctx, s, topics)}
	if known, err := s.Known(ctx); err == nil {
		past.Topics = len(known)
	}
	return past
}

// anyRemote names a segment whose entry is REMOTE, the first that is met; "" if
// there is none.
func anyRemote(ctx context.Context, s *redisstore.Store, topics []segment.Topic) string {
	for _, t := range topics {
		for n := range t.Settings.Partitions {
			if found := remoteIn(ctx, s, t.Partition(n)); found != "" {
				return found
			}
		}
	}
	return ""
}

// remoteIn looks no further than it must: a manifest may have millions of
// entries.
func remoteIn(ctx context.Context, s *redisstore.Store, p segment.Partition) (found string) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	_, _ = s.Each(ctx, p, func(field, value string) { // what can't be read is as good as none
		if e, err := segment.ParseEntry([]byte(value)); err == nil && e.Tier == segment.Remote && found == "" {
			found = p.String() + "/" + field
			enough()
		}
	})
	return found
}
