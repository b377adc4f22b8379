package broker

import (
	"maps"
	"slices"
	"sync"

	"korvet-offload/segment"
)

// Ack is a message that Redis has acknowledged to a producer.
type Ack struct {
	Sum     Sum
	Deleted bool // somebody has deleted it, or is about to: it need not be there
}

// Source is a stream that producers have written to.
type Source struct {
	Partition segment.Partition
	Number    segment.Number // of a plain stream 0, whatever the segment
	Key       string
}

// Ledger is the producers' own account of what was acknowledged. Safe for
// concurrent use.
type Ledger struct {
	mu   sync.Mutex
	acks map[Source]map[segment.ID]Ack
}

// NewLedger is an empty ledger.
func NewLedger() *Ledger { return &Ledger{acks: map[Source]map[segment.ID]Ack{}} }

func (l *Ledger) add(s Source, id segment.ID, sum Sum) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acks[s] == nil {
		l.acks[s] = map[segment.ID]Ack{}
	}
	l.acks[s][id] = Ack{Sum: sum}
}

// Deleted notes that a message is about to be deleted; false if it is not in
// the ledger.
func (l *Ledger) Deleted(s Source, id segment.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, there := l.acks[s][id]
	if there {
		a.Deleted = true
		l.acks[s][id] = a
	}
	return there
}

// Sources lists the streams, in the order of their keys.
func (l *Ledger) Sources() []Source {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Keys(l.acks), func(a, b Source) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
}

// Acks is what was acknowledged of one stream, so far.
func (l *Ledger) Acks(s Source) map[segment.ID]Ack {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acks[s])
}

// Len is the number of messages.
func (l *Ledger) Len() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, acks := range l.acks {
		n += len(acks)
	}
	return n
}
