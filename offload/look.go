package offload

import (
	"context"
	"slices"
	"time"

	"korvet-offload/segment"
)

// IsCopied says whether a stream is, by all that the server tells, the very one
// that was copied of a REMOTE segment, and unchanged.
func IsCopied(e segment.Entry, now StreamInfo) bool { return compare(e, now) == intact }

// IsOther says whether a stream, by what the server tells, is not the one that was
// copied of a REMOTE segment, with or without what came late or was deleted by
// id since.
func IsOther(e segment.Entry, now StreamInfo) bool { return compare(e, now) == different }

// HasLost says whether of a stream that was copied entries were deleted since.
func HasLost(e segment.Entry, now StreamInfo) bool {
	like := compare(e, now)
	return like == lessened || like == thinned
}

// Remembered are the topics that are not in the registry, and of which a record
// tells that they were offloaded, with the settings that they had last.
func Remembered(registry []segment.Topic, known map[string]string) []segment.Topic {
	var gone []segment.Topic
	for _, s := range newRoster(registry, known, true, DefaultConfig(), time.Time{}).states {
		if s.Phase == Removed || s.Phase == Abandoned || s.Phase == Doomed {
			gone = append(gone, s.Topic)
		}
	}
	return gone
}

// AllTopics reads the topics that are offloaded, and those that are Remembered.
func AllTopics(ctx context.Context, from interface {
	Topics(ctx context.Context) ([]segment.Topic, error)
	Known(ctx context.Context) (map[string]string, error)
}) ([]segment.Topic, error) {
	registry, err := from.Topics(ctx)
	if err != nil {
		return nil, err
	}
	known, err := from.Known(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Concat(registry, Remembered(registry, known)), nil
}
