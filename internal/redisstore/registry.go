package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// RegistryKind says how the topic registry is kept.
type RegistryKind string

// The kinds of registries.
const (
	RegistryUnread RegistryKind = ""     // Topics has not succeeded yet
	RegistrySet    RegistryKind = "set"  // a Set of names, and a Hash per topic
	RegistryJSON   RegistryKind = "json" // one RedisJSON document
	RegistryNone   RegistryKind = "none" // only the settings name topics
)

// hashBatch is how many topics' Hashes are asked for in one go.
const hashBatch = 500

// Topics returns every known topic, and behind them every plain stream, both
// in the order of their names, those that can't be worked on with their Err
// set. Topics are the registry's and those that korvet.topics[] declares;
// streams are those that korvet.streams[] declares, and what it matches of the
// Set of plain streams. That is asked for only where there is a pattern, and
// the keyspace is never searched. An error means that nothing is known.
//
// A topic of the Set without a Hash has the settings of its patterns, and
// the defaults. One whose Hash holds something else is parked.
func (s *Store) Topics(ctx context.Context) ([]segment.Topic, error) {
	kind, own, err := s.registry(ctx)
	if err != nil {
		return nil, err
	}
	streams, err := s.plainStreams(ctx)
	if err != nil {
		return nil, err
	}
	s.kind.Store(&kind)
	return append(s.resolveTopics(own), streams...), nil
}

func (s *Store) resolveTopics(own map[string]settings) []segment.Topic {
	patterns := s.topicPatterns()
	declared := map[string]bool{}
	for _, p := range patterns {
		if _, known := own[p.Name]; p.Declares() && !known {
			own[p.Name] = settings{}
			declared[p.Name] = true
		}
	}
	topics := make([]segment.Topic, 0, len(own))
	for name, set := range own {
		t := segment.ResolveTopic(name, set.values, patterns)
		t.Declared = declared[name]
		if set.err != nil {
			t.Err = set.err
		}
		topics = append(topics, t)
	}
	return sorted(topics)
}

func sorted(topics []segment.Topic) []segment.Topic {
	slices.SortFunc(topics, func(a, b segment.Topic) int { return strings.Compare(a.Name, b.Name) })
	return topics
}

// plainStreams are the streams that no topic stands behind.
func (s *Store) plainStreams(ctx context.Context) ([]segment.Topic, error) {
	patterns := s.streamPatterns()
	if len(patterns) == 0 {
		return []segment.Topic{}, nil
	}
	key := s.cfg.Layout.StreamsKey()
	members, err := s.do(ctx, s.client.B().Smembers().Key(key).Build()).AsStrSlice()
	var broken []segment.Topic
	if err = wrap(ctx, "SMEMBERS", key, wantSet(err)); ClassOf(err) == WrongType { // no reason not to work on all else
		broken = []segment.Topic{{Name: key, Plain: true, Err: err}}
	} else if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for _, member := range members {
		listed[member] = true
	}
	for _, p := range patterns {
		if !listed[p.Key] && p.Declares() {
			listed[p.Key] = false
		}
	}
	var streams []segment.Topic
	for key, inSet := range listed {
		if t, ok := segment.ResolveStream(key, s.cfg.Layout, patterns); ok {
			t.Declared = !inSet
			streams = append(streams, t)
		}
	}
	return append(broken, sorted(streams)...), nil
}

// wantSet says what the key of the plain streams should be.
func wantSet(err error) error {
	if classify(err) != WrongType {
		return err
	}
	return fmt.Errorf("%w; want a set of the plain streams' keys", err)
}

// RegistryKind says which kind of registry the last call of Topics has found.
func (s *Store) RegistryKind() RegistryKind {
	if kind := s.kind.Load(); kind != nil {
		return *kind
	}
	return RegistryUnread
}

// settings are what the registry says of one topic, or why that can't be read.
type settings struct {
	values map[string]string
	err    error
}

func (s *Store) registry(ctx context.Context) (RegistryKind, map[string]settings, error) {
	key := s.cfg.Layout.TopicsKey()
	kind, err := s.typeOf(ctx, key)
	if err != nil {
		return RegistryUnread, nil, err
	}
	switch kind {
	case "none":
		return RegistryNone, map[string]settings{}, nil
	case "set":
		own, err := s.topicSet(ctx, key)
		return RegistrySet, own, err
	case "ReJSON-RL":
		own, err := s.topicDocument(ctx, key)
		return RegistryJSON, own, err
	}
	return RegistryUnread, nil, wrap(ctx, "TYPE", key,
		errReply("WRONGTYPE the topic registry is a "+kind+"; want a set or a RedisJSON document"))
}

func (s *Store) topicSet(ctx context.Context, key string) (map[string]settings, error) {
	names, err := s.do(ctx, s.client.B().Smembers().Key(key).Build()).AsStrSlice()
	if err != nil {
		return nil, wrap(ctx, "SMEMBERS", key, err)
	}
	own := make(map[string]settings, len(names))
	for batch := range slices.Chunk(names, hashBatch) {
		if err := s.topicHashes(ctx, batch, own); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// topicHashes asks for the Hashes of the topics whose name is legal: from
// another a key could be made that is not a topic's.
func (s *Store) topicHashes(ctx context.Context, names []string, own map[string]settings) error {
	var legal []string
	var cmds []rueidis.Completed
	for _, name := range names {
		own[name] = settings{} // ResolveTopic says what is wrong with it
		if segment.ValidateTopic(name) == nil {
			legal = append(legal, name)
			cmds = append(cmds, s.client.B().Hgetall().Key(s.cfg.Layout.TopicKey(name)).Build())
		}
	}
	if len(cmds) == 0 {
		return nil
	}
	for i, reply := range s.doMulti(ctx, cmds...) {
		values, err := reply.AsStrMap()
		if err = wrap(ctx, "HGETALL", s.cfg.Layout.TopicKey(legal[i]), err); err != nil && ClassOf(err) != WrongType {
			return err
		}
		own[legal[i]] = settings{values, notHash(legal[i], err)}
	}
	return nil
}

func notHash(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("topic %s: want a hash: %w", name, err)
}

func (s *Store) topicDocument(ctx context.Context, key string) (map[string]settings, error) {
	text, err := s.do(ctx, s.client.B().Arbitrary("JSON.GET").Keys(key).ReadOnly()).ToString()
	if rueidis.IsRedisNil(err) {
		return nil, wrap(ctx, "JSON.GET", key, errors.New("the topic registry went away while it was read"))
	}
	if err != nil {
		return nil, wrap(ctx, "JSON.GET", key, err)
	}
	own, err := parseRegistry([]byte(text))
	return own, wrap(ctx, "JSON.GET", key, err)
}
