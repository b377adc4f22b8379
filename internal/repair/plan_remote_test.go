package repair

import (
	"strings"
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// copied is about a SEALED REMOTE segment whose object is what was put, and whose
// stream is gone.
func copied(kind scrub.Kind, change func(e *segment.Entry)) Facts {
	f := lostEntry()
	f.Findings, f.Place, f.Others = []scrub.Finding{{Kind: kind, Segment: 1, HasSegment: true, Detail: "what was found"}}, nil, nil
	own := objectOf(1, 22, 25, 3)
	object := own.object()
	f.Entry = segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Rev: 1, Copy: 1, FirstID: at(22), LastID: at(25), Count: 3, Object: &object}
	change(&f.Entry)
	f.Raw, f.Own = string(f.Entry.Encode()), &own
	return f
}

// after is a later copy, which begins as the entry's object does.
func after(copy int64, last uint64, count int64) File {
	x := objectOf(copy, 22, last, count)
	x.Begins = start{Contents: objectOf(1, 22, 25, 3).Contents, CRC32C: 7}
	return x
}

func present(e *segment.Entry) { e.Local = segment.Present }

func remoteRange(e *segment.Entry) {
	ofRange(e)
	e.Source = &segment.Source{LastID: at(25), Added: -1, CRC32C: 7}
}

type remoteCase struct {
	entry  func(e *segment.Entry)
	change func(f *Facts)
	deed   Deed
	path   string // of the object that it relies on
	says   string
}

func (c remoteCase) check(t *testing.T, kind scrub.Kind) {
	t.Helper()
	f := copied(kind, c.entry)
	c.change(&f)
	a := planned(t, f)
	if a.Deed != c.deed || !strings.Contains(a.Why, c.says) {
		t.Fatalf("%s, want %s because of %q: %s", a.Deed, c.deed, c.says, a.Why)
	}
	if c.path != "" && (a.file == nil || a.file.Path != c.path) {
		t.Errorf("it relies on %q, want %q", a.Path, c.path)
	}
	if a.Deed == Repoint && (a.entry.Object.Path != c.path || a.entry.Tier != segment.Remote) {
		t.Errorf("the entry is %s", a.entry.Encode())
	}
	if a.Deed == Recopy && (a.entry.Tier != segment.Local || a.entry.Copy <= f.Entry.Copy || a.held != f.Held) {
		t.Errorf("the entry is %s", a.entry.Encode())
	}
}

func object(copy int64) string { return segment.ObjectPath("f", 1, copy, "") }

