package test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// view is all that there is of one segment.
type view struct {
	where
	entry  segment.Entry
	key    string
	stream map[segment.ID]broker.Sum
	object map[segment.ID]broker.Sum
}

// verdict counts where the acknowledged messages are.
type verdict struct {
	messages, inRedis, onStore, expired int
	both                                int            // of those on the store, still in Redis too
	deleted                             int            // by a third party, and not there
	late                                map[string]int // in the stream of a REMOTE segment, not in its object yet; by stream
	strays                              map[string]int // by stream, where no reader looks
	lost                                map[string]int // by what there is of their segment
}

// views reads everything that the manifests name.
func (l *life) views() map[where]*view {
	all := map[where]*view{}
	for _, p := range l.parts {
		entries, err := l.broker.Entries(context.Background(), p)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, s := range entries {
			v := &view{where: where{p, s.Number}, entry: s.Entry, key: l.broker.Key(p, s)}
			from, to := segment.ID{}, segment.MaxID()
			if s.Entry.Shared() {
				from = s.Entry.From
			}
			if !s.Entry.To.IsZero() {
				to = s.Entry.To
			}
			v.stream = l.stream(v.key, from, to)
			if o := s.Entry.Object; o != nil {
				v.object = l.object(o.Path)
			}
			all[v.where] = v
		}
	}
	return all
}

func (l *life) stream(key string, from, to segment.ID) map[segment.ID]broker.Sum {
	found, err := l.broker.Range(context.Background(), key, from, to)
	if err != nil {
		l.t.Fatal(err)
	}
	return found
}

// object reads a segment file; nil if there is none.
func (l *life) object(path string) map[segment.ID]broker.Sum {
	body, err := os.ReadFile(filepath.Join(l.root(), path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		l.t.Fatal(err)
	}
	found := map[segment.ID]broker.Sum{}
	file, err := parquetfile.Open(bytes.NewReader(body), int64(len(body)))
	if err == nil {
		err = file.Read(context.Background(), func(p *segment.Page) error {
			for i := range p.Len() {
				var fields []string
				lo, hi := p.Fields(i)
				for f := lo; f < hi; f++ {
					fields = append(fields, string(p.Name(f)), string(p.Value(f)))
				}
				found[p.ID(i)] = broker.SumOf(fields...)
			}
			return nil
		})
	}
	if err != nil {
		l.t.Errorf("object %s: %v", path, err)
	}
	return found
}

// verify finds every acknowledged message where a reader looks for it, or
// finds why it may be gone. The worker does not run meanwhile.
func (l *life) verify() verdict {
	l.rest()
	l.watch.look()
	views := l.views()
	v := verdict{late: map[string]int{}, strays: map[string]int{}, lost: map[string]int{}}
	for _, s := range l.books.Sources() {
		acks := l.books.Acks(s)
		left := l.stream(s.Key, segment.ID{}, segment.MaxID())
		for id, ack := range acks {
			v.messages++
			l.message(&v, views, s, id, ack, left)
		}
		for id, sum := range left {
			if ack, known := acks[id]; !known || ack.Sum != sum {
				l.t.Errorf("stream %s: nobody has written %s so", s.Key, id)
			}
		}
	}
	for where, n := range v.lost {
		l.t.Errorf("%d messages are lost of %s", n, where)
	}
	l.sound(views)
	return v
}

// message is about one message.
func (l *life) message(v *verdict, views map[where]*view, s broker.Source, id segment.ID, ack broker.Ack, left map[segment.ID]broker.Sum) {
	at, seg := l.whose(views, s, id)
	_, lies := left[id] // with the right sum: verify looks at all of them
	var copied broker.Sum
	onStore, inRedis := false, false
	if seg != nil {
		copied, onStore = seg.object[id]
		_, inRedis = seg.stream[id]
	}
	switch {
	case onStore && copied != ack.Sum:
		l.t.Errorf("message %s of %s is not on the store as it was written: entry %s", id, at, seg.entry.Encode())
	case onStore && seg.entry.State != segment.Deleting:
		v.onStore++
		if inRedis {
			v.both++
		}
	case inRedis && seg.entry.Tier == segment.Local && seg.entry.State != segment.Deleting:
		v.inRedis++
	case inRedis && seg.entry.Tier == segment.Remote && seg.entry.Local != segment.Gone:
		v.late[s.Key]++
	case l.watch.expired(at, id):
		v.expired++
	case lies: // where no reader looks: the stream was dropped before it came
		v.strays[s.Key]++
	case ack.Deleted:
		v.deleted++
	case seg == nil:
		v.lost[s.Key+": no entry, hidden as "+string(l.watch.hidden[at].Encode())]++
	default:
		v.lost[s.Key+": "+string(seg.entry.Encode())]++
	}
}

// whose is the segment that a message belongs to.
func (l *life) whose(views map[where]*view, s broker.Source, id segment.ID) (where, *view) {
	at := where{s.Partition, s.Number}
	if !s.Partition.Plain {
		return at, views[at]
	}
	for at, v := range views {
		if at.partition == s.Partition && v.entry.From.Compare(id) <= 0 && (v.entry.To.IsZero() || id.Compare(v.entry.To) <= 0) {
			return at, v
		}
	}
	at, _ = l.watch.hiddenRange(s.Partition, id)
	return at, nil
}

// sound compares the two live places of each segment, and looks at what is
// written down of it.
func (l *life) sound(views map[where]*view) {
	for _, v := range views {
		for id, sum := range v.object {
			if other, both := v.stream[id]; both && other != sum {
				l.t.Errorf("message %s of %s has other bytes in redis than on the store", id, v.where)
			}
		}
		e := v.entry
		if e.State != segment.Sealed || e.Tier != segment.Remote {
			continue
		}
		ids := slices.SortedFunc(maps.Keys(v.object), segment.ID.Compare)
		if int64(len(ids)) != e.Count || len(ids) > 0 && (ids[0] != e.FirstID || ids[len(ids)-1] != e.LastID) {
			l.t.Errorf("the object of %s has %d messages: %s", v.where, len(ids), e.Encode())
		}
	}
}

// noOrphans checks that the store holds just what the manifests name, and
// Redis no stream of a segment that is said to be gone.
func (l *life) noOrphans() {
	views := l.views()
	named := map[string]segment.State{}
	for _, v := range views {
		if v.entry.Object != nil {
			named[v.entry.Object.Path] = v.entry.State
		}
		if v.entry.Local == segment.Gone && len(v.stream) > 0 {
			l.t.Errorf("%s is GONE, and stream %s has %d entries of it", v.where, v.key, len(v.stream))
		}
	}
	for _, s := range l.books.Sources() {
		if _, there := views[where{s.Partition, s.Number}]; !there && !s.Partition.Plain && l.redis.Exec("EXISTS", s.Key) != "0" {
			l.t.Errorf("stream %s is there, and no entry names it", s.Key)
		}
	}
	lie := l.objects()
	for _, path := range lie {
		if _, ok := named[path]; !ok {
			l.t.Errorf("object %s is an orphan", path)
		}
	}
	for path, state := range named {
		if state != segment.Deleting && !slices.Contains(lie, path) {
			l.t.Errorf("object %s is missing", path)
		}
	}
}
