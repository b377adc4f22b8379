// Package scans makes scans of manifests that are in memory, for tests of what
// shows them.
package scans

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// World is what Redis holds. Change it between scans only.
type World struct {
	At  time.Time       // by the clock of Redis
	All []segment.Topic // in the registry, and plain streams
	// Fields gives the fields of a partition's manifest.
	Fields func(p segment.Partition) map[string]string
	Pauses segment.Pauses
}

// Topic adds a topic that is offloaded.
func (w *World) Topic(name string, partitions int) {
	s := segment.DefaultTopicSettings()
	s.RemoteStorage, s.Partitions, s.RetentionMs = true, partitions, -1
	w.All = append(w.All, segment.Topic{Name: name, Settings: s})
}

// Plain adds a plain stream that is offloaded.
func (w *World) Plain(key string) {
	w.All = append(w.All, segment.Topic{Name: key, Plain: true, Settings: segment.DefaultStreamSettings()})
}

// Worker makes a worker that scans the world, and tells an observer. It can do
// nothing else.
func (w *World) Worker(cfg offload.Config, o offload.Observer) *offload.Worker {
	return offload.New(cfg, segment.DefaultLayout(), offload.Ports{Registry: w, Known: known{},
		Manifests: manifests{of: w}, Streams: streams{of: w}, Clock: w, Pauses: w}, o)
}

// Scan is one scan of it by a worker.
func Scan(ctx context.Context, worker *offload.Worker, cfg offload.Config) (*offload.Scan, offload.Plan, error) {
	s, err := worker.Scan(ctx)
	if err != nil {
		return nil, offload.Plan{}, fmt.Errorf("scan: %w", err)
	}
	return &s, offload.MakePlan(s, cfg), nil
}

// States writes a manifest in short: a letter for each segment, from number 0.
// r is remote only, b both tiers, s sealed and waiting, o open, d deleting, x no
// entry, and a dot no segment. Each holds 10 messages and, on the store, 1000
// bytes; it was sealed so many minutes before the end as it is segments away
// from it.
func States(letters string, now time.Time) map[string]string {
	fields := map[string]string{}
	for i, letter := range letters {
		at := now.Add(-time.Duration(len(letters)-i) * time.Minute).UnixMilli()
		e := segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: 10, OpenedAt: at, SealedAt: at,
			FirstID: segment.ID{Ms: uint64(at)}, LastID: segment.ID{Ms: uint64(at), Seq: 9}} //nolint:gosec // a time of ours
		switch letter {
		case 'r', 'b', 'd':
			e.Tier, e.Local, e.Object = segment.Remote, segment.Gone, &segment.Object{Path: "p", Bytes: 1000}
			e.RemoteAt = at
			if letter == 'b' {
				e.Local = segment.Present
			}
			if letter == 'd' {
				e.State, e.DeletingAt = segment.Deleting, at
			}
		case 'o':
			e = segment.Entry{State: segment.Open, Tier: segment.Local, Count: segment.NoCount, OpenedAt: at}
		case 'x':
			fields[fmt.Sprint(i)] = "no entry"
			continue
		case '.':
			continue
		}
		fields[fmt.Sprint(i)] = string(e.Encode())
	}
	return fields
}

// Now implements offload.Clock.
func (w *World) Now(context.Context) (time.Time, error) { return w.At, nil }

// Paused implements offload.Pauses.
func (w *World) Paused(context.Context) (segment.Pauses, error) { return w.Pauses, nil }

// Topics implements offload.Registry.
func (w *World) Topics(context.Context) ([]segment.Topic, error) { return w.All, nil }

// Each implements offload.Manifests.
func (m manifests) Each(_ context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	fields := m.of.Fields(p)
	for name, value := range fields {
		take(name, value)
	}
	return int64(len(fields)), nil
}

// Peek implements offload.Manifests.
func (m manifests) Peek(_ context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	answers := make([]segment.Peeked, len(q))
	for i, one := range q {
		fields := m.of.Fields(one.Partition)
		answers[i] = segment.Peeked{Raw: make([]string, len(one.Numbers)), Fields: int64(len(fields))}
		for k, n := range one.Numbers {
			answers[i].Raw[k] = fields[n.String()]
		}
	}
	return answers, nil
}

// Sizes implements offload.Streams: what is only on the store has no stream,
// every other segment one of 5 messages.
func (s streams) Sizes(_ context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error) {
	answers := make([]segment.StreamSize, len(q))
	for i, one := range q {
		if !s.isGone(one.Key) {
			answers[i] = segment.StreamSize{Length: 5, Bytes: 500}
		}
	}
	return answers, nil
}

// isGone says whether a key is that of a segment that is only on the store.
func (s streams) isGone(key string) bool {
	parts := strings.Split(strings.TrimPrefix(key, "korvet:storage:local:"), ":")
	if len(parts) != 3 {
		return false
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return false
	}
	e, err := segment.ParseEntry([]byte(s.of.Fields(segment.Partition{Topic: parts[0], Number: n})[parts[2]]))
	return err == nil && e.Local == segment.Gone
}

// StreamInfo implements offload.Streams.
func (streams) StreamInfo(context.Context, string) (offload.StreamInfo, error) {
	return offload.StreamInfo{Exists: true, Length: 5, EntriesAdded: -1}, nil
}

// manifests and streams can do what a scan needs, and nothing else.
type manifests struct {
	offload.Manifests
	of *World
}

type streams struct {
	offload.Streams
	of *World
}

type known struct{}

func (known) Known(context.Context) (map[string]string, error) { return map[string]string{}, nil }
func (known) SwapKnown(context.Context, string, string, string) (bool, error) {
	return true, nil
}
