package board

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Query says which topics and partitions are looked at. The zero Query is the
// first ones of all, by name.
type Query struct {
	Topic    string // exactly this one; of a plain stream its key
	Contains string // in the name, in any case
	Only     Only
	Sort     Sort

	Offset, Limit           int // of partitions; no limit gives none
	TopicOffset, TopicLimit int
}

// Only narrows the partitions by how they are.
type Only string

// What can be asked for.
const (
	Every  Only = ""
	Behind Only = "behind" // something waits to be copied
	Stuck  Only = "stuck"  // something is wrong
)

// Sort is an order of partitions and topics. Ties are in order of name.
type Sort string

// The orders.
const (
	ByName  Sort = ""
	ByLag   Sort = "lag"   // the longest wait first
	BySize  Sort = "size"  // the largest on the store first
	ByStuck Sort = "stuck" // the most problems first
)

// Scope is what is paused.
const (
	ScopeAll    = "all"
	ScopeTopic  = "topic"
	ScopeStream = "stream"
)

// Status is all that is shown, with the topics and partitions that are asked
// for.
func (b *Board) Status(q Query) Status {
	s, parts := b.overview()
	paused := pausedOf(s.pauses)
	parts = slices.DeleteFunc(parts, func(p *part) bool { return !q.names(p.id.Topic) })
	now := s.at()
	topics := topicsOf(parts, paused, now)
	order(topics, q.Sort, topicKeys)
	s.Topics = Topics{Total: len(topics), Offset: q.TopicOffset, Limit: q.TopicLimit, Items: window(topics, q.TopicOffset, q.TopicLimit)}
	parts = slices.DeleteFunc(parts, func(p *part) bool { return !q.picks(p) })
	order(parts, q.Sort, func(p *part) keys { return p.keys(now) })
	s.Partitions = Partitions{Total: len(parts), Offset: q.Offset, Limit: q.Limit, Items: []Partition{}}
	for _, p := range window(parts, q.Offset, q.Limit) {
		s.Partitions.Items = append(s.Partitions.Items, p.view(paused, now))
	}
	return s
}

// Partition is one partition, and its problems; false if it is not known.
func (b *Board) Partition(id segment.Partition) (p Partition, found []Problem, known bool) {
	s, _ := b.overview()
	b.mu.RLock()
	i, known := b.at[id]
	var at *part
	if known {
		at = b.parts[i]
	}
	b.mu.RUnlock()
	if !known {
		return Partition{}, nil, false
	}
	for _, f := range s.Problems.List {
		if f.Topic == id.Topic && f.Plain == id.Plain && (f.Partition == nil || *f.Partition == id.Number) {
			found = append(found, f)
		}
	}
	return at.view(pausedOf(s.pauses), s.at()), found, true
}

// Overview is Status without topics and partitions.
func (b *Board) Overview() Status {
	s, _ := b.overview()
	s.Topics.Items, s.Partitions.Items = []Topic{}, []Partition{}
	return s
}

// overview copies what there is; the parts are the caller's to sort.
func (b *Board) overview() (Status, []*part) {
	s := Status{Instance: b.cfg.Instance, Outages: ask(b.sources.Outages)}
	if b.sources.Eviction != nil {
		s.Eviction = b.sources.Eviction()
	}
	var alive error
	if b.sources.Alive != nil {
		alive = b.sources.Alive()
	}
	parts := b.copyTo(&s)
	s.Health = s.health(b.cfg, alive, b.now())
	return s, parts
}

func (b *Board) copyTo(s *Status) []*part {
	b.mu.RLock()
	defer b.mu.RUnlock()
	s.Role, s.RoleSince, s.Lost = b.role, b.since.UTC(), b.lost
	s.pauses = pausesOf(b.paused)
	s.Paused, s.PausedTotal = window(s.pauses, 0, maxPauses), len(s.pauses)
	s.Members, s.Settings = append([]Member{}, b.members...), append([]Setting{}, b.settings...)
	s.Counts, s.Lag, s.Doubt = b.counts, b.lagView(), b.doubt
	s.Warnings, s.Removed = append([]string{}, b.warnings...), append([]Removed{}, b.removed...)
	s.Problems = Problems{Total: b.problems.total, Loss: b.problems.loss, ByReason: maps.Clone(b.problems.byReason), List: append([]Problem{}, b.problems.list...)}
	s.Passes = append([]Pass{}, b.passes...)
	slices.Reverse(s.Passes)
	if !b.scanned.IsZero() {
		at := b.scanned
		s.ScannedAt = &at
	}
	if b.current != nil {
		c := *b.current
		c.Uploads = uploadViews(b.uploads)
		s.Current = &c
	}
	return slices.Clone(b.parts)
}

func (b *Board) lagView() Lag {
	l := Lag{Segments: b.lag.Segments, Bytes: b.lag.Bytes, LocalHeadroom: headroom(b.lag.Local), TotalHeadroom: headroom(b.lag.Total), OldestSeconds: b.lag.Oldest.Seconds(), Unknown: b.lag.Unknown, SLASeconds: b.sla.Seconds(),
		SLA: SLAMet, Overdue: b.lag.Overdue, OverdueSeconds: b.lag.LongestOverdue.Seconds()}
	switch {
	case b.lag.Oldest > b.sla:
		l.SLA = SLABroken
	case b.unsure || b.scanned.IsZero():
		l.SLA = SLAUnknown
	}
	return l
}

func headroom(h offload.Headroom) *float64 {
	if !h.Limited {
		return nil
	}
	left := h.Left.Seconds()
	return &left
}

// maxPauses is how many pauses are shown; that of everything is the first.
const maxPauses = 100

