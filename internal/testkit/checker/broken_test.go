package checker

import (
	"slices"
	"strings"
	"testing"
)

// broken are worlds in which one thing is wrong, and what has to be found: the
// kinds, and in which segment, stream or object.
type broken struct {
	build func(*world, *Partition)
	want  []Kind
	at    string // the finding of the first kind begins so, behind its kind
}

func brokenWorlds() map[string]broken {
	const key = "local:t:0:0"
	return map[string]broken{
		"a message is nowhere":           {func(w *world, p *Partition) { w.write(p, key, 1); w.open(p, 1) }, []Kind{Lost}, "t:0/0 stream local:t:0:0"},
		"an object that never had it":    {func(w *world, p *Partition) { w.write(p, key, 1); w.copied(p, 2, "GONE") }, []Kind{Lost}, "t:0/0 stream local:t:0:0"},
		"an entry went with its object":  {func(w *world, p *Partition) { w.copied(p, 2, "GONE"); delete(p.Manifest, "0"); clear(w.Objects) }, []Kind{Lost}, "t:0 stream"},
		"hidden too early":               {func(w *world, p *Partition) { w.copied(p, 2, "GONE"); p.hide("0", "") }, []Kind{Lost}, "t:0/0 stream local:t:0:0: acknowledged, and hidden"},
		"hidden too early, never copied": {func(w *world, p *Partition) { w.local(p, 2); p.hide("0", "") }, []Kind{Lost}, "t:0/0 stream local:t:0:0: acknowledged, and hidden"},
		"a range that lost its first":    {lostInRange, []Kind{Lost}, "t:0/0 stream local:t:0"},
		"no manifest at all":             {func(w *world, p *Partition) { w.write(p, key, 1) }, []Kind{Lost}, "t:0"},
		"an object has one twice":        {func(w *world, p *Partition) { all := w.write(p, key, 2); w.object(p, all[0], all[1], all[1]) }, []Kind{Twice}, "t:0/0 object local:t:0/0.parquet"},
		"a stream has one twice":         {func(w *world, p *Partition) { all := w.local(p, 2); w.Streams[key] = append(all, all[1]) }, []Kind{Twice}, "t:0/0 stream local:t:0:0"},
		"two objects have it":            {func(w *world, p *Partition) { all := w.copied(p, 2, "GONE"); w.object(p, all...) }, []Kind{Twice}, "t:0/1 object local:t:0/1.parquet"},
		"the next stream has it too": {func(w *world, p *Partition) {
			all := w.copied(p, 2, "GONE")
			w.open(p, 0)
			w.Streams["local:t:0:1"] = all[1:]
		}, []Kind{Twice}, "t:0/1 stream"},
		"twice, and never acknowledged":  {func(w *world, p *Partition) { w.acks = nil; w.object(p, message(1), message(1)) }, []Kind{Twice}, "t:0/0 object"},
		"other bytes in the object":      {func(w *world, p *Partition) { all := w.write(p, key, 2); all[0].Sum = "x"; w.object(p, all...) }, []Kind{Altered}, "t:0/0 object local:t:0/0.parquet"},
		"other bytes in the stream":      {func(w *world, p *Partition) { w.open(p, 2)[1].Sum = "x"; w.Streams[key][1].Sum = "x" }, []Kind{Altered}, "t:0/0 stream local:t:0:0"},
		"other bytes in what was copied": {func(w *world, p *Partition) { w.copied(p, 2, "PRESENT"); w.Streams[key][1].Sum = "x" }, []Kind{Altered}, "t:0/0 stream local:t:0:0"},
		"nobody's in the object":         {func(w *world, p *Partition) { w.object(p, append(w.write(p, key, 1), message(9))...) }, []Kind{Invented}, "t:0/0 object"},
		"nobody's in the stream":         {func(w *world, p *Partition) { w.open(p, 1); w.Streams[key] = append(w.Streams[key], message(9)) }, []Kind{Invented}, "t:0/0 stream"},
		"nobody's behind the object": {func(w *world, p *Partition) {
			w.copied(p, 1, "PRESENT")
			w.Streams[key] = append(w.Streams[key], message(9))
		}, []Kind{Invented}, "t:0/0 stream"},
		"nobody's in nobody's stream": {func(w *world, p *Partition) { w.open(p, 1); w.Streams["other"] = []Message{message(9)} }, []Kind{Invented}, "stream other"},
		"no id": {func(w *world, p *Partition) {
			w.open(p, 1)
			w.Streams[key] = append([]Message{{ID: "7", Sum: "s"}}, w.Streams[key]...)
		}, []Kind{Invented}, "t:0/0 stream"},
		"an object out of order":    {func(w *world, p *Partition) { all := w.write(p, key, 3); w.swapped(p, all) }, []Kind{Order}, "t:0/0 object local:t:0/0.parquet"},
		"a stream out of order":     {func(w *world, p *Partition) { all := w.local(p, 3); w.Streams[key] = []Message{all[0], all[2], all[1]} }, []Kind{Order}, "t:0/0 stream local:t:0:0"},
		"ids in the order of text":  {textOrder, []Kind{Order}, "t:0/0 object"},
		"its object is missing":     {func(w *world, p *Partition) { w.copied(p, 2, "PRESENT"); clear(w.Objects) }, []Kind{Missing}, "t:0/0 object local:t:0/0.parquet"},
		"its only copy is missing":  {func(w *world, p *Partition) { w.copied(p, 2, "GONE"); clear(w.Objects) }, []Kind{Missing, Lost}, "t:0/0 object local:t:0/0.parquet"},
		"an object of another size": {func(w *world, p *Partition) { w.copied(p, 2, "GONE"); w.change("0", func(o *Object) { o.Size++ }) }, []Kind{Wrong}, "t:0/0 object"},
		"an object with other bytes": {func(w *world, p *Partition) {
			w.copied(p, 2, "GONE")
			w.change("0", func(o *Object) { o.SHA256 = "00" })
		}, []Kind{Wrong}, "t:0/0 object"},
		"an object that can't be read": {func(w *world, p *Partition) {
			w.copied(p, 2, "PRESENT")
			w.change("0", func(o *Object) { o.Bad, o.Messages = "cut", nil })
		}, []Kind{Wrong}, "t:0/0 object local:t:0/0.parquet: cut"},
		"the only copy can't be read": {func(w *world, p *Partition) {
			w.copied(p, 2, "GONE")
			w.change("0", func(o *Object) { o.Bad, o.Messages = "cut", nil })
		}, []Kind{Wrong, Lost}, "t:0/0 object"},
		"an object with fewer": {func(w *world, p *Partition) {
			w.copied(p, 2, "PRESENT")
			w.change("0", func(o *Object) { o.Messages = o.Messages[:1] })
		}, []Kind{Wrong, Late}, "t:0/0 object"},
		"an entry with other bounds": {func(w *world, p *Partition) {
			w.copied(p, 2, "GONE")
			p.replace("0", `"firstId":"1000-9"`, `"firstId":"1000-8"`)
		}, []Kind{Wrong}, "t:0/0 object"},
		"a path of another segment":   {func(w *world, p *Partition) { w.moved(p, "local:t:0/7.parquet", "") }, []Kind{Wrong}, "t:0/0 object local:t:0/7.parquet"},
		"a path of another partition": {func(w *world, p *Partition) { w.moved(p, "local:t:1/0.parquet", "") }, []Kind{Wrong}, "t:0/0 object local:t:1/0.parquet"},
		"a path of another copy":      {func(w *world, p *Partition) { w.moved(p, "local:t:0/0-1.parquet", `"copy":2,`) }, []Kind{Wrong}, "t:0/0 object local:t:0/0-1.parquet"},
		"an object beyond its range":  {beyondRange, []Kind{Wrong}, "events/0 object events/0.parquet"},
		"two entries, one object":     {func(w *world, p *Partition) { w.copied(p, 2, "GONE"); w.copied(p, 0, "GONE"); shareObject(w, p) }, []Kind{Shared, Twice, Wrong, Orphan}, "t:0/1 object local:t:0/0.parquet"},
		"a hidden entry names it too": {func(w *world, p *Partition) { w.copied(p, 2, "GONE"); p.add(p.Manifest["0"]); p.hide("1", "") }, []Kind{Shared}, "t:0/1 object local:t:0/0.parquet"},
		"the stream of a sealed one":  {func(w *world, p *Partition) { w.local(p, 2); w.acks = []Ack{}; clear(w.Streams) }, []Kind{StreamGone}, "t:0/0 stream local:t:0:0"},
		"the stream of an open one":   {func(w *world, p *Partition) { w.open(p, 2); clear(w.Streams) }, []Kind{StreamGone, Lost}, "t:0/0 stream local:t:0:0"},
		"the stream of ranges":        {func(w *world, _ *Partition) { w.ranges("events", "events", 1, 1, 1, 2); clear(w.Streams) }, []Kind{StreamGone, Lost}, "events/2 stream events"},
		"GONE, and all is there":      {func(w *world, p *Partition) { w.Streams[key] = w.copied(p, 2, "GONE") }, []Kind{GoneButThere}, "t:0/0 stream local:t:0:0"},
		"GONE, and one is there":      {func(w *world, p *Partition) { w.Streams[key] = w.copied(p, 3, "GONE")[2:] }, []Kind{GoneButThere}, "t:0/0 stream local:t:0:0"},
		"GONE, hidden, and one is there": {func(w *world, p *Partition) {
			w.Streams[key] = w.copied(p, 3, "GONE")[1:]
			p.hide("0", "")
			w.excuseAll()
		}, []Kind{GoneButThere}, "t:0/0 stream"},
		"GONE, and the object too":     {func(w *world, p *Partition) { w.Streams[key] = w.copied(p, 2, "GONE"); clear(w.Objects) }, []Kind{GoneButThere, Missing}, "t:0/0 stream"},
		"a range not trimmed":          {notTrimmed, []Kind{GoneButThere}, "events/0 stream events"},
		"appended to what was dropped": {func(w *world, p *Partition) { w.copied(p, 2, "GONE"); w.Streams[key] = w.write(p, key, 2) }, []Kind{Stray}, "t:0/0 stream local:t:0:0"},
		"appended to what is being deleted": {func(w *world, p *Partition) {
			w.local(p, 2)
			p.hide("0", "")
			w.excuseAll()
			w.Streams[key] = append(w.Streams[key], w.write(p, key, 1)...)
		}, []Kind{Stray}, "t:0/0 stream local:t:0:0"},
		"appended to what is no segment": {func(w *world, p *Partition) { w.Streams["local:t:0:9"] = w.write(p, "local:t:0:9", 2) }, []Kind{Stray}, "t:0 stream local:t:0:9"},
		"before all ranges":              {beforeRanges, []Kind{Stray}, "events stream events"},
		"late": {func(w *world, p *Partition) {
			w.copied(p, 2, "PRESENT")
			w.Streams[key] = append(w.Streams[key], w.write(p, key, 2)...)
		}, []Kind{Late}, "t:0/0 stream local:t:0:0"},
		"late for a stream being dropped": {func(w *world, p *Partition) {
			w.copied(p, 2, "DROPPING")
			w.Streams[key] = append(w.Streams[key], w.write(p, key, 2)...)
		}, []Kind{Late}, "t:0/0 stream"},
		"late for a stream that was removed": {func(w *world, p *Partition) { w.copied(p, 2, "DROPPING"); w.Streams[key] = w.write(p, key, 2) }, []Kind{Stray}, "t:0/0 stream local:t:0:0"},
		"late for a range of many":           {lateInRange, []Kind{Late}, "events/1 stream events"},
		"an object without a middle one": {func(w *world, p *Partition) {
			w.copied(p, 3, "PRESENT")
			w.change("0", func(o *Object) { o.Messages = slices.Delete(o.Messages, 1, 2) })
		}, []Kind{Wrong, Late}, "t:0/0 object"},
		"nobody's in a hidden stream": {func(w *world, p *Partition) {
			w.local(p, 1)
			p.hide("0", "")
			w.excuseAll()
			w.Streams[key] = append(w.Streams[key], message(9))
		}, []Kind{Invented}, "t:0/0 stream"},
		"one is there, and one came": {func(w *world, p *Partition) {
			w.Streams[key] = append(w.copied(p, 2, "GONE")[1:], w.write(p, key, 1)...)
		}, []Kind{GoneButThere, Stray}, "t:0/0 stream"},
		"an id again, with other bytes": {idAgain, []Kind{Stray}, "t:0/0 stream local:t:0:0"},
		"came when its topic was gone": {func(w *world, p *Partition) {
			w.copied(p, 2, "PRESENT")
			p.hide("0", `,"withTopic":"SEALED"`)
			w.excuseAll()
			w.Streams[key] = append(w.Streams[key], w.write(p, key, 1)...)
		}, []Kind{Stray}, "t:0/0 stream"},
		"an object that nothing names": {func(w *world, _ *Partition) { w.put("local:t:0/4.parquet", nil) }, []Kind{Orphan}, "object local:t:0/4.parquet"},
		"a file that is none of ours":  {func(w *world, _ *Partition) { w.Objects["x"] = Object{Bad: "what is this", Age: 1} }, []Kind{Orphan}, "object x"},
	}
}

