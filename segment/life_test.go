package segment

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// verb is one change of an entry.
type verb struct {
	name string
	do   func(Entry) (Entry, error)
}

// streamThen is a stream at the time of a change, and what it holds.
func streamThen() (StreamInfo, Contents) {
	s := StreamInfo{Exists: true, Length: 8, FirstID: ID{3, 0}, LastID: ID{9, 1}, EntriesAdded: 11, MaxDeletedID: ID{4, 0}}
	return s, Contents{FirstID: s.FirstID, LastID: s.LastID, Count: s.Length}
}

func verbs() []verb {
	stream, contents := streamThen()
	return []verb{
		{"seal", func(e Entry) (Entry, error) { return e.Seal(contents, 70) }},
		{"flip", func(e Entry) (Entry, error) {
			return e.Flip(contents, stream, Object{Path: "p", Bytes: 5, ETag: "e", SHA256: "s"}, 80)
		}},
		{"next copy", Entry.NextCopy},
		{"drop", Entry.Drop},
		{"dropped", Entry.Dropped},
		{"recopy", Entry.Recopy},
		{"delete", func(e Entry) (Entry, error) { return e.Delete(stream, 90) }},
		{"undelete", Entry.Undelete},
	}
}

// transitions says what becomes of each legal entry, by what is done with it.
// What is not named is refused.
func transitions() map[string]map[string]string {
	sealedLocal := map[string]string{"flip": "SEALED REMOTE PRESENT", "next copy": "SEALED LOCAL ", "delete": "DELETING LOCAL "}
	remote := map[string]string{"drop": "SEALED REMOTE DROPPING", "dropped": "SEALED REMOTE GONE", "recopy": "SEALED LOCAL "}
	return map[string]map[string]string{
		"OPEN LOCAL ":             {"seal": "SEALED LOCAL ", "delete": "DELETING LOCAL "},
		"OPEN LOCAL PRESENT":      {"seal": "SEALED LOCAL PRESENT", "delete": "DELETING LOCAL PRESENT"},
		"SEALED LOCAL ":           sealedLocal,
		"SEALED LOCAL PRESENT":    {"flip": "SEALED REMOTE PRESENT", "next copy": "SEALED LOCAL PRESENT", "delete": "DELETING LOCAL PRESENT"},
		"SEALED REMOTE ":          with(remote, "delete", "DELETING REMOTE "),
		"SEALED REMOTE PRESENT":   with(remote, "delete", "DELETING REMOTE PRESENT"),
		"SEALED REMOTE DROPPING":  with(remote, "delete", "DELETING REMOTE DROPPING"),
		"SEALED REMOTE GONE":      {"delete": "DELETING REMOTE GONE"},
		"DELETING LOCAL ":         {"undelete": "SEALED LOCAL "},
		"DELETING LOCAL PRESENT":  {"undelete": "SEALED LOCAL PRESENT"},
		"DELETING REMOTE ":        {},
		"DELETING REMOTE PRESENT": {}, "DELETING REMOTE DROPPING": {}, "DELETING REMOTE GONE": {},
	}
}

func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	m[key] = value
	return m
}

func (e Entry) where() string {
	return string(e.State) + " " + string(e.Tier) + " " + string(e.Local)
}

// entries are all combinations of state, tier and local copy, with every other
// field and one that this program does not know.
func entries(t *testing.T) (legal []Entry) {
	t.Helper()
	for _, state := range []State{Open, Sealed, Deleting} {
		for _, tier := range []Tier{Local, Remote} {
			for _, local := range []LocalCopy{"", Present, Dropping, Gone} {
				e := Entry{State: state, Tier: tier, Local: local, Rev: 4, Key: "k", Copy: 2, FirstID: ID{2, 0}, LastID: ID{6, 0}, Count: 3, OpenedAt: 1, SealedAt: 7,
					RemoteAt: 8, Object: &Object{Path: "old", Bytes: 1}, Source: &Source{LastID: ID{6, 0}, Added: 3}}
				if state == Deleting {
					e.DeletingAt = 60
				}
				if e.check() != nil {
					continue
				}
				raw := strings.Replace(string(e.Encode()), `{"v":1,`, `{"v":1,"x":{"y":[1]},`, 1)
				read, err := ParseEntry([]byte(raw))
				if err != nil {
					t.Fatalf("%s: %v", raw, err)
				}
				legal = append(legal, read)
			}
		}
	}
	return legal
}

