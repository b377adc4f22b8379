package repair

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// answers are those of a fake.
type answers struct {
	Streams
	info segment.StreamInfo
}

func (a answers) StreamInfo(context.Context, string) (segment.StreamInfo, error) { return a.info, nil }

// A stream of its own has to be the very same. One that is shared may grow, and
// nothing else.
func TestSameStream(t *testing.T) {
	id := func(ms uint64) segment.ID { return segment.ID{Ms: ms} }
	was := segment.StreamInfo{Exists: true, Length: 5, FirstID: id(10), LastID: id(50), EntriesAdded: 5}
	shared := segment.Entry{From: id(20), To: id(30)}
	for name, c := range map[string]struct {
		own, ranged, taken bool // whether it still is the same, of the kinds of entries
		now                func(*segment.StreamInfo)
	}{
		"unchanged":   {true, true, true, func(*segment.StreamInfo) {}},
		"grown":       {false, true, true, func(i *segment.StreamInfo) { i.LastID, i.Length, i.EntriesAdded = id(60), 6, 6 }},
		"trimmed":     {false, false, false, func(i *segment.StreamInfo) { i.FirstID, i.Length = id(40), 2 }},
		"one deleted": {false, false, false, func(i *segment.StreamInfo) { i.MaxDeletedID = id(25) }},
		"made anew":   {false, false, false, func(i *segment.StreamInfo) { i.LastID = id(20) }},
		"gone":        {false, false, false, func(i *segment.StreamInfo) { *i = segment.StreamInfo{} }},
	} {
		info := was
		c.now(&info)
		p := &part{Repairer: New(Ports{Streams: answers{info: info}}, segment.DefaultLayout(), Options{})}
		held := &Held{Info: was, Contents: segment.Contents{FirstID: id(20), LastID: id(30), Count: 2}}
		for kind, a := range map[string]struct {
			Action
			want bool
		}{
			"of its own":         {Action{held: held}, c.own},
			"a range":            {Action{held: held, before: shared}, c.ranged}, // that is removed from the manifest
			"a range taken over": {Action{held: held, entry: shared}, c.taken},
		} {
			if same, err := p.sameStream(t.Context(), a.Action); same != a.want || err != nil {
				t.Errorf("%s, %s: %t, %v", kind, name, same, err)
			}
		}
	}
	p := &part{Repairer: New(Ports{Streams: answers{info: was}}, segment.DefaultLayout(), Options{})}
	if same, _ := p.sameStream(t.Context(), Action{held: &Held{}, before: shared}); same {
		t.Error("there was no stream, and there is one")
	}
}

// A range without an entry is read between its neighbors, a segment of a topic whole.
func TestExtent(t *testing.T) {
	place := &Place{Before: &Neighbor{To: segment.ID{Ms: 10}}, After: &Neighbor{From: segment.ID{Ms: 20}}}
	of := func(plain bool, f Facts) segment.Entry {
		p := &part{partition: segment.Partition{Topic: "t", Plain: plain}}
		return p.extent(&f)
	}
	e := of(true, Facts{Place: place})
	if after, _ := (segment.ID{Ms: 10}).Next(); e.From != after || e.To.Compare(segment.ID{Ms: 20}) >= 0 || e.To.Ms != 19 {
		t.Errorf("between: %s to %s", e.From, e.To)
	}
	if e := of(true, Facts{Place: &Place{}}); e.From != e.To {
		t.Errorf("without neighbors: %s to %s", e.From, e.To)
	}
	if e := of(false, Facts{Place: place}); e.Shared() {
		t.Errorf("of a topic: %s to %s", e.From, e.To)
	}
	own := segment.Entry{From: segment.ID{Ms: 1}, To: segment.ID{Ms: 2}}
	if e := of(true, Facts{Raw: "{}", Entry: own}); e.From != own.From || e.To != own.To {
		t.Errorf("of its entry: %s to %s", e.From, e.To)
	}
}

func TestKeyOf(t *testing.T) {
	p := &part{Repairer: New(Ports{}, segment.DefaultLayout(), Options{}), partition: segment.Partition{Topic: "orders"}}
	plain := &part{Repairer: p.Repairer, partition: segment.Partition{Topic: "events", Plain: true}}
	if got := []string{p.keyOf(3, "own"), p.keyOf(3, ""), plain.keyOf(3, "")}; !slices.Equal(got, []string{"own", "korvet:storage:local:orders:0:3", "events"}) {
		t.Errorf("%q", got)
	}
}

// A digest counts only of a range, and where the entry tells of one.
func TestDigestFits(t *testing.T) {
	shared := segment.Entry{From: segment.ID{Ms: 1}, To: segment.ID{Ms: 2}}
	for name, c := range map[string]struct {
		entry segment.Entry
		want  bool
	}{
		"of its own": {segment.Entry{Source: &segment.Source{CRC32C: 7}}, true},
		"no source":  {shared, true},
		"none told":  {with(shared, func(e *segment.Entry) { e.Source = &segment.Source{} }), true},
		"the same":   {with(shared, func(e *segment.Entry) { e.Source = &segment.Source{CRC32C: 5} }), true},
		"another":    {with(shared, func(e *segment.Entry) { e.Source = &segment.Source{CRC32C: 7} }), false},
	} {
		if fits := (&Facts{Entry: c.entry}).digestFits(5); fits != c.want {
			t.Errorf("%s: %t", name, fits)
		}
	}
}

