package checker

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"korvet-offload/segment"
)

// values are manifest values, and whether they are entries.
func values() map[string]bool {
	const object = `"object":{"path":"local:t:0/0.parquet","bytes":1,"etag":"","sha256":"00"}`
	legal := map[string]bool{
		``: false, `x`: false, `[]`: false, `"OPEN"`: false, `null`: false, `{}`: false, `{"state":"OPEN"}`: false, `{"tier":"LOCAL"}`: false,
		"\xff" + openNow: false, openNow + openNow: false, openNow[1:]: false,
		openNow: true, " \n" + openNow + "\t": true,
		strings.Replace(openNow, "OPEN", "open", 1):                       false,
		strings.Replace(openNow, `"OPEN"`, `7`, 1):                        false,
		strings.Replace(openNow, "LOCAL", "COLD", 1):                      false,
		strings.Replace(openNow, "LOCAL", "REMOTE", 1):                    false,
		strings.Replace(openNow, `"v":1`, `"v":2`, 1):                     false,
		strings.Replace(openNow, `"v":1`, `"v":null`, 1):                  true,
		strings.Replace(openNow, `{`, `{"v":1,`, 1):                       false, // twice
		strings.Replace(openNow, `{`, `{"":{},"é":[[1]],`, 1):             true,
		strings.Replace(openNow, `{`, `{"x":1,"\u0078":2,`, 1):            false, // twice, in other letters
		strings.Replace(openNow, `{`, `{"withTopic":"DELETING",`, 1):      false,
		strings.Replace(openNow, `{`, `{"aged":1,`, 1):                    false,
		strings.Replace(openNow, `{`, `{"aged":false,"local":null,`, 1):   true,
		strings.Replace(openNow, `{`, `{"source":{"lastId":"5-5"},`, 1):   true,
		strings.Replace(openNow, `{`, `{"source":7,`, 1):                  false,
		strings.Replace(openNow, `{`, `{"source":{"lastId":"5"},`, 1):     false,
		strings.Replace(openNow, `{`, `{"source":{"added":-1},`, 1):       false,
		sealed + `"local":"PRESENT"}`:                                     true,
		sealed + `"local":"GONE"}`:                                        false,
		sealed + `"local":"DROPPING"}`:                                    false,
		sealed + `"key":""}`:                                              false,
		sealed + `"key":7}`:                                               false,
		sealed + `"from":"5-9","to":"5-10"}`:                              true,
		sealed + `"from":"5-10","to":"5-9"}`:                              false,
		sealed + `"firstId":"5-10","lastId":"5-9"}`:                       false,
		sealed + `"firstId":"18446744073709551615-18446744073709551615"}`: true,
		remote + `"count":0,` + object + `}`:                              true,
		remote + `"count":0,"object":{"path":7}}`:                         false,
		remote + `"count":0,"object":"x"}`:                                false,
		remote + `"count":0,"local":"HERE",` + object + `}`:               false,
	}
	for _, id := range []string{"5", "5-", "-5", "5-5-5", "+5-5", "5_5", "5-18446744073709551616", "5-0x5", " 5-5", ""} {
		legal[sealed+`"lastId":"`+id+`"}`] = false
	}
	for n, is := range map[string]bool{"0": true, "9223372036854775807": true, "9223372036854775808": false, "-1": false, "1.0": false, "1e3": false, `"1"`: false} {
		legal[sealed+`"sealedAt":`+n+`}`] = is
	}
	for n, is := range map[int]bool{900: true, 1100: false} {
		var many strings.Builder
		for i := range n {
			fmt.Fprintf(&many, `"f%d":%d,`, i, i)
		}
		legal["{"+many.String()+openNow[1:]] = is
	}
	return legal
}

// What is no entry is found, by this parser as by the program's.
func TestIllegalEntriesAreFound(t *testing.T) {
	for value, legal := range values() {
		w := newWorld()
		w.topic("t:0").Manifest["0"] = value
		w.Objects["local:t:0/0.parquet"] = Object{Size: 1, SHA256: "00"}
		found := Check(w.World, []Ack{}, Rules{})
		if legal != (len(found) == 0) || !legal && (len(found) != 1 || found[0].Kind != Illegal || found[0].Segment != "0") {
			t.Errorf("%.200s: found %v", value, found)
		}
		if _, err := segment.ParseEntry([]byte(value)); legal != (err == nil) {
			t.Errorf("%.200s: to the program it is an entry: %t (%v)", value, err == nil, err)
		}
	}
}

