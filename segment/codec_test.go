package segment

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const remoteEntry = `{"v":1,"rev":4,"state":"SEALED","tier":"REMOTE","firstId":"1708956789000-0","lastId":"1708956799000-41",` +
	`"count":1000,"openedAt":1708956789000,"sealedAt":1708956799500,"remoteAt":1708956860123,"local":"PRESENT",` +
	`"object":{"path":"korvet:storage:local:orders:0/7.parquet","bytes":48213,"etag":"e","sha256":"s"},"source":{"lastId":"1-6","added":7},"deletingAt":1708956870000}`

func TestParseEntryReadsEveryField(t *testing.T) {
	e, err := ParseEntry([]byte(remoteEntry))
	if err != nil {
		t.Fatal(err)
	}
	e.fields = nil
	want := Entry{State: Sealed, Tier: Remote, Rev: 4, FirstID: ID{1708956789000, 0}, LastID: ID{1708956799000, 41},
		Count: 1000, OpenedAt: 1708956789000, SealedAt: 1708956799500, RemoteAt: 1708956860123, Local: Present,
		Object: &Object{Path: "korvet:storage:local:orders:0/7.parquet", Bytes: 48213, ETag: "e", SHA256: "s"},
		Source: &Source{LastID: ID{1, 6}, Added: 7}, DeletingAt: 1708956870000}
	if !reflect.DeepEqual(e, want) {
		t.Errorf("got  %+v\nwant %+v", e, want)
	}
}

func TestEncodeOfAnUntouchedEntryIsWhatWasRead(t *testing.T) {
	for _, raw := range []string{
		remoteEntry,
		`{"v":1,"state":"OPEN","tier":"LOCAL"}`,
		`{"v":1,"state":"SEALED","zzz":{"b":[1,2.50,"x"]},"tier":"LOCAL","a<b>":"&","copy":3,"key":"orders"}`,
		`{"v":1,"state":"SEALED","tier":"REMOTE","object":{"extra":1e3,"path":"p","bytes":1,"etag":"","sha256":""}}`,
	} {
		e, err := ParseEntry([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := string(e.Encode()); got != raw {
			t.Errorf("got  %s\nwant %s", got, raw)
		}
	}
}

func TestParseEntryRefuses(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want error
		says string
	}{
		{``, ErrIllegalEntry, "not a JSON object"},
		{`SEALED`, ErrIllegalEntry, "not a JSON object"},
		{`[]`, ErrIllegalEntry, "not a JSON object"},
		{`null`, ErrIllegalEntry, "not a JSON object"},
		{`{"state":"OPEN","tier":"LOCAL"`, ErrIllegalEntry, "not a JSON object"},
		{`{"state":"OPEN","tier":"LOCAL"} {}`, ErrIllegalEntry, "not a JSON object"},
		{`{"state":"OPEN","tier":"LOCAL","state":"SEALED"}`, ErrIllegalEntry, `"state" stands twice`},
		{"{\"state\":\"OPEN\",\"tier\":\"LOCAL\",\"x\":\"\xff\"}", ErrIllegalEntry, "not UTF-8"},
		{`{"v":2,"whatever":true}`, ErrEntryVersion, "2"},
		{`{"v":"1","state":"OPEN","tier":"LOCAL"}`, ErrIllegalEntry, "field v"},
		{`{"v":{},"state":"OPEN","tier":"LOCAL"}`, ErrIllegalEntry, "field v"},
		{`{"tier":"LOCAL"}`, ErrIllegalEntry, "state is missing"},
		{`{"state":"OPEN"}`, ErrIllegalEntry, "tier is missing"},
		{`{"State":"OPEN","tier":"LOCAL"}`, ErrIllegalEntry, "state is missing"},
		{`{"state":"open","tier":"LOCAL"}`, ErrIllegalEntry, "field state"},
		{`{"state":"OPEN","tier":"COLD"}`, ErrIllegalEntry, "field tier"},
		{`{"state":"OPEN","tier":"REMOTE"}`, ErrIllegalEntry, "OPEN and REMOTE"},
		{`{"state":"SEALED","tier":"LOCAL","local":"GONE"}`, ErrIllegalEntry, "its local copy is GONE"},
		{`{"state":"SEALED","tier":"LOCAL","count":-1}`, ErrIllegalEntry, "field count"},
		{`{"state":"SEALED","tier":"LOCAL","count":1.5}`, ErrIllegalEntry, "field count"},
		{`{"state":"SEALED","tier":"LOCAL","count":"7"}`, ErrIllegalEntry, "field count"},
		{`{"state":"SEALED","tier":"LOCAL","sealedAt":99999999999999999999}`, ErrIllegalEntry, "field sealedAt"},
		{`{"state":"SEALED","tier":"LOCAL","firstId":"5"}`, ErrIllegalEntry, "field firstId"},
		{`{"state":"SEALED","tier":"LOCAL","firstId":"5-10","lastId":"5-9"}`, ErrIllegalEntry, "above lastId"},
		{`{"state":"SEALED","tier":"LOCAL","from":"6-0","to":"5-0"}`, ErrIllegalEntry, "above to"},
		{`{"state":"SEALED","tier":"LOCAL","key":7}`, ErrIllegalEntry, "field key"},
		{`{"state":"SEALED","tier":"REMOTE","object":"7.parquet"}`, ErrIllegalEntry, "field object"},
	} {
		_, err := ParseEntry([]byte(c.raw))
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %v with %q", c.raw, err, c.want, c.says)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: a message of more than one line: %q", c.raw, err)
		}
	}
}

