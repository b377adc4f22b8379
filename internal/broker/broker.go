// Package broker plays the part of the Korvet broker: it writes topics,
// streams and manifests as the contract has them (docs/manifest.md). The demo
// and the tests use it; the worker does not.
//
// A Broker writes whole segments: it owns every partition that it writes to,
// takes no care of other writers, and is not safe for concurrent use on one
// partition. A Producer appends where the manifest says, beside a worker that
// rolls and removes; a Ledger has what was acknowledged to it. A Consumer reads
// a stream through a consumer group.
package broker

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// batch is how many entries go out together.
const batch = 500

// Broker writes to one Redis.
type Broker struct {
	client rueidis.Client
	layout segment.Layout
}

// New makes a broker.
func New(client rueidis.Client, layout segment.Layout) *Broker {
	return &Broker{client: client, layout: layout}
}

// Segment says what to write as one segment. The same Seed gives the same
// messages, by Messages.
type Segment struct {
	Partition  segment.Partition
	Number     segment.Number
	Seed       uint64
	Count      int
	ValueBytes int
	Open       bool
	SealedAt   time.Time // of an open segment: when it was opened
}

// Messages begins the messages of the segment.
func (s Segment) Messages() *dataset.Generator { return dataset.New(s.Seed, s.ValueBytes) }

// CreateTopic registers a topic whose segments are to be offloaded.
func (b *Broker) CreateTopic(ctx context.Context, name string, partitions int) error {
	for _, r := range b.client.DoMulti(ctx,
		b.client.B().Hset().Key(b.layout.TopicKey(name)).FieldValue().
			FieldValue("remote.storage.enable", "true").
			FieldValue("retention.ms", "-1"). // the messages have dates of their own
			FieldValue("partitions", strconv.Itoa(partitions)).Build(),
		b.client.B().Sadd().Key(b.layout.TopicsKey()).Member(name).Build(),
	) {
		if err := r.Error(); err != nil {
			return fmt.Errorf("register topic %s: %w", name, err)
		}
	}
	return nil
}

// Write appends the messages of a segment to its stream and then puts its
// entry into the manifest. written, if it is not nil, is told how many
// messages each batch had.
func (b *Broker) Write(ctx context.Context, s Segment, written func(messages int)) error {
	e, err := b.append(ctx, s, written)
	if err != nil {
		return fmt.Errorf("write segment %s/%s: %w", s.Partition, s.Number, err)
	}
	err = b.client.Do(ctx, b.client.B().Hset().Key(b.layout.ManifestKey(s.Partition)).FieldValue().
		FieldValue(s.Number.String(), string(e.Encode())).Build()).Error()
	if err != nil {
		return fmt.Errorf("write the manifest entry of %s/%s: %w", s.Partition, s.Number, err)
	}
	return nil
}

// append writes the stream and returns the entry that describes it.
func (b *Broker) append(ctx context.Context, s Segment, written func(int)) (segment.Entry, error) {
	e := segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: int64(s.Count),
		OpenedAt: dataset.FirstMs, SealedAt: s.SealedAt.UnixMilli()}
	if s.Open {
		e = segment.Entry{State: segment.Open, Tier: segment.Local, Count: segment.NoCount, OpenedAt: s.SealedAt.UnixMilli()}
	}
	key, messages := b.layout.SegmentKey(s.Partition, s.Number), s.Messages()
	var cmds []rueidis.Completed
	for i := range s.Count {
		m := messages.Next()
		if !s.Open {
			if i == 0 {
				e.FirstID = m.ID
			}
			e.LastID = m.ID
		}
		cmds = append(cmds, b.xadd(key, m))
		if len(cmds) < batch && i < s.Count-1 {
			continue
		}
		if err := b.send(ctx, cmds); err != nil {
			return e, err
		}
		if written != nil {
			written(len(cmds))
		}
		cmds = cmds[:0]
	}
	return e, nil
}

func (b *Broker) send(ctx context.Context, cmds []rueidis.Completed) error {
	for _, r := range b.client.DoMulti(ctx, cmds...) {
		if err := r.Error(); err != nil {
			return err
		}
	}
	return nil
}

func (b *Broker) xadd(key string, m dataset.Message) rueidis.Completed {
	cmd := b.client.B().Xadd().Key(key).Id(m.ID.String()).FieldValue()
	f := m.Fields()
	for i := 0; i+1 < len(f); i += 2 {
		cmd = cmd.FieldValue(string(f[i]), string(f[i+1]))
	}
	return cmd.Build()
}

// Usage is the memory, in bytes, that Redis takes for a segment's stream, by
// its own sampled account.
func (b *Broker) Usage(ctx context.Context, s Segment) (int64, error) {
	n, err := b.client.Do(ctx, b.client.B().MemoryUsage().Key(b.layout.SegmentKey(s.Partition, s.Number)).Build()).AsInt64()
	if err != nil {
		return 0, fmt.Errorf("ask for the memory of segment %s/%s: %w", s.Partition, s.Number, err)
	}
	return n, nil
}

// Remove deletes all that was written of a topic, manifest and registration
// included.
func (b *Broker) Remove(ctx context.Context, topic string, segments []Segment) error {
	keys := []string{b.layout.TopicKey(topic)}
	for _, s := range segments {
		if s.Partition.Topic == topic {
			keys = append(keys, b.layout.SegmentKey(s.Partition, s.Number), b.layout.ManifestKey(s.Partition))
		}
	}
	cmds := []rueidis.Completed{
		b.client.B().Srem().Key(b.layout.TopicsKey()).Member(topic).Build(),
		b.client.B().Hdel().Key(b.layout.KnownKey()).Field(topic).Build(),
	}
	for _, k := range keys {
		cmds = append(cmds, b.client.B().Unlink().Key(k).Build())
	}
	if err := b.send(ctx, cmds); err != nil {
		return fmt.Errorf("remove topic %s: %w", topic, err)
	}
	return nil
}

// Forget removes the id that the program has given to this Redis.
func (b *Broker) Forget(ctx context.Context) error {
	if err := b.send(ctx, []rueidis.Completed{b.client.B().Unlink().Key(b.layout.ClusterKey()).Build()}); err != nil {
		return fmt.Errorf("remove the cluster id: %w", err)
	}
	return nil
}
