package offload

import (
	"cmp"
	"iter"
	"slices"

	"korvet-offload/segment"
)

// settled is what is remembered of a REMOTE segment about which there is
// nothing to do at present: 56 bytes instead of an entry.
type settled struct {
	number segment.Number
	at     int64 // epoch ms of its newest entry; 0 = not known
	count  int64
	bytes  int64  // of the object
	local  int64  // of the local copy, in Redis; -1 = not measured
	key    string // of its stream, where that is not the usual one
}

// ledger holds settled segments in the order of their numbers, and what they
// amount to.
type ledger struct {
	list                       []settled
	messages, objects, streams int64 // sums of count, bytes and the measured local
	unmeasured                 int
}

func (l *ledger) find(n segment.Number) (int, bool) {
	return slices.BinarySearchFunc(l.list, n, func(s settled, n segment.Number) int { return cmp.Compare(s.number, n) })
}

// highest is the last segment's number; 0 if there is none.
func (l *ledger) highest() segment.Number {
	if len(l.list) == 0 {
		return 0
	}
	return l.list[len(l.list)-1].number
}

// put adds a segment, or replaces it.
func (l *ledger) put(s settled) {
	i, there := l.find(s.number)
	if there {
		l.count(l.list[i], -1)
		l.list[i] = s
	} else {
		l.list = slices.Insert(l.list, i, s)
	}
	l.count(s, 1)
}

// take removes a segment; false if it is not there.
func (l *ledger) take(n segment.Number) bool {
	i, there := l.find(n)
	if !there {
		return false
	}
	s := l.list[i]
	if i == 0 {
		l.list = l.list[1:] // the usual case: the oldest goes first
	} else {
		l.list = slices.Delete(l.list, i, i+1)
	}
	l.count(s, -1)
	return true
}

func (l *ledger) count(s settled, sign int64) {
	l.messages += sign * s.count
	l.objects += sign * s.bytes
	if s.local < 0 {
		l.unmeasured += int(sign)
	} else {
		l.streams += sign * s.local
	}
}

// measured notes the size of a local copy.
func (l *ledger) measured(n segment.Number, bytes int64) {
	if i, there := l.find(n); there {
		s := l.list[i]
		s.local = bytes
		l.put(s)
	}
}

// merged gives the segments of several ledgers and the spans of active ones,
// all in the order of their numbers.
func merged(size func(settled) int64, active []segment.Span, ledgers ...*ledger) iter.Seq[segment.Span] {
	return func(yield func(segment.Span) bool) {
		rest := make([][]settled, len(ledgers))
		for i, l := range ledgers {
			rest[i] = l.list
		}
		for {
			next := -1
			for i, r := range rest {
				if len(r) > 0 && (next < 0 || r[0].number < rest[next][0].number) {
					next = i
				}
			}
			switch {
			case len(active) > 0 && (next < 0 || active[0].Number < rest[next][0].number):
				if !yield(active[0]) {
					return
				}
				active = active[1:]
			case next >= 0:
				s := rest[next][0]
				rest[next] = rest[next][1:]
				if !yield(segment.Span{Number: s.number, At: s.at, Bytes: size(s)}) {
					return
				}
			default:
				return
			}
		}
	}
}
