package offload

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/segment"
)

// ErrPaused means that people have paused what was to be worked on.
var ErrPaused = errors.New("paused")

// CheckSource says what is wrong with the stream of a LOCAL segment, as far as
// the server tells without reading it: segment.ErrSourceMissing or
// segment.ErrShortStream. nil means that it can be copied; of a range in a shared
// stream that is known only when it has been read.
func CheckSource(e segment.Entry, key string, info StreamInfo) error {
	if e.Shared() {
		return checkRange(e, key, info)
	}
	return checkSource(e, key, info)
}

// CopyNow copies one segment that is SEALED LOCAL outside of any pass, as a pass
// does: no grace and no back-off count, a pause does. No pass is running.
// LostRace means that somebody else has changed the entry, Nothing that it is not
// SEALED LOCAL (any more).
func (w *Worker) CopyNow(ctx context.Context, p segment.Partition, n segment.Number) (Outcome, error) {
	if w.ports.Gate != nil {
		leave, ok := w.ports.Gate.Enter(p)
		if !ok {
			return Outcome{}, fmt.Errorf("copy segment %s/%s: it is %w; resume it first", p, n, ErrPaused)
		}
		defer leave()
	}
	answers, err := w.ports.Manifests.Peek(ctx, []segment.Peek{{Partition: p, Numbers: []segment.Number{n}}})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("read the entry of %s/%s: %w", p, n, err)
	}
	raw := answers[0].Raw[0]
	if raw == "" {
		return Outcome{Result: Nothing}, nil
	}
	e, err := segment.ParseEntry([]byte(raw))
	if err != nil {
		return Outcome{}, fmt.Errorf("read the entry of %s/%s: %w", p, n, err)
	}
	if e.State != segment.Sealed || e.Tier != segment.Local {
		return Outcome{Result: Nothing}, nil
	}
	j := Job{Action: Copy, Partition: p, Stored: segment.Stored{Number: n, Raw: raw, Entry: e}}
	return guarded(ctx, j, w.copySegment)
}
