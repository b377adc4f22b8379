package repair

import (
	"errors"
	"flag"
	"testing"

	"pgregory.net/rapid"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// drawFacts makes facts as they may come, in all odd combinations.
func drawFacts(t *rapid.T) Facts {
	f := Facts{Partition: segment.Partition{Topic: "orders"}, Segment: segment.Number(rapid.IntRange(0, 4).Draw(t, "segment")),
		Folder: "f", Key: "k", Now: 1_800_000_000_000, IncludeExpired: rapid.Bool().Draw(t, "include")}
	for _, k := range rapid.SliceOfN(rapid.SampledFrom(scrub.Kinds()), 1, 3).Draw(t, "kinds") {
		f.Findings = append(f.Findings, scrub.Finding{Kind: k, Partition: f.Partition, Segment: f.Segment, HasSegment: true})
	}
	switch rapid.IntRange(0, 5).Draw(t, "entry") {
	case 0:
	case 1:
		f.Raw, f.Err = "{}", segment.ErrIllegalEntry
	default:
		f.Entry = drawEntry(t, f)
		f.Raw = string(f.Entry.Encode())
	}
	return f
}

func drawEntry(t *rapid.T, f Facts) segment.Entry {
	c := drawContents(t, "told")
	e := segment.Entry{State: rapid.SampledFrom([]segment.State{segment.Open, segment.Sealed, segment.Sealed, segment.Sealed, segment.Deleting}).Draw(t, "state"),
		Tier: segment.Local, Rev: 1, Count: c.Count, FirstID: c.FirstID, LastID: c.LastID, Copy: rapid.Int64Range(0, 2).Draw(t, "copy")}
	if rapid.IntRange(0, 4).Draw(t, "told?") == 0 {
		e.FirstID, e.LastID, e.Count = segment.ID{}, segment.ID{}, segment.NoCount
	}
	if e.State != segment.Open && rapid.Bool().Draw(t, "remote") {
		e.Tier, e.Local = segment.Remote, rapid.SampledFrom([]segment.LocalCopy{segment.Present, segment.Dropping, segment.Gone}).Draw(t, "local")
		if rapid.IntRange(0, 5).Draw(t, "named") > 0 {
			e.Object = &segment.Object{Path: segment.ObjectPath("f", f.Segment, e.Copy, ""), Bytes: 9, SHA256: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "sha")}
		}
	}
	return e
}

func drawContents(t *rapid.T, what string) (c segment.Contents) {
	if c.Count = rapid.Int64Range(0, 3).Draw(t, what+" count"); c.Count > 0 {
		c.FirstID.Ms = rapid.Uint64Range(10, 30).Draw(t, what+" first")
		c.LastID.Ms = c.FirstID.Ms + uint64(c.Count) - 1 + rapid.Uint64Range(0, 1).Draw(t, what+" holes")
	}
	return c
}

// drawLike draws what the entry tells, as often as not.
func drawLike(t *rapid.T, f Facts, what string) segment.Contents {
	if f.Raw != "" && f.Entry.Count >= 0 && rapid.Bool().Draw(t, what+" as told") {
		return contentsOf(f.Entry)
	}
	return drawContents(t, what)
}

func drawFile(t *rapid.T, f Facts, copy int64, what string) File {
	x := File{Path: segment.ObjectPath("f", f.Segment, copy, ""), Copy: copy, Size: 9, SHA256: rapid.SampledFrom([]string{"a", "b"}).Draw(t, what+" sha"),
		Contents: drawLike(t, f, what), Lacks: rapid.Int64Range(-1, 1).Draw(t, what+" lacks")}
	switch rapid.IntRange(0, 3).Draw(t, what+" damage") {
	case 0:
		x.Damage, x.Contents = errors.New("damaged"), segment.Contents{}
	case 1:
		x.Missing, x.Damage, x.Contents = true, errMissing, segment.Contents{}
	}
	return x
}

