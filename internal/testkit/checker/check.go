package checker

import (
	"cmp"
	"maps"
	"slices"
)

// Check finds every breach of what must always hold. acks is the ledger of all
// producers; nil means that nobody knows what was written, so that nothing can
// be told to be lost, stray, late, invented or altered.
func Check(w World, acks []Ack, r Rules) []Finding { return Examine(w, acks, r).Findings }

// Examine is Check that also counts where the messages are.
func Examine(w World, acks []Ack, r Rules) Report {
	c := &check{world: &w, rules: &r, ledger: newLedger(acks), streams: map[string]*stream{}, named: map[string]*seg{}}
	for i := range w.Partitions {
		c.manifest(&w.Partitions[i])
	}
	c.readers()
	c.leftovers()
	c.judge()
	c.streamsGone()
	c.orphans()
	return c.report
}

// check is one run of Examine.
type check struct {
	world   *World
	rules   *Rules
	ledger  *ledger
	segs    []*seg // in the order of partitions and numbers
	streams map[string]*stream
	named   map[string]*seg // the first entry that names an object, by path
	groups  map[group]int   // findings about messages
	report  Report
}

// seg is one entry of a manifest, and what is known of its segment.
type seg struct {
	part     *Partition
	field    string
	number   uint64
	entry    entry
	illegal  error // why it is not an entry, or of no use
	key      string
	readable bool // its object is there, and is a segment file
	right    bool // and it is the one that the entry describes
}

// stream is one stream of the world, or one that an entry speaks of.
type stream struct {
	key    string
	there  bool
	rows   []row
	sorted bool   // as the server has them
	segs   []*seg // whose it is
	last   *seg   // the one that was asked for last
}

// row is a message with its id in numbers.
type row struct {
	id   id
	text string
	sum  string
}

// manifest reads the entries of a partition.
func (c *check) manifest(p *Partition) {
	var aliens []string
	mine := make([]*seg, 0, len(p.Manifest))
	for field, raw := range p.Manifest {
		n, ok := parseNumber(field)
		if !ok {
			aliens = append(aliens, field)
			continue
		}
		s := &seg{part: p, field: field, number: n}
		s.entry, s.illegal = parseEntry(raw)
		mine = append(mine, s)
	}
	slices.Sort(aliens)
	for _, field := range aliens {
		c.found(Finding{Kind: Illegal, Partition: p.Name, Segment: field, Text: "its name is no segment number"})
	}
	slices.SortFunc(mine, func(a, b *seg) int { return cmp.Compare(a.number, b.number) })
	for _, s := range mine {
		if s.illegal != nil {
			c.found(c.of(s, Finding{Kind: Illegal, Text: s.illegal.Error()}))
		}
		c.place(s)
	}
	c.onlyLastOpen(mine)
	c.segs = append(c.segs, mine...)
}

// place finds out which stream a segment has, and which object.
func (c *check) place(s *seg) {
	switch {
	case s.entry.key != "":
		s.key = s.entry.key
	case s.part.Plain:
		s.key = s.part.StreamKey
	default:
		s.key = s.part.StreamKey + ":" + s.field
	}
	of := c.stream(s.key)
	if last := of.latest(); last != nil && s.illegal == nil && !last.entry.end().before(s.entry.from) {
		c.found(c.of(s, Finding{Kind: Illegal, Key: s.key, Text: "it begins before segment " + last.part.Name + "/" + last.field + " ends"}))
	}
	of.segs = append(of.segs, s)
	if !s.entry.described || s.entry.object.path == "" {
		return
	}
	path := s.entry.object.path
	if other, taken := c.named[path]; taken {
		c.found(c.of(s, Finding{Kind: Shared, Path: path, Text: "segment " + other.part.Name + "/" + other.field + " names it too"}))
		return
	}
	c.named[path] = s
}

// stream is the stream of a key, which need not be there.
func (c *check) stream(key string) *stream {
	s := c.streams[key]
	if s != nil {
		return s
	}
	messages, there := c.world.Streams[key]
	s = &stream{key: key, there: there, rows: rowsOf(messages)}
	s.sorted = slices.IsSortedFunc(s.rows, func(a, b row) int { return a.id.compare(b.id) })
	c.streams[key] = s
	return s
}

// latest is the last segment so far that is known to be in a stream.
func (s *stream) latest() *seg {
	for _, of := range slices.Backward(s.segs) {
		if of.illegal == nil {
			return of
		}
	}
	return nil
}

func rowsOf(messages []Message) []row {
	rows := make([]row, len(messages))
	for i, m := range messages {
		at, _ := parseID(m.ID) // what has no id is nobody's
		rows[i] = row{at, m.ID, m.Sum}
	}
	return rows
}

// onlyLastOpen finds OPEN entries that others follow.
func (c *check) onlyLastOpen(mine []*seg) {
	for i, s := range mine {
		if i < len(mine)-1 && s.illegal == nil && s.entry.state == stateOpen {
			c.found(c.of(s, Finding{Kind: Illegal, Text: "OPEN, and not the last one"}))
		}
	}
}

// of says of a finding which segment it is about.
func (c *check) of(s *seg, f Finding) Finding {
	f.Partition, f.Segment = s.part.Name, s.field
	return f
}

func (c *check) found(f Finding) { c.report.Findings = append(c.report.Findings, f) }

// group is what the findings about several messages have in common.
type group struct {
	kind                                Kind
	partition, segment, key, path, text string
}

// message adds a message to the finding of its like.
func (c *check) message(f Finding, id string) {
	g := group{f.Kind, f.Partition, f.Segment, f.Key, f.Path, f.Text}
	i, there := c.groups[g]
	if !there {
		if c.groups == nil {
			c.groups = map[group]int{}
		}
		i = len(c.report.Findings)
		c.groups[g] = i
		c.found(f)
	}
	at := &c.report.Findings[i]
	at.IDs = append(at.IDs, id)
}

// streamsGone finds LOCAL entries without their stream. One that never had a
// message need not have one.
func (c *check) streamsGone() {
	for _, s := range c.segs {
		if s.illegal != nil || s.entry.hidden() || s.entry.remote() || c.streams[s.key].there {
			continue
		}
		acked, wanted := c.ledger.of(s)
		if wanted > 0 || acked == 0 && s.entry.count > 0 {
			c.found(c.of(s, Finding{Kind: StreamGone, Key: s.key, Text: s.entry.state + " LOCAL, and the stream is not there"}))
		}
	}
}

// orphans finds objects that nothing names.
func (c *check) orphans() {
	if !c.rules.Settled {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(c.world.Objects)) {
		age := c.world.Objects[path].Age
		if c.named[path] == nil && path != c.rules.Owner && age >= c.rules.OrphanAge {
			c.found(Finding{Kind: Orphan, Path: path, Text: "no entry names it, and it is " + age.String() + " old"})
		}
	}
}