func TestBrokenWorldsAreFound(t *testing.T) {
	found := map[Kind]int{}
	for name, b := range brokenWorlds() {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			b.build(w, w.topic("t:0"))
			got, want := w.check(), slices.Sorted(slices.Values(b.want))
			if !slices.Equal(kindsOf(got), want) {
				t.Fatalf("found %v, want %v", got, want)
			}
			found[b.want[0]]++
			i := slices.IndexFunc(got, func(f Finding) bool { return f.Kind == b.want[0] })
			if line := got[i].String(); !strings.HasPrefix(line, string(b.want[0])+" "+b.at) {
				t.Errorf("found %s, want it at %s", line, b.at)
			}
		})
	}
	for _, k := range []Kind{Lost, Twice, Altered, Invented, Order, Missing, Wrong, Shared, StreamGone, GoneButThere, Stray, Late, Orphan} {
		if found[k] == 0 { // illegal entries have a table of their own
			t.Errorf("no world in which the one thing is %s", k)
		}
	}
}

// replace changes an entry.
func (p *Partition) replace(n, old, by string) {
	if !strings.Contains(p.Manifest[n], old) {
		panic(p.Manifest[n] + " has no " + old)
	}
	p.Manifest[n] = strings.Replace(p.Manifest[n], old, by, 1)
}

