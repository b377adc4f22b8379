package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// peekAtOnce is how many entries are read in one request where they are wanted in
// their order: what is held of a manifest is these and the numbers of all.
const peekAtOnce = 500

// errNoManifest says that nothing is known of a partition.
var errNoManifest = errors.New("there is no manifest")

// ofManifests lists what the manifests say.
func (l *listing) ofManifests(ctx context.Context) error {
	if len(l.what.partitions()) > 0 {
		return l.partitionRows("segments", segmentColumns(), func(p segment.Partition, add func(...cell) error) error { return l.segments(ctx, p, add) })
	}
	parts, err := l.partitions(ctx)
	if err != nil {
		return err
	}
	if len(l.what) > 0 {
		return l.sums(ctx, "partitions", column{"PARTITION", "partition"}, parts, func(p segment.Partition) string { return p.String() })
	}
	return l.sums(ctx, "topics", column{"TOPIC", "topic"}, parts, func(p segment.Partition) string { return p.Topic })
}

// partitions are those that are meant, of all topics that are or were offloaded,
// in order.
func (l *listing) partitions(ctx context.Context) (parts []segment.Partition, err error) {
	topics, err := offload.AllTopics(ctx, l.redis)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, t := range topics {
		if !l.what.covers(t.Partition(0)) {
			continue
		}
		found[t.Name] = true
		if t.Err != nil {
			l.fault("topic %s: %v", t.Name, t.Err)
			continue
		}
		for n := range max(1, t.Settings.Partitions) {
			parts = append(parts, t.Partition(n))
		}
	}
	for _, n := range l.what {
		if !found[n.partition.Topic] {
			return nil, fmt.Errorf("%s: it is in no registry, and was not offloaded before", n)
		}
	}
	if len(found) == 0 {
		l.process.complain("warning: " + nothingKnown(l.layout))
	}
	slices.SortFunc(parts, func(a, b segment.Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(boolInt(a.Plain), boolInt(b.Plain)), cmp.Compare(a.Number, b.Number))
	})
	return slices.Compact(parts), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sum is what several manifests hold together.
type sum struct {
	partitions, segments                         int64
	open, waiting, both, gone, deleting, illegal int64
	messages, bytes                              int64 // of the REMOTE segments
	first, last                                  segment.ID
}

func (s *sum) add(e segment.Entry, err error) {
	s.segments++
	if err != nil {
		s.illegal++
		return
	}
	switch whereabouts(e) {
	case whereOpen:
		s.open++
	case whereWaiting:
		s.waiting++
	case whereBoth:
		s.both++
	case whereRemote:
		s.gone++
	case whereDeleting:
		s.deleting++
		return
	}
	if !e.FirstID.IsZero() && (s.first.IsZero() || e.FirstID.Compare(s.first) < 0) {
		s.first = e.FirstID
	}
	if e.LastID.Compare(s.last) > 0 {
		s.last = e.LastID
	}
	if e.Object != nil {
		s.messages += max(0, e.Count)
		s.bytes += e.Object.Bytes
	}
}

// merge adds another sum.
func (s *sum) merge(o sum) {
	s.partitions, s.segments = s.partitions+o.partitions, s.segments+o.segments
	s.open, s.waiting, s.both, s.gone = s.open+o.open, s.waiting+o.waiting, s.both+o.both, s.gone+o.gone
	s.deleting, s.illegal = s.deleting+o.deleting, s.illegal+o.illegal
	s.messages, s.bytes = s.messages+o.messages, s.bytes+o.bytes
	if s.first.IsZero() || !o.first.IsZero() && o.first.Compare(s.first) < 0 {
		s.first = o.first
	}
	if o.last.Compare(s.last) > 0 {
		s.last = o.last
	}
}

func sumColumns(name column) []column {
	return []column{
		name, {"", "plain"}, partitionsColumn(name), {">SEGMENTS", "segments"}, {">REMOTE ONLY", "remote_only"}, {">BOTH TIERS", "both_tiers"},
		{">WAITING", "waiting"}, {">OPEN", "open"}, {">DELETING", "deleting"}, {">ILLEGAL", "illegal"}, {">REMOTE MESSAGES", "remote_messages"},
		{">ON THE STORE", "remote_bytes"}, {"", "first_id"}, {"", "last_id"}, {"FROM", "from"}, {"TO", "to"},
	}
}

