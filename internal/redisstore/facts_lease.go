package redisstore

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// askLeases looks at the leases' keys.
func (s *Store) askLeases(ctx context.Context, keys []string) []LeaseKey {
	all := make([]LeaseKey, len(keys))
	cmds := make(rueidis.Commands, 0, 2*len(all))
	for _, key := range keys {
		cmds = append(cmds, s.client.B().Get().Key(key).Build(), s.client.B().Pttl().Key(key).Build())
	}
	if len(cmds) == 0 {
		return nil
	}
	replies := s.doMulti(ctx, cmds...)
	for i, key := range keys {
		all[i] = readLease(ctx, key, replies[2*i], replies[2*i+1])
	}
	return all
}

func readLease(ctx context.Context, key string, holder, ttl rueidis.RedisResult) LeaseKey {
	l := LeaseKey{Key: key}
	switch err := holder.Error(); {
	case rueidis.IsRedisNil(err):
		return l
	case err != nil:
		l.Err = wrap(ctx, "GET", key, err)
		return l
	}
	ms, err := ttl.AsInt64()
	switch {
	case err != nil:
		l.Err = wrap(ctx, "PTTL", key, err)
	case ms == -2: // it has lapsed in between
	default:
		l.Held, l.TTL = true, time.Duration(min(ms, maxLag*1000))*time.Millisecond
	}
	return l
}