func TestFlip(t *testing.T) {
	raw := `{"v":1,"rev":2,"broker":{"epoch":9},"state":"SEALED","tier":"LOCAL","firstId":"1-0","lastId":"1-5","count":6,"sealedAt":10}`
	e, err := ParseEntry([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	flipped, err := e.Flip(Contents{ID{1, 0}, ID{1, 6}, 7}, StreamInfo{LastID: ID{1, 6}, EntriesAdded: 7}, Object{Path: "k/0.parquet", Bytes: 9, ETag: "e", SHA256: "s"}, 99)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":1,"rev":3,"broker":{"epoch":9},"state":"SEALED","tier":"REMOTE","firstId":"1-0","lastId":"1-6","count":7,"sealedAt":10,` +
		`"remoteAt":99,"local":"PRESENT","object":{"path":"k/0.parquet","bytes":9,"etag":"e","sha256":"s"},"source":{"lastId":"1-6","added":7}}`
	if got := string(flipped.Encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(e.Encode()); got != raw {
		t.Errorf("flipping changed the entry that it came from: %s", got)
	}
}

func TestTransitionsThatAreNotLegal(t *testing.T) {
	for _, raw := range []string{
		`{"state":"OPEN","tier":"LOCAL"}`,
		`{"state":"SEALED","tier":"REMOTE"}`,
		`{"state":"DELETING","tier":"REMOTE"}`,
		`{"state":"DELETING","tier":"LOCAL"}`,
	} {
		e, err := ParseEntry([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Flip(Contents{}, StreamInfo{}, Object{}, 1); err == nil {
			t.Errorf("%s was flipped", raw)
		}
		if _, err := e.NextCopy(); err == nil {
			t.Errorf("%s went to the next copy", raw)
		}
		if e.Due(1<<60, 0) {
			t.Errorf("%s is due", raw)
		}
	}
}

func TestNextCopyKeepsAllElse(t *testing.T) {
	e, err := ParseEntry([]byte(`{"state":"SEALED","tier":"LOCAL","x":1}`))
	if err != nil {
		t.Fatal(err)
	}
	next, err := e.NextCopy()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(next.Encode()), `{"state":"SEALED","tier":"LOCAL","x":1,"v":1,"rev":1,"copy":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDue(t *testing.T) {
	for _, c := range []struct {
		raw  string
		now  int64
		want bool
	}{
		{`{"state":"SEALED","tier":"LOCAL","sealedAt":1000}`, 5999, false},
		{`{"state":"SEALED","tier":"LOCAL","sealedAt":1000}`, 6000, true},
		{`{"state":"SEALED","tier":"LOCAL","sealedAt":6000}`, 1000, false},
		{`{"state":"SEALED","tier":"LOCAL","sealedAt":6001}`, 1000, true},
		{`{"state":"SEALED","tier":"LOCAL"}`, 0, true},
	} {
		e, err := ParseEntry([]byte(c.raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Due(c.now, 5000); got != c.want {
			t.Errorf("%s at %d: due = %t", c.raw, c.now, got)
		}
	}
}

func TestParseManifest(t *testing.T) {
	m := ParseManifest(Partition{Topic: "t", Number: 1}, []string{
		"10", `{"state":"OPEN","tier":"LOCAL"}`, "9", "broken", "07", "{}", "meta", "{}", "2", `{"state":"SEALED","tier":"LOCAL"}`,
	})
	var got []string
	for _, e := range m.Entries {
		got = append(got, e.Number.String())
	}
	if want := []string{"2", "9", "10"}; !reflect.DeepEqual(got, want) {
		t.Errorf("entries %v, want %v", got, want)
	}
	if !errors.Is(m.Entries[1].Err, ErrIllegalEntry) || m.Entries[1].Raw != "broken" {
		t.Errorf("the broken entry: %+v", m.Entries[1])
	}
	if want := []string{"07", "meta"}; !reflect.DeepEqual(m.Alien, want) {
		t.Errorf("alien fields %v, want %v", m.Alien, want)
	}
}

// What is read, rewritten and read again must be the same, and no field that
// this program does not know may be lost.
func FuzzEntry(f *testing.F) {
	for _, s := range []string{remoteEntry, `{"state":"OPEN","tier":"LOCAL","v":null}`, `{"state":"SEALED","tier":"LOCAL","x":[{}],"":0}`,
		`{"state":"SEALED","tier":"REMOTE","object":{"path":"p","y":{"z":1}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := ParseEntry(raw)
		if err != nil {
			return
		}
		again, err := ParseEntry(e.Encode())
		if err != nil {
			t.Fatalf("%s is rewritten as %s: %v", raw, e.Encode(), err)
		}
		if !sameFields(e, again) {
			t.Fatalf("%s is rewritten as %s", raw, e.Encode())
		}
		flipped, err := e.Flip(Contents{ID{1, 1}, ID{2, 2}, 2}, StreamInfo{EntriesAdded: -1}, Object{Path: "p"}, 5)
		if err != nil {
			return
		}
		back, err := ParseEntry(flipped.Encode())
		if err != nil {
			t.Fatalf("%s flips to %s: %v", raw, flipped.Encode(), err)
		}
		if !strings.Contains(string(flipped.Encode()), `"tier":"REMOTE"`) || back.Tier != Remote {
			t.Fatalf("%s flips to %s", raw, flipped.Encode())
		}
		for _, was := range e.fields {
			if !isKnown(was.name) && !hasField(back, was) {
				t.Fatalf("%s flips to %s, which lacks %q", raw, flipped.Encode(), was.name)
			}
		}
	})
}

func sameFields(a, b Entry) bool {
	a.fields, b.fields = nil, nil
	return reflect.DeepEqual(a, b)
}

func isKnown(name string) bool {
	for _, f := range (Entry{}).known() {
		if f.name == name {
			return true
		}
	}
	return false
}

func hasField(e Entry, want field) bool {
	for _, f := range e.fields {
		if f.name == want.name && string(f.raw) == string(want.raw) {
			return true
		}
	}
	return false
}

func TestEveryLegalEntrySurvivesARewrite(t *testing.T) {
	number := rapid.Int64Range(0, 1<<62)
	id := rapid.Custom(func(t *rapid.T) ID { return ID{rapid.Uint64().Draw(t, "ms"), rapid.Uint64().Draw(t, "seq")} })
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{State: Sealed, Tier: rapid.SampledFrom([]Tier{Local, Remote}).Draw(t, "tier"), Count: rapid.Int64Range(-1, 1<<62).Draw(t, "count"),
			Rev: number.Draw(t, "rev"), Copy: number.Draw(t, "copy"), Key: rapid.String().Draw(t, "key"),
			FirstID: id.Draw(t, "first"), SealedAt: number.Draw(t, "sealedAt"), OpenedAt: number.Draw(t, "openedAt")}
		if rapid.Bool().Draw(t, "object") {
			e.Object = &Object{Path: rapid.String().Draw(t, "path"), Bytes: number.Draw(t, "bytes"), ETag: rapid.String().Draw(t, "etag")}
		}
		got, err := ParseEntry(e.Encode())
		if err != nil {
			t.Fatalf("%s: %v", e.Encode(), err)
		}
		if !sameFields(e, got) {
			t.Fatalf("%s\ngot  %+v\nwant %+v", e.Encode(), got, e)
		}
	})
}

func TestAnEntryWithTooManyFields(t *testing.T) {
	for fields, legal := range map[int]bool{998: true, 999: false, 200_000: false} {
		raw := []byte(`{"state":"OPEN","tier":"LOCAL"`)
		for i := range fields {
			raw = fmt.Appendf(raw, `,"x%d":%d`, i, i)
		}
		if _, err := ParseEntry(append(raw, '}')); legal != (err == nil) || err != nil && !errors.Is(err, ErrIllegalEntry) {
			t.Errorf("%d fields more: %v", fields, err)
		}
	}
}
