package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// objects is a store that holds these keys, each with its number of bytes.
type objects struct {
	keys []string
	err  error // behind the last one
}

func (o objects) List(_ context.Context, prefix string) iter.Seq2[s3sink.Info, error] {
	return func(yield func(s3sink.Info, error) bool) {
		keys := slices.Clone(o.keys)
		slices.Sort(keys)
		for i, key := range keys {
			if strings.HasPrefix(key, prefix) && !yield(s3sink.Info{Key: key, Size: int64(len(key)), ModTime: time.UnixMilli(int64(i))}, nil) {
				return
			}
		}
		if o.err != nil {
			yield(s3sink.Info{}, o.err)
		}
	}
}

// says is a group for comparing.
func says(g Group) string {
	text := fmt.Sprintf("%q", g.Folder)
	if g.Known {
		text += " " + g.Partition.String()
	}
	for _, o := range g.Objects {
		text += fmt.Sprintf(" %s/%d%s", o.Segment, o.Copy, o.Suffix)
	}
	for _, a := range g.Alien {
		text += " !" + a.Key
	}
	return text
}

func folders() objects {
	return objects{keys: []string{
		"korvet:storage:local:orders:0/10.parquet", "korvet:storage:local:orders:0/9.parquet", "korvet:storage:local:orders:0/9-2.parquet",
		"korvet:storage:local:orders:0/09.parquet", "korvet:storage:local:orders:0/a/x", "korvet:storage:local:orders:0/z",
		"korvet:storage:local:orders:1/0.parquet", "README", "korvet:storage:local:orders:0.d/0.parquet", "zz",
	}}
}

// Each folder comes once, whatever lies in it, and also if the listing comes back
// to it: the store knows no folders.
func TestAll(t *testing.T) {
	var got []string
	for g, err := range All(t.Context(), folders(), segment.DefaultLayout()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, says(g))
	}
	want := []string{
		`"korvet:storage:local:orders:0.d" !korvet:storage:local:orders:0.d/0.parquet`,
		`"korvet:storage:local:orders:0/a" !korvet:storage:local:orders:0/a/x`,
		`"korvet:storage:local:orders:0" orders:0 9/0 9/2 10/0 !korvet:storage:local:orders:0/09.parquet !korvet:storage:local:orders:0/z`,
		`"korvet:storage:local:orders:1" orders:1 0/0`,
		`"" !README !zz`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	for range All(t.Context(), folders(), segment.DefaultLayout()) {
		break // it may be left in the middle
	}
}

func TestAnErrorEndsTheListing(t *testing.T) {
	from := folders()
	from.err = errors.New("denied")
	n, last := 0, error(nil)
	for _, err := range All(t.Context(), from, segment.DefaultLayout()) {
		n, last = n+1, err
	}
	if !errors.Is(last, from.err) || n != 5 { // the folder that was under way did not come
		t.Errorf("%d groups, %v", n, last)
	}
	if _, err := List(t.Context(), from, segment.DefaultLayout(), segment.Partition{Topic: "orders"}); !errors.Is(err, from.err) || !strings.Contains(err.Error(), "orders:0") {
		t.Errorf("list: %v", err)
	}
}

func TestList(t *testing.T) {
	g, err := List(t.Context(), folders(), segment.DefaultLayout(), segment.Partition{Topic: "orders"})
	want := `"korvet:storage:local:orders:0" orders:0 9/0 9/2 10/0 !korvet:storage:local:orders:0/09.parquet !korvet:storage:local:orders:0/a/x !korvet:storage:local:orders:0/z`
	if err != nil || says(g) != want {
		t.Errorf("got  %s, %v\nwant %s", says(g), err, want)
	}
	var current []string
	for _, o := range g.Current() {
		current = append(current, o.Info.Key)
	}
	if fmt.Sprint(current) != "[korvet:storage:local:orders:0/9-2.parquet korvet:storage:local:orders:0/10.parquet]" {
		t.Errorf("current %v", current)
	}
	if by := g.Segments(); len(by) != 2 || len(by[9]) != 2 || by[10][0].Segment != 10 {
		t.Errorf("by segment: %v", by)
	}
}

func TestMatch(t *testing.T) {
	object := func(path string, size int64) Object {
		name, ok := segment.ParseObjectPath(path)
		if !ok {
			t.Fatal(path)
		}
		return Object{name, s3sink.Info{Key: path, Size: size}}
	}
	entry := func(raw string) *segment.Stored {
		e, err := segment.ParseEntry([]byte(raw))
		return &segment.Stored{Number: 7, Raw: raw, Entry: e, Err: err}
	}
	remote := `{"state":"SEALED","tier":"REMOTE","local":"GONE","copy":1,"object":{"path":"f/7-1.parquet","bytes":100,"etag":"","sha256":""}}`
	first, second, third := object("f/7.parquet", 100), object("f/7-1.parquet", 100), object("f/7-2.parquet", 100)
	for _, c := range []struct {
		name    string
		stored  *segment.Stored
		objects []Object
		want    []Verdict
		wrong   bool
	}{
		{"as it should be", entry(remote), []Object{second}, []Verdict{Same}, false},
		{"with older and newer copies", entry(remote), []Object{first, second, third}, []Verdict{Same, Replaced, Replaced}, false},
		{"gone", entry(remote), nil, []Verdict{Missing}, true},
		{"only another copy", entry(remote), []Object{first}, []Verdict{Missing, Replaced}, true},
		{"cut", entry(remote), []Object{object("f/7-1.parquet", 99)}, []Verdict{OtherSize}, true},
		{"no entry", nil, []Object{first, second}, []Verdict{Unnamed, Unnamed}, true},
		{"open", entry(`{"state":"OPEN","tier":"LOCAL"}`), nil, []Verdict{NotCopied}, false},
		{"being copied", entry(`{"state":"SEALED","tier":"LOCAL"}`), []Object{first}, []Verdict{Unmarked}, false},
		{"being copied again", entry(`{"state":"SEALED","tier":"LOCAL","copy":1}`), []Object{first, third}, []Verdict{NotCopied, Replaced, Unmarked}, false},
		{"hidden", entry(strings.Replace(remote, "SEALED", "DELETING", 1)), nil, []Verdict{Deleting}, false},
		{"no entry at all", entry(`{`), []Object{first}, []Verdict{Illegal, Illegal}, true},
	} {
		var got []Verdict
		wrong := false
		for _, r := range Match(7, c.stored, c.objects) {
			got = append(got, r.Verdict)
			wrong = wrong || r.Verdict.Wrong()
		}
		if !slices.Equal(got, c.want) || wrong != c.wrong {
			t.Errorf("%s: %v, wrong %t; want %v", c.name, got, wrong, c.want)
		}
	}
}