// Beside an object that is what was put lies a copy that no entry names.
func TestACopyThatNoEntryNames(t *testing.T) {
	others := func(all ...File) func(*Facts) { return func(f *Facts) { f.Others = all } }
	with := func(h *Held, all ...File) func(*Facts) { return func(f *Facts) { f.Others, f.Held = all, h } }
	short, cut := after(3, 24, 2), after(3, 26, 4)
	short.Contents, cut.Damage = segment.Contents{FirstID: at(22), LastID: at(24), Count: 2}, errOtherRows
	foreign, changed := after(2, 26, 4), after(2, 26, 4)
	foreign.Begins.Contents.FirstID, changed.Begins.CRC32C = at(21), 8
	none := objectOf(1, 0, 0, 0)
	for name, c := range map[string]remoteCase{
		"it is older":                      {ofTopic, others(objectOf(0, 22, 25, 3)), Nothing, "", "is what the entry tells of"},
		"it is older, and the stream":      {present, with(holding(22, 25, 3), objectOf(0, 22, 25, 3)), Nothing, "", "is what the entry tells of"},
		"it is as old as the entry's own":  {ofTopic, others(after(1, 26, 4)), Nothing, "", "is what the entry tells of"},
		"it is newer than the object only": {func(e *segment.Entry) { e.Copy = 2 }, others(after(2, 26, 4)), Nothing, "", "is what the entry tells of"},
		"it is newer":                      {ofTopic, others(after(2, 26, 4)), Repoint, object(2), "is newer"},
		"the newest comes first":           {ofTopic, others(after(3, 27, 5), after(2, 26, 4)), Repoint, object(3), "is newer"},
		"the newest comes last":            {ofTopic, others(after(2, 26, 4), after(3, 27, 5)), Repoint, object(3), "is newer"},
		"the newest is cut":                {ofTopic, others(after(2, 26, 4), cut), Leave, "", "does not have all of it"},
		"it has less":                      {ofTopic, others(short), Leave, "", "does not have all of it"},
		"it begins with another message":   {ofTopic, others(foreign), Leave, "", "does not begin with its messages"},
		"its first messages are others":    {ofTopic, others(changed), Leave, "", "does not begin with its messages"},
		"the stream has it all":            {present, with(holding(22, 25, 3), after(2, 26, 4)), Recopy, "", "redis has lost a change"},
		"the stream has less":              {present, with(holding(22, 24, 2), after(2, 26, 4)), Leave, "", "compare the three"},
		"the stream is none":               {present, with(&Held{Wrong: segment.ErrWrongType}, after(2, 26, 4)), Leave, "", "compare the three"},
		"the range is trimmed": {remoteRange, with(&Held{Info: segment.StreamInfo{Exists: true, Length: 9, FirstID: at(30), LastID: at(40)}}, after(2, 25, 3)),
			Repoint, object(2), "is newer"},
		"the range's stream is none":     {remoteRange, with(&Held{Wrong: segment.ErrWrongType}, after(2, 25, 3)), Leave, "", "compare the three"},
		"the range is still there, less": {remoteRange, with(holding(22, 24, 2), after(2, 25, 3)), Leave, "", "compare the three"},
		"there was nothing in it": {func(e *segment.Entry) { e.FirstID, e.LastID, e.Count = segment.ID{}, segment.ID{}, 0 }, func(f *Facts) {
			x := objectOf(2, 22, 25, 3)
			x.Begins = start{CRC32C: none.CRC32C}
			f.Own, f.Others = &none, []File{x}
		}, Repoint, object(2), "is newer"},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, scrub.Orphan) })
	}
}

// The object is what was put; the rest decides.
func TestAnObjectThatIsSound(t *testing.T) {
	held := func(h *Held) func(*Facts) { return func(f *Facts) { f.Held = h } }
	lacks := func(h *Held, n int64) func(*Facts) { return func(f *Facts) { f.Held, f.Own.Lacks = h, n } }
	dropping := func(e *segment.Entry) { e.Local = segment.Dropping }
	for name, c := range map[string]remoteCase{
		"nothing is wrong":                          {ofTopic, held(&Held{}), Nothing, "", "is what the entry tells of"},
		"the copy is there":                         {present, held(holding(22, 25, 3)), Nothing, "", "is what the entry tells of"},
		"a drop is to end":                          {dropping, held(&Held{}), EndDrop, object(1), ""},
		"a drop of a range is to end":               {func(e *segment.Entry) { remoteRange(e); dropping(e) }, held(&Held{Info: segment.StreamInfo{Exists: true, Length: 9}}), EndDrop, object(1), ""},
		"a drop has its copy still":                 {dropping, held(holding(22, 25, 3)), Leave, "", "the worker finishes the drop"},
		"a drop of a range, and its stream is none": {func(e *segment.Entry) { remoteRange(e); dropping(e) }, held(&Held{Wrong: segment.ErrWrongType}), Leave, "", "the worker finishes the drop"},
		"a stray stream":                            {ofTopic, held(holding(22, 25, 3)), Unstray, object(1), "has each of its 3 entries"},
		"a stray stream with more":                  {ofTopic, lacks(holding(22, 25, 3), 1), Leave, "", "the object does not have"},
		"a stray stream, long":                      {ofTopic, lacks(holding(22, 25, 3), -1), Leave, "", "too many to compare"},
		"a stray thing":                             {ofTopic, held(&Held{Wrong: segment.ErrWrongType}), Leave, "", "it is no stream of this segment"},
		"a range that was not trimmed":              {remoteRange, held(holding(22, 25, 3)), Leave, "", "the worker finishes the drop"},
		"an object that is at another path":         {func(e *segment.Entry) { e.Object.Path = "f/2.parquet" }, func(f *Facts) { f.Own.Path = "f/2.parquet" }, Leave, "", "none of its own"},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, scrub.HalfDeleted) })
	}
	for name, c := range map[string]remoteCase{
		"the stream differs":               {present, held(holding(22, 25, 3)), Leave, "", "what was found"},
		"the stream differed, and is gone": {present, held(&Held{}), Nothing, "", "is what the entry tells of"},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, scrub.StreamDiffers) })
	}
}

