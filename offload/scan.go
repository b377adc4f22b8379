package offload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"korvet-offload/segment"
)

// scanners is how many manifests are asked for at once. The client sends
// concurrent commands in one pipeline, so this hides the round trip; it does
// not open connections.
const scanners = 64

// Scan is what Redis says at the start of a pass.
type Scan struct {
	At         time.Time // by the Redis server's clock
	Topics     []segment.Topic
	Partitions []PartitionScan // of the topics that are offloaded, in their order
}

// PartitionScan is one partition and its manifest; Err says why the manifest
// could not be read.
type PartitionScan struct {
	Topic    segment.Topic
	Manifest segment.Manifest
	Err      error
}

// Scan reads the registry and the manifest of every partition whose topic is
// offloaded. A manifest that can't be read is noted and stops no other; an
// error means that Redis as a whole did not answer.
func (w *Worker) Scan(ctx context.Context) (Scan, error) {
	now, err := w.ports.Clock.Now(ctx)
	if err != nil {
		return Scan{}, fmt.Errorf("read the redis clock: %w", err)
	}
	topics, err := w.ports.Registry.Topics(ctx)
	if err != nil {
		return Scan{}, fmt.Errorf("read the topic registry: %w", err)
	}
	s := Scan{At: now, Topics: topics}
	for _, t := range topics {
		if t.Err != nil || !t.Settings.RemoteStorage {
			continue
		}
		for n := range t.Settings.Partitions {
			s.Partitions = append(s.Partitions, PartitionScan{
				Topic:    t,
				Manifest: segment.Manifest{Partition: segment.Partition{Topic: t.Name, Number: n}},
			})
		}
	}
	return s, w.readManifests(ctx, s.Partitions)
}

// forgetRemote keeps of the segments that are done only what is counted, so
// that a long history costs little memory.
func forgetRemote(m segment.Manifest) {
	for i := range m.Entries {
		if s := &m.Entries[i]; s.Err == nil && s.Entry.Tier == segment.Remote {
			s.Forget()
		}
	}
}

func (w *Worker) readManifests(ctx context.Context, parts []PartitionScan) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(scanners)
	for i := range parts {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			p := &parts[i]
			m, err := w.ports.Manifests.Manifest(ctx, p.Manifest.Partition)
			if err == nil {
				forgetRemote(m)
				p.Manifest = m
				return nil
			}
			err = fmt.Errorf("read the manifest of %s: %w", p.Manifest.Partition, err)
			if ctx.Err() != nil || errors.Is(err, ErrRedisDown) {
				return err
			}
			p.Err = err
			return nil
		})
	}
	return g.Wait()
}