// object adds a REMOTE segment with an object that has just these.
func (w *world) object(p *Partition, messages ...Message) {
	p.add(remote + `"local":"GONE",` + w.put(p.path(0), messages) + "}")
}

// change changes the object of a segment of t:0.
func (w *world) change(n string, how func(*Object)) {
	path := "local:t:0/" + n + ".parquet"
	o := w.Objects[path]
	how(&o)
	w.Objects[path] = o
}

// excuseAll says that what there is by now may be gone.
func (w *world) excuseAll() {
	for _, a := range w.acks {
		w.gone[a] = "expired"
	}
}

// swapped adds a segment with two messages that have changed places in the
// object, so that the entry's bounds are right.
func (w *world) swapped(p *Partition, all []Message) {
	text := w.put(p.path(0), []Message{all[1], all[0], all[2]})
	text = strings.Replace(text, `"firstId":"`+all[1].ID, `"firstId":"`+all[0].ID, 1)
	p.add(remote + `"local":"GONE",` + text + "}")
}

// textOrder has 5-10 before 5-9, as texts are ordered.
func textOrder(w *world, p *Partition) {
	nine, ten := Message{"5-9", "a"}, Message{"5-10", "b"}
	w.acks = append(w.acks, ack(p, "local:t:0:0", nine), ack(p, "local:t:0:0", ten))
	text := strings.NewReplacer(`"firstId":"5-10"`, `"firstId":"5-9"`, `"lastId":"5-9"`, `"lastId":"5-10"`).Replace(w.put(p.path(0), []Message{ten, nine}))
	p.add(remote + `"local":"GONE",` + text + "}")
}

