package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// Consumer reads a stream through a consumer group, all there is at a time,
// and acknowledges it when it comes back for more.
type Consumer struct {
	Broker     *Broker
	Key, Group string
	Pause      time.Duration // between reading all there is and coming back
}

// Join makes the group, at the beginning of the stream. It makes the stream too.
func (c *Consumer) Join(ctx context.Context) error {
	err := c.Broker.client.Do(ctx, c.Broker.client.B().XgroupCreate().Key(c.Key).Group(c.Group).Id("0").Mkstream().Build()).Error()
	if err != nil {
		return fmt.Errorf("make group %s of stream %s: %w", c.Group, c.Key, err)
	}
	return nil
}

// Run reads until the context ends, and then the rest that is there. It
// returns what it has read; no message comes twice.
func (c *Consumer) Run(ctx context.Context) (map[segment.ID]Sum, error) {
	read := map[segment.ID]Sum{}
	pause := time.NewTicker(c.Pause)
	defer pause.Stop()
	for {
		over := ctx.Err() != nil
		ids, err := c.readAll(context.WithoutCancel(ctx), read)
		if err != nil {
			return nil, err
		}
		if !over {
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
		}
		if err := c.ack(context.WithoutCancel(ctx), ids); err != nil || over {
			return read, err
		}
	}
}

// readAll reads what is there.
func (c *Consumer) readAll(ctx context.Context, into map[segment.ID]Sum) (ids []string, err error) {
	for {
		reply := c.Broker.client.Do(ctx, c.Broker.client.B().Xreadgroup().Group(c.Group, "consumer").Count(readPage).Streams().Key(c.Key).Id(">").Build())
		streams, err := reply.AsXReadSlices()
		if rueidis.IsRedisNil(err) {
			return ids, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read group %s of stream %s: %w", c.Group, c.Key, err)
		}
		before := len(into)
		if err := sums(streams[c.Key], into); err != nil {
			return nil, err
		}
		if len(into)-before != len(streams[c.Key]) {
			return nil, fmt.Errorf("read group %s of stream %s: a message came twice", c.Group, c.Key)
		}
		for _, e := range streams[c.Key] {
			ids = append(ids, e.ID)
		}
	}
}

func (c *Consumer) ack(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	err := c.Broker.client.Do(ctx, c.Broker.client.B().Xack().Key(c.Key).Group(c.Group).Id(ids...).Build()).Error()
	if err != nil {
		return fmt.Errorf("acknowledge to group %s of stream %s: %w", c.Group, c.Key, err)
	}
	return nil
}
