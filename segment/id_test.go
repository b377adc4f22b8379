package segment

import (
	"math"
	"testing"
)

func TestIDsCompareAsNumbers(t *testing.T) {
	ordered := []string{"0-0", "0-1", "5-9", "5-10", "5-11", "9-0", "10-0", "99-18446744073709551615", "100-0",
		"18446744073709551615-18446744073709551615"}
	for i, a := range ordered {
		for j, b := range ordered {
			x, y := mustID(t, a), mustID(t, b)
			if got, want := x.Compare(y), sign(i-j); got != want {
				t.Errorf("%s compared with %s: %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, s := range []string{"", "-", "+", "5", "5-", "-5", "5-5-5", "a-1", "1-a", "+1-1", "1-+1", " 1-1", "1-1 ", "1_0-1",
		"0x1-1", "18446744073709551616-0", "0-18446744073709551616", "-1-1"} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("ParseID(%q) = %s, want an error", s, id)
		}
	}
}

func TestIDNext(t *testing.T) {
	for _, c := range []struct{ id, want ID }{
		{ID{1, 1}, ID{1, 2}},
		{ID{1, math.MaxUint64}, ID{2, 0}},
	} {
		if got, ok := c.id.Next(); !ok || got != c.want {
			t.Errorf("%s.Next() = %s, %t; want %s", c.id, got, ok, c.want)
		}
	}
	if got, ok := MaxID().Next(); ok {
		t.Errorf("the largest id has a next one: %s", got)
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"1-1", "1708956789000-0", "-", "18446744073709551615-18446744073709551615", "01-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			return
		}
		again, err := ParseID(id.String())
		if err != nil || again != id {
			t.Fatalf("%q gives %s, which gives %s, %v", s, id, again, err)
		}
	})
}

func mustID(t *testing.T, s string) ID {
	t.Helper()
	id, err := ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
