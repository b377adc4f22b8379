package repair

import (
	"errors"
	"strings"
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

func at(ms uint64) segment.ID { return segment.ID{Ms: ms} }

func next(id segment.ID) segment.ID { id, _ = id.Next(); return id }

func before(id segment.ID) segment.ID { id, _ = id.Prev(); return id }

// lostEntry is about segment 1, which has no entry any more, between 0 and 2. One
// object of it is whole, and its stream is gone.
func lostEntry() Facts {
	return Facts{
		Partition: segment.Partition{Topic: "orders"}, Segment: 1, Folder: "f", Key: "k", Now: 1_800_000_000_000,
		Findings: []scrub.Finding{{Kind: scrub.Orphan, Segment: 1, HasSegment: true}},
		Place: &Place{First: 0, Last: 2, Before: &Neighbor{Number: 0, Known: true, First: at(10), Last: at(12)},
			After: &Neighbor{Number: 2, Known: true, First: at(30), Last: at(32)}},
		Held: &Held{}, Others: []File{objectOf(0, 22, 25, 3)}, OthersRead: true,
	}
}

// lostRange is the same of a plain stream.
func lostRange() Facts {
	f := lostEntry()
	f.Partition = segment.Partition{Topic: "k", Plain: true}
	f.Place.Before.From, f.Place.Before.To = at(10), at(19)
	f.Place.After.From, f.Place.After.To = at(30), at(39)
	return f
}

func objectOf(copy int64, first, last uint64, count int64) File {
	return File{Path: segment.ObjectPath("f", 1, copy, ""), Copy: copy, Size: 9, SHA256: "a", CRC32C: 7, Contents: segment.Contents{FirstID: at(first), LastID: at(last), Count: count}}
}

func holding(first, last uint64, count int64) *Held {
	c := segment.Contents{FirstID: at(first), LastID: at(last), Count: count}
	return &Held{Contents: c, Copied: c, Info: segment.StreamInfo{Exists: true, Length: count, FirstID: c.FirstID, LastID: c.LastID, EntriesAdded: count}}
}

func planned(t *testing.T, f Facts) Action {
	t.Helper()
	a, need := Plan(f)
	if need != NeedNothing {
		t.Fatalf("need %d", need)
	}
	return a
}

func TestARangeThatIsTakenOver(t *testing.T) {
	between, upTo := next(at(19)), before(at(30))
	for name, c := range map[string]struct {
		change   func(f *Facts)
		tier     segment.Tier
		from, to segment.ID
	}{
		"between its neighbors":        {func(*Facts) {}, segment.Remote, between, upTo},
		"the first of all":             {func(f *Facts) { f.Place.Before = nil }, segment.Remote, at(22), upTo},
		"beside others that are lost":  {func(f *Facts) { f.Place.After.Number = 3 }, segment.Remote, at(22), at(25)},
		"beside others before it":      {func(f *Facts) { f.Segment = 2; f.Place.After.Number, f.Place.Last = 3, 3 }, segment.Remote, at(22), at(25)},
		"before an OPEN or empty one":  {func(f *Facts) { f.Place.After.First, f.Place.After.Last = segment.ID{}, segment.ID{} }, segment.Remote, between, upTo},
		"behind an empty one":          {func(f *Facts) { f.Place.Before.First, f.Place.Before.Last = segment.ID{}, segment.ID{} }, segment.Remote, between, upTo},
		"right behind, right in front": {func(f *Facts) { f.Place.Before.To, f.Place.After.From = at(21), at(26) }, segment.Remote, next(at(21)), before(at(26))},
		"with its stream":              {func(f *Facts) { f.Held = holding(22, 25, 3) }, segment.Local, between, upTo},
	} {
		t.Run(name, func(t *testing.T) {
			f := lostRange()
			c.change(&f)
			a := planned(t, f)
			e := a.entry
			if a.Deed != TakeOver || e.Tier != c.tier || e.From != c.from || e.To != c.to || e.Key != "k" || e.Count != 3 {
				t.Fatalf("%s, %s: %s", a.Deed, e.Encode(), a.Why)
			}
			if s := e.Source; c.tier == segment.Remote && (s == nil || *s != segment.Source{LastID: at(25), Added: -1, CRC32C: 7}) {
				t.Errorf("the entry is %s", e.Encode())
			}
			if e.Tier == segment.Local && e.Object != nil {
				t.Errorf("the entry is %s", e.Encode())
			}
		})
	}
}

func TestARangeThatIsNotTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *Facts)
		says   string
	}{
		"the one before it ends later":          {func(f *Facts) { f.Place.Before.To = segment.ID{Ms: 22, Seq: 5} }, "segment 0 comes to 22-5"},
		"the one before it ends there":          {func(f *Facts) { f.Place.Before.To = at(22) }, "segment 0 comes to 22-0"},
		"the messages before it go on":          {func(f *Facts) { f.Place.Before.Last = at(23) }, "segment 0 comes to 23-0"},
		"the one behind it begins sooner":       {func(f *Facts) { f.Place.After.From = at(24) }, "segment 2 begins with 24-0"},
		"the one behind it begins there":        {func(f *Facts) { f.Place.After.From = at(25) }, "segment 2 begins with 25-0"},
		"what is behind it begins sooner":       {func(f *Facts) { f.Place.After.First = at(24) }, "segment 2 begins with 24-0"},
		"its object is empty":                   {func(f *Facts) { f.Others = []File{objectOf(0, 0, 0, 0)} }, "do not say where they begin and end"},
		"there is nothing behind it":            {func(f *Facts) { f.Place.After = nil }, "do not say where they begin and end"},
		"the one behind it has no bounds":       {func(f *Facts) { f.Place.After.From = segment.ID{} }, "do not say where they begin and end"},
		"the one before it has no bounds":       {func(f *Facts) { f.Place.Before.To = segment.ID{} }, "do not say where they begin and end"},
		"nobody knows the one behind it":        {func(f *Facts) { f.Place.After.Known = false }, "nobody knows what segment 2"},
		"nobody knows the one before it":        {func(f *Facts) { f.Place.Before.Known = false }, "nobody knows what segment 0"},
		"its stream has more, as many are told": {func(f *Facts) { f.Held = holding(22, 26, 4) }, "compare the two"},
		"its stream has less":                   {func(f *Facts) { f.Held = holding(22, 24, 2) }, "compare the two"},
		"only its stream is there":              {func(f *Facts) { f.Others, f.Held = nil, holding(22, 25, 3) }, "found by its object only"},
	} {
		t.Run(name, func(t *testing.T) {
			f := lostRange()
			c.change(&f)
			if a := planned(t, f); a.Deed != Leave || !strings.Contains(a.Why, c.says) {
				t.Errorf("%s, want it left because of %q: %s", a.Deed, c.says, a.Why)
			}
		})
	}
}

