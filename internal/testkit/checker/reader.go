package checker

import (
	"fmt"
	"slices"
	"strconv"
)

// readers goes where a reader goes.
func (c *check) readers() {
	for _, s := range c.segs {
		if s.illegal != nil {
			continue
		}
		rows, path := c.visible(s)
		if !s.entry.hidden() {
			c.read(s, rows, path)
			continue
		}
		for _, r := range rows {
			c.ledger.get(s.key, r).hides()
		}
	}
}

// visible is what a reader finds of a segment, and in which object; no path
// means in the stream. Of a hidden one it is what its object has.
func (c *check) visible(s *seg) (rows []row, path string) {
	switch {
	case s.entry.remote():
		return c.object(s), s.entry.object.path
	case s.entry.hidden():
		return nil, ""
	}
	return c.streams[s.key].between(s), ""
}

// read looks at what a reader finds of a segment.
func (c *check) read(s *seg, rows []row, path string) {
	newest := id{}
	for _, r := range rows {
		c.see(s, r, path)
		if r.id.before(newest) {
			c.message(c.of(s, Finding{Kind: Order, Key: s.keyUnless(path), Path: path, Text: "behind a later one"}), r.text)
		}
		newest = r.id
	}
}

// between are the rows that belong to a segment. A stream is in order, but
// where something is wrong.
func (s *stream) between(of *seg) (mine []row) {
	if s.sorted {
		first, _ := slices.BinarySearchFunc(s.rows, of.entry.from, row.compare)
		end, found := slices.BinarySearchFunc(s.rows, of.entry.end(), row.compare)
		if found {
			end++
		}
		return s.rows[first:max(first, end)]
	}
	for _, r := range s.rows {
		if of.owns(r.id) {
			mine = append(mine, r)
		}
	}
	return mine
}

func (r row) compare(to id) int { return r.id.compare(to) }

func (s *seg) owns(at id) bool { return at.within(s.entry.from, s.entry.end()) }

// keyUnless is the segment's stream, unless there is a path.
func (s *seg) keyUnless(path string) string {
	if path != "" {
		return ""
	}
	return s.key
}

// object checks the object of a REMOTE segment and returns its rows. One that
// is being deleted may be in any state.
func (c *check) object(s *seg) []row {
	o, there := c.world.Objects[s.entry.object.path]
	s.readable = there && o.Bad == ""
	if !there {
		if !s.entry.hidden() {
			c.found(c.of(s, Finding{Kind: Missing, Path: s.entry.object.path, Text: "REMOTE, and its object is not there"}))
		}
		return nil
	}
	var rows []row
	if s.readable {
		rows = rowsOf(o.Messages)
	}
	text := s.differs(o, rows)
	s.right = text == ""
	if !s.right && !s.entry.hidden() {
		c.found(c.of(s, Finding{Kind: Wrong, Path: s.entry.object.path, Text: text}))
	}
	return rows
}

// differs says in what an object is not the one that its entry describes.
func (s *seg) differs(o Object, rows []row) string {
	e := &s.entry
	switch {
	case !isObjectOf(e.object.path, s.part.folder(), s.field, e.copy):
		return "not a path of copy " + strconv.FormatInt(e.copy, 10) + " of this segment"
	case o.Bad != "":
		return o.Bad
	case o.Size != e.object.bytes:
		return fmt.Sprintf("%d bytes, and the entry says %d", o.Size, e.object.bytes)
	case o.SHA256 != e.object.sha256:
		return "its bytes are not those of which the entry has the checksum"
	case int64(len(rows)) != e.count:
		return fmt.Sprintf("%d messages, and the entry says %d", len(rows), e.count)
	}
	lo, hi := lastOfAll(), id{}
	for _, r := range rows {
		if r.id.before(lo) {
			lo = r.id
		}
		if hi.before(r.id) {
			hi = r.id
		}
	}
	switch {
	case len(rows) == 0:
		return ""
	case lo != e.firstID || hi != e.lastID:
		return fmt.Sprintf("from %s to %s, and the entry says from %s to %s", lo, hi, e.firstID, e.lastID)
	case !s.owns(lo) || !s.owns(hi):
		return fmt.Sprintf("from %s to %s, and the range is from %s to %s", lo, hi, e.from, e.end())
	}
	return ""
}

// see takes down that a reader finds a message, in an object or, without a
// path, in a stream.
func (c *check) see(s *seg, r row, path string) {
	at := c.of(s, Finding{Key: s.keyUnless(path), Path: path})
	f := c.ledger.find(s.key, r)
	if f == nil {
		f = c.unknown(at, s.key, r)
	}
	f.seen++
	f.onStore = f.onStore || path != ""
	if f.seen > 1 {
		at.Kind, at.Text = Twice, "a reader has found it before"
		c.message(at, r.text)
	}
}

// unknown is about a message that was not acknowledged so: other bytes of one
// that was, one that belongs to another segment, or nobody's.
func (c *check) unknown(at Finding, key string, r row) *fate {
	l := c.ledger
	if !l.known {
		return l.get(key, r)
	}
	if l.alters(key, r) {
		at.Kind, at.Text = Altered, "not the bytes that were acknowledged"
		c.message(at, r.text)
	} else if f := l.elsewhere(at.Partition, r); f != nil {
		return f
	} else if c.rules.Sent == nil || !c.rules.Sent(at.Partition, key, r.sum) {
		at.Kind, at.Text = Invented, "nobody has written it"
		c.message(at, r.text)
	}
	return l.get(key, r)
}
