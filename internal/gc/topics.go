package gc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"korvet-offload/segment"
)

var (
	errPaused       = errors.New("it is paused")
	errLostManifest = errors.New("it has no manifest")
)

// topics are those of the registry and those that were ever offloaded.
type topics struct {
	listed []segment.Topic
	byName map[string]segment.Topic // topics only
	plain  map[string]bool
	known  map[string]string
}

func readTopics(ctx context.Context, from Registry) (topics, error) {
	t := topics{byName: map[string]segment.Topic{}, plain: map[string]bool{}}
	var err error
	if t.listed, err = from.Topics(ctx); err != nil {
		return t, fmt.Errorf("read the topic registry: %w", err)
	}
	if t.known, err = from.Known(ctx); err != nil {
		return t, fmt.Errorf("read which topics were offloaded: %w", err)
	}
	for _, one := range t.listed {
		if one.Plain {
			t.plain[one.Name] = true
		} else {
			t.byName[one.Name] = one
		}
	}
	return t, nil
}

// any says whether the registry names anything: an empty one is no proof that
// something was removed.
func (t topics) any() bool { return len(t.listed) > 0 }

// isThere says why a partition without a manifest is not taken for one whose
// topic was removed; nil if it is. errLostManifest is worth a person's look, the
// others are not.
func (t topics) isThere(p segment.Partition) error {
	switch {
	case p.Plain && t.plain[p.Topic]:
		return fmt.Errorf("%w, and the plain stream is among those to be offloaded", errLostManifest)
	case p.Plain && len(t.plain) == 0:
		return errors.New("it has no manifest, and korvet.streams names no plain stream here: it may be the folder of one, or somebody else's")
	case p.Plain:
		return nil
	}
	if _, listed := t.byName[p.Topic]; listed {
		return fmt.Errorf("%w, and the topic is in the registry", errLostManifest)
	}
	if _, known := t.known[p.Topic]; known {
		return errors.New("it has no manifest, and the topic is still being removed")
	}
	if len(t.byName) == 0 {
		return errors.New("it has no manifest, and the registry names no topic at all")
	}
	return nil
}

// lower is the class of an object of a partition, given what is known of its
// topic: only of what is past retention.ms its age tells that retention took it.
func (t topics) lower(c Class, p segment.Partition) Class {
	if _, set := t.retention(p); c == Expired && !set {
		return Gap
	}
	return c
}

// settings are those of a partition's topic, if they are known for certain.
func (t topics) settings(p segment.Partition) (s segment.TopicSettings, known bool) {
	for _, one := range t.listed {
		if one.Name == p.Topic && one.Plain == p.Plain && one.Err == nil && (!one.Bare || one.Declared || one.Plain) {
			return one.Settings, true
		}
	}
	return s, false
}

// retention is how old, in ms, everything is that retention.ms has taken; false
// where it is not known, or has no limit.
func (t topics) retention(p segment.Partition) (ms int64, set bool) {
	s, known := t.settings(p)
	return s.RetentionMs, known && s.RetentionMs >= 0
}

// partitions are those of all topics that are listed.
func (t topics) partitions() iter.Seq[segment.Partition] {
	return func(yield func(segment.Partition) bool) {
		for _, one := range t.listed {
			if !one.Plain && segment.ValidateTopic(one.Name) != nil {
				continue // it has no keys
			}
			for n := range max(1, one.Settings.Partitions) {
				if !yield(one.Partition(n)) {
					return
				}
			}
		}
	}
}
