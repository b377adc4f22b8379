package checker

// ledger is what was acknowledged, and what became of each message, of those
// too that nobody has acknowledged.
type ledger struct {
	known bool // there is one
	fates []fate
	index map[place]int // the first fate of a place; the others follow by next
	ids   map[place]int // acknowledged ones by partition instead of key; made when it is needed
}

// place is where a message belongs: what it is known by.
type place struct {
	key string
	id  id
}

// fate is what became of one message.
type fate struct {
	ack     Ack
	acked   bool
	next    int  // of the same place, with other bytes; 0 = none
	seen    int  // how often a reader finds it
	onStore bool // in an object that a reader reads
	both    bool // in the object, and in the stream behind it
	hidden  bool // in the object or the stream of a DELETING entry
	stray   bool // in a stream where no reader looks
	altered bool // there with other bytes
	waiting *seg // it lies in the stream of this REMOTE segment
	excuse  string
}

func (f *fate) hides()       { f.hidden = true }
func (f *fate) strays()      { f.stray = true }
func (f *fate) waits(s *seg) { f.waiting = s }
func (f *fate) copied()      { f.both = true }

func newLedger(acks []Ack) *ledger {
	l := &ledger{known: acks != nil, fates: make([]fate, 0, len(acks)+1), index: make(map[place]int, len(acks))}
	l.fates = append(l.fates, fate{}) // so that 0 is none
	for _, a := range acks {
		at, _ := parseID(a.ID)
		if l.find(a.Key, row{at, a.ID, a.Sum}) == nil { // else it stands there twice
			l.add(place{a.Key, at}, fate{ack: a, acked: true})
		}
	}
	return l
}

func (l *ledger) add(p place, f fate) *fate {
	i := len(l.fates)
	f.next = l.index[p]
	l.index[p] = i
	l.fates = append(l.fates, f)
	return &l.fates[i]
}

// find is the fate of a message; nil for one that was neither acknowledged nor
// met before.
func (l *ledger) find(key string, r row) *fate {
	for i := l.index[place{key, r.id}]; i != 0; i = l.fates[i].next {
		if l.fates[i].ack.Sum == r.sum {
			return &l.fates[i]
		}
	}
	return nil
}

// get is find that takes down a message that was not known.
func (l *ledger) get(key string, r row) *fate {
	if f := l.find(key, r); f != nil {
		return f
	}
	return l.add(place{key, r.id}, fate{ack: Ack{Key: key, ID: r.text, Sum: r.sum}})
}

// alters says whether a message of this id was acknowledged with other bytes,
// and notes that.
func (l *ledger) alters(key string, r row) bool {
	any := false
	for i := l.index[place{key, r.id}]; i != 0; i = l.fates[i].next {
		if l.fates[i].acked {
			l.fates[i].altered, any = true, true
		}
	}
	return any
}

// elsewhere is a message that was acknowledged with these bytes in another
// stream of the partition.
func (l *ledger) elsewhere(partition string, r row) *fate {
	if l.ids == nil {
		l.ids = map[place]int{}
		for i := range l.fates {
			if f := &l.fates[i]; f.acked {
				at, _ := parseID(f.ack.ID)
				l.ids[place{f.ack.Partition, at}] = i
			}
		}
	}
	if f := &l.fates[l.ids[place{partition, r.id}]]; f.acked && f.ack.Sum == r.sum {
		return f
	}
	return nil
}

// of counts the messages of a segment that were acknowledged, and those that
// have to be there.
func (l *ledger) of(s *seg) (acked, wanted int) {
	for i := range l.fates {
		f := &l.fates[i]
		at, _ := parseID(f.ack.ID)
		if !f.acked || f.ack.Key != s.key || !s.owns(at) {
			continue
		}
		acked++
		if f.excuse == "" {
			wanted++
		}
	}
	return acked, wanted
}