// moved is a REMOTE segment whose object lies at another path.
func (w *world) moved(p *Partition, path, copied string) {
	p.add(remote + copied + `"local":"GONE",` + w.put(path, w.write(p, "local:t:0:0", 2)) + "}")
}

func shareObject(_ *world, p *Partition) {
	_, mine, _ := strings.Cut(p.Manifest["0"], `"firstId"`)
	p.Manifest["1"] = remote + `"local":"GONE","firstId"` + mine
}

// lostInRange: a message that its range should have.
func lostInRange(w *world, _ *Partition) {
	p := &w.Partitions[0]
	all := w.write(p, "local:t:0", 3)
	w.Streams["local:t:0"] = all[1:]
	p.add(sealed + `"key":"local:t:0","from":"0-1","to":"` + all[2].ID + `",` + contents(all) + "}")
}

// beyondRange: the first range ends before its object does.
func beyondRange(w *world, _ *Partition) {
	p := w.ranges("events", "events", 1, 0, 0, 3)
	p.replace("0", `"to":"1001-8"`, `"to":"1000-10"`)
}

func notTrimmed(w *world, _ *Partition) {
	w.ranges("events", "events", 1, 0, 0, 3)
	w.Streams["events"] = append([]Message{message(3)}, w.Streams["events"]...)
}

func beforeRanges(w *world, _ *Partition) {
	p := w.plain("events")
	w.Streams["events"] = w.write(p, "events", 3)
	p.add(strings.Replace(openNow, `"state"`, `"key":"events","from":"1000-10","state"`, 1))
}

// lateInRange: a message of a range that was copied without it.
func lateInRange(w *world, _ *Partition) {
	p := w.ranges("events", "events", 1, 1, 0, 3)
	last := p.Manifest["1"]
	o := w.Objects["events/1.parquet"]
	cut := object("events/1.parquet", o.Messages[:2])
	w.Objects["events/1.parquet"] = cut
	p.Manifest["1"] = strings.Replace(last, describe("events/1.parquet", o), describe("events/1.parquet", cut), 1)
}

// idAgain: a stream was made anew, after the clock was set back, and has given
// an id a second time.
func idAgain(w *world, p *Partition) {
	again := w.copied(p, 2, "GONE")[1]
	again.Sum += " again"
	w.acks = append(w.acks, ack(p, "local:t:0:0", again))
	w.Streams["local:t:0:0"] = []Message{again}
}