// partitionsColumn is in a table only where there may be more than one.
func partitionsColumn(name column) column {
	if name.field == "partition" {
		return column{"", "partitions"}
	}
	return column{">PARTITIONS", "partitions"}
}

func (s *sum) cells(name string, plain bool) []cell {
	return []cell{
		textCell(name), {plain, fmt.Sprint(plain)}, numberCell(s.partitions), numberCell(s.segments), numberCell(s.gone), numberCell(s.both),
		numberCell(s.waiting), numberCell(s.open), numberCell(s.deleting), numberCell(s.illegal), numberCell(s.messages),
		sizeCell(s.bytes), idCell(s.first), idCell(s.last), idTimeCell(s.first), idTimeCell(s.last),
	}
}

// sums prints what the manifests of partitions hold, those together that have one
// name and stand together.
func (l *listing) sums(ctx context.Context, name string, first column, parts []segment.Partition, nameOf func(segment.Partition) string) error {
	out := newRows(l.process.Stdout, l.format, name, sumColumns(first))
	for lo := 0; lo < len(parts); {
		hi, all := lo, sum{}
		for ; hi < len(parts) && nameOf(parts[hi]) == nameOf(parts[lo]) && parts[hi].Plain == parts[lo].Plain; hi++ {
			one, err := l.sumOf(ctx, parts[hi])
			if err != nil {
				if ctx.Err() != nil || errors.Is(err, offload.ErrRedisDown) {
					return err
				}
				l.fault("%s: %v", parts[hi], err)
			}
			all.merge(one)
		}
		if err := out.add(all.cells(nameOf(parts[lo]), parts[lo].Plain)...); err != nil {
			return err
		}
		lo = hi
	}
	return out.end()
}

// sumOf reads one manifest and holds the numbers of its segments.
func (l *listing) sumOf(ctx context.Context, p segment.Partition) (sum, error) {
	s := sum{partitions: 1}
	seen := map[segment.Number]bool{} // a field may come twice
	alien := map[string]bool{}
	_, err := l.redis.Each(ctx, p, func(field, value string) {
		n, err := segment.ParseNumber(field)
		switch {
		case err != nil && !alien[field]:
			alien[field] = true
			s.illegal++
		case err == nil && !seen[n]:
			seen[n] = true
			s.add(segment.ParseEntry([]byte(value)))
		}
	})
	return s, err
}

// Where a segment is, for a person.
const (
	whereOpen     = "open"
	whereWaiting  = "waiting"
	whereBoth     = "both tiers"
	whereRemote   = "remote only"
	whereDeleting = "deleting"
	whereIllegal  = "illegal"
)

func whereabouts(e segment.Entry) string {
	switch {
	case e.State == segment.Deleting:
		return whereDeleting
	case e.State == segment.Open:
		return whereOpen
	case e.Tier == segment.Local:
		return whereWaiting
	case e.Local == segment.Gone:
		return whereRemote
	}
	return whereBoth
}

func segmentColumns() []column {
	return []column{
		{">SEGMENT", "segment"}, {"WHERE", "where"}, {"", "state"}, {"", "tier"}, {"", "local"}, {"", "copy"}, {">MESSAGES", "messages"},
		{"FIRST ID", "first_id"}, {"LAST ID", "last_id"}, {"FROM", "from"}, {"TO", "to"}, {">SIZE", "bytes"}, {"COPIED", "remote_at"},
		{"", "opened_at"}, {"", "sealed_at"}, {"", "deleting_at"}, {"", "stream"}, {"OBJECT", "object"}, {"", "sha256"}, {"", "problem"},
	}
}