func TestEveryTransition(t *testing.T) {
	table := transitions()
	all := entries(t)
	if len(all) != len(table) {
		t.Errorf("%d legal entries, %d in the table", len(all), len(table))
	}
	for _, e := range all {
		row, ok := table[e.where()]
		if !ok {
			t.Errorf("%s is not in the table", e.where())
		}
		for _, v := range verbs() {
			before := string(e.Encode())
			got, err := v.do(e)
			if string(e.Encode()) != before {
				t.Errorf("%s of %s changed the entry that it came from", v.name, e.where())
			}
			want, legal := row[v.name]
			if !legal {
				if err == nil || !reflect.DeepEqual(got, Entry{}) || !strings.Contains(err.Error(), string(e.State)) && v.name != "delete" {
					t.Errorf("%s of %s: %s, %v; want a refusal that names the state", v.name, e.where(), got.where(), err)
				}
				continue
			}
			if err != nil || got.where() != want {
				t.Errorf("%s of %s: %s, %v; want %s", v.name, e.where(), got.where(), err, want)
				continue
			}
			checkChanged(t, v.name+" of "+e.where(), e, got)
		}
	}
}

// checkChanged checks what holds of every change.
func checkChanged(t *testing.T, what string, was, is Entry) {
	t.Helper()
	raw := string(is.Encode())
	back, err := ParseEntry([]byte(raw))
	if err != nil || !sameFields(is, back) {
		t.Errorf("%s gives %s, which reads as %+v, %v", what, raw, back, err)
	}
	if is.Rev != was.Rev+1 || is.Key != was.Key || is.OpenedAt != was.OpenedAt || is.FirstID.IsZero() {
		t.Errorf("%s gives %s: rev +1 and nothing lost, want", what, raw)
	}
	if !strings.Contains(raw, `"x":{"y":[1]}`) {
		t.Errorf("%s lost what this program does not know: %s", what, raw)
	}
}

// What somebody else has marked DELETING gets its time, whatever its tier.
func TestDeleteOfWhatIsDeletingWithoutATime(t *testing.T) {
	stream, _ := streamThen()
	for _, e := range entries(t) {
		if e.State != Deleting {
			continue
		}
		e.DeletingAt = 0
		got, err := e.Delete(stream, 90)
		if err != nil || got.DeletingAt != 90 || got.where() != e.where() || got.Rev != e.Rev+1 {
			t.Errorf("%s: %s, %v", e.where(), got.Encode(), err)
		}
	}
}

// Each change writes exactly these fields.
func TestWhatTransitionsWrite(t *testing.T) {
	const local = `{"v":1,"rev":3,"state":"SEALED","tier":"LOCAL","firstId":"2-0","lastId":"6-0","count":3,"openedAt":1,"sealedAt":7}`
	const remote = `{"v":1,"rev":4,"state":"SEALED","tier":"REMOTE","firstId":"3-0","lastId":"9-1","count":8,"openedAt":1,"sealedAt":7,` +
		`"remoteAt":80,"local":"PRESENT","object":{"path":"p","bytes":5,"etag":"e","sha256":"s"},"source":{"lastId":"9-1","added":11,"maxDeletedId":"4-0"}}`
	for _, c := range []struct{ verb, from, want string }{
		{"seal", `{"state":"OPEN","tier":"LOCAL","openedAt":1}`,
			`{"state":"SEALED","tier":"LOCAL","openedAt":1,"v":1,"rev":1,"firstId":"3-0","lastId":"9-1","count":8,"sealedAt":70}`},
		{"seal", `{"v":1,"rev":1,"state":"OPEN","tier":"LOCAL","key":"s","from":"3-0","openedAt":1,"source":{"lastId":"2-0","added":3}}`,
			`{"v":1,"rev":2,"state":"SEALED","tier":"LOCAL","key":"s","from":"3-0","openedAt":1,"to":"9-1","firstId":"3-0","lastId":"9-1","count":8,"sealedAt":70}`},
		{"flip", local, remote},
		{"next copy", local, strings.Replace(strings.Replace(local, `"rev":3`, `"rev":4`, 1), `}`, `,"copy":1}`, 1)},
		{"drop", remote, strings.NewReplacer(`"rev":4`, `"rev":5`, "PRESENT", "DROPPING").Replace(remote)},
		{"dropped", remote, strings.NewReplacer(`"rev":4`, `"rev":5`, "PRESENT", "GONE").Replace(remote)},
		{"recopy", remote, `{"v":1,"rev":5,"state":"SEALED","tier":"LOCAL","firstId":"3-0","lastId":"9-1","count":8,"openedAt":1,"sealedAt":7,"copy":1}`},
		{"delete", remote, strings.NewReplacer(`"rev":4`, `"rev":5`, "SEALED", "DELETING", `"4-0"}}`, `"4-0"},"deletingAt":90}`).Replace(remote)},
		{"delete", local, `{"v":1,"rev":4,"state":"DELETING","tier":"LOCAL","firstId":"2-0","lastId":"9-1","count":8,"openedAt":1,"sealedAt":7,` +
			`"source":{"lastId":"9-1","added":11,"maxDeletedId":"4-0"},"deletingAt":90}`},
		{"undelete", `{"v":1,"rev":4,"state":"DELETING","tier":"LOCAL","count":8,"sealedAt":7,"source":{"added":11},"deletingAt":90}`,
			`{"v":1,"rev":5,"state":"SEALED","tier":"LOCAL","count":8,"sealedAt":7}`},
	} {
		e, err := ParseEntry([]byte(c.from))
		if err != nil {
			t.Fatal(err)
		}
		v := verbs()[slices.IndexFunc(verbs(), func(v verb) bool { return v.name == c.verb })]
		if got, err := v.do(e); err != nil || string(got.Encode()) != c.want {
			t.Errorf("%s of %s, %v:\ngot  %s\nwant %s", c.verb, c.from, err, got.Encode(), c.want)
		}
	}
}

