package torture

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// stored lists the entries of a partition in the order of their numbers.
func (p *play) stored(part segment.Partition) (all []segment.Stored) {
	for field, raw := range p.Manifest(part) {
		n, err := segment.ParseNumber(field)
		s := segment.Stored{Number: n, Raw: raw}
		if err == nil {
			s.Entry, err = segment.ParseEntry([]byte(raw))
		}
		if err != nil {
			p.fail("entry %s/%s: %v in %s", part, field, err, raw)
			continue
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b segment.Stored) int { return int(int64(a.Number) - int64(b.Number)) }) //nolint:gosec // small ones
	return all
}

func (p *play) key(part segment.Partition, s segment.Stored) string {
	if s.Entry.Key != "" {
		return s.Entry.Key
	}
	return p.Layout.SegmentKey(part, s.Number)
}

// open is the segment that producers append to.
func open(all []segment.Stored) (segment.Stored, bool) {
	i := slices.IndexFunc(all, func(s segment.Stored) bool { return s.Entry.State == segment.Open })
	if i < 0 {
		return segment.Stored{}, false
	}
	return all[i], true
}

// produce appends to the open segment. What comes when it is open no more is
// late.
func (p *play) produce(name string, n int) {
	part := partition(name)
	if part.Plain {
		p.append(part, events, n, false)
		return
	}
	at, there := open(p.stored(part))
	if !there {
		return
	}
	key := p.key(part, at)
	first := len(p.Acks)
	p.append(part, key, n, false)
	if e := p.Entry(part, at.Number); e.State != segment.Open || p.key(part, segment.Stored{Number: at.Number, Entry: e}) != key {
		p.belated(first)
	}
}

// belated notes that messages were appended to a segment that had ended.
func (p *play) belated(first int) {
	for _, a := range p.Acks[first:] {
		p.late[name(a.Key, a.ID)] = true
	}
}

func (p *play) append(part segment.Partition, key string, n int, late bool) {
	first := len(p.Acks)
	if err := p.Append(part, key, n); err != nil {
		p.fail("append to %s: %v", key, err)
	}
	if late {
		p.belated(first)
	}
	p.tally.Add(Messages, len(p.Acks)-first)
}

// appendLate appends to the k-th segment before the open one.
func (p *play) appendLate(name string, k, n int) {
	if name == everywhere {
		for _, one := range parts() {
			p.appendLate(one, k, n)
		}
		return
	}
	part := partition(name)
	all := p.stored(part)
	i := slices.IndexFunc(all, func(s segment.Stored) bool { return s.Entry.State == segment.Open })
	if part.Plain || i-k < 0 {
		return
	}
	p.append(part, p.key(part, all[i-k]), n, true)
}

// recreate makes topic phoenix anew, as a broker does: all that Redis has of it
// goes, and its segments begin with 0 again.
func (p *play) recreate() {
	part := partition(phoenix + ":0")
	p.made++
	p.register(phoenix, "retention.ms", "-1")
	commands := [][]string{{"MULTI"}, {"DEL", p.Layout.ManifestKey(part)}}
	for _, s := range p.stored(part) {
		commands = append(commands, []string{"DEL", p.key(part, s)})
	}
	commands = append(commands,
		[]string{"HSET", p.Layout.TopicKey(phoenix), "id", fmt.Sprintf("%08d-0000-4000-8000-000000000000", p.made)},
		[]string{"HSET", p.Layout.ManifestKey(part), "0", fmt.Sprintf(`{"v":1,"state":"OPEN","tier":"LOCAL","openedAt":%d}`, time.Now().UnixMilli())},
		[]string{"EXEC"})
	if replies, err := p.Conn.Pipe(commands); err != nil || slices.ContainsFunc(replies, refused) {
		p.fail("make topic %s anew: %v, %v", phoenix, replies, err)
	}
	p.epoch[phoenix] = len(p.Acks)
	// The ledger knows a message by its stream and id, and the new topic's must
	// not have those of the old one's: ids begin with the time.
	for now := time.Now().UnixMilli(); time.Now().UnixMilli() == now; {
		runtime.Gosched()
	}
}

func refused(reply any) bool { _, is := reply.(error); return is }

func (p *play) remove() {
	if p.removed.IsZero() {
		p.Unregister(guest)
		p.removed, p.most, p.least = time.Now(), p.offset, p.offset
	}
}

// back registers topic guest again. If it was away for longer than the grace,
// by any clock, what it had may be gone.
func (p *play) back() {
	if p.removed.IsZero() {
		return
	}
	if time.Since(p.removed)+p.most-p.least >= topicGrace {
		p.epoch[guest] = len(p.Acks)
	}
	p.register(guest, "retention.ms", "-1")
	p.removed = time.Time{}
	p.tally.Add(Returned, 1)
}

// xdel deletes the n-th latest message of a partition.
func (p *play) xdel(part string, n int) {
	for _, a := range slices.Backward(p.Acks) {
		of := name(a.Key, a.ID)
		if a.Partition != partition(part).String() || p.deleted[of] {
			continue
		}
		if n--; n > 0 {
			continue
		}
		p.deleted[of], p.touched[a.Key] = true, true
		p.Do("XDEL", a.Key, a.ID)
		return
	}
}

// deleteCopied deletes, or trims, the stream of a segment that was copied and
// in which nothing has come since. Its messages are on the store.
func (p *play) deleteCopied(name string, trim bool) {
	part := partition(name)
	for _, s := range p.stored(part) {
		e, key := s.Entry, p.key(part, s)
		if part.Plain || e.Tier != segment.Remote || e.Local != segment.Present || p.hasLate(key) {
			continue
		}
		p.touched[key] = true
		what := "return redis.call('DEL', KEYS[2])"
		if trim {
			what = "return redis.call('XTRIM', KEYS[2], 'MAXLEN', '=', math.floor(redis.call('XLEN', KEYS[2]) / 2))"
		}
		p.Do("EVAL", "if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then "+what+" end return 0",
			"2", p.Layout.ManifestKey(part), key, s.Number.String(), s.Raw)
		return
	}
}

func (p *play) hasLate(key string) bool {
	return slices.ContainsFunc(p.Acks, func(a checker.Ack) bool { return a.Key == key && p.late[name(a.Key, a.ID)] })
}
