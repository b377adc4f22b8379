package tieredlog

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/segment"
)

// Tier says where messages may come from.
type Tier string

// The tiers of a Query.
const (
	Both   Tier = "both"
	Local  Tier = "local"  // Redis alone: what was dropped there is left out
	Remote Tier = "remote" // the store alone: what was not copied is left out
)

// Query says which messages are wanted. The zero Query is all.
type Query struct {
	From, To segment.ID // inclusive; a zero To is the end
	// Skip is how many of these are left out, from where the reading begins;
	// Limit how many come then at most, 0 = all.
	Skip, Limit int64
	Reverse     bool // the last one first
	Tier        Tier // "" = Both
	// Segments says which segments are read; nil = all.
	Segments func(segment.Number) bool
	// Unreadable is told of a segment that is missing, short or damaged, and
	// says whether that ends the reading: nil goes on without it. If it is nil,
	// the first such segment ends the reading.
	Unreadable func(*SegmentError) error
}

// Validate says what of the query makes no sense.
func (q Query) Validate() error {
	switch {
	case q.Skip < 0 || q.Limit < 0:
		return errors.New("a number of messages is below 0")
	case q.Tier != "" && q.Tier != Both && q.Tier != Local && q.Tier != Remote:
		return fmt.Errorf("tier %q: want %s, %s or %s", string(q.Tier), Both, Local, Remote)
	}
	return nil
}

func (q Query) to() segment.ID {
	if q.To.IsZero() {
		return segment.MaxID()
	}
	return q.To
}

// Segment is one segment of a partition: its number, its entry and the bytes
// that it was read from, or why they are none.
type Segment struct {
	segment.Stored
	Key string // of its stream; of a plain stream, several segments have the same
}

// Log reads partitions. It may be used by several goroutines at once.
type Log struct {
	layout segment.Layout
	ports  Ports
}

// New makes a Log.
func New(l segment.Layout, p Ports) *Log { return &Log{l, p} }

// manifestTries bounds how often a manifest is read that changes while it is
// being read.
const manifestTries = 4

// Segments lists what the manifest of a partition says, in the order of the
// numbers, what is DELETING included. ErrNoPartition means that there is no
// manifest.
func (l *Log) Segments(ctx context.Context, p segment.Partition) ([]Segment, error) {
	for range manifestTries {
		fields := map[string]string{}
		want, err := l.ports.Manifests.Each(ctx, p, func(field, value string) { fields[field] = value })
		if err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", p, err)
		}
		if int64(len(fields)) < want {
			continue
		}
		if len(fields) == 0 {
			return nil, fmt.Errorf("partition %s: %w", p, ErrNoPartition)
		}
		return l.segments(p, fields), nil
	}
	return nil, fmt.Errorf("read the manifest of %s: it did not come whole; try again", p)
}

func (l *Log) segments(p segment.Partition, fields map[string]string) []Segment {
	pairs := make([]string, 0, 2*len(fields))
	for field, value := range fields {
		pairs = append(pairs, field, value)
	}
	m := segment.ParseManifest(p, pairs)
	all := make([]Segment, len(m.Entries))
	for i, s := range m.Entries {
		all[i] = l.segment(p, s)
	}
	return all
}

func (l *Log) segment(p segment.Partition, s segment.Stored) Segment {
	key := s.Entry.Key
	if key == "" {
		key = l.layout.SegmentKey(p, s.Number)
	}
	return Segment{s, key}
}

// entry reads one entry anew; false means that there is none any more.
func (l *Log) entry(ctx context.Context, p segment.Partition, n segment.Number) (Segment, bool, error) {
	a, err := l.ports.Manifests.Peek(ctx, []segment.Peek{{Partition: p, Numbers: []segment.Number{n}}})
	if err == nil {
		err = a[0].Err
	}
	if err != nil {
		return Segment{}, false, fmt.Errorf("read the manifest of %s: %w", p, err)
	}
	raw := a[0].Raw[0]
	if raw == "" {
		return Segment{}, false, nil
	}
	e, err := segment.ParseEntry([]byte(raw))
	return l.segment(p, segment.Stored{Number: n, Raw: raw, Entry: e, Err: err}), true, nil
}

// Read gives the messages of a partition that a query asks for: message i of the
// page, which is valid until fn returns. It ends with the first error of its own,
// of fn, or of ctx; when fn returns Stop, without one.
func (l *Log) Read(ctx context.Context, p segment.Partition, q Query, fn func(page *segment.Page, i int) error) error {
	if err := q.Validate(); err != nil {
		return fmt.Errorf("read %s: %w", p, err)
	}
	r := &reading{log: l, partition: p, output: output{query: q, skip: q.Skip, fn: fn}}
	for {
		again, err := r.all(ctx)
		if err != nil || !again {
			return r.ended(err)
		}
	}
}
