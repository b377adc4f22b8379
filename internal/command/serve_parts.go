package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/message"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/serve"
	"korvet-offload/internal/tieredlog"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// fromManifests makes Redis say what is served.
func fromManifests(parts *serve.Parts, redis *redisstore.Store, store s3sink.Store) {
	r := redisStore{redis}
	parts.Manifests, parts.Directory = r, servedTopics{redis}
	parts.Messages = servedMessages{parts.Layout, tieredlog.Ports{Manifests: r, Streams: r, Objects: servedObjects(store)}}
}

// servedObjects are the files of a store for who reads messages from them.
func servedObjects(store s3sink.Store) tieredlog.Objects {
	return tieredlog.FromRanges(storeRanges{store})
}

// servedTopics are the partitions that Redis knows and that have a manifest.
type servedTopics struct{ redis *redisstore.Store }

// Partitions implements serve.Directory.
func (s servedTopics) Partitions(ctx context.Context) ([]segment.Partition, error) {
	topics, err := s.redis.Topics(ctx)
	if err != nil {
		return nil, err
	}
	known, err := s.redis.Known(ctx)
	if err != nil {
		return nil, err
	}
	return s.begun(ctx, candidates(topics, known))
}

// candidates are the partitions of topics that are offloaded, or were.
func candidates(topics []segment.Topic, known map[string]string) []segment.Partition {
	counts := map[string]int{} // of partitions, by topic
	for name, raw := range known {
		record := struct{ Settings segment.TopicSettings }{}
		if segment.ValidateTopic(name) == nil && json.Unmarshal([]byte(raw), &record) == nil {
			counts[name] = record.Settings.Partitions
		}
	}
	var streams []segment.Partition
	for _, t := range topics {
		switch _, was := counts[t.Name]; {
		case t.Err != nil:
		case t.Plain:
			streams = append(streams, t.Partition(0))
		case t.Settings.RemoteStorage || was:
			counts[t.Name] = max(counts[t.Name], t.Settings.Partitions)
		}
	}
	var all []segment.Partition
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		for n := range min(counts[name], segment.MaxPartitions) {
			all = append(all, segment.Partition{Topic: name, Number: n})
		}
	}
	return append(all, streams...)
}

// begun are those of so many partitions that have a manifest.
func (s servedTopics) begun(ctx context.Context, all []segment.Partition) ([]segment.Partition, error) {
	questions := make([]segment.Peek, len(all))
	for i, p := range all {
		questions[i].Partition = p
	}
	answers, err := s.redis.Peek(ctx, questions)
	if err != nil {
		return nil, err
	}
	var begun []segment.Partition
	for i, p := range all {
		if answers[i].Err == nil && answers[i].Fields > 0 {
			begun = append(begun, p)
		}
	}
	return begun, nil
}

// How old what is known of the store may be, and of how many partitions it is kept.
const (
	listingAge   = 5 * time.Second
	listingsKept = 64
	rootAge      = 30 * time.Second
)

// fromListing makes the store's listing say what is served.
func fromListing(parts *serve.Parts, store s3sink.Store) {
	layout := parts.Layout
	recent := serve.NewRecent(listingAge, listingsKept, func(ctx context.Context, p segment.Partition) ([]tieredlog.Found, error) {
		group, err := catalog.List(ctx, store, layout, p)
		found := make([]tieredlog.Found, len(group.Objects))
		for i, o := range group.Objects {
			found[i] = tieredlog.Found{ObjectName: o.ObjectName, Bytes: o.Info.Size, ETag: tagOf(o.Info), At: o.Info.ModTime}
		}
		return found, err
	})
	parts.Manifests = tieredlog.FromListing(recent.Get)
	parts.Directory = servedRoot{serve.NewRecent(rootAge, 1, func(ctx context.Context, _ struct{}) ([]segment.Partition, error) {
		return partitionsOn(ctx, store, layout)
	})}
	parts.Messages = servedMessages{layout, tieredlog.Ports{Manifests: parts.Manifests, Objects: servedObjects(store)}}
}

// tagOf is what tells an object from another one at its path. A folder has no
// ETags.
func tagOf(i s3sink.Info) string {
	if i.ETag != "" {
		return i.ETag
	}
	return strconv.FormatInt(i.ModTime.UnixNano(), 16)
}

type servedRoot struct {
	recent *serve.Recent[struct{}, []segment.Partition]
}

// Partitions implements serve.Directory.
func (r servedRoot) Partitions(ctx context.Context) ([]segment.Partition, error) {
	return r.recent.Get(ctx, struct{}{})
}

// partitionsOn are those that have files on a store.
func partitionsOn(ctx context.Context, store s3sink.Store, layout segment.Layout) ([]segment.Partition, error) {
	var all []segment.Partition
	for group, err := range catalog.All(ctx, store, layout) {
		if err != nil {
			return nil, err
		}
		if group.Known && len(group.Objects) > 0 {
			all = append(all, group.Partition)
		}
	}
	slices.SortFunc(all, func(a, b segment.Partition) int {
		if a.Plain != b.Plain {
			return cmp.Compare(strconv.FormatBool(a.Plain), strconv.FormatBool(b.Plain)) // topics first
		}
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Number, b.Number))
	})
	return all, nil
}

// servedMessages reads messages for the server.
type servedMessages struct {
	layout segment.Layout
	ports  tieredlog.Ports
}

// decompressLimit is how large a value may become for a client, in bytes.
const decompressLimit = 64 << 20

// Read implements serve.Messages.
func (m servedMessages) Read(ctx context.Context, p segment.Partition, q serve.Query, line func([]byte) error) error {
	options := message.Options{Envelope: q.Envelope, Limit: decompressLimit}
	if q.Decompress != "" {
		codec, err := message.ParseCodec(q.Decompress)
		if err != nil {
			return fmt.Errorf("decompress: %w: %w", err, serve.ErrQuestion)
		}
		options.Codec = codec
	}
	tier := tieredlog.Tier(q.Tier)
	if m.ports.Streams == nil && tier != tieredlog.Remote {
		return fmt.Errorf("tier: there is remote alone, since the server does not use Redis: %w", serve.ErrQuestion)
	}
	encoder, err := message.NewEncoder(options)
	if err != nil {
		return fmt.Errorf("%w: %w", err, serve.ErrQuestion)
	}
	defer encoder.Close()
	var text []byte
	query := tieredlog.Query{From: q.From, To: q.To, Skip: q.Skip, Limit: q.Limit, Reverse: q.Reverse, Tier: tier}
	err = tieredlog.New(m.layout, m.ports).Read(ctx, p, query, func(page *segment.Page, i int) error {
		var err error
		if text, err = encoder.Append(text[:0], page, i); err != nil {
			return fmt.Errorf("%w: %w", serve.ErrDamaged, err)
		}
		return line(text)
	})
	return readError(err)
}

// readError says of an error of reading messages what it means to the server.
func readError(err error) error {
	of, named := errors.AsType[*tieredlog.SegmentError](err)
	switch {
	case errors.Is(err, tieredlog.ErrNoPartition):
		return fmt.Errorf("%w: %w", serve.ErrNoPartition, err)
	case named && of.Damaged():
		return fmt.Errorf("%w: %w", serve.ErrDamaged, err)
	}
	return err
}
