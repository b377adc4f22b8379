package restore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/words"
	"korvet-offload/segment"
)

// Query says which segments of a partition are wanted, and where.
type Query struct {
	Partition segment.Partition
	// Segments says which segments are wanted; nil = all.
	Segments func(segment.Number) bool
	// Between are the ids of the messages; only for a stream of its own.
	Between parquetfile.Between
	// Key is the stream that gets them all. Original: each segment gets its own
	// stream back instead, and its entry says so.
	Key      string
	Original bool
}

// Step is what is to be done with one segment.
type Step struct {
	segment.Stored
	Key      string // the stream that gets it
	Messages int64  // of the segment, by its entry
	There    int64  // of these, those that are in the stream already, by its length
	Skip     string // why there is nothing to do; "" = it is restored
	Fault    error  // why it can't be; nil = it can
}

func (s Step) does() bool { return s.Skip == "" && s.Fault == nil }

// Plan is what a restore of segments would do.
type Plan struct {
	Query
	At       time.Time // by the Redis server's clock
	Steps    []Step    // in the order of the segments
	Messages int64     // of the segments that are restored
	There    int64     // of these, those that are in the streams already, by their lengths
	Bytes    int64     // of their files
	Memory   Memory
	Refused  []error  // why nothing of it is done
	Notes    []string // what else there is to know
}

// Plan looks what a query would do. Nothing is changed. The topic's settings, where
// they are known, say what of it the next tick would remove again.
func (r *Restorer) Plan(ctx context.Context, q Query, settings *segment.TopicSettings) (Plan, error) {
	p := Plan{Query: q}
	var err error
	if p.At, err = r.Server.Now(ctx); err != nil {
		return p, fmt.Errorf("read the redis clock: %w", err)
	}
	m, err := r.entries(ctx, q.Partition)
	if err != nil {
		return p, err
	}
	p.choose(m, r.layout)
	if err := r.lookAtStreams(ctx, &p); err != nil {
		return p, err
	}
	if err := r.estimate(ctx, &p); err != nil {
		return p, err
	}
	if why := r.Server.Evicts(ctx); why != "" {
		p.refuse("%s", why)
	}
	p.noteRetention(settings)
	return p, nil
}

