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

// sayForgotten says, at the start, that the place has been written to and that
// Redis remembers no topic of that. It is no reason not to start: a Redis may be
// made anew, or moved, on purpose. Of plain streams nothing is remembered that
// way; where there are some it is not looked at. What can't be asked is left to
// others to complain about.
func sayForgotten(ctx context.Context, s *session, log *zap.Logger) {
	limited, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	known, err := s.redis.Known(limited)
	if err != nil || len(known) > 0 {
		return
	}
	topics, err := s.redis.Topics(limited)
	if err != nil || slices.ContainsFunc(topics, func(t segment.Topic) bool { return t.Plain }) {
		return
	}
	since, err := s3sink.OwnedSince(limited, s.store)
	if err != nil || since.IsZero() {
		return
	}
	log.Warn(forgottenText(s.cfg.Store.URL, since))
}

func forgottenText(url string, since time.Time) string {
	return fmt.Sprintf("%s has been written to since %s, and redis remembers no topic that was ever offloaded: has redis lost its data, or is this another redis?",
		url, since.UTC().Format(time.RFC3339))
}
