package checker

import "slices"

// leftovers goes through what lies in streams where no reader looks.
func (c *check) leftovers() {
	for _, key := range c.keys() {
		of := c.stream(key)
		anew := c.begunAnew(of)
		for _, r := range of.rows {
			s := of.owner(r.id)
			if s == nil || anew {
				c.leftover(Finding{Key: key}, key, r).strays()
				continue
			}
			c.behind(s, r)
		}
	}
}

// begunAnew says whether a stream has nothing of what was copied from it: what
// it has came after it was removed, and no copy will be made of it.
func (c *check) begunAnew(of *stream) bool {
	if len(of.segs) != 1 {
		return false
	}
	s := of.segs[0]
	if s.entry.shared() || s.entry.count <= 0 || !s.right {
		return false
	}
	return !slices.ContainsFunc(of.rows, func(r row) bool { return s.has(c.ledger.find(s.key, r), r) })
}

// keys are those of all streams in which something may lie that no reader
// finds, in their order.
func (c *check) keys() []string {
	keys := make([]string, 0, len(c.world.Streams))
	for key := range c.world.Streams {
		if !c.stream(key).read() {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// read says whether a reader reads all of a stream.
func (s *stream) read() bool {
	if len(s.segs) != 1 {
		return false
	}
	of := s.segs[0]
	return of.illegal == nil && !of.entry.hidden() && !of.entry.remote() && !of.entry.shared()
}

// owner is the segment that a message of a stream belongs to, if there is one:
// one whose entry says so, or else one whose entry can't be read. Most messages
// belong to the one that the message before belonged to.
func (s *stream) owner(at id) *seg {
	if s.last != nil && s.last.owns(at) {
		return s.last
	}
	var unread *seg
	for _, of := range s.segs {
		switch {
		case of.illegal != nil:
			unread = of
		case of.owns(at):
			s.last = of
			return of
		}
	}
	return unread
}

// behind is about a message in the stream of a segment of which a reader reads
// the object, or nothing.
func (c *check) behind(s *seg, r row) {
	e := &s.entry
	at := c.of(s, Finding{Key: s.key})
	if s.illegal != nil {
		c.leftover(at, s.key, r).waits(s)
		return
	}
	if !e.remote() {
		if e.hidden() {
			c.leftHidden(s, r)
		}
		return // else a reader reads it
	}
	copied := s.has(c.ledger.find(s.key, r), r)
	switch {
	case copied && e.gone():
		at.Kind, at.Text = GoneButThere, "GONE, and what was copied is still in the stream"
		c.message(at, r.text)
		c.leftover(at, s.key, r).waits(s)
	case copied && s.readable:
		c.leftover(at, s.key, r).copied()
	case e.gone() || e.hidden():
		c.leftover(at, s.key, r).strays()
	default:
		c.leftover(at, s.key, r).waits(s)
	}
}

// has says whether a segment's object has a message, or ought to have it where
// it can't be read.
func (s *seg) has(f *fate, r row) bool {
	if s.readable {
		return f != nil && (f.onStore || f.hidden)
	}
	return s.entry.count > 0 && r.id.within(s.entry.firstID, s.entry.lastID)
}

// leftHidden is about a message in the stream of a LOCAL segment that is
// hidden: it was there when it was hidden, or it came later.
func (c *check) leftHidden(s *seg, r row) {
	f := c.leftover(c.of(s, Finding{Key: s.key}), s.key, r)
	if s.entry.lastID.before(r.id) {
		f.strays()
	} else {
		f.hides()
	}
}

// leftover is the fate of a message that lies where no reader looks.
func (c *check) leftover(at Finding, key string, r row) *fate {
	if f := c.ledger.find(key, r); f != nil {
		return f
	}
	return c.unknown(at, key, r)
}

// judge says what became of each acknowledged message.
func (c *check) judge() {
	t := &c.report.Tally
	for i := range c.ledger.fates {
		f := &c.ledger.fates[i]
		if !f.acked {
			continue
		}
		t.Acked++
		switch {
		case f.onStore:
			t.OnStore++
			if f.both {
				t.Both++
			}
		case f.seen > 0:
			t.InRedis++
		case f.altered:
		default:
			c.unseen(f)
		}
	}
}

// unseen is about an acknowledged message that no reader finds.
func (c *check) unseen(f *fate) {
	if f.excuse = c.excuse(f.ack); f.excuse != "" {
		t := &c.report.Tally
		if t.Excused == nil {
			t.Excused = map[string]int{}
		}
		t.Excused[f.excuse]++
		return
	}
	at := Finding{Partition: f.ack.Partition, Key: f.ack.Key}
	if s := c.whose(f.ack); s != nil {
		at.Segment = s.field
	}
	switch {
	case f.waiting != nil:
		if !c.rules.Settled || !f.waiting.readable {
			return // not yet, or what is wrong has been found
		}
		at.Kind, at.Text = Late, "in the stream of a REMOTE segment, and not in its object"
	case f.stray:
		at.Kind, at.Text = Stray, "in a stream where no reader looks"
	case f.hidden && c.rules.Hidden:
		return
	case f.hidden:
		at.Kind, at.Text = Lost, "acknowledged, and hidden with its segment"
	default:
		at.Kind, at.Text = Lost, "acknowledged, and nowhere"
	}
	c.message(at, f.ack.ID)
}

// whose is the segment that a message belongs to, if there is one still.
func (c *check) whose(a Ack) *seg {
	of := c.streams[a.Key]
	if of == nil {
		return nil
	}
	at, _ := parseID(a.ID)
	return of.owner(at)
}

func (c *check) excuse(a Ack) string {
	if c.rules.May == nil {
		return ""
	}
	return c.rules.May(a)
}
