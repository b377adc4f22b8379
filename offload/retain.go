package offload

import (
	"cmp"
	"math"
	"slices"

	"korvet-offload/segment"
)

// decisions is what retention says of one partition.
type decisions struct {
	drops  []Job                   // the oldest first
	hidden map[segment.Number]bool // LOCAL segments that are to be deleted without a copy
	left   bool                    // something is on the store, or on its way from or to it
}

// maxDrops bounds the local copies of one partition that a pass removes, so
// that a retention that was lowered does not keep its copies waiting.
const maxDrops = 1000

// retain applies both retentions to a partition. Local copies go first: only
// a segment whose local copy is gone may leave the store.
func (p *planner) retain(s *PartitionScan) decisions {
	r := retaining{planner: p, part: s, settings: s.Topic.Topic.Settings, drop: map[segment.Number]Job{}}
	r.hidden = map[segment.Number]bool{}
	r.left = len(s.index.gone.list)+len(s.index.present.list) > 0
	for _, e := range s.Active {
		r.left = r.left || e.Err != nil || e.Entry.Tier == segment.Remote || e.Entry.State == segment.Deleting
	}
	switch {
	case p.keeps(s):
		return r.decisions
	case s.Topic.Phase == Doomed:
		r.doom()
		return r.decisions
	}
	r.resume()
	r.total()
	r.local()
	for _, j := range r.drop {
		r.drops = append(r.drops, j)
	}
	slices.SortFunc(r.drops, func(a, b Job) int { return cmp.Compare(a.Stored.Number, b.Stored.Number) })
	r.drops = r.firstDrops()
	return r.decisions
}

// firstDrops is as many as a pass does, not counting those that wait.
func (r *retaining) firstDrops() []Job {
	left := maxDrops
	return slices.DeleteFunc(r.drops, func(j Job) bool {
		if r.scan.parked == nil || !r.scan.parked(j) {
			left--
		}
		return left < 0
	})
}

// retaining is the work on one partition.
type retaining struct {
	*planner
	part     *PartitionScan
	settings segment.TopicSettings
	drop     map[segment.Number]Job
	decisions
}

func (r *retaining) job(a Action, n segment.Number, why segment.Due) Job {
	j := Job{aged: a == Hide && why.Limit == r.settings.Total().MsName, Action: a, Partition: r.part.Partition, Settings: r.settings, Stored: segment.Stored{Number: n}, Why: why}
	if i, active := slices.BinarySearchFunc(r.part.Active, n, byNumber); active {
		j.Stored = r.part.Active[i]
	}
	return j
}

func byNumber(s segment.Stored, n segment.Number) int { return cmp.Compare(s.Number, n) }

// resume goes on with what a crash, or a refusal, has left half done.
func (r *retaining) resume() {
	for _, s := range r.part.Active {
		if s.Err == nil && s.Entry.State == segment.Sealed && s.Entry.Tier == segment.Remote {
			r.drop[s.Number] = r.job(Drop, s.Number, segment.Due{Limit: "begun before"})
		}
	}
}

// overdue counts a segment that should be gone already.
func (r *retaining) overdue(why segment.Due, name string) {
	r.lag.Overdue++
	if why.Limit == name {
		r.lag.LongestOverdue = max(r.lag.LongestOverdue, milliseconds(why.Over))
	}
}

// total is retention over both tiers.
func (r *retaining) total() {
	x, limits := r.part.index, r.settings.Total()
	size := func(s settled) int64 { return r.settings.Size(s.count, s.bytes) }
	spans, sum := r.spans(func(e segment.Entry, n segment.Number) int64 {
		if e.Tier == segment.Remote && e.Object != nil {
			return r.settings.Size(e.Count, e.Object.Bytes)
		}
		if e.State == segment.Open {
			return r.settings.Size(r.part.Streams[n].Length, 0)
		}
		return r.settings.Size(e.Count, 0) // the server only estimates, and an estimate deletes nothing for good
	})
	sum += r.settings.Size(x.gone.messages+x.present.messages, x.gone.objects+x.present.objects)
	for s, why := range limits.Overdue(r.now, sum, merged(size, spans, &x.gone, &x.present)) {
		r.overdue(why, limits.MsName)
		_, gone := x.gone.find(s.Number)
		_, present := x.present.find(s.Number)
		switch {
		case gone:
			r.expire(r.job(Hide, s.Number, why), since(r.now, why, limits.MsName, s.At))
		case present:
			r.drop[s.Number] = r.job(Drop, s.Number, why)
		default:
			r.unuploaded(s, why)
		}
	}
}

