package offload

import (
	"cmp"
	"slices"
	"time"

	"korvet-offload/segment"
)

// How an index stays true. The manifest of a partition is read whole when the
// partition is first seen by this leader, when the number of its fields is not
// what the index expects, and after fullEvery; the time differs between
// partitions, so that they do not all come due at once. In between only the
// active entries are read, and probes numbers above the highest one known.
const (
	fullEvery = time.Hour
	probes    = 8
)

// index is what a worker remembers of one manifest from pass to pass, so that
// a tick costs what there is to do, and not what was ever done. It is only
// ever used to find work: whoever changes an entry reads it first.
type index struct {
	gone    ledger // REMOTE, only on the store
	present ledger // REMOTE, with a local copy
	active  []segment.Stored
	alien   []string
	sizes   map[segment.Number]segment.OpenStream // of the streams of active segments that are sealed, where measured
	high    segment.Number                        // the highest number that was seen
	any     bool                                  // whether one was
	until   time.Time                             // when the manifest is read whole again; zero = at once
}

// fields is how many fields the manifest should have.
func (x *index) fields() int64 {
	return int64(len(x.gone.list) + len(x.present.list) + len(x.active) + len(x.alien))
}

// stale makes the next scan read the manifest whole.
func (x *index) stale() { x.until = time.Time{} }

// question asks for the active entries and those that may have come since.
func (x *index) question(p segment.Partition) segment.Peek {
	q := segment.Peek{Partition: p, Numbers: make([]segment.Number, 0, len(x.active)+probes)}
	for _, s := range x.active {
		q.Numbers = append(q.Numbers, s.Number)
	}
	next := segment.Number(0)
	if x.any {
		next = x.high + 1
	}
	for i := range segment.Number(probes) {
		q.Numbers = append(q.Numbers, next+i)
	}
	return q
}

// answer takes the entries that were asked for. False means that the manifest
// is not what the index expects.
func (x *index) answer(q segment.Peek, a segment.Peeked, now int64) bool {
	x.active = x.active[:0]
	for i, raw := range a.Raw {
		if raw != "" {
			x.take(q.Numbers[i], raw, now)
		}
	}
	full := a.Raw[len(a.Raw)-1] != "" // there may be more
	return !full && a.Fields == x.fields()
}

// take sorts an entry in.
func (x *index) take(n segment.Number, raw string, now int64) {
	x.high, x.any = max(x.high, n), true
	s, active, ok := sorted(n, raw, now)
	switch {
	case !ok:
		x.active = append(x.active, active)
	case s.local == 0:
		x.gone.put(s)
	default:
		x.present.put(s)
	}
}

// sorted is what is remembered of an entry that is settled; false gives all of
// one that is not. The local size of a copy that is gone is 0, that of one that
// is there is not known yet.
func sorted(n segment.Number, raw string, now int64) (settled, segment.Stored, bool) {
	e, err := segment.ParseEntry([]byte(raw))
	if err != nil || e.State != segment.Sealed || e.Tier != segment.Remote || e.Local == segment.Dropping {
		return settled{}, segment.Stored{Number: n, Raw: raw, Entry: e, Err: err}, false
	}
	s := settled{number: n, count: max(0, e.Count), local: -1, key: e.Key}
	s.at, _ = e.LastAppend(now)
	if e.Object != nil {
		s.bytes = e.Object.Bytes
	}
	if e.Local == segment.Gone {
		s.local = 0
	}
	return s, segment.Stored{}, true
}

// remembers says whether a settled segment's newest entry is as old as the one
// by whose age it was chosen.
func (x *index) remembers(n segment.Number, at int64) bool {
	for _, l := range []*ledger{&x.gone, &x.present} {
		if i, there := l.find(n); there {
			return l.list[i].at == at
		}
	}
	return false
}

// changed makes an entry active whose state is about to change: the next scan
// reads it again.
func (x *index) changed(s segment.Stored) {
	if gone, present := x.gone.take(s.Number), x.present.take(s.Number); gone || present {
		x.active = append(x.active, s)
		slices.SortFunc(x.active, func(a, b segment.Stored) int { return cmp.Compare(a.Number, b.Number) })
	}
}

// reading makes an index of a manifest that is read whole.
type reading struct {
	now    int64
	found  []settled // in the order in which they came
	active map[segment.Number]segment.Stored
	alien  map[string]bool
}

// unsettled is the local of what is found and not settled; its entry is apart.
const unsettled = -2

// field takes one field of the manifest, perhaps not for the first time.
func (r *reading) field(name, value string) {
	n, err := segment.ParseNumber(name)
	if err != nil {
		if r.alien == nil {
			r.alien = map[string]bool{}
		}
		r.alien[name] = true
		return
	}
	s, active, ok := sorted(n, value, r.now)
	if !ok {
		if r.active == nil {
			r.active = map[segment.Number]segment.Stored{}
		}
		r.active[n] = active
		s = settled{number: n, local: unsettled}
	}
	r.found = append(r.found, s)
}

// index is what was read. False means that fewer than so many fields came.
func (r *reading) index(fields int64, until time.Time) (*index, bool) {
	r.latest()
	x := &index{until: until}
	x.gone.list, x.present.list = r.room()
	for _, s := range r.found {
		x.high, x.any = s.number, true
		switch s.local {
		case unsettled:
			x.active = append(x.active, r.active[s.number])
		case 0:
			x.gone.put(s)
		default:
			x.present.put(s)
		}
	}
	for name := range r.alien {
		x.alien = append(x.alien, name)
	}
	slices.Sort(x.alien)
	return x, x.fields() >= fields
}

// latest puts what was found into order, and keeps of each number what came
// last.
func (r *reading) latest() {
	slices.SortStableFunc(r.found, func(a, b settled) int { return cmp.Compare(a.number, b.number) })
	n := 0
	for i, s := range r.found {
		if i+1 == len(r.found) || r.found[i+1].number != s.number {
			r.found[n] = s
			n++
		}
	}
	r.found = r.found[:n]
}

// room is empty lists of the right size for what was found.
func (r *reading) room() (gone, present []settled) {
	n := map[bool]int{}
	for _, s := range r.found {
		if s.local != unsettled {
			n[s.local == 0]++
		}
	}
	return make([]settled, 0, n[true]), make([]settled, 0, n[false])
}
