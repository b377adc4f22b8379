package offload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"maps"
	"slices"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// mustHold checks what must hold after any schedule of copies: every
// acknowledged entry is where a reader would look, exactly once.
func (w *world) mustHold(acked map[string][]segment.ID) {
	w.t.Helper()
	w.mustBeSound()
	named := map[string]bool{}
	for l := range w.entries() {
		e, key := l.entry, l.key
		if got := w.visible(e, key); !slices.Equal(got, acked[key]) {
			w.t.Errorf("%s %s: a reader finds %v, and %v were acknowledged", key, e.Tier, got, acked[key])
		}
		if e.Object != nil {
			named[e.Object.Path] = true
		}
	}
	for path := range w.objects {
		if !named[path] {
			w.calls = append(w.calls, "unnamed "+path)
		}
	}
}

// mustKeep checks what must hold after any schedule of a whole life: every
// acknowledged entry is in Redis, or where a reader finds it on the store, or
// older than the total retention. 0 = nothing is too old.
func (w *world) mustKeep(retention time.Duration) {
	w.t.Helper()
	w.mustBeSound()
	found := map[string]map[segment.ID]bool{}
	for key, s := range w.streams {
		found[key] = map[segment.ID]bool{}
		for _, e := range s.entries {
			found[key][e.ID] = true
		}
	}
	for l := range w.entries() {
		e, key := l.entry, l.key
		if e.State == segment.Deleting || e.Object == nil {
			continue
		}
		if found[key] == nil {
			found[key] = map[segment.ID]bool{}
		}
		for _, entry := range w.file(e.Object.Path).Entries {
			found[key][entry.ID] = true
		}
	}
	for key, ids := range w.log {
		for _, id := range ids {
			age := w.now.Sub(time.UnixMilli(int64(id.Ms)))
			if !found[key][id] && !w.forgiven[key+" "+id.String()] && (retention == 0 || age <= retention) {
				w.t.Errorf("%s %s is lost, %s after it was acknowledged", key, id, age)
			}
		}
	}
}

// mustBeSound checks that the checker finds nothing but what is judged
// elsewhere: what is lost depends on the retention.
func (w *world) mustBeSound() {
	w.t.Helper()
	for _, f := range checker.Check(w.snapshot(), w.acks(), checker.Rules{Hidden: true}) {
		switch f.Kind {
		case checker.Lost, checker.Stray:
		case checker.StreamGone:
			if slices.ContainsFunc(w.log[f.Key], func(id segment.ID) bool { return !w.forgiven[f.Key+" "+id.String()] }) {
				w.t.Errorf("%s", f)
			}
		default:
			w.t.Errorf("%s", f)
		}
	}
}

// mustBeRight checks that the object of a REMOTE segment is the one that its
// entry describes, and agrees with what is left in Redis.
func (w *world) mustBeRight(l located) {
	w.t.Helper()
	if l.entry.Object == nil {
		w.t.Errorf("segment %s is REMOTE and names no object", l)
		return
	}
	e, path := l.entry, l.entry.Object.Path
	o, there := w.objects[path]
	sum := sha256.Sum256(o.body)
	if !there || hex.EncodeToString(sum[:]) != e.Object.SHA256 {
		w.t.Errorf("segment %s is REMOTE, and object %s is not what was put (there: %t)", l, path, there)
		return
	}
	file := w.file(path)
	if c := file.contents(); c != (segment.Contents{FirstID: e.FirstID, LastID: e.LastID, Count: e.Count}) {
		w.t.Errorf("segment %s: the entry says %d from %s to %s, and object %s has %+v", l, e.Count, e.FirstID, e.LastID, path, c)
	}
	copied := map[segment.ID]fakeEntry{}
	for _, entry := range file.Entries {
		copied[entry.ID] = entry
	}
	for _, entry := range w.streams[l.key].all() {
		there, twice := copied[entry.ID]
		if twice && !slices.Equal(there.Fields, entry.Fields) {
			w.t.Errorf("%s %s has other bytes in object %s", l.key, entry.ID, path)
		}
		if twice && e.Local == segment.Gone {
			w.t.Errorf("%s %s is still in Redis, and its local copy is GONE", l.key, entry.ID)
		}
	}
}

// all are the entries of a stream, or none.
func (s *fakeStream) all() []fakeEntry {
	if s == nil {
		return nil
	}
	return s.entries
}

// located is a manifest entry with its place and its stream.
type located struct {
	partition segment.Partition
	number    segment.Number
	entry     segment.Entry
	key       string
}

func (l located) String() string { return l.partition.String() + "/" + l.number.String() }

// entries gives every legal entry of every manifest.
func (w *world) entries() iter.Seq[located] {
	return func(yield func(located) bool) {
		for p, manifest := range w.manifests {
			for _, field := range slices.Sorted(maps.Keys(manifest)) {
				n, err := segment.ParseNumber(field)
				if err != nil {
					continue
				}
				e, err := segment.ParseEntry([]byte(manifest[field]))
				if err == nil && !yield(located{p, n, e, w.keyOf(p, n, e)}) {
					return
				}
			}
		}
	}
}

func (w *world) keyOf(p segment.Partition, n segment.Number, e segment.Entry) string {
	if e.Key != "" {
		return e.Key
	}
	return segment.DefaultLayout().SegmentKey(p, n)
}

// visible is what a reader finds of a segment.
func (w *world) visible(e segment.Entry, key string) (ids []segment.ID) {
	entries := w.streams[key].all()
	if e.Tier == segment.Remote {
		entries = w.file(e.Object.Path).Entries
	}
	for _, entry := range entries {
		ids = append(ids, entry.ID)
	}
	return ids
}

// file is an object's content; an object that is none has no entries.
func (w *world) file(path string) fakeFile {
	body := w.objects[path].body
	f, known := w.files[string(body)]
	if !known {
		f, _ = readFake(bytes.NewReader(body))
		w.files[string(body)] = f
	}
	return f
}

// acked is the ledger of what the streams hold now.
func (w *world) acked() map[string][]segment.ID {
	acks := map[string][]segment.ID{}
	for key, s := range w.streams {
		for _, e := range s.entries {
			acks[key] = append(acks[key], e.ID)
		}
	}
	return acks
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
