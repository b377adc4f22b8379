package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// changeScript is the only write to a manifest, and to the Hash of the known
// topics. Everything is looked at before anything is written. HGET gives false
// for a field that is not there, which equals no text, the empty one included.
//
// A server that is full (maxmemory, noeviction) refuses HSET, but not in a
// script that has written already; HDEL, which it allows, of a field that is not
// there is that. Memory is freed by what follows such a change.
//
// ARGV: field, old, new, next field, its value, "1" if the Hash must be empty, "2"
// if it must not.
const changeScript = `local is = redis.call('HGET', KEYS[1], ARGV[1])
if ARGV[2] == '' then
  if is then return 0 end
elseif is ~= ARGV[2] then
  return 0
end
if ARGV[5] ~= '' and redis.call('HGET', KEYS[1], ARGV[4]) then return 0 end
if ARGV[6] == '1' and redis.call('HLEN', KEYS[1]) ~= 0 then return 0 end
if ARGV[6] == '2' and redis.call('HLEN', KEYS[1]) == 0 then return 0 end
local none = ''
while redis.call('HGET', KEYS[1], none) do none = none .. ' ' end
redis.call('HDEL', KEYS[1], none)
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], ARGV[4], ARGV[5]) end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return 1`

// opChange is what errors of the script go by.
const opChange = "EVALSHA"

// Change changes a manifest, in one step, if it is at that moment what the
// change expects. False means that it was not: somebody else was faster, and
// nothing was changed. After an error of class Unavailable it may have been
// done all the same: the answer was lost, and only reading the manifest again
// tells. A change is never sent twice.
//
// Of a durable change, where the settings want replicas or the disk to have
// it, true with ErrNotReplicated means that it was made, and that they have not
// all said in time that they have it.
func (s *Store) Change(ctx context.Context, p segment.Partition, c segment.Change) (bool, error) {
	first := ""
	if c.First {
		first = "1"
	}
	key := s.cfg.Layout.ManifestKey(p)
	args := []string{c.Number.String(), c.Old, c.New, c.Next.String(), c.Open, first}
	if c.Durable && s.cfg.waits() {
		return s.changeDurably(ctx, key, args)
	}
	return s.exec(ctx, opChange, s.scripts.change, key, args...)
}

// Known returns the record of each topic that was ever offloaded.
func (s *Store) Known(ctx context.Context) (map[string]string, error) {
	key := s.cfg.Layout.KnownKey()
	known, err := s.do(ctx, s.client.B().Hgetall().Key(key).Build()).AsStrMap()
	if err == nil {
		s.knew.Store(len(known) > 0)
	}
	return known, wrap(ctx, "HGETALL", key, err)
}

// SwapKnown replaces the record of a topic if it is old at that moment; ""
// stands for none. False means that it was not, and nothing was changed. Errors
// mean what they mean for Change.
//
// Where the last Known had records, none is put where no other is: a Redis that
// was emptied since would look like one that remembers its topics, and so the root
// on the store would be taken for its own. That it was emptied before the very
// first record is put is not seen; until then nothing was ever copied.
func (s *Store) SwapKnown(ctx context.Context, topic, old, new string) (bool, error) {
	others := ""
	if old == "" && s.knew.Load() {
		others = "2"
	}
	return s.exec(ctx, opChange, s.scripts.change, s.cfg.Layout.KnownKey(), topic, old, new, "", "", others)
}

// scripts touch one key each. Those that change something look before they
// write, and return 1 if they have written; info only reads.
type scripts struct{ change, remove, trim, info *rueidis.Lua }

func newScripts() scripts {
	return scripts{
		change: rueidis.NewLuaScript(changeScript),
		remove: rueidis.NewLuaScript(removeScript),
		trim:   rueidis.NewLuaScript(trimScript),
		info:   rueidis.NewLuaScript(infoScript),
	}
}

// exec runs a script once: where the answer was lost it is not sent again,
// since a second run would find what the first has written and say false.
func (s *Store) exec(ctx context.Context, op string, script *rueidis.Lua, key string, args ...string) (bool, error) {
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	written, err := script.Exec(limited, s.client, []string{key}, args).AsInt64()
	return written == 1, wrap(ctx, op, key, hintReadOnly(err))
}

// hintReadOnly says what a write that a replica refused means.
func hintReadOnly(err error) error {
	if r, ok := rueidis.IsRedisErr(err); ok && classifyReply(r.Error()) == Unavailable {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return err
}
