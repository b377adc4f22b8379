package repair

import (
	"strings"
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// lostStream is about a SEALED LOCAL segment whose stream is gone.
func lostStream(change func(e *segment.Entry)) Facts {
	f := lostEntry()
	f.Findings, f.Place = []scrub.Finding{{Kind: scrub.SourceMissing, Segment: 1, HasSegment: true}}, nil
	f.Entry = segment.Entry{State: segment.Sealed, Tier: segment.Local, Rev: 1, FirstID: at(22), LastID: at(25), Count: 3}
	change(&f.Entry)
	f.Raw = string(f.Entry.Encode())
	return f
}

func ofRange(e *segment.Entry) { e.Key, e.From, e.To = "k", at(20), at(29) }

func ofTopic(*segment.Entry) {}

func TestWhichObjectALostStreamIsFlippedTo(t *testing.T) {
	object := func(copy int64) string { return segment.ObjectPath("f", 1, copy, "") }
	for name, c := range map[string]struct {
		entry  func(e *segment.Entry)
		others []File
		path   string
	}{
		"the only one":                     {ofTopic, []File{objectOf(0, 22, 25, 3)}, object(0)},
		"the one with most, first":         {ofTopic, []File{objectOf(0, 22, 26, 4), objectOf(2, 22, 25, 3)}, object(0)},
		"the one with most, last":          {ofTopic, []File{objectOf(2, 22, 25, 3), objectOf(0, 22, 26, 4)}, object(0)},
		"of equals the latest, first":      {ofTopic, []File{objectOf(2, 22, 25, 3), objectOf(0, 22, 25, 3)}, object(2)},
		"of equals the latest, last":       {ofTopic, []File{objectOf(0, 22, 25, 3), objectOf(2, 22, 25, 3)}, object(2)},
		"that of a range":                  {ofRange, []File{objectOf(0, 22, 25, 3)}, object(0)},
		"that of a range, to its bounds":   {func(e *segment.Entry) { ofRange(e); e.From, e.To = at(22), at(25) }, []File{objectOf(0, 22, 25, 3)}, object(0)},
		"that of a range that others fill": {ofRange, []File{lacking(objectOf(0, 22, 25, 3), 9)}, object(0)}, // the others are of its neighbors
		"the same, too many to compare":    {ofRange, []File{lacking(objectOf(0, 22, 25, 3), -1)}, object(0)},
	} {
		t.Run(name, func(t *testing.T) {
			f := lostStream(c.entry)
			f.Others = c.others
			a := planned(t, f)
			if a.Deed != Reflip || a.Path != c.path || a.entry.Object.Path != c.path || a.entry.Local != segment.Gone {
				t.Fatalf("%s by %q: %s", a.Deed, a.Path, a.Why)
			}
			want := segment.Source{LastID: at(25), Added: -1, CRC32C: 7}
			if s := a.entry.Source; f.Entry.Shared() && (s == nil || *s != want) || !f.Entry.Shared() && s != nil {
				t.Errorf("the entry is %s", a.entry.Encode())
			}
		})
	}
}

func lacking(x File, n int64) File { x.Lacks = n; return x }

func TestALostStreamThatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		entry  func(e *segment.Entry)
		change func(f *Facts)
		says   string
	}{
		"nobody knows what it held":        {func(e *segment.Entry) { e.FirstID, e.LastID, e.Count = segment.ID{}, segment.ID{}, segment.NoCount }, func(*Facts) {}, "does not say what the segment held"},
		"another thing is at its key":      {ofTopic, func(f *Facts) { f.Held.Wrong = segment.ErrWrongType }, "rename that key first"},
		"another thing is at a range's":    {ofRange, func(f *Facts) { f.Held.Wrong = segment.ErrWrongType }, "rename that key first"},
		"the stream has others":            {ofTopic, func(f *Facts) { f.Others[0].Lacks = 2 }, "which no reader would find"},
		"the stream has too many":          {ofTopic, func(f *Facts) { f.Others[0].Lacks = -1 }, "too much to compare"},
		"the object has less":              {ofTopic, func(f *Facts) { f.Others = []File{objectOf(0, 22, 24, 2)} }, "no object has"},
		"the object begins elsewhere":      {ofTopic, func(f *Facts) { f.Others = []File{objectOf(0, 21, 25, 4)} }, "no object has"},
		"the object is not whole":          {ofTopic, func(f *Facts) { f.Others[0].Damage = errOtherRows }, "no object has"},
		"the object is not there":          {ofTopic, func(f *Facts) { f.Others[0].Missing = true }, "no object has"},
		"a range's object has more":        {ofRange, func(f *Facts) { f.Others = []File{objectOf(0, 22, 25, 4)} }, "no object has"},
		"a range's object begins too soon": {func(e *segment.Entry) { ofRange(e); e.From = segment.ID{Ms: 22, Seq: 1} }, func(*Facts) {}, "no object has"},
		"a range's object ends too late":   {func(e *segment.Entry) { ofRange(e); e.To = at(24) }, func(*Facts) {}, "no object has"},
	} {
		t.Run(name, func(t *testing.T) {
			f := lostStream(c.entry)
			c.change(&f)
			if a := planned(t, f); a.Deed != Leave || !strings.Contains(a.Why, c.says) {
				t.Errorf("%s, want it left because of %q: %s", a.Deed, c.says, a.Why)
			}
		})
	}
}