func TestASegmentWithoutAnEntry(t *testing.T) {
	damaged := objectOf(3, 22, 25, 3)
	damaged.Damage = errors.New("cut")
	for name, c := range map[string]struct {
		change func(f *Facts)
		deed   Deed
		path   string
		says   string
	}{
		"the later copy comes first": {func(f *Facts) { f.Others = []File{objectOf(2, 22, 26, 4), objectOf(0, 22, 25, 3)} }, TakeOver, segment.ObjectPath("f", 1, 2, ""), ""},
		"the later copy comes last":  {func(f *Facts) { f.Others = []File{objectOf(0, 22, 25, 3), objectOf(2, 22, 26, 4)} }, TakeOver, segment.ObjectPath("f", 1, 2, ""), ""},
		"the latest is damaged":      {func(f *Facts) { f.Others = []File{damaged, objectOf(0, 22, 25, 3)} }, TakeOver, segment.ObjectPath("f", 1, 0, ""), ""},
		"only its stream is there":   {func(f *Facts) { f.Others, f.Held = nil, holding(22, 25, 3) }, TakeOver, "", ""},
		"a stream out of place":      {func(f *Facts) { f.Others, f.Held = nil, holding(22, 30, 3) }, Leave, "", "segment 2 begins with 30-0"},
		"a stream that had more": {func(f *Facts) {
			f.Others, f.Held = nil, holding(22, 25, 3)
			f.Held.Info.EntriesAdded++
		}, Leave, "", "the server does not say"},
		"a stream out of place that had more": {func(f *Facts) {
			f.Others, f.Held = nil, holding(22, 30, 3)
			f.Held.Info.EntriesAdded++
		}, Leave, "", "segment 2 begins with 30-0"},
		"an object with less than the stream": {func(f *Facts) { f.Held = holding(22, 26, 4) }, TakeOver, segment.ObjectPath("f", 1, 0, ""), ""},
		"a stream with less than the object":  {func(f *Facts) { f.Held = holding(22, 24, 2) }, Leave, "", "compare the two"},
	} {
		t.Run(name, func(t *testing.T) {
			f := lostEntry()
			c.change(&f)
			a := planned(t, f)
			if a.Deed != c.deed || a.Path != c.path || !strings.Contains(a.Why, c.says) {
				t.Fatalf("%s by %q: %s", a.Deed, a.Path, a.Why)
			}
			if e := a.entry; e.Source != nil || e.Shared() {
				t.Errorf("the entry is %s", e.Encode())
			}
		})
	}
}