// segmentCells is an entry as a row.
func (l *listing) segmentCells(ctx context.Context, p segment.Partition, s segment.Stored) ([]cell, error) {
	e := s.Entry
	if s.Err != nil {
		cells := make([]cell, len(segmentColumns()))
		for i := range cells {
			cells[i] = textCell("")
		}
		cells[0], cells[1], cells[len(cells)-1] = numberCell(s.Number), textCell(whereIllegal), textCell(s.Err.Error())
		return cells, nil
	}
	stream := e.Key
	if stream == "" {
		stream = l.layout.SegmentKey(p, s.Number)
	}
	if err := l.fillOpen(ctx, &e, stream); err != nil {
		return nil, fmt.Errorf("segment %s/%s: %w", p, s.Number, err)
	}
	size, path, sha := cell{nil, "-"}, "", ""
	if e.Object != nil {
		size, path, sha = sizeCell(e.Object.Bytes), e.Object.Path, e.Object.SHA256
	}
	return []cell{
		numberCell(s.Number), textCell(whereabouts(e)), textCell(string(e.State)), textCell(string(e.Tier)), textCell(string(e.Local)), numberCell(e.Copy), countCell(e.Count),
		idCell(e.FirstID), idCell(e.LastID), idTimeCell(e.FirstID), idTimeCell(e.LastID), size, msCell(e.RemoteAt),
		msCell(e.OpenedAt), msCell(e.SealedAt), msCell(e.DeletingAt), textCell(stream), textCell(path), textCell(sha), textCell(""),
	}, nil
}

// fillOpen gives the entry of an open segment what is in its stream now. Of a stream
// that earlier segments lie in, too, only their bounds tell what is whose, and
// counting would take as long as there are messages: it is told only when these
// have gone.
func (l *listing) fillOpen(ctx context.Context, e *segment.Entry, stream string) error {
	if e.State != segment.Open || l.streams == nil {
		return nil
	}
	is, err := l.streams.StreamInfo(ctx, stream)
	switch {
	case errors.Is(err, segment.ErrWrongType):
		l.fault("%v", err)
		return nil
	case err != nil:
		return err
	case e.Shared() && is.Length > 0 && is.FirstID.Compare(e.From) < 0:
		if is.LastID.Compare(e.From) >= 0 {
			e.LastID = is.LastID
		}
		return nil
	}
	e.Count, e.FirstID, e.LastID = is.Length, is.FirstID, segment.ID{}
	if is.Length > 0 {
		e.LastID = is.LastID
	}
	return nil
}

// segments prints the entries of one manifest in their order.
func (l *listing) segments(ctx context.Context, p segment.Partition, add func(...cell) error) error {
	n, left := 0, l.what.of(p)
	err := l.entries(ctx, p, func(s segment.Stored) error {
		n, left = n+1, left.without(s.Number)
		if s.Err != nil {
			l.fault("segment %s/%s: %v", p, s.Number, s.Err)
		}
		cells, err := l.segmentCells(ctx, p, s)
		if err != nil {
			return err
		}
		return add(cells...)
	})
	switch {
	case err != nil:
	case len(left) > 0:
		l.fault("segment %s/%s: it has no entry", p, left)
	case n == 0:
		l.fault("%s: %v of it; is the name right?", p, errNoManifest)
	}
	return err
}

// entries gives the entries of a manifest in the order of their segments. It holds
// their numbers, and some entries at a time. What is removed meanwhile is left out.
func (l *listing) entries(ctx context.Context, p segment.Partition, take func(segment.Stored) error) error {
	there := map[segment.Number]bool{}
	alien := map[string]bool{}
	fields, err := l.redis.Each(ctx, p, func(field, _ string) {
		if n, err := segment.ParseNumber(field); err == nil {
			there[n] = true
		} else {
			alien[field] = true
		}
	})
	if err != nil {
		return err
	}
	if int64(len(there)+len(alien)) < fields {
		l.fault("%s: the manifest did not come whole; try again", p)
	}
	for _, field := range slices.Sorted(maps.Keys(alien)) {
		l.fault("%s: field %.100q of the manifest is no segment", p, field)
	}
	maps.DeleteFunc(there, func(n segment.Number, _ bool) bool { return !l.what.has(p, n) })
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(there)), peekAtOnce) {
		stored, err := l.peek(ctx, p, batch)
		if err != nil {
			return err
		}
		for _, s := range stored {
			if err := take(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// peek reads some entries; those that are not there are left out.
func (l *listing) peek(ctx context.Context, p segment.Partition, numbers []segment.Number) (all []segment.Stored, err error) {
	answers, err := l.redis.Peek(ctx, []segment.Peek{{Partition: p, Numbers: numbers}})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", p, err)
	}
	for i, n := range numbers {
		raw := answers[0].Raw[i]
		if raw == "" {
			continue
		}
		e, err := segment.ParseEntry([]byte(raw))
		all = append(all, segment.Stored{Number: n, Raw: raw, Entry: e, Err: err})
	}
	return all, nil
}
