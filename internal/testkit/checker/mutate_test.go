package checker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A sound world in which one thing that matters is broken, whichever, is not
// sound any more.
func TestAnyBreachIsFound(t *testing.T) {
	tried := map[string]int{}
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := randomWorld(random)
		if found := w.check(); len(found) > 0 {
			t.Fatalf("seed %d: nothing is broken, and found %v", seed, found)
		}
		b := breaker{w.clone(), random}
		all := breaches()
		names := slices.Sorted(maps.Keys(all))
		name := names[random.IntN(len(names))]
		if !all[name](b) {
			continue // nothing of the kind is there
		}
		tried[name]++
		if found := b.check(); len(found) == 0 {
			t.Errorf("seed %d: %s, and nothing is found in %+v", seed, name, b.World)
		}
	}
	for name := range breaches() {
		if tried[name] < 10 {
			t.Errorf("%s: tried %d times only", name, tried[name])
		}
	}
}

// randomWorld is a sound one: some partitions with segments in the order of
// their lives, and a plain stream.
func randomWorld(random *rand.Rand) *world {
	w := newWorld()
	n := func() int { return 2 + random.IntN(4) }
	for i := range 1 + random.IntN(2) {
		p := w.topic(fmt.Sprintf("t:%d", i))
		for range random.IntN(3) {
			key, all := p.key(), w.copied(p, n(), "GONE")
			if random.IntN(3) == 0 {
				p.hide(fmt.Sprint(len(p.Manifest)-1), `,"aged":true`)
				w.may("expired", p, key, all)
			}
		}
		for range random.IntN(3) {
			w.copied(p, n(), []string{"PRESENT", "DROPPING"}[random.IntN(2)])
		}
		for range random.IntN(3) {
			w.local(p, n())
		}
		w.open(p, n())
	}
	if random.IntN(2) == 0 {
		w.ranges("events", "events", random.IntN(3), random.IntN(3), random.IntN(3), n())
	}
	return w
}

// breaker breaks one thing of a world.
type breaker struct {
	*world
	random *rand.Rand
}

// breaches are ways to break a world; false means that it has no such thing.
func breaches() map[string]func(breaker) bool {
	return map[string]func(breaker) bool{
		"a message is gone from an object":        func(b breaker) bool { return b.rewrite(false, b.without) },
		"a message is gone, and the entry agrees": func(b breaker) bool { return b.rewrite(true, b.without) },
		"two have changed places in an object":    func(b breaker) bool { return b.rewrite(false, b.swapped) },
		"one has other bytes in an object":        func(b breaker) bool { return b.rewrite(true, b.altered) },
		"an object has one twice":                 func(b breaker) bool { return b.rewrite(true, b.doubled) },
		"an object has one more": func(b breaker) bool {
			return b.rewrite(true, func(all []Message) []Message { return append(all, message(b.next)) })
		},
		"a message is gone from a stream":     func(b breaker) bool { return b.restream(b.without) },
		"two have changed places in a stream": func(b breaker) bool { return b.restream(b.swapped) },
		"one has other bytes in a stream":     func(b breaker) bool { return b.restream(b.altered) },
		"a stream has one more": func(b breaker) bool {
			return b.restream(func(all []Message) []Message { return append(all, message(b.next)) })
		},
		"an object is gone": func(b breaker) bool { return b.remote(func(s breach) { delete(b.Objects, s.path) }) },
		"an object was cut": func(b breaker) bool { return b.remote(func(s breach) { b.remake(s, func(o *Object) { o.Size-- }) }) },
		"an object was replaced": func(b breaker) bool {
			return b.remote(func(s breach) { b.remake(s, func(o *Object) { o.SHA256 = "ff" }) })
		},
		"an object can't be read": func(b breaker) bool {
			return b.remote(func(s breach) { b.remake(s, func(o *Object) { o.Bad = "cut" }) })
		},
		"the stream of a LOCAL segment is gone":    func(b breaker) bool { return b.pick(isLocal, func(s breach) { delete(b.Streams, s.key) }) },
		"the stream of a GONE segment is back":     func(b breaker) bool { return b.pick(isGone, b.back) },
		"an entry is gone":                         func(b breaker) bool { return b.pick(isRead, func(s breach) { delete(s.p.Manifest, s.field) }) },
		"an entry is as it was before the flip":    func(b breaker) bool { return b.remote(func(s breach) { s.set(sealed + `"count":2}`) }) },
		"an entry is as it was before the sealing": func(b breaker) bool { return b.remote(func(s breach) { s.set(openNow) }) },
		"an entry is REMOTE before its copy":       func(b breaker) bool { return b.pick(isLocal, b.tooEarly) },
		"an entry is not JSON":                     func(b breaker) bool { return b.pick(isRead, func(s breach) { s.set(s.raw[:len(s.raw)/2]) }) },
		"an entry was hidden too early": func(b breaker) bool {
			return b.pick(isRead, func(s breach) { s.set(strings.NewReplacer("SEALED", "DELETING", "OPEN", "DELETING").Replace(s.raw)) })
		},
		"an entry names the object of another": func(b breaker) bool {
			return b.remote(func(s breach) { s.set(strings.Replace(s.raw, s.path, "local:t:0/99.parquet", 1)) })
		},
		"a hidden entry is back, its object gone": func(b breaker) bool { return b.pick(isHidden, b.unhide) },
		"a message came late":                     func(b breaker) bool { return b.pick(isPresent, b.late) },
		"a message came after the drop":           func(b breaker) bool { return b.pick(isGone, b.late) },
		"a segment was copied twice":              func(b breaker) bool { return b.remote(b.again) },
		"a copy was left":                         func(b breaker) bool { return b.remote(func(s breach) { b.Objects[s.path+"x"] = b.Objects[s.path] }) },
		"a range has moved":                       func(b breaker) bool { return b.pick(isRange, b.moveRange) },
	}
}

