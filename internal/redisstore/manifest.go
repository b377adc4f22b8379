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

// Each gives every field of a partition's manifest with its value, in no
// order; a partition that has no manifest gives none. It holds one reply of
// the server at a time, however large the manifest is.
//
// A field that is there from the first reply to the last comes at least once,
// and may come again; the last value counts. fields is how many must have
// come: the smaller of the two numbers of fields that the server has told, at
// the beginning and at the end. Fewer mean that what came is not the whole
// manifest, as when the server behind the address has changed in between. A
// field that was removed while another was added can look like that too; then
// the next call settles it.
func (s *Store) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (fields int64, err error) {
	key := s.cfg.Layout.ManifestKey(p)
	cursor, came, err := s.scan(ctx, key, 0, take)
	if err != nil || cursor == 0 {
		return came, err
	}
	before, err := s.hlen(ctx, key)
	if err != nil {
		return 0, err
	}
	for cursor != 0 {
		if cursor, _, err = s.scan(ctx, key, cursor, take); err != nil {
			return 0, err
		}
	}
	after, err := s.hlen(ctx, key)
	return min(before, after), err
}

// scan makes one call of HSCAN, and says where to go on, 0 at the end, and how
// many fields have come.
func (s *Store) scan(ctx context.Context, key string, cursor uint64, take func(field, value string)) (next uint64, came int64, err error) {
	cmd := s.client.B().Hscan().Key(key).Cursor(cursor).Count(scanCount).Build()
	part, err := s.do(ctx, cmd).AsScanEntry()
	if err == nil && len(part.Elements)%2 != 0 {
		err = fmt.Errorf("%w: a field without value", errProtocol)
	}
	if err != nil {
		return 0, 0, wrap(ctx, "HSCAN", key, err)
	}
	for i := 0; i < len(part.Elements); i += 2 {
		take(part.Elements[i], part.Elements[i+1])
	}
	return part.Cursor, int64(len(part.Elements) / 2), nil
}

func (s *Store) hlen(ctx context.Context, key string) (int64, error) {
	n, err := s.do(ctx, s.client.B().Hlen().Key(key).Build()).AsInt64()
	return n, wrap(ctx, "HLEN", key, err)
}

// Peek reads some entries of several manifests, one answer per question in
// the same order. Questions go out together, some hundreds at a time. An error
// means that there are no answers; one that concerns a single manifest, such
// as a key of another type, is in its answer. A field with an empty value
// looks like one that is not there.
func (s *Store) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	answers := make([]segment.Peeked, len(q))
	err := batches(ctx, len(q), func(ctx context.Context, lo, hi int) error {
		return s.peek(ctx, q[lo:hi], answers[lo:hi])
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func (s *Store) peek(ctx context.Context, q []segment.Peek, answers []segment.Peeked) error {
	var cmds []rueidis.Completed
	for _, peek := range q {
		key := s.cfg.Layout.ManifestKey(peek.Partition)
		cmds = append(cmds, s.client.B().Hlen().Key(key).Build())
		if len(peek.Numbers) > 0 {
			fields := make([]string, len(peek.Numbers))
			for i, n := range peek.Numbers {
				fields[i] = n.String()
			}
			cmds = append(cmds, s.client.B().Hmget().Key(key).Field(fields...).Build())
		}
	}
	replies := s.doMulti(ctx, cmds...)
	for i, peek := range q {
		use := replies[:1]
		if len(peek.Numbers) > 0 {
			use = replies[:2]
		}
		replies = replies[len(use):]
		answers[i] = readPeek(ctx, s.cfg.Layout.ManifestKey(peek.Partition), len(peek.Numbers), use)
		if outage(answers[i].Err) {
			return answers[i].Err
		}
	}
	return nil
}

func readPeek(ctx context.Context, key string, numbers int, replies []rueidis.RedisResult) segment.Peeked {
	fields, err := replies[0].AsInt64()
	if err != nil {
		return segment.Peeked{Err: wrap(ctx, "HLEN", key, err)}
	}
	answer := segment.Peeked{Fields: fields}
	if numbers == 0 {
		return answer
	}
	values, err := replies[1].AsStrSlice() // "" for nil
	if err == nil && len(values) != numbers {
		err = fmt.Errorf("%w: %d values for %d fields", errProtocol, len(values), numbers)
	}
	if err != nil {
		return segment.Peeked{Err: wrap(ctx, "HMGET", key, err)}
	}
	answer.Raw = values
	return answer
}
