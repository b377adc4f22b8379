package segment

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

type pair struct{ name, value []byte }

// Entries have the same fields only with the same names, values, number and order.
func TestSameFields(t *testing.T) {
	page := func(texts ...string) *Page {
		p := new(Page)
		p.Entry(ID{Ms: 1})
		_ = p.Field([]byte("of"), []byte("another entry")) // far from being too long
		p.Entry(ID{Ms: 2})
		for i := 0; i < len(texts); i += 2 {
			_ = p.Field([]byte(texts[i]), []byte(texts[i+1]))
		}
		p.Entry(ID{Ms: 3})
		_ = p.Field([]byte("e"), []byte("f"))
		return p
	}
	is := page("a", "b", "c", "d")
	for _, other := range []*Page{page("a", "b"), page("a", "b", "c", "d", "e", "f"), page("c", "d", "a", "b"), page("x", "b", "c", "d"), page("a", "b", "c", "x"), page("ab", "", "c", "d")} {
		if is.SameFields(1, other, 1) || other.SameFields(1, is, 1) {
			t.Errorf("it is the same as %q", other.Buffer())
		}
	}
	if !is.SameFields(1, page("a", "b", "c", "d"), 1) || !is.SameFields(0, page(), 0) {
		t.Error("it differs from itself")
	}
}

// A page must give back what was put in, in order, duplicates and all, and
// after Reset nothing of what was there before.
func TestPageKeepsWhatIsPutIn(t *testing.T) {
	entries := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pair {
		return pair{rapid.SliceOf(rapid.Byte()).Draw(t, "name"), rapid.SliceOf(rapid.Byte()).Draw(t, "value")}
	}), 0, 5), 0, 10)
	page := new(Page)
	rapid.Check(t, func(t *rapid.T) {
		want := entries.Draw(t, "entries")
		page.Reset()
		for i, fields := range want {
			page.Entry(ID{uint64(i), 1})
			for _, f := range fields {
				if err := page.Field(f.name, f.value); err != nil {
					t.Fatal(err)
				}
			}
		}
		keep := rapid.IntRange(0, len(want)).Draw(t, "keep")
		page.Truncate(keep)
		if page.Len() != keep {
			t.Fatalf("%d entries, want %d", page.Len(), keep)
		}
		total := 0
		for i := range keep {
			lo, hi := page.Fields(i)
			if page.ID(i) != (ID{uint64(i), 1}) || lo != total || hi-lo != len(want[i]) {
				t.Fatalf("entry %d: id %s, fields %d to %d", i, page.ID(i), lo, hi)
			}
			for j := lo; j < hi; j++ {
				f := want[i][j-lo]
				if !bytes.Equal(page.Name(j), f.name) || !bytes.Equal(page.Value(j), f.value) {
					t.Fatalf("entry %d field %d: %q=%q, want %q=%q", i, j-lo, page.Name(j), page.Value(j), f.name, f.value)
				}
			}
			total = hi
		}
		if page.FieldCount() != total {
			t.Fatalf("%d fields, want %d", page.FieldCount(), total)
		}
	})
}

// The digest is that of the entries, not of the pages they came in.
func TestDigest(t *testing.T) {
	page := func(entries ...[]string) *Page {
		p := new(Page)
		for _, e := range entries {
			id, err := ParseID(e[0])
			if err != nil {
				t.Fatal(err)
			}
			p.Entry(id)
			for i := 1; i+1 < len(e); i += 2 {
				if err := p.Field([]byte(e[i]), []byte(e[i+1])); err != nil {
					t.Fatal(err)
				}
			}
		}
		return p
	}
	a, b := []string{"1-0", "f", "v", "g", "w"}, []string{"1-1", "f", "x"}
	whole := page(a, b).Digest(0)
	if got := page(b).Digest(page(a).Digest(0)); got != whole || whole == 0 {
		t.Errorf("in two pages %d, in one %d", got, whole)
	}
	for name, other := range map[string]*Page{
		"other id":          page([]string{"1-2", "f", "v", "g", "w"}, b),
		"other value":       page(a, []string{"1-1", "f", "y"}),
		"other name":        page(a, []string{"1-1", "h", "x"}),
		"other order":       page([]string{"1-0", "g", "w", "f", "v"}, b),
		"other border":      page([]string{"1-0", "fv", "", "g", "w"}, b),
		"a field moved":     page([]string{"1-0", "f", "v"}, []string{"1-1", "g", "w", "f", "x"}),
		"one entry less":    page(a),
		"one field more":    page(a, []string{"1-1", "f", "x", "f", "x"}),
		"nothing":           page(),
		"name and value in": page([]string{"1-0", "f", "vg", "", "w"}, b),
	} {
		if other.Digest(0) == whole {
			t.Errorf("%s: the same digest", name)
		}
	}
}
