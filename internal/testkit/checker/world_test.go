package checker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// world is one that a test builds, with the ledger that belongs to it.
type world struct {
	World
	acks []Ack
	gone map[Ack]string // why a message may be gone
	next int            // the number of the next message
}

const (
	started = int64(1_700_000_000_000)
	sealed  = `{"v":1,"rev":2,"state":"SEALED","tier":"LOCAL",`
	remote  = `{"v":1,"rev":3,"state":"SEALED","tier":"REMOTE",`
	openNow = `{"v":1,"rev":1,"state":"OPEN","tier":"LOCAL","openedAt":1700000000000}`
)

func newWorld() *world {
	return &world{World: World{Now: started, Streams: map[string][]Message{}, Objects: map[string]Object{}}, gone: map[Ack]string{}, next: 1}
}

// clone is a world that can be broken without harm to this one.
func (w *world) clone() *world {
	c := *w
	c.Partitions = slices.Clone(w.Partitions)
	for i := range c.Partitions {
		c.Partitions[i].Manifest = maps.Clone(c.Partitions[i].Manifest)
	}
	c.Streams, c.Objects = maps.Clone(w.Streams), maps.Clone(w.Objects)
	for key, messages := range c.Streams {
		c.Streams[key] = slices.Clone(messages)
	}
	for path, o := range c.Objects {
		o.Messages = slices.Clone(o.Messages)
		c.Objects[path] = o
	}
	c.acks, c.gone = slices.Clone(w.acks), maps.Clone(w.gone)
	return &c
}

// rules are those of a world in which all has come to rest.
func (w *world) rules() Rules {
	return Rules{Settled: true, May: func(a Ack) string { return w.gone[a] }, Owner: "_korvet_offload.json"}
}

func (w *world) check() []Finding { return Check(w.World, w.acks, w.rules()) }

// topic adds a partition, plain a plain stream.
func (w *world) topic(name string) *Partition { return w.partition(name, "local:"+name, false) }
func (w *world) plain(key string) *Partition  { return w.partition(key, key, true) }

func (w *world) partition(name, key string, plain bool) *Partition {
	w.Partitions = slices.Grow(w.Partitions, 10) // callers hold on to what they get
	w.Partitions = append(w.Partitions, Partition{Name: name, StreamKey: key, Plain: plain, Manifest: map[string]string{}})
	return &w.Partitions[len(w.Partitions)-1]
}

// message is message number n. Some share a millisecond, and there are
// sequences of one digit and of two.
func message(n int) Message {
	return Message{ID: fmt.Sprintf("%d-%d", 1000+n/3, 8+n%3), Sum: "sum of " + strconv.Itoa(n)}
}

// write makes so many new messages, which are acknowledged to the writers of a
// stream; whether they are in it is another matter.
func (w *world) write(p *Partition, key string, count int) (all []Message) {
	for range count {
		m := message(w.next)
		w.next++
		all = append(all, m)
		w.acks = append(w.acks, ack(p, key, m))
	}
	return all
}

func ack(p *Partition, key string, m Message) Ack { return Ack{p.Name, key, m.ID, m.Sum} }

// put lays an object down and returns what an entry says of it.
func (w *world) put(path string, messages []Message) string {
	w.Objects[path] = object(path, messages)
	return describe(path, w.Objects[path])
}

// object is one that has these messages. Its bytes depend on its path: some
// have the same checksum as others have not.
func object(path string, messages []Message) Object {
	return Object{Size: int64(100 + 10*len(messages)), SHA256: fmt.Sprintf("%064x", len(path)+1), Messages: slices.Clone(messages), Age: time.Hour}
}

// describe is the part of an entry that is about its object.
func describe(path string, o Object) string {
	return fmt.Sprintf(`%s,"object":{"path":%q,"bytes":%d,"etag":"e","sha256":%q}`, contents(o.Messages), path, o.Size, o.SHA256)
}

// contents is the part of an entry that says what the segment holds.
func contents(messages []Message) string {
	n := len(messages)
	if n == 0 {
		return `"count":0`
	}
	return fmt.Sprintf(`"firstId":%q,"lastId":%q,"count":%d`, messages[0].ID, messages[n-1].ID, n)
}

// add puts an entry behind the last one of a manifest.
func (p *Partition) add(entry string) {
	for n := 0; ; n++ {
		if _, taken := p.Manifest[strconv.Itoa(n)]; !taken {
			p.Manifest[strconv.Itoa(n)] = entry
			return
		}
	}
}

// key is the stream of the segment that comes next.
func (p *Partition) key() string { return p.StreamKey + ":" + strconv.Itoa(len(p.Manifest)) }

// path is that of a copy of the segment that comes next.
func (p *Partition) path(copy int) string {
	name := p.StreamKey + "/" + strconv.Itoa(len(p.Manifest))
	if copy > 0 {
		name += "-" + strconv.Itoa(copy)
	}
	return name + ".parquet"
}

// local adds a SEALED LOCAL segment with so many messages, and copied a REMOTE
// one whose local copy is in a state of its own.
func (w *world) local(p *Partition, count int) []Message {
	key := p.key()
	all := w.write(p, key, count)
	w.Streams[key] = slices.Clone(all)
	p.add(sealed + contents(all) + "}")
	return all
}

func (w *world) copied(p *Partition, count int, local string) []Message {
	key := p.key()
	all := w.write(p, key, count)
	if local != "GONE" {
		w.Streams[key] = slices.Clone(all)
	}
	p.add(remote + `"local":"` + local + `",` + w.put(p.path(0), all) + "}")
	return all
}

// open adds an OPEN segment; one without messages has no stream.
func (w *world) open(p *Partition, count int) []Message {
	key := p.key()
	all := w.write(p, key, count)
	if count > 0 {
		w.Streams[key] = slices.Clone(all)
	}
	p.add(openNow)
	return all
}

// hide makes a segment DELETING.
func (p *Partition) hide(n, why string) {
	p.Manifest[n] = strings.Replace(p.Manifest[n], `"state":"SEALED"`, `"state":"DELETING","deletingAt":1700000000000`+why, 1)
}

// may says that messages may be gone.
func (w *world) may(why string, p *Partition, key string, messages []Message) {
	for _, m := range messages {
		w.gone[ack(p, key, m)] = why
	}
}

// ranges adds a plain stream whose first ranges are copied and trimmed, then
// copied, then sealed, then open, with so many messages each.
func (w *world) ranges(key, folder string, trimmed, copied, sealedRanges, count int) *Partition {
	p := w.plain(key)
	from := "0-1"
	for n := range trimmed + copied + sealedRanges {
		all := w.write(p, key, count)
		last := all[count-1].ID
		bounds := fmt.Sprintf(`"key":%q,"from":%q,"to":%q,`, key, from, last)
		at, _ := parseID(last)
		from = id{at.ms, at.seq + 1}.String()
		if n >= trimmed {
			w.Streams[key] = append(w.Streams[key], all...)
		}
		if n >= trimmed+copied {
			p.add(sealed + bounds + contents(all) + "}")
			continue
		}
		local := `"local":"PRESENT",`
		if n < trimmed {
			local = `"local":"GONE",`
		}
		p.add(remote + local + bounds + w.put(fmt.Sprintf("%s/%d.parquet", folder, n), all) + "}")
	}
	w.Streams[key] = append(w.Streams[key], w.write(p, key, count)...)
	p.add(strings.Replace(openNow, `"state"`, fmt.Sprintf(`"key":%q,"from":%q,"state"`, key, from), 1))
	return p
}