func drawHeld(t *rapid.T, f Facts) *Held {
	h := &Held{Contents: drawLike(t, f, "stream")}
	h.Info = segment.StreamInfo{Exists: h.Contents.Count > 0 || rapid.Bool().Draw(t, "exists"), Length: h.Contents.Count, FirstID: h.Contents.FirstID,
		LastID: h.Contents.LastID, EntriesAdded: h.Contents.Count + rapid.Int64Range(0, 2).Draw(t, "added")}
	h.Copied = h.Contents
	if rapid.IntRange(0, 5).Draw(t, "type") == 0 {
		h = &Held{Wrong: segment.ErrWrongType}
	}
	return h
}

func drawPlace(t *rapid.T) *Place {
	p := &Place{First: segment.Number(rapid.IntRange(0, 2).Draw(t, "lowest")), Empty: rapid.IntRange(0, 5).Draw(t, "empty") == 0}
	p.Last = p.First + segment.Number(rapid.IntRange(0, 3).Draw(t, "entries"))
	draw := func(what string) *Neighbor {
		if rapid.IntRange(0, 3).Draw(t, what) == 0 {
			return nil
		}
		c := drawContents(t, what)
		return &Neighbor{Number: 9, Raw: "{}", Known: rapid.IntRange(0, 3).Draw(t, what+" known") > 0, First: c.FirstID, Last: c.LastID}
	}
	p.Before, p.After = draw("before"), draw("after")
	return p
}

// whatever the facts are, the plan comes to an end, asks for nothing twice, and
// rests each deed on what allows it.
func TestPlanRestsEachDeedOnWhatAllowsIt(t *testing.T) {
	was := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", "10000"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = flag.Set("rapid.checks", was) }()
	seen := map[Deed]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		asked := map[Need]bool{}
		a, need := Plan(f)
		for ; need != NeedNothing; a, need = Plan(f) {
			if asked[need] {
				t.Fatalf("need %d is asked for twice", need)
			}
			asked[need] = true
			switch need {
			case NeedPlace:
				f.Place = drawPlace(t)
			case NeedStream:
				f.Held = drawHeld(t, f)
			case NeedStat, NeedOwn:
				own := drawFile(t, f, f.Entry.Copy, "own")
				f.Own = &own
			case NeedOthers:
				for c := range rapid.Int64Range(0, 2).Draw(t, "others") {
					f.Others = append(f.Others, drawFile(t, f, c+3, "other"))
				}
				f.OthersRead = true
			}
		}
		seen[a.Deed]++
		checkDeed(t, f, a)
	})
	for _, d := range Deeds() {
		if seen[d] == 0 {
			t.Errorf("no facts led to %s", d)
		}
	}
}

func checkDeed(t *rapid.T, f Facts, a Action) {
	e := f.Entry
	told := contentsOf(e)
	sealed := f.Err == nil && e.State == segment.Sealed
	file := a.file != nil && a.file.whole()
	ok := a.Why != "" && a.Old == f.Raw
	switch a.Deed {
	case Recopy:
		ok = ok && sealed && e.Tier == segment.Remote && a.held == f.Held && f.Held.Copied == told && f.Held.Wrong == nil && (f.asTold(f.Own) != nil || f.has(scrub.Orphan))
	case Repoint:
		ok = ok && sealed && e.Tier == segment.Remote && file && holds(a.file.Contents, e) && a.entry.Object.SHA256 == a.file.SHA256
	case Reflip:
		ok = ok && sealed && e.Tier == segment.Local && file && holds(a.file.Contents, e) && a.file.Lacks == 0 && a.held == f.Held && f.sourceFault() != nil
	case TakeOver:
		ok = ok && f.Raw == "" && a.place == f.Place && a.held == f.Held && (file || f.Held.Contents.Count > 0) &&
			f.Segment <= f.Place.Last && (f.Segment >= f.Place.First || f.IncludeExpired) && f.outOfPlace(contentsOf(a.entry)) == ""
	case EndDrop:
		ok = ok && sealed && e.Local == segment.Dropping && f.Held.Info.Length == 0 && file && f.asTold(a.file) == nil && a.held == f.Held
	case EndDelete:
		ok = ok && f.Err == nil && e.State == segment.Deleting && f.Held.Info.Length == 0 && a.held == f.Held && a.New == "" &&
			(e.Object == nil || f.Own.Missing && a.absent == e.Object.Path)
	case Unstray:
		ok = ok && sealed && e.Local == segment.Gone && file && f.asTold(a.file) == nil && a.file.Lacks == 0 && a.held == f.Held
	case Leave, Nothing:
		ok = ok && a.New == "" && a.file == nil
	}
	if !ok {
		t.Fatalf("%s of %q: %s", a.Deed, f.Raw, a.Why)
	}
	if a.New != "" {
		if again, err := segment.ParseEntry([]byte(a.New)); err != nil || again.Rev != e.Rev+1 && f.Raw != "" {
			t.Fatalf("%s writes %s: %v", a.Deed, a.New, err)
		}
	}
}

