package metrics

import (
	"cmp"
	"slices"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// backlog is the segments that wait to be copied, by the label of their topic.
// It shrinks as they are copied: a pass may take hours, and nobody should have
// to wait for the next scan to see that it goes on.
type backlog struct {
	at    int64     // of the scan, epoch ms by Redis
	taken time.Time // the same by this host
	lines map[string]*line
	where map[id]*item
}

// line is the backlog of one label.
type line struct {
	segments, unknown int
	bytes             int64
	sealed            queue
	local, total      room
}

// room is a retention's way to what waits.
type room struct {
	queue
	size bool // a limit of size has come to it
}

// item is one segment that waits.
type item struct {
	line    *line
	bytes   int64
	unknown bool // since when
	gone    bool
}

// id names a segment.
type id struct {
	partition segment.Partition
	number    segment.Number
}

func newBacklog(p offload.Plan, names *slots, now time.Time) *backlog {
	b := &backlog{at: p.At.UnixMilli(), taken: now, lines: map[string]*line{}, where: make(map[id]*item, len(p.Waiting))}
	waiting := p.Waiting
	for _, t := range p.Topics {
		l := b.line(names.label(topic{t.Topic, t.Plain}))
		local, total := forTopic{limit: t.Settings.Local().Ms}, forTopic{limit: t.Settings.Total().Ms}
		for len(waiting) > 0 && waiting[0].Partition.Topic == t.Topic && waiting[0].Partition.Plain == t.Plain {
			w := waiting[0]
			waiting = waiting[1:]
			i := l.add(w)
			b.where[id{w.Partition, w.Number}] = i
			local.add(&l.local, w, i)
			total.add(&l.total, w, i)
		}
		l.local.size = l.local.size || local.bySize(t.Local, b.at)
		l.total.size = l.total.size || total.bySize(t.Total, b.at)
	}
	for _, l := range b.lines {
		l.sealed.sort()
		l.local.sort()
		l.total.sort()
	}
	return b
}

func (b *backlog) line(label string) *line {
	l := b.lines[label]
	if l == nil {
		l = new(line)
		b.lines[label] = l
	}
	return l
}

func (l *line) add(w offload.Waiting) *item {
	i := &item{line: l, bytes: w.Bytes, unknown: w.SealedAt == 0}
	l.segments++
	l.bytes += w.Bytes
	if i.unknown {
		l.unknown++
	} else {
		l.sealed.list = append(l.sealed.list, due{w.SealedAt, i})
	}
	return i
}

// forTopic is a limit of time and when it reaches the first segment.
type forTopic struct {
	limit int64 // ms; below 0 = none
	first int64 // epoch ms; 0 = it reaches none
}

func (f *forTopic) add(r *room, w offload.Waiting, i *item) {
	if f.limit < 0 || w.Newest == 0 {
		return
	}
	at := w.Newest + f.limit
	r.list = append(r.list, due{at, i})
	if f.first == 0 || at < f.first {
		f.first = at
	}
}

// bySize says whether it is a limit of size, and not of time, that has come to
// what waits.
func (f *forTopic) bySize(h offload.Headroom, now int64) bool {
	return h.Limited && (f.first == 0 || h.Left < time.Duration(f.first-now)*time.Millisecond)
}

// done takes a segment out.
func (b *backlog) done(p segment.Partition, n segment.Number) {
	i := b.where[id{p, n}]
	if i == nil || i.gone {
		return
	}
	i.gone = true
	i.line.segments--
	i.line.bytes -= i.bytes
	if i.unknown {
		i.line.unknown--
	}
}

// now is what the Redis clock shows, epoch ms, if it runs as this host's.
func (b *backlog) now(here time.Time) int64 { return b.at + here.Sub(b.taken).Milliseconds() }

// oldest is how long the first segment has waited, in seconds.
func (l *line) oldest(now int64) float64 {
	at, ok := l.sealed.first()
	if !ok {
		return 0
	}
	return max(0, float64(now-at)/1000)
}

// left is how long it takes until the retention comes to what waits, in
// seconds; false if it does not.
func (l *line) left(r *room, now int64) (float64, bool) {
	at, ok := r.first()
	s := float64(at-now) / 1000
	switch {
	case l.segments == 0 || !ok && !r.size:
		return 0, false
	case !ok:
		return 0, true
	case r.size:
		return min(0, s), true
	}
	return s, true
}

// queue is segments in the order of a time.
type queue struct{ list []due }

type due struct {
	at   int64 // epoch ms
	item *item
}

func (q *queue) sort() {
	slices.SortFunc(q.list, func(a, b due) int { return cmp.Compare(a.at, b.at) })
}

// first is the time of the first that still waits.
func (q *queue) first() (int64, bool) {
	for len(q.list) > 0 && q.list[0].item.gone {
		q.list = q.list[1:]
	}
	if len(q.list) == 0 {
		return 0, false
	}
	return q.list[0].at, true
}
