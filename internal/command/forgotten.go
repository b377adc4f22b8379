package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// askForgotten is for the start: the place may have been written to before, while
// Redis remembers no topic of that. It is no reason not to start: a Redis may be
// made anew, or moved, on purpose. Of plain streams nothing is remembered that
// way; where there are some it is not looked at. Nor is it asked where manifests
// tell of segments on the store: after restore --manifests, which brings them back,
// the first pass makes the records of topics. What can't be asked is left to others
// to complain about.
//
// Redis is asked at once, before the first pass writes to it. The store is asked by
// what is returned, which may take its time.
func askForgotten(ctx context.Context, s *session, log *zap.Logger) (ask func(context.Context)) {
	begun := time.Now()
	if !forgets(ctx, s) {
		return func(context.Context) {}
	}
	return func(ctx context.Context) {
		limited, cancel := context.WithTimeout(ctx, ownerTime)
		defer cancel()
		since, err := s3sink.OwnedSince(limited, s.store)
		if err == nil && !since.IsZero() && since.Before(begun) { // and not by this program, meanwhile
			log.Warn(forgottenText(s.cfg.Store.URL, since))
		}
	}
}

// forgets says whether Redis remembers no topic, and would if there had been one.
func forgets(ctx context.Context, s *session) bool {
	limited, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	known, err := s.redis.Known(limited)
	if err != nil || len(known) > 0 {
		return false
	}
	topics, err := s.redis.Topics(limited)
	if err != nil || slices.ContainsFunc(topics, func(t segment.Topic) bool { return t.Plain }) {
		return false
	}
	return anyRemote(limited, s.redis, s.cfg.Redis.Layout, topics) == ""
}

func forgottenText(url string, since time.Time) string {
	return fmt.Sprintf("%s has been written to since %s, and redis remembers no topic that was ever offloaded: has redis lost its data, or is this another redis?",
		url, since.UTC().Format(time.RFC3339))
}