// Both parsers agree on what is an entry, and on what it says.
func FuzzEntry(f *testing.F) {
	for value := range values() {
		f.Add(value)
	}
	f.Add(entryAt("deleting local", "7", "2", `,"withTopic":"OPEN","aged":true,"key":"a\u0062","from":"5-5","to":"5-6"`))
	f.Fuzz(func(t *testing.T, value string) {
		his, err := segment.ParseEntry([]byte(value))
		mine, err2 := readEntry(value)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: to the program %v, to the checker %v", value, err, err2)
		}
		if err == nil && says(mine) != programSays(his) {
			t.Fatalf("%q: to the checker %s, to the program %s", value, says(mine), programSays(his))
		}
	})
}

func says(e entry) string {
	text := fmt.Sprint(e.state, e.tier, e.local, e.key, e.withTopic, e.rev, e.copy, e.count, e.openedAt, e.sealedAt, e.remoteAt, e.deletingAt,
		e.from, e.to, e.firstID, e.lastID, e.aged, e.described)
	return text + fmt.Sprint(e.object)
}

func programSays(e segment.Entry) string {
	id := func(i segment.ID) id { return id{i.Ms, i.Seq} }
	o := segment.Object{}
	if e.Object != nil {
		o = *e.Object
	}
	return says(entry{string(e.State), string(e.Tier), string(e.Local), e.Key, string(e.WithTopic), e.Rev, e.Copy, e.Count, e.OpenedAt, e.SealedAt,
		e.RemoteAt, e.DeletingAt, id(e.From), id(e.To), id(e.FirstID), id(e.LastID), e.Aged, e.Object != nil,
		description{o.Path, o.ETag, o.SHA256, o.Bytes}})
}

// What the program takes for an entry and readers, or whoever deletes, could
// do nothing with.
func TestUselessEntriesAreFound(t *testing.T) {
	const object = `"object":{"path":"local:t:0/0.parquet","bytes":1,"etag":"","sha256":"00"}`
	for _, value := range []string{
		remote + `"count":1}`,
		remote + `"count":1,"object":null}`,
		remote + `"firstId":"5-5","lastId":"5-5",` + object + `}`,
		remote + `"count":1,"lastId":"5-5",` + object + `}`,
		remote + `"count":1,"firstId":"5-5",` + object + `}`,
		remote + `"count":0,"object":{"bytes":1,"etag":"","sha256":"00"}}`,
		remote + `"count":0,"object":{"path":"local:t:0/0.parquet","bytes":1}}`,
		sealed + object + `}`,
		sealed + `"from":"5-5"}`,
	} {
		w := newWorld()
		w.topic("t:0").Manifest["0"] = value
		if found := w.check(); len(found) != 1 || found[0].Kind != Illegal {
			t.Errorf("%s: found %v", value, found)
		}
	}
}

// Entries that are legal each by itself, and not beside one another.
func TestIllegalSequencesAreFound(t *testing.T) {
	ranges := func(bounds ...string) func(*Partition) {
		return func(p *Partition) {
			for i := 0; i < len(bounds); i += 2 {
				p.add(sealed + fmt.Sprintf(`"key":"k","from":%q,"to":%q}`, bounds[i], bounds[i+1]))
			}
		}
	}
	for name, c := range map[string]struct {
		build func(*Partition)
		at    string // the segments that are found; "" = legal
	}{
		"open behind a sealed one": {func(p *Partition) { p.add(sealed + `"count":0}`); p.add(openNow) }, ""},
		"open before another":      {func(p *Partition) { p.add(openNow); p.add(openNow) }, "0"},
		"open before a sealed one": {func(p *Partition) { p.Manifest["9"] = openNow; p.Manifest["10"] = sealed + `"count":0}` }, "9"},
		"ranges one by one":        {ranges("5-0", "5-9", "5-10", "6-0"), ""},
		"ranges with a gap":        {ranges("5-0", "5-9", "7-0", "7-0"), ""},
		"ranges that overlap":      {ranges("5-0", "5-10", "5-9", "6-0"), "1"},
		"ranges that go back":      {ranges("5-0", "5-10", "4-0", "4-9"), "1"},
		"an open range first": {func(p *Partition) {
			p.add(strings.Replace(openNow, "{", `{"from":"5-5","key":"k",`, 1))
			ranges("6-0", "6-1")(p)
		}, "0 1"},
		"two with one stream":  {func(p *Partition) { p.add(sealed + `"key":"k"}`); p.add(sealed + `"key":"k"}`) }, "1"},
		"a range of another's": {func(p *Partition) { ranges("5-0", "5-9")(p); p.add(sealed + `"key":"k"}`) }, "1"},
		"nonsense first":       {func(p *Partition) { p.add(strings.Replace(openNow, "LOCAL", "REMOTE", 1)); p.add(openNow) }, "0"},
		"nonsense behind":      {func(p *Partition) { ranges("5-0", "5-9")(p); p.add(sealed + `"key":"k","count":-1}`) }, "1"},
		"no number":            {func(p *Partition) { p.Manifest["meta"] = openNow }, "meta"},
		"07":                   {func(p *Partition) { p.Manifest["07"] = openNow }, "07"},
		"+7":                   {func(p *Partition) { p.Manifest["+7"] = openNow }, "+7"},
		"above 2^63-1":         {func(p *Partition) { p.Manifest["9223372036854775808"] = openNow }, "9223372036854775808"},
	} {
		w := newWorld()
		c.build(w.topic("t:0"))
		found := w.check()
		var at []string
		for _, f := range found {
			at = append(at, f.Segment)
			if f.Kind != Illegal {
				t.Errorf("%s: found %v", name, f)
			}
		}
		slices.Sort(at)
		if strings.Join(at, " ") != c.at {
			t.Errorf("%s: found %v, want one at %q", name, found, c.at)
		}
	}
}

