package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/rueidis"
)

// ErrRegistered means that the registry, or the topic's Hash, holds something
// already, which stays as it is.
var ErrRegistered = errors.New("the registry has something there already")

// registerScript makes a Hash where there is none, or where it is just this one.
const registerScript = `local is = redis.call('HGETALL', KEYS[1])
if #is == 0 then
  redis.call('HSET', KEYS[1], unpack(ARGV))
  return 1
end
if #is ~= #ARGV then return 0 end
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then return 0 end
end
return 1`

// RegisterTopic writes a topic into the registry, a Set of names and a Hash for
// each: first its settings, by their names there, then its name, since a topic
// without settings has the defaults, which delete. A registry of another kind, and
// a Hash that holds anything else, give ErrRegistered and stay.
func (s *Store) RegisterTopic(ctx context.Context, topic string, settings map[string]string) error {
	l := s.cfg.Layout
	kind, err := s.typeOf(ctx, l.TopicsKey())
	if err != nil {
		return err
	}
	if kind != "none" && kind != "set" {
		return wrap(ctx, "SADD", l.TopicsKey(), fmt.Errorf("%w: it is a %s and not a set of names", ErrRegistered, kind))
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, name, settings[name])
	}
	made, err := s.exec(ctx, "HSET", rueidis.NewLuaScript(registerScript), l.TopicKey(topic), args...)
	if err == nil && !made {
		err = wrap(ctx, "HSET", l.TopicKey(topic), fmt.Errorf("%w: settings of the topic %s", ErrRegistered, topic))
	}
	if err != nil {
		return err
	}
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	add := s.client.B().Sadd().Key(l.TopicsKey()).Member(topic).Build()
	return wrap(ctx, "SADD", l.TopicsKey(), hintReadOnly(s.client.Do(limited, add).Error()))
}