func (p *Plan) refuse(format string, args ...any) {
	p.Refused = append(p.Refused, refuse(format, args...))
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// choose makes the steps. It decides by the entries alone.
func (p *Plan) choose(m segment.Manifest, l segment.Layout) {
	for _, s := range m.Entries {
		if p.Segments != nil && !p.Segments(s.Number) || p.misses(s) {
			continue
		}
		step := Step{Stored: s, Key: p.Key, Messages: s.Entry.Count}
		if p.Original {
			if step.Key = s.Entry.Key; step.Key == "" {
				step.Key = l.SegmentKey(p.Partition, s.Number)
			}
		}
		step.Skip, step.Fault = judge(s, p.Original)
		if step.does() {
			p.Messages += s.Entry.Count
			p.Bytes += s.Entry.Object.Bytes
		}
		p.Steps = append(p.Steps, step)
	}
	if len(p.Steps) == 0 {
		p.refuse("%s: its manifest has no such segment among its %d: see korvet-offload ls; after a loss of Redis, restore --manifests comes first", p.Partition, len(m.Entries))
	}
	if !p.Original {
		p.checkOrder()
	}
}

// misses says whether an entry is certain to have no message in the range.
func (p *Plan) misses(s segment.Stored) bool {
	e := s.Entry
	return s.Err == nil && e.Tier == segment.Remote && e.Count > 0 &&
		(e.LastID.Compare(p.Between.From) < 0 || !p.Between.To.IsZero() && e.FirstID.Compare(p.Between.To) > 0)
}

// judge says why a segment is not restored: because there is nothing to do, or
// because it can't be.
func judge(s segment.Stored, original bool) (skip string, fault error) {
	e := s.Entry
	switch {
	case s.Err != nil:
		return "", s.Err
	case e.State == segment.Deleting:
		return "it is being deleted", nil
	case e.Tier == segment.Local:
		return "it is in Redis, and not on the store", nil
	case e.Object == nil || e.Count == segment.NoCount:
		return "", fmt.Errorf("%w: it does not say which object it has, or how many messages", segment.ErrIllegalEntry)
	case e.Count == 0:
		return "it has no messages", nil
	case original && e.Shared():
		return "", refuse("it is a range of a stream that it shares with other segments: restore it to another key")
	case original && e.Local != segment.Gone:
		return "it has its local copy", nil
	}
	return "", nil
}

// checkOrder refuses what can't be one stream: its ids have to ascend.
func (p *Plan) checkOrder() {
	var before *Step
	var left []string
	for i := range p.Steps {
		s := &p.Steps[i]
		if !s.does() {
			if s.Skip != "it has no messages" {
				left = append(left, s.Number.String())
			}
			continue
		}
		if before != nil && s.Entry.FirstID.Compare(before.Entry.LastID) <= 0 {
			p.refuse("segments %s (up to %s) and %s (from %s) overlap, and one stream can't take both in order: restore them apart with --segment, each to a key of its own",
				before.Number, before.Entry.LastID, s.Number, s.Entry.FirstID)
		}
		before = s
	}
	if len(left) > 0 && p.Messages > 0 {
		p.note("left out: segments %s", strings.Join(left, ", "))
	}
}

// lookAtStreams looks at what lies where the messages are to go.
func (r *Restorer) lookAtStreams(ctx context.Context, p *Plan) error {
	if p.Original {
		for i := range p.Steps {
			if s := &p.Steps[i]; s.does() {
				is, why, err := r.lookAt(ctx, s.Key, s.Entry.LastID)
				if err != nil {
					return err
				}
				if s.Fault = why; why == nil && is.Length > 0 {
					p.finds(p.Steps[i:i+1], is, s.Entry.LastID)
					p.note("segment %s: %s", s.Number, goesOn(s.Key, is))
				}
			}
		}
		return nil
	}
	last := segment.ID{}
	for _, s := range p.Steps {
		if s.does() {
			last = s.Entry.LastID
		}
	}
	if to := p.Between.To; !to.IsZero() && to.Compare(last) < 0 {
		last = to
	}
	if r.layout.Owns(p.Key) {
		p.refuse("stream %s: it is a key of the namespace; choose another, or use --original", p.Key)
		return nil
	}
	is, why, err := r.lookAt(ctx, p.Key, last)
	switch {
	case err != nil:
		return err
	case why != nil:
		p.Refused = append(p.Refused, why)
	case is.Length > 0:
		if p.finds(p.Steps, is, last); p.There < p.Messages {
			p.note("%s", goesOn(p.Key, is))
		}
	}
	return nil
}

// finds counts what a stream has already of the messages of some steps: it has to
// begin with them. What its length and last id contradict is not counted; when the
// messages are compared it is refused.
func (p *Plan) finds(steps []Step, is segment.StreamInfo, last segment.ID) {
	total := int64(0)
	for _, s := range steps {
		if s.does() {
			total += s.Messages
		}
	}
	bounded := p.Between != parquetfile.Between{} // how many are between, nobody knows yet
	if left := is.Length; !bounded && left <= total && (left == total) == (is.LastID == last) {
		for i := range steps {
			if s := &steps[i]; s.does() {
				s.There = min(s.Messages, left)
				left -= s.There
				p.There += s.There
			}
		}
	}
}

func goesOn(key string, is segment.StreamInfo) string {
	return fmt.Sprintf("stream %s has %s already: they are compared, and it goes on behind them", key, words.Count(is.Length, "message"))
}

// lookAt describes a stream that gets messages up to an id, or says why it can't.
func (r *Restorer) lookAt(ctx context.Context, key string, last segment.ID) (is segment.StreamInfo, why, err error) {
	is, err = r.Streams.StreamInfo(ctx, key)
	switch {
	case errors.Is(err, segment.ErrWrongType):
		return is, refuse("%w: choose another key", err), nil
	case err != nil:
		return is, nil, fmt.Errorf("look at stream %s: %w", key, err)
	}
	return is, fits(key, is, last), nil
}

// fits says why a stream can't be the beginning of what is to be written.
func fits(key string, is segment.StreamInfo, last segment.ID) error {
	switch {
	case is.LastID.Compare(last) > 0:
		return refuse("stream %s has newer messages than would be restored, up to %s: only %s and older would be written, which can't come behind; choose another key", key, is.LastID, last)
	case is.Length == 0 && !is.LastID.IsZero():
		return refuse("stream %s is empty and has had messages up to %s: choose another key", key, is.LastID)
	}
	return nil
}

// noteRetention says which segments get their local copy back for no longer than
// until the next tick.
func (p *Plan) noteRetention(settings *segment.TopicSettings) {
	if !p.Original {
		return
	}
	if settings == nil {
		p.note("%s is neither in the registry nor in the settings: nothing is dropped until it is", p.Partition)
		return
	}
	now, local := p.At.UnixMilli(), settings.Local()
	var spans []segment.Span
	total := int64(0)
	for _, s := range p.Steps {
		if s.Err == nil && (s.does() || s.Entry.Local == segment.Present) {
			at, _ := s.Entry.LastAppend(now)
			span := segment.Span{Number: s.Number, At: at, Bytes: settings.Size(s.Messages, p.Memory.of(s.Messages))}
			spans, total = append(spans, span), total+span.Bytes
		}
	}
	n, why := 0, ""
	for _, due := range local.Overdue(now, total, each(spans)) {
		n++
		why = due.Limit
	}
	if n > 0 {
		p.note("%d of these segments are past %s: the next tick drops their local copies again; raise it first, or restore to another key", n, why)
	}
}