// since is from when a segment has been overdue: exactly, by time; by size
// nobody knows, and the age of what is in it stands for it.
func since(now int64, why segment.Due, msName string, at int64) int64 {
	if why.Limit == msName {
		return now - why.Over
	}
	return at
}

// unuploaded decides about a segment past total retention that is still LOCAL.
func (r *retaining) unuploaded(s segment.Span, why segment.Due) {
	j := r.job(Hide, s.Number, why)
	if why.Limit == r.settings.Total().BytesName {
		r.sizeReaches(&r.lag.Total, j.Stored.Entry)
	}
	switch {
	case j.Stored.Entry.Tier != segment.Local || !r.part.Topic.Works():
	case r.cfg.ExpireUnuploaded == Expire && !r.part.Partition.Plain:
		r.hidden[s.Number] = true
		r.expire(j, since(r.now, why, r.settings.Total().MsName, s.At))
	default:
		r.Counts.Unuploaded++
	}
}

// local is retention in Redis. Of a plain stream nothing goes before what
// stands in front of it.
func (r *retaining) local() {
	x, limits := r.part.index, r.settings.Local()
	size := func(s settled) int64 { return r.settings.Size(s.count, s.local) }
	spans, sum := r.spans(r.inRedis)
	sum += r.settings.Size(x.present.messages, x.present.streams)
	for s, why := range limits.Overdue(r.now, sum, merged(size, spans, &x.present)) {
		_, known := r.drop[s.Number]
		i, active := slices.BinarySearchFunc(r.part.Active, s.Number, byNumber)
		switch _, present := x.present.find(s.Number); {
		case present && !known:
			r.overdue(why, limits.MsName)
			r.drop[s.Number] = r.job(Drop, s.Number, why)
		case active && why.Limit == limits.BytesName:
			r.sizeReaches(&r.lag.Local, r.part.Active[i].Entry)
		}
	}
	if r.part.Partition.Plain {
		r.onlyInFront()
	}
}

// onlyInFront keeps of a plain stream's drops those before which nothing stays.
func (r *retaining) onlyInFront() {
	first := segment.Number(math.MaxUint64) // the first that stays
	for _, s := range r.part.Active {
		there := s.Err != nil || s.Entry.Tier == segment.Local || s.Entry.Local != segment.Gone
		if _, goes := r.drop[s.Number]; there && !goes {
			first = min(first, s.Number)
		}
	}
	for _, s := range r.part.index.present.list {
		if _, goes := r.drop[s.number]; !goes {
			first = min(first, s.number)
			break
		}
	}
	for n := range r.drop {
		if n > first {
			delete(r.drop, n)
		}
	}
}

// inRedis is what a segment takes there.
func (r *retaining) inRedis(e segment.Entry, n segment.Number) int64 {
	measured, count := r.part.Streams[n], e.Count
	if e.State == segment.Open {
		count = measured.Length
	}
	return r.settings.Size(count, measured.Bytes)
}

// spans gives the active segments that retention can take, and the size of
// all that count.
func (r *retaining) spans(size func(segment.Entry, segment.Number) int64) (spans []segment.Span, sum int64) {
	for _, s := range r.part.Active {
		if s.Err != nil || s.Entry.State == segment.Deleting {
			continue
		}
		bytes := size(s.Entry, s.Number)
		sum += bytes
		if s.Entry.State == segment.Sealed {
			at, _ := s.Entry.LastAppend(r.now)
			spans = append(spans, segment.Span{Number: s.Number, At: at, Bytes: bytes})
		}
	}
	return spans, sum
}

// doom hides all that a removed topic has left.
func (r *retaining) doom() {
	why := segment.Due{Limit: "topic-delete-grace", Over: r.now - r.part.Topic.Since - r.cfg.TopicDeleteGrace.Milliseconds()}
	hide := func(n segment.Number) {
		j := r.job(Hide, n, why)
		j.Gone = true
		r.expire(j, r.now-why.Over)
	}
	for _, s := range r.part.Active {
		if s.Err == nil && s.Entry.State != segment.Deleting {
			hide(s.Number)
		}
	}
	for _, l := range []*ledger{&r.part.index.gone, &r.part.index.present} {
		for _, s := range l.list {
			hide(s.number)
		}
	}
}