// What a worker would not copy: a key that holds no stream, and a range of which
// nothing is left.
func TestSourceFault(t *testing.T) {
	id := func(ms uint64) segment.ID { return segment.ID{Ms: ms} }
	ranged := segment.Entry{State: segment.Sealed, Tier: segment.Local, Key: "s", From: id(1), To: id(9), Count: 2, FirstID: id(1), LastID: id(9)}
	there := segment.StreamInfo{Exists: true, Length: 5, FirstID: id(1), LastID: id(50), EntriesAdded: 5}
	for name, c := range map[string]struct {
		entry segment.Entry
		held  Held
		want  error
	}{
		"no stream":          {ranged, Held{Wrong: segment.ErrWrongType}, segment.ErrWrongType},
		"a range":            {ranged, Held{Info: there, Contents: segment.Contents{FirstID: id(1), LastID: id(9), Count: 2}}, nil},
		"nothing of a range": {ranged, Held{Info: there}, segment.ErrSourceMissing},
		"a range of nothing": {with(ranged, func(e *segment.Entry) { e.Count, e.FirstID, e.LastID = 0, segment.ID{}, segment.ID{} }), Held{Info: there}, nil},
	} {
		f := Facts{Entry: c.entry, Key: "s", Held: &c.held}
		if err := f.sourceFault(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is only said is not acted on.
func TestDeedsThatAct(t *testing.T) {
	for _, d := range Deeds() {
		if d.Acts() != !slices.Contains([]Deed{Leave, Nothing}, d) {
			t.Errorf("%s acts: %t", d, d.Acts())
		}
	}
	remote := segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Object: &segment.Object{Path: "p"}}
	for want, a := range map[string]Action{
		"no entry":             {},
		"SEALED REMOTE GONE p": {before: remote, hadEntry: true},
		"SEALED LOCAL copy 2":  {before: segment.Entry{State: segment.Sealed, Tier: segment.Local, Copy: 2}, hadEntry: true},
		"OPEN LOCAL":           {before: segment.NewOpen("", 1), hadEntry: true},
	} {
		if got := a.Before(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f := Facts{Findings: []scrub.Finding{{Kind: scrub.Orphan, Detail: "an orphan"}, {Kind: scrub.Overlap, Detail: "an overlap"}}}
	if got := f.detail(scrub.Overlap); got != "an overlap" {
		t.Errorf("%q", got)
	}
}

// An entry that is DELETING goes only when nothing is left of its segment: no stream,
// nothing in the range, nothing else under the key, and no object.
func TestWhatIsLeftOfADeletion(t *testing.T) {
	id := func(ms uint64) segment.ID { return segment.ID{Ms: ms} }
	own := segment.Entry{State: segment.Deleting, Tier: segment.Local, Count: 1, FirstID: id(1), LastID: id(1)}
	ranged := with(own, func(e *segment.Entry) { e.Key, e.From, e.To = "s", id(1), id(9) })
	remote := with(own, func(e *segment.Entry) {
		e.Tier, e.Local, e.Object = segment.Remote, segment.Gone, &segment.Object{Path: "p"}
	})
	one := segment.Contents{FirstID: id(1), LastID: id(1), Count: 1}
	for name, c := range map[string]struct {
		entry segment.Entry
		held  Held
		file  *File
		want  Deed
	}{
		"nothing, LOCAL":        {own, Held{}, nil, EndDelete},
		"nothing, REMOTE":       {remote, Held{}, &File{Missing: true}, EndDelete},
		"its object":            {remote, Held{}, &File{}, Leave},
		"its stream":            {own, Held{Info: segment.StreamInfo{Exists: true, Length: 1}, Contents: one}, nil, Leave},
		"a stream not yet read": {own, Held{Info: segment.StreamInfo{Exists: true, Length: 1}}, nil, Leave},
		"another type":          {own, Held{Wrong: segment.ErrWrongType}, nil, Leave},
		"others' ranges":        {ranged, Held{Info: segment.StreamInfo{Exists: true, Length: 5}}, nil, EndDelete},
		"its range":             {ranged, Held{Info: segment.StreamInfo{Exists: true, Length: 5}, Contents: one}, nil, Leave},
	} {
		f := Facts{Entry: c.entry, Raw: string(c.entry.Encode()), Held: &c.held, Own: c.file, Findings: []scrub.Finding{{Kind: scrub.HalfDeleted}}}
		if a, need := Plan(f); a.Deed != c.want || need != NeedNothing {
			t.Errorf("%s: %s, need %d: %s", name, a.Deed, need, a.Why)
		}
	}
	f := Facts{Entry: segment.NewOpen("", 1), Raw: "{}", Findings: []scrub.Finding{{Kind: scrub.Orphan, Path: "p"}, {Kind: scrub.SourceMissing}}}
	if a, _ := Plan(f); a.Deed != Leave || !strings.Contains(a.Why, "an object of it is there") || a.Path != "p" {
		t.Errorf("%s %q: %s", a.Deed, a.Path, a.Why)
	}
	f.Findings = f.Findings[1:]
	if a, _ := Plan(f); a.Deed != Leave || strings.Contains(a.Why, "an object of it is there") {
		t.Errorf("%s: %s", a.Deed, a.Why)
	}
}