func TestNewOpen(t *testing.T) {
	for got, want := range map[string]string{
		string(NewOpen("", 5).Encode()):     `{"v":1,"rev":1,"state":"OPEN","tier":"LOCAL","openedAt":5}`,
		string(NewOpen("base", 5).Encode()): `{"v":1,"rev":1,"state":"OPEN","tier":"LOCAL","key":"base","openedAt":5}`,
		string(NewOpenRange("s", ID{7, 1}, Source{LastID: ID{7, 0}, Added: 0}, 5).Encode()): `{"v":1,"rev":1,"state":"OPEN","tier":"LOCAL","key":"s","from":"7-1","openedAt":5,"source":{"lastId":"7-0","added":0}}`,
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A range that ends before it begins would be an entry that nobody can read.
func TestSealRefusesARangeWithoutAnEnd(t *testing.T) {
	e := NewOpenRange("s", ID{7, 1}, Source{Added: -1}, 5)
	for _, last := range []ID{{}, {7, 0}, {6, math.MaxUint64}} {
		if got, err := e.Seal(Contents{LastID: last}, 9); err == nil {
			t.Errorf("sealed with the last id %s: %s", last, got.Encode())
		}
	}
	if got, err := e.Seal(Contents{FirstID: ID{7, 1}, LastID: ID{7, 1}, Count: 1}, 9); err != nil || got.To != (ID{7, 1}) {
		t.Errorf("a range of one entry: %s, %v", got.Encode(), err)
	}
}

func TestSourceSurvivesARewrite(t *testing.T) {
	for _, raw := range []string{
		`{}`, `{"added":0}`, `{"lastId":"5-1"}`, `{"lastId":"5-1","added":9,"maxDeletedId":"4-0"}`, `{"maxDeletedId":"18446744073709551615-18446744073709551615"}`,
		`{"added":9223372036854775807,"z":[1,{"lastId":7}],"lastId":"1-0"}`, `{ "added" : 3 , "later":null}`, `{"lastId":null,"added":null}`,
	} {
		entry := `{"v":1,"state":"SEALED","tier":"REMOTE","source":` + raw + `,"local":"PRESENT"}`
		e, err := ParseEntry([]byte(entry))
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		if got := string(e.Encode()); got != entry {
			t.Errorf("got  %s\nwant %s", got, entry)
		}
		dropped, err := e.Dropped()
		if err != nil || !strings.Contains(string(dropped.Encode()), `"source":`+raw) {
			t.Errorf("after another change %s, %v; want the source as it was, %s", dropped.Encode(), err, raw)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Custom(func(t *rapid.T) ID { return ID{rapid.Uint64().Draw(t, "ms"), rapid.Uint64().Draw(t, "seq")} })
		want := Source{LastID: id.Draw(t, "last"), Added: rapid.Int64Range(-1, math.MaxInt64).Draw(t, "added"), MaxDeletedID: id.Draw(t, "deleted")}
		e, err := ParseEntry(Entry{State: Sealed, Tier: Remote, Source: &want}.Encode())
		if err != nil || e.Source == nil || *e.Source != want {
			t.Fatalf("%+v is read as %+v, %v", want, e.Source, err)
		}
	})
}

func TestIllegalSources(t *testing.T) {
	for _, raw := range []string{`7`, `"x"`, `[]`, `{"lastId":7}`, `{"lastId":"7"}`, `{"added":-1}`, `{"added":1.5}`, `{"added":"1"}`, `{"maxDeletedId":"x"}`,
		`{"added":1,"added":1}`, `{"added":9223372036854775808}`} {
		e, err := ParseEntry([]byte(`{"state":"SEALED","tier":"REMOTE","source":` + raw + `}`))
		if err == nil || !strings.Contains(err.Error(), "field source: want an object with lastId, added and maxDeletedId") {
			t.Errorf("source %s: %+v, %v", raw, e.Source, err)
		}
	}
}

func TestLastAppend(t *testing.T) {
	const at = firstTime + 10_000 // of the times below, the last four digits
	const now = at
	for _, c := range []struct {
		what string
		e    Entry
		want int64
		ok   bool
	}{
		{"by the last id", Entry{LastID: ID{at - 1000, 5}, OpenedAt: at - 2000, SealedAt: at - 500}, at - 1000, true},
		{"an id of now", Entry{LastID: ID{now, 0}, SealedAt: at - 500}, now, true},
		{"an id of the future", Entry{LastID: ID{now + 1, 0}, OpenedAt: at - 2000, SealedAt: at - 500, RemoteAt: at - 100}, at - 500, true},
		{"an id of the future, not known when sealed", Entry{LastID: ID{now + 1, 0}, RemoteAt: at - 100}, at - 100, true},
		{"the largest id", Entry{LastID: ID{math.MaxUint64, math.MaxUint64}, SealedAt: at - 500}, at - 500, true},
		{"an id of the future and nothing else", Entry{LastID: ID{now + 1, 0}, OpenedAt: at - 2000}, 0, false},
		{"an id of before the opening", Entry{LastID: ID{firstTime, 0}, OpenedAt: at - 2000, SealedAt: at - 500}, at - 2000, true},
		{"an old id, not known when opened", Entry{LastID: ID{firstTime, 0}, SealedAt: at - 500}, firstTime, true},
		{"opened in the future", Entry{LastID: ID{at - 1000, 0}, OpenedAt: at + 10_000, SealedAt: at - 500}, now, true},
		{"a counter for an id", Entry{LastID: ID{firstTime - 1, 0}, OpenedAt: at - 2000, SealedAt: at - 500}, at - 500, true},
		{"a counter, not known when sealed", Entry{LastID: ID{0, 7}, OpenedAt: at - 2000, RemoteAt: at - 100}, at - 100, true},
		{"a counter and nothing else", Entry{LastID: ID{0, 7}, OpenedAt: at - 2000}, 0, false},
		{"no last id", Entry{OpenedAt: at - 2000, SealedAt: at - 500}, at - 500, true},
		{"no last id, not known when sealed", Entry{OpenedAt: at - 2000, RemoteAt: at - 100}, at - 100, true},
		{"nothing but when it was opened", Entry{OpenedAt: at - 2000}, 0, false},
		{"nothing", Entry{}, 0, false},
	} {
		if got, ok := c.e.LastAppend(now); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %t; want %d, %t", c.what, got, ok, c.want, c.ok)
		}
	}
}

// An age can never make a segment older than its last entry is.
func TestLastAppendIsNeverBeforeTheLastEntry(t *testing.T) {
	any64 := rapid.Int64Range(0, math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{LastID: ID{rapid.Uint64().Draw(t, "ms"), 1}, OpenedAt: any64.Draw(t, "opened"), SealedAt: any64.Draw(t, "sealed"), RemoteAt: any64.Draw(t, "remote")}
		now := any64.Draw(t, "now")
		at, ok := e.LastAppend(now)
		if ok != (at != 0) || at < 0 {
			t.Fatalf("%d, %t", at, ok)
		}
		if ok && e.LastID.Ms >= firstTime && e.LastID.Ms <= uint64(now) && at < int64(e.LastID.Ms) { //nolint:gosec // not above now
			t.Fatalf("%d is before the last entry", at)
		}
	})
}
