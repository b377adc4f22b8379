package test

import (
	"context"
	"slices"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/checker/loader"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// marker is the object that says whose the place is.
const marker = "_korvet_offload.json"

// examine compares what producers were told with what there is in Redis and on
// the store. Findings of other kinds than these fail the test. Nothing must
// run meanwhile.
func (r *rig) examine(parts []segment.Partition, acks []checker.Ack, rules checker.Rules, tolerated ...checker.Kind) checker.Report {
	r.t.Helper()
	place := loader.Place{Redis: r.redis, Layout: r.layout, Parts: parts, Root: r.root()}
	world, err := place.Load(context.Background(), acks)
	if err != nil {
		r.t.Fatal(err)
	}
	rules.Owner = marker
	report := checker.Examine(world, acks, rules)
	for _, f := range report.Findings {
		if !slices.Contains(tolerated, f.Kind) {
			r.t.Error(f)
		}
	}
	return report
}

// loaded is the ledger of the segments that were loaded, and their partitions.
func (r *rig) loaded() (acks []checker.Ack, parts []segment.Partition) {
	for _, w := range r.ledger {
		key, messages := r.layout.SegmentKey(w.partition, w.number), dataset.New(w.seed, 100)
		for range w.count {
			m := messages.Next()
			fields := m.Fields()
			acks = append(acks, loader.Ack(w.partition, key, m.ID, broker.SumOf(fields[:]...)))
		}
		if !slices.Contains(parts, w.partition) {
			parts = append(parts, w.partition)
		}
	}
	return acks, parts
}

// mustBeSound checks that every message of the segments that were loaded is
// where a reader finds it, once, as it was loaded, and that nothing else is
// anywhere.
func (r *rig) mustBeSound(tolerated ...checker.Kind) {
	r.t.Helper()
	acks, parts := r.loaded()
	if len(acks) == 0 {
		r.t.Error("nothing was loaded")
	}
	filler := loader.Ack(segment.Partition{}, "", segment.ID{}, broker.SumOf("value", "still open")).Sum // of open segments
	r.examine(parts, acks, checker.Rules{Settled: true, Sent: func(_, _, sum string) bool { return sum == filler }}, tolerated...)
}

// verdict is where the acknowledged messages are.
type verdict struct {
	checker.Tally
	late   map[string]int // in the stream of a REMOTE segment, not in its object yet; by stream
	strays map[string]int // by stream, where no reader looks
}

// verify finds every acknowledged message where a reader looks for it, or
// finds why it may be gone. The worker does not run meanwhile.
func (l *life) verify(tolerated ...checker.Kind) verdict {
	l.t.Helper()
	l.rest()
	l.watch.look()
	acks, deleted := loader.Acks(l.books)
	loaded, parts := l.loaded()
	sources := map[string]broker.Source{}
	for _, s := range l.books.Sources() {
		sources[s.Key] = s
	}
	report := l.examine(append(parts, l.parts...), append(acks, loaded...), checker.Rules{Settled: true, May: func(a checker.Ack) string {
		switch {
		case l.expired(sources[a.Key], a):
			return "expired"
		case deleted[a]:
			return "deleted"
		}
		return ""
	}}, tolerated...)
	v := verdict{report.Tally, map[string]int{}, map[string]int{}}
	for _, f := range report.Findings {
		switch f.Kind {
		case checker.Late:
			v.late[f.Key] += len(f.IDs)
		case checker.Stray:
			v.strays[f.Key] += len(f.IDs)
		}
	}
	return v
}

// expired says whether a message may be gone for its age.
func (l *life) expired(s broker.Source, a checker.Ack) bool {
	id, err := segment.ParseID(a.ID)
	if err != nil {
		l.t.Error(err)
	}
	at, hidden := where{s.Partition, s.Number}, true
	if s.Partition.Plain {
		at, hidden = l.watch.hiddenRange(s.Partition, id)
	}
	return hidden && l.watch.expired(at, id)
}

// noStreamsLeft checks that Redis holds no stream of a segment whose entry is
// gone, not even an empty one.
func (l *life) noStreamsLeft() {
	l.t.Helper()
	named := map[where]bool{}
	for _, p := range l.parts {
		for _, s := range l.entriesOf(p) {
			named[where{p, s.Number}] = true
		}
	}
	for _, s := range l.books.Sources() {
		if !s.Partition.Plain && !named[where{s.Partition, s.Number}] && l.redis.Exec("EXISTS", s.Key) != "0" {
			l.t.Errorf("stream %s is there, and no entry names it", s.Key)
		}
	}
}