// pausesOf is what is paused, as it is shown.
func pausesOf(all segment.Pauses) []Pause {
	shown := []Pause{}
	for _, p := range all.List {
		one := Pause{Scope: ScopeAll, By: shorten(p.By), Reason: shorten(p.Reason)}
		switch {
		case p.Scope.Topic != "":
			one.Scope, one.Name = ScopeTopic, p.Scope.Topic
		case p.Scope.Stream != "":
			one.Scope, one.Name = ScopeStream, p.Scope.Stream
		}
		if !p.Since.IsZero() {
			at := p.Since.UTC()
			one.Since = &at
		}
		if p.Err != nil {
			one.Error = shorten(p.Err.Error())
		}
		shown = append(shown, one)
	}
	return shown
}

// ask asks a source; what it does not know is an empty list.
func ask[T any](source func() []T) []T {
	if source == nil {
		return []T{}
	}
	return append([]T{}, source()...)
}

// at is the time of the scan, epoch ms.
func (s *Status) at() int64 {
	if s.ScannedAt == nil {
		return 0
	}
	return s.ScannedAt.UnixMilli()
}

func (q Query) names(topic string) bool {
	switch {
	case q.Topic != "":
		return topic == q.Topic
	case q.Contains != "":
		return strings.Contains(strings.ToLower(topic), strings.ToLower(q.Contains))
	}
	return true
}

func (q Query) picks(p *part) bool {
	switch q.Only {
	case Behind:
		return p.totals.Sealed > 0
	case Stuck:
		return p.stucks > 0 || p.err != ""
	}
	return true
}

// window is a part of a list; what is not there is left out.
func window[T any](all []T, offset, limit int) []T {
	from := min(max(0, offset), len(all))
	return slices.Clone(all[from:min(len(all), from+max(0, limit))])
}

// keys is what lists are ordered by.
type keys struct {
	name   string
	number int
	wait   float64
	bytes  int64
	stuck  int
}

func (p *part) keys(now int64) keys {
	return keys{p.id.Topic, p.id.Number, wait(p.totals, now), p.totals.Bytes, p.stucks}
}

func topicKeys(t Topic) keys { return keys{t.Topic, 0, t.OldestSeconds, t.Bytes, t.Problems} }

// order sorts by what is asked for, the most first, and then by name.
func order[T any](list []T, by Sort, of func(T) keys) {
	slices.SortStableFunc(list, func(x, y T) int {
		a, b := of(x), of(y)
		first := 0
		switch by {
		case ByLag:
			first = cmp.Compare(b.wait, a.wait)
		case BySize:
			first = cmp.Compare(b.bytes, a.bytes)
		case ByStuck:
			first = cmp.Compare(b.stuck, a.stuck)
		}
		return cmp.Or(first, cmp.Compare(a.name, b.name), cmp.Compare(a.number, b.number))
	})
}

// wait is how long the oldest sealed segment had waited at the scan, in seconds.
func wait(t offload.Totals, now int64) float64 {
	if t.Oldest == 0 || t.Sealed == 0 {
		return 0
	}
	return max(0, float64(now-t.Oldest)/float64(time.Second/time.Millisecond))
}

func (p *part) sums(now int64) Totals {
	t := p.totals
	return Totals{Open: t.Open, Sealed: t.Sealed, Both: t.Both, RemoteOnly: max(0, t.Remote-t.Both), Deleting: t.Deleting, Illegal: t.Illegal,
		Problems: p.stucks, Messages: t.Messages, Bytes: t.Bytes, OldestSeconds: wait(t, now)}
}

func (p *part) view(paused map[string]bool, now int64) Partition {
	return Partition{Topic: p.id.Topic, Partition: p.id.Number, Plain: p.id.Plain, Phase: string(p.phase), Paused: paused[scopeOf(p.id)] || paused[ScopeAll],
		Error: shorten(p.err), Totals: p.sums(now), Runs: append([]Run{}, overlay(p.runs, p.parked)...)}
}

// topicsOf sums up the partitions of each topic, in the order in which they come.
func topicsOf(parts []*part, paused map[string]bool, now int64) []Topic {
	topics := []Topic{}
	at := map[string]int{}
	for _, p := range parts {
		scope := scopeOf(p.id)
		i, known := at[scope]
		if !known {
			i = len(topics)
			at[scope] = i
			topics = append(topics, Topic{Topic: p.id.Topic, Plain: p.id.Plain, Phase: string(p.phase), Paused: paused[scope] || paused[ScopeAll]})
		}
		topics[i].Partitions++
		topics[i].add(p.sums(now))
	}
	return topics
}

func (t *Totals) add(o Totals) {
	t.Open += o.Open
	t.Sealed += o.Sealed
	t.Both += o.Both
	t.RemoteOnly += o.RemoteOnly
	t.Deleting += o.Deleting
	t.Illegal += o.Illegal
	t.Problems += o.Problems
	t.Messages += o.Messages
	t.Bytes += o.Bytes
	t.OldestSeconds = max(t.OldestSeconds, o.OldestSeconds)
}

// scopeOf is how a pause of a partition's topic is named here.
func scopeOf(p segment.Partition) string {
	if p.Plain {
		return ScopeStream + ":" + p.Topic
	}
	return ScopeTopic + ":" + p.Topic
}

func pausedOf(pauses []Pause) map[string]bool {
	paused := map[string]bool{}
	for _, p := range pauses {
		if p.Scope == ScopeAll {
			paused[ScopeAll] = true
			continue
		}
		paused[p.Scope+":"+p.Name] = true
	}
	return paused
}
