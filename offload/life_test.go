package offload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// lifeWorld has topic orders with one partition and the settings that change
// makes. Nothing is there yet.
func lifeWorld(t *testing.T, change func(*segment.TopicSettings)) *world {
	w := newWorld(t)
	w.topic("orders", 1)
	w.set("orders", change)
	return w
}

// set changes the settings of a topic.
func (w *world) set(topic string, change func(*segment.TopicSettings)) {
	for i := range w.topics {
		if w.topics[i].Name == topic {
			change(&w.topics[i].Settings)
		}
	}
}

// plain declares a plain stream.
func (w *world) plain(key string, change func(*segment.TopicSettings)) segment.Partition {
	s := segment.DefaultStreamSettings()
	change(&s)
	w.topics = append(w.topics, segment.Topic{Name: key, Plain: true, Settings: s})
	return segment.Partition{Topic: key, Plain: true}
}

// rolls is a worker that seals segments, as in production.
func rolls(c *Config) { c.Roll = true }

// produce appends entries with ids of the present time, as XADD * does.
func (w *world) produce(key string, entries int) {
	for range entries {
		id := segment.ID{Ms: uint64(w.now.UnixMilli())}
		if s := w.streams[key]; s != nil && id.Compare(s.last) <= 0 {
			id, _ = s.last.Next()
		}
		w.xadd(key, id)
	}
}

// local puts a SEALED LOCAL segment into the world, with the last entry of a
// time, at which it was sealed too.
func (w *world) local(p segment.Partition, n segment.Number, entries int, at time.Time) segment.Entry {
	key := segment.DefaultLayout().SegmentKey(p, n)
	for i := range entries {
		w.xadd(key, segment.ID{Ms: uint64(at.UnixMilli()), Seq: uint64(i)})
	}
	info := w.look(key)
	e, err := segment.NewOpen("", at.UnixMilli()).Seal(segment.Contents{FirstID: info.FirstID, LastID: info.LastID, Count: info.Length}, at.UnixMilli())
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(p, n.String(), string(e.Encode()))
	return e
}

// remote puts a REMOTE segment with its stream and its object into the world,
// as if it had been copied at once.
func (w *world) remote(p segment.Partition, n segment.Number, entries int, at time.Time) segment.Entry {
	key := segment.DefaultLayout().SegmentKey(p, n)
	e := w.local(p, n, entries, at)
	held := segment.Contents{FirstID: e.FirstID, LastID: e.LastID, Count: e.Count}
	e, err := e.Flip(held, w.look(key), w.object(p, n, w.streams[key].all()), at.UnixMilli())
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(p, n.String(), string(e.Encode()))
	return e
}

// gone is remote without the stream.
func (w *world) gone(p segment.Partition, n segment.Number, entries int, at time.Time) {
	e, err := w.remote(p, n, entries, at).Dropped()
	if err != nil {
		w.t.Fatal(err)
	}
	delete(w.streams, segment.DefaultLayout().SegmentKey(p, n))
	w.put(p, n.String(), string(e.Encode()))
}

// open puts an OPEN segment into the world, opened at present.
func (w *world) open(p segment.Partition, n segment.Number, entries int) {
	w.produce(segment.DefaultLayout().SegmentKey(p, n), entries)
	w.put(p, n.String(), string(segment.NewOpen("", w.now.UnixMilli()).Encode()))
}

// change rewrites an entry.
func (w *world) change(p segment.Partition, n segment.Number, change func(*segment.Entry)) {
	e := w.entry(p, n)
	change(&e)
	w.put(p, n.String(), string(e.Encode()))
}

// later is a pass some time after the last one.
func (w *world) later(worker *Worker, after time.Duration) Report {
	w.t.Helper()
	w.now = w.now.Add(after)
	return runOnce(w.t, worker)
}

// life writes a manifest in one line: "0:GONE 1:REMOTE 2+1:LOCAL 3:OPEN".
func (w *world) life(p segment.Partition) string {
	var line []string
	numbers := slices.Collect(maps.Keys(w.manifests[p]))
	slices.SortFunc(numbers, func(a, b string) int { return len(a)*1000 - len(b)*1000 + strings.Compare(a, b) })
	for _, n := range numbers {
		e, err := segment.ParseEntry([]byte(w.manifests[p][n]))
		word := string(e.Local)
		switch {
		case err != nil:
			word = "illegal"
		case e.State != segment.Sealed:
			word = string(e.State)
		case e.Tier == segment.Local:
			word = "LOCAL"
		case e.Local == segment.Present:
			word = "REMOTE"
		}
		if e.Copy > 0 {
			n += fmt.Sprintf("+%d", e.Copy)
		}
		line = append(line, n+":"+word)
	}
	return strings.Join(line, " ")
}

// mustBe compares a manifest with what life writes.
func (w *world) mustBe(p segment.Partition, want string) {
	w.t.Helper()
	if got := w.life(p); got != want {
		w.t.Errorf("manifest of %s: %s, want %s", p, got, want)
	}
}

// did writes what a pass did in one line, in the order of the names.
func did(r Report) string {
	var line []string
	for _, o := range r.Outcomes {
		line = append(line, fmt.Sprintf("%s/%s %s", o.Partition, o.Segment, o.Result))
	}
	slices.Sort(line)
	return strings.Join(line, ", ")
}

// complaints writes a pass's problems in one line.
func complaints(r Report) string {
	var line []string
	for _, p := range r.Problems {
		line = append(line, fmt.Sprintf("%s: %s", p.Where(), p.Reason))
	}
	slices.Sort(line)
	return strings.Join(line, ", ")
}

// mustDo compares what a pass did and complained about.
func mustDo(t tb, r Report, done, problems string) {
	t.Helper()
	if got := did(r); got != done {
		t.Errorf("done: %q, want %q", got, done)
	}
	if got := complaints(r); got != problems {
		t.Errorf("problems: %q, want %q", got, problems)
		for _, p := range r.Problems {
			t.Log(p.Error())
		}
	}
}

// at does something at one call, once.
func at(call string, do func()) func(string) error {
	done := false
	return func(c string) error {
		if c == call && !done {
			done = true
			do()
		}
		return nil
	}
}

var errKilled = errors.New("killed")

// atStep does something at the n-th step of what follows, counted from 0, and
// returns its error there and, if it is errKilled, from then on.
func (w *world) atStep(n int, do func() error) {
	step := -1
	dead := false
	w.hook = func(string) error {
		if step++; dead {
			return errKilled
		}
		if step != n {
			return nil
		}
		err := do()
		dead = errors.Is(err, errKilled)
		return err
	}
}

// steps is how many steps a pass takes.
func (w *world) steps(run func()) int {
	n := 0
	w.hook = func(string) error { n++; return nil }
	run()
	w.quiet()
	return n
}

// quiet takes the hook away.
func (w *world) quiet() { w.hook = func(string) error { return nil } }