// The object is not what was put.
func TestAnObjectThatIsDamaged(t *testing.T) {
	// lost is what the damage leaves: the others, and the stream.
	lost := func(h *Held, others ...File) func(*Facts) {
		return func(f *Facts) { f.Own.Missing, f.Others, f.Held = true, others, h }
	}
	alike := func(copy int64) File { x := objectOf(copy, 22, 25, 3); x.SHA256 = "b"; return x }
	cut, changed := objectOf(2, 22, 25, 3), objectOf(2, 22, 25, 3)
	cut.Damage, changed.CRC32C = errOtherRows, 8
	more, less := objectOf(4, 22, 26, 4), objectOf(4, 22, 24, 2)
	empty := &Held{Info: segment.StreamInfo{Exists: true}}
	for name, c := range map[string]remoteCase{
		"the stream is whole":                       {present, lost(holding(22, 25, 3)), Recopy, "", "the stream still has"},
		"the stream is there again":                 {ofTopic, lost(holding(22, 25, 3), objectOf(2, 22, 25, 3)), Recopy, "", "the stream still has"},
		"there is no other":                         {ofTopic, lost(&Held{}), Leave, "", "bring back the object"},
		"the other is cut":                          {ofTopic, lost(&Held{}, cut), Leave, "", "bring back the object"},
		"the other has less":                        {ofTopic, lost(&Held{}, less), Leave, "", "bring back the object"},
		"the same bytes, before others of its kind": {ofTopic, lost(&Held{}, alike(3), objectOf(2, 22, 25, 3), more), Repoint, object(2), "the same"},
		"the same bytes, behind them":               {ofTopic, lost(&Held{}, objectOf(2, 22, 25, 3), alike(3), more), Repoint, object(2), "the same"},
		"the same rows, before what has more":       {ofTopic, lost(&Held{}, alike(3), more), Repoint, object(3), "the same"},
		"the same rows, behind what has more":       {ofTopic, lost(&Held{}, more, alike(3)), Repoint, object(3), "the same"},
		"of equals the latest, first":               {ofTopic, lost(&Held{}, alike(3), alike(2)), Repoint, object(3), "the same"},
		"of equals the latest, last":                {ofTopic, lost(&Held{}, alike(2), alike(3)), Repoint, object(3), "the same"},
		"only one with more is left":                {ofTopic, lost(&Held{}, more), Repoint, object(4), ""},
		"one with more, and an empty stream":        {ofTopic, lost(empty, more), Leave, "", "bring back the object"},
		"one with more, and some of the stream":     {present, lost(holding(22, 24, 2), more), Leave, "", "bring back the object"},
		"one with more, of a range":                 {remoteRange, lost(&Held{}, more), Leave, "", "bring back the object"},
		"the same rows, of a range":                 {remoteRange, lost(&Held{}, alike(3)), Repoint, object(3), "the same"},
		"other rows with the ids of a range":        {remoteRange, lost(&Held{}, changed), Leave, "", "bring back the object"},
		"nobody knows what it held": {func(e *segment.Entry) { e.FirstID, e.LastID, e.Count = segment.ID{}, segment.ID{}, segment.NoCount },
			lost(&Held{}, objectOf(2, 22, 25, 3)), Leave, "", "bring back the object"},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, scrub.MissingObject) })
	}
}