// breach is the entry that something is done to.
type breach struct {
	p          *Partition
	field, raw string
	entry      entry
	key, path  string
}

func (s breach) set(raw string) { s.p.Manifest[s.field] = raw }

func isRead(e *entry) bool    { return !e.hidden() }
func isHidden(e *entry) bool  { return e.hidden() }
func isLocal(e *entry) bool   { return !e.hidden() && !e.remote() }
func isRemote(e *entry) bool  { return !e.hidden() && e.remote() }
func isGone(e *entry) bool    { return e.gone() && !e.shared() }
func isPresent(e *entry) bool { return isRemote(e) && !e.gone() && !e.shared() }
func isRange(e *entry) bool   { return !e.to.none() }

// pick does something to one random entry.
func (b breaker) pick(which func(*entry) bool, do func(breach)) bool {
	var all []breach
	for i := range b.Partitions {
		p := &b.Partitions[i]
		for _, field := range slices.Sorted(maps.Keys(p.Manifest)) {
			e, _ := parseEntry(p.Manifest[field])
			s := breach{p, field, p.Manifest[field], e, e.key, e.object.path}
			if s.key == "" {
				s.key = p.StreamKey + ":" + field
			}
			if which(&e) {
				all = append(all, s)
			}
		}
	}
	if len(all) > 0 {
		do(all[b.random.IntN(len(all))])
	}
	return len(all) > 0
}

func (b breaker) remote(do func(breach)) bool { return b.pick(isRemote, do) }

func (b breaker) remake(s breach, how func(*Object)) {
	o := b.Objects[s.path]
	how(&o)
	b.Objects[s.path] = o
}

// rewrite changes the messages of an object and, if told to, what the entry
// says of it.
func (b breaker) rewrite(entryToo bool, how func([]Message) []Message) bool {
	return b.remote(func(s breach) {
		was := b.Objects[s.path]
		now := object(s.path, how(slices.Clone(was.Messages)))
		now.SHA256 = "01"
		b.Objects[s.path] = now
		if entryToo {
			s.set(strings.Replace(s.raw, describe(s.path, was), describe(s.path, now), 1))
		}
	})
}

// restream changes the messages of a stream, or of a range, that a reader
// reads.
func (b breaker) restream(how func([]Message) []Message) bool {
	return b.pick(isLocal, func(s breach) {
		var before, mine, after []Message
		for _, m := range b.Streams[s.key] {
			switch at, _ := parseID(m.ID); {
			case at.before(s.entry.from):
				before = append(before, m)
			case s.entry.end().before(at):
				after = append(after, m)
			default:
				mine = append(mine, m)
			}
		}
		b.Streams[s.key] = slices.Concat(before, how(mine), after)
	})
}

func (b breaker) without(all []Message) []Message {
	i := b.random.IntN(len(all))
	return slices.Delete(all, i, i+1)
}

func (b breaker) swapped(all []Message) []Message {
	i := b.random.IntN(len(all) - 1)
	all[i], all[i+1] = all[i+1], all[i]
	return all
}

func (b breaker) altered(all []Message) []Message {
	all[b.random.IntN(len(all))].Sum += "'"
	return all
}

func (b breaker) doubled(all []Message) []Message {
	i := b.random.IntN(len(all))
	return slices.Insert(all, i, all[i])
}

// back puts the stream of a GONE segment back, or what is left of it.
func (b breaker) back(s breach) {
	all := b.Objects[s.path].Messages
	b.Streams[s.key] = slices.Clone(all[b.random.IntN(len(all)):])
}

// tooEarly makes an entry REMOTE of which nothing was put.
func (b breaker) tooEarly(s breach) {
	path := s.p.folder() + "/" + s.field + ".parquet"
	s.set(remote + `"local":"PRESENT",` + describe(path, object(path, b.Streams[s.key])) + "}")
}

// unhide brings back an entry whose object has been deleted.
func (b breaker) unhide(s breach) {
	delete(b.Objects, s.path)
	s.set(strings.Replace(s.raw, "DELETING", "SEALED", 1))
}

// late appends to the stream of a segment that has been copied.
func (b breaker) late(s breach) {
	b.Streams[s.key] = append(b.Streams[s.key], b.write(s.p, s.key, 1)...)
}

// again copies a segment into the one behind the last, too.
func (b breaker) again(s breach) {
	p := s.p
	last := fmt.Sprint(len(p.Manifest) - 1)
	delete(p.Manifest, last)
	all := b.Objects[s.path].Messages
	p.Manifest[last] = remote + `"local":"GONE",` + b.put(p.path(0), all) + "}"
}

// moveRange makes a range shorter by a message, at its end or its beginning.
func (b breaker) moveRange(s breach) {
	lo, hi := s.entry.firstID.String(), s.entry.lastID.String()
	if b.random.IntN(2) == 0 {
		s.set(strings.Replace(s.raw, `"to":"`+hi, `"to":"`+lo, 1))
	} else {
		s.set(strings.Replace(s.raw, `"from":"`+s.entry.from.String(), `"from":"`+hi, 1))
	}
}
