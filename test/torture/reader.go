package torture

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// looks is how often a reader begins anew because the manifest has changed
// under it.
const looks = 20

// read reads a partition as a consumer does that follows the manifest, while
// everything moves. What was acknowledged before it began, to a producer that
// was not late, it has to see once.
func (p *play) read(name string) {
	if name == everywhere {
		for _, one := range parts() {
			p.read(one)
		}
		return
	}
	part := partition(name)
	if part.Topic == guest && !p.removed.IsZero() {
		return
	}
	before := len(p.Acks)
	for range looks {
		manifest := p.Manifest(part)
		seen, hidden, err := p.readAll(part)
		if !maps.Equal(manifest, p.Manifest(part)) || part.Topic == guest && hidden {
			continue
		}
		if err != nil {
			p.fail("read %s: %v", name, err)
			return
		}
		p.compare(name, p.Acks[:before], seen)
		p.tally.Add(Looks, 1)
		return
	}
}

// readAll reads what a consumer finds of a partition: how often each message,
// by its sum. hidden says whether there was an entry that it had to pass over.
func (p *play) readAll(part segment.Partition) (seen map[string]int, hidden bool, err error) {
	seen = map[string]int{}
	all := p.stored(part)
	if len(all) == 0 && part.Plain { // what was just begun has no manifest yet
		all = []segment.Stored{{Entry: segment.Entry{State: segment.Open, Tier: segment.Local, Key: events}}}
	}
	for _, s := range all {
		var found []checker.Message
		switch {
		case s.Entry.State == segment.Deleting:
			hidden = true
			continue
		case s.Entry.Tier == segment.Remote:
			found, err = p.ReadObject(s.Entry.Object.Path)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("segment %s is REMOTE, and its object is not there: %s", s.Number, s.Raw)
			}
		default:
			from, to := s.Entry.From, s.Entry.To
			if to.IsZero() {
				to = segment.MaxID()
			}
			found, err = p.ReadStream(p.key(part, s), from.String(), to.String())
		}
		if err != nil {
			return seen, hidden, err
		}
		for _, m := range found {
			seen[m.ID+" "+m.Sum]++
		}
	}
	return seen, hidden, nil
}

func (p *play) compare(part string, acks []checker.Ack, seen map[string]int) {
	may := p.may(time.Now().UnixMilli())
	for _, a := range acks {
		if a.Partition != partition(part).String() {
			continue
		}
		n := seen[a.ID+" "+a.Sum]
		if n > 1 {
			p.fail("a reader of %s finds message %s of %s %d times", part, a.ID, a.Key, n)
		}
		if n == 0 && !p.late[name(a.Key, a.ID)] && may(a) == "" {
			p.fail("a reader of %s does not find message %s of %s", part, a.ID, a.Key)
		}
	}
}