// A message of a segment whose entry can't be read is not lost: what is wrong
// is the entry.
func TestWhatIsBehindAnIllegalEntryIsNotLost(t *testing.T) {
	w := newWorld()
	p := w.topic("t:0")
	w.copied(p, 3, "PRESENT")
	p.replace("0", `"object"`, `"subject"`)
	clear(w.Objects)
	w.local(p, 2)
	p.Manifest["1"] = "x"
	p = w.ranges("events", "events", 1, 1, 1, 2)
	p.Manifest["2"] = "x"
	if found := w.check(); !slices.Equal(kindsOf(found), []Kind{Illegal}) || len(found) != 3 {
		t.Errorf("found %v", found)
	}
}

// An entry that can't be read takes nothing away from those beside it.
func TestWhatIsBesideAnIllegalEntryIsStillChecked(t *testing.T) {
	w := newWorld()
	p := w.ranges("events", "events", 2, 1, 1, 2)
	p.Manifest["0"] = "x"
	first := w.Objects["events/1.parquet"].Messages[0]
	w.Streams["events"] = append([]Message{first}, w.Streams["events"]...)
	found := w.check()
	want := []Kind{GoneButThere, Illegal, Lost, Orphan} // of segments 1, 0, 0, 0
	if !slices.Equal(kindsOf(found), want) || len(found) != 4 {
		t.Errorf("found %v, want %v", found, want)
	}
}

// The same world gives the same findings in the same order.
func TestFindingsHaveAnOrder(t *testing.T) {
	w := newWorld()
	p := w.topic("t:0")
	for n := range 12 {
		p.Manifest[fmt.Sprint(n)], p.Manifest[fmt.Sprint("m", n)] = "x", openNow
		w.Objects[fmt.Sprint("x", n)] = Object{}
		w.Streams[fmt.Sprint("s", n)] = []Message{message(n)}
	}
	first := fmt.Sprint(w.check())
	for range 5 {
		if again := fmt.Sprint(w.check()); again != first {
			t.Fatalf("first %s\nthen %s", first, again)
		}
	}
}

// Ids, numbers and paths are read here in another way than in the program, and
// mean the same.
func TestSameAsTheProgram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	part := func() string {
		return []string{"0", "9", "10", "99", "18446744073709551615", "1700000000000"}[random.IntN(6)]
	}
	for range 2000 {
		a, b := part()+"-"+part(), part()+"-"+part()
		mine, _ := parseID(a)
		other, _ := parseID(b)
		his, err := segment.ParseID(a)
		hers, err2 := segment.ParseID(b)
		if err := errors.Join(err, err2); err != nil || cmp.Compare(mine.compare(other), 0) != cmp.Compare(his.Compare(hers), 0) || mine.String() != his.String() {
			t.Fatalf("%s and %s: %d, to the program %d, %v", a, b, mine.compare(other), his.Compare(hers), err)
		}
	}
	for _, key := range []string{"events", "events:eu", "_x", "-x", ".x", "x.y-z_", "a/b", "%41", "\x00\xff", "Zz@[`{é", "0:9"} {
		p := Partition{StreamKey: key, Plain: true}
		if p.folder() != segment.SafeKey(key) {
			t.Errorf("the folder of %q is %s, to the program %s", key, p.folder(), segment.SafeKey(key))
		}
	}
	for _, copied := range []int64{0, 1, 12} {
		for _, suffix := range []string{"", "ab12"} {
			path := segment.ObjectPath("f", 7, copied, suffix)
			if !isObjectOf(path, "f", "7", copied) || isObjectOf(path, "f", "7", copied+1) || isObjectOf(path, "f", "8", copied) || isObjectOf(path, "g", "7", copied) {
				t.Errorf("%s is not recognised", path)
			}
		}
	}
	for _, path := range []string{"f/7", "f/7.parquet/x.parquet", "f/7..parquet", "f7.parquet", "f/7.a/b.parquet", "7.parquet", "f/07.parquet"} {
		if isObjectOf(path, "f", "7", 0) {
			t.Errorf("%s is recognised", path)
		}
	}
}
