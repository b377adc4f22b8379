package redisstore

import (
	"context"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// memorySamples is how many blocks of a stream MEMORY USAGE looks at. 0 would
// be all of them, which holds the server for as long as reading the stream.
const memorySamples = 5

// Sizes measures several streams, one answer per question in the same order,
// without reading them. Questions go out together, some hundreds at a time. A
// key that is not there has the size 0; the error of a single key is in its
// answer. Bytes is the server's account by a few samples.
func (s *Store) Sizes(ctx context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error) {
	sizes := make([]segment.StreamSize, len(q))
	err := batches(ctx, len(q), func(ctx context.Context, lo, hi int) error {
		return s.sizes(ctx, q[lo:hi], sizes[lo:hi])
	})
	if err != nil {
		return nil, err
	}
	return sizes, nil
}

func (s *Store) sizes(ctx context.Context, q []segment.SizeQuery, sizes []segment.StreamSize) error {
	var cmds []rueidis.Completed
	for _, query := range q {
		cmds = append(cmds, s.client.B().Xlen().Key(query.Key).Build())
		if query.Memory {
			cmds = append(cmds, s.client.B().MemoryUsage().Key(query.Key).Samples(memorySamples).Build())
		}
	}
	replies := s.doMulti(ctx, cmds...)
	for i, query := range q {
		use := replies[:1]
		if query.Memory {
			use = replies[:2]
		}
		replies = replies[len(use):]
		sizes[i] = readSize(ctx, query.Key, use)
		if outage(sizes[i].Err) {
			return sizes[i].Err
		}
	}
	return nil
}

func readSize(ctx context.Context, key string, replies []rueidis.RedisResult) segment.StreamSize {
	length, err := replies[0].AsInt64()
	if err != nil {
		return segment.StreamSize{Err: wrap(ctx, "XLEN", key, err)}
	}
	size := segment.StreamSize{Length: length, Bytes: -1}
	if len(replies) == 1 {
		return size
	}
	size.Bytes, err = replies[1].AsInt64()
	if rueidis.IsRedisNil(err) { // the key is not there
		size.Bytes, err = 0, nil
	}
	if err != nil {
		return segment.StreamSize{Err: wrap(ctx, "MEMORY USAGE", key, err)}
	}
	return size
}
