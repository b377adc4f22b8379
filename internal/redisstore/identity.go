package redisstore

import (
	"context"
	"errors"

	"github.com/redis/rueidis"
)

// ClusterID is the id of this Redis, which the owner marker on the store names
// as well; "" where it has none yet.
func (s *Store) ClusterID(ctx context.Context) (string, error) {
	key := s.cfg.Layout.ClusterKey()
	id, err := s.do(ctx, s.client.B().Get().Key(key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "", nil
	}
	return id, wrap(ctx, "GET", key, err)
}

// claimClusterScript gives an id where there is none, and returns the one that
// there is then. A server that is full (maxmemory, noeviction) refuses SET, but
// not in a script that has written already: DEL of a key that is not there is
// that. Without an id nothing is copied, and no memory freed.
const claimClusterScript = `local id = redis.call('GET', KEYS[1])
if id then return id end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]`

// ClaimClusterID gives this Redis an id unless it has one, and returns the one
// that it has then. Of two calls at once one wins, and both return its id. An
// error may mean that the id was given all the same.
func (s *Store) ClaimClusterID(ctx context.Context, id string) (string, error) {
	key := s.cfg.Layout.ClusterKey()
	if id == "" {
		return "", wrap(ctx, "SET", key, errors.New("the id is empty"))
	}
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	is, err := rueidis.NewLuaScript(claimClusterScript).Exec(limited, s.client, []string{key}, []string{id}).ToString()
	return is, wrap(ctx, "SET", key, hintReadOnly(err))
}

// swapClusterScript replaces an id if it is still what was read, also on a server
// that is full.
const swapClusterScript = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2])
return 1`

// SwapClusterID replaces the id of this Redis if it is old at that moment. False
// means that it was not, and nothing was changed. Errors mean what they mean for
// Change. Only a person's word is a reason to call it: a worker never does.
func (s *Store) SwapClusterID(ctx context.Context, old, new string) (bool, error) {
	return s.exec(ctx, "SET", rueidis.NewLuaScript(swapClusterScript), s.cfg.Layout.ClusterKey(), old, new)
}