// an object is what its entry tells only with all that it tells: rows, size,
// checksum, and of a range the digest.
func TestAnObjectIsWhatItsEntryTells(t *testing.T) {
	entry := segment.Entry{State: segment.Sealed, Tier: segment.Remote, Count: 2, FirstID: segment.ID{Ms: 1}, LastID: segment.ID{Ms: 2}, From: segment.ID{Ms: 1}, To: segment.ID{Ms: 9},
		Object: &segment.Object{Path: "f/0.parquet", Bytes: 9, SHA256: "a"}, Source: &segment.Source{CRC32C: 7}}
	file := File{Path: "f/0.parquet", Size: 9, SHA256: "a", CRC32C: 7, Contents: contentsOf(entry)}
	for name, do := range map[string]func(e *segment.Entry, f *File){
		"":              func(*segment.Entry, *File) {},
		"missing":       func(_ *segment.Entry, f *File) { f.Missing = true },
		"damaged":       func(_ *segment.Entry, f *File) { f.Damage = errOtherRows },
		"size":          func(_ *segment.Entry, f *File) { f.Size++ },
		"checksum":      func(_ *segment.Entry, f *File) { f.SHA256 = "b" },
		"digest":        func(_ *segment.Entry, f *File) { f.CRC32C++ },
		"count":         func(_ *segment.Entry, f *File) { f.Contents.Count++ },
		"first":         func(_ *segment.Entry, f *File) { f.Contents.FirstID.Seq++ },
		"last":          func(_ *segment.Entry, f *File) { f.Contents.LastID.Seq++ },
		"nothing named": func(e *segment.Entry, _ *File) { e.Object = nil },
		"nothing told":  func(e *segment.Entry, _ *File) { e.Count = segment.NoCount },
	} {
		e, x := entry, file
		do(&e, &x)
		if err := (&Facts{Entry: e}).asTold(&x); (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A stream that is there and has other messages than an object that is whole is
// for a person to settle, and not healthy.
func TestAStreamThatDiffersIsLeft(t *testing.T) {
	e := segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Present, Count: 2, FirstID: segment.ID{Ms: 1}, LastID: segment.ID{Ms: 2},
		Object: &segment.Object{Path: segment.ObjectPath("f", 0, 0, ""), Bytes: 9, SHA256: "a"}}
	c := contentsOf(e)
	f := Facts{Folder: "f", Entry: e, Raw: string(e.Encode()), Findings: []scrub.Finding{{Kind: scrub.StreamDiffers, Detail: "message 1-0"}},
		Held: &Held{Info: segment.StreamInfo{Exists: true, Length: 2}, Contents: c, Copied: c}, Own: &File{Path: e.Object.Path, Size: 9, SHA256: "a", Contents: c}}
	if a, need := Plan(f); need != NeedNothing || a.Deed != Leave {
		t.Errorf("%s, need %d: %s", a.Deed, need, a.Why)
	}
}
