package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// scanCount is the COUNT of HSCAN. A manifest up to about this size comes
// whole in one reply, so in one round trip and as of one instant; a larger
// one never holds the server for longer than one such reply takes.
const scanCount = 500

// scanTries bounds how often a manifest that changes in size while it is
// scanned is scanned again, before it is read with one HGETALL.
const scanTries = 3

// Manifest reads the manifest of a partition; a partition that has none
// gives an empty one. It never returns a part of a manifest: entries that are
// there from the first call of HSCAN to the last are returned, and if the
// number of fields differs afterwards, as it would if the server behind the
// address had changed in mid-scan, the scan is made again.
func (s *Store) Manifest(ctx context.Context, p segment.Partition) (segment.Manifest, error) {
	key := s.cfg.Layout.ManifestKey(p)
	for range scanTries {
		pairs, calls, err := s.scan(ctx, key)
		if err != nil {
			return segment.Manifest{}, err
		}
		if calls == 1 {
			return segment.ParseManifest(p, pairs), nil
		}
		n, err := s.do(ctx, s.client.B().Hlen().Key(key).Build()).AsInt64()
		if err != nil {
			return segment.Manifest{}, wrap(ctx, "HLEN", key, err)
		}
		if int(n) == len(pairs)/2 {
			return segment.ParseManifest(p, pairs), nil
		}
	}
	pairs, err := s.hash(ctx, key)
	return segment.ParseManifest(p, pairs), err
}

// scan returns the fields and values of a Hash in turn, each field once, and
// how many calls that took.
func (s *Store) scan(ctx context.Context, key string) (pairs []string, calls int, err error) {
	at := map[string]int{} // HSCAN may return a field again: the later value counts
	for cursor := uint64(0); ; {
		cmd := s.client.B().Hscan().Key(key).Cursor(cursor).Count(scanCount).Build()
		part, err := s.do(ctx, cmd).AsScanEntry()
		if err == nil && len(part.Elements)%2 != 0 {
			err = fmt.Errorf("%w: a field without value", errProtocol)
		}
		if err != nil {
			return nil, 0, wrap(ctx, "HSCAN", key, err)
		}
		calls++
		if calls == 1 && part.Cursor == 0 {
			return part.Elements, calls, nil
		}
		pairs = merge(pairs, at, part.Elements)
		if cursor = part.Cursor; cursor == 0 {
			return pairs, calls, nil
		}
	}
}

func merge(pairs []string, at map[string]int, more []string) []string {
	for i := 0; i < len(more); i += 2 {
		if j, ok := at[more[i]]; ok {
			pairs[j+1] = more[i+1]
			continue
		}
		at[more[i]] = len(pairs)
		pairs = append(pairs, more[i], more[i+1])
	}
	return pairs
}

// hash reads a Hash with one command.
func (s *Store) hash(ctx context.Context, key string) ([]string, error) {
	m, err := s.do(ctx, s.client.B().Hgetall().Key(key).Build()).AsStrMap()
	if err != nil {
		return nil, wrap(ctx, "HGETALL", key, err)
	}
	pairs := make([]string, 0, 2*len(m))
	for field, value := range m {
		pairs = append(pairs, field, value)
	}
	return pairs, nil
}

const opSwap = "EVALSHA"

// swapScript is the only write to a manifest. HGET gives false for a field
// that is not there, which equals no text.
const swapScript = `if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  return 1
end
return 0`

// Swap replaces the entry of a segment if, at that moment, its bytes are old.
// False means that they were not: somebody else was faster, and nothing was
// changed. After an error of class Unavailable it may have been done all the
// same: the answer was lost, and only reading the manifest again tells.
func (s *Store) Swap(ctx context.Context, p segment.Partition, n segment.Number, old, new string) (bool, error) {
	key := s.cfg.Layout.ManifestKey(p)
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	swapped, err := s.swap.Exec(limited, s.client, []string{key}, []string{n.String(), old, new}).AsInt64()
	if err != nil {
		return false, wrap(ctx, opSwap, key, hintReadOnly(err))
	}
	return swapped == 1, nil
}

// hintReadOnly says what a write that a replica refused means.
func hintReadOnly(err error) error {
	if r, ok := rueidis.IsRedisErr(err); ok && classifyReply(r.Error()) == Unavailable {
		return fmt.Errorf("%w (nothing was changed; writes need the primary, up and able to save)", err)
	}
	return err
}
