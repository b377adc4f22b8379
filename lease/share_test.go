package lease

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		n     int
		loads []load
		want  string // of each member, in the order of loads
	}{
		{4, []load{{"a", 0}}, "[4]"},
		{4, []load{{"a", 4}, {"b", 0}}, "[2 2]"},
		{3, []load{{"a", 0}, {"b", 3}}, "[1 2]"},
		{3, []load{{"a", 1}, {"b", 1}}, "[2 1]"},
		{2, []load{{"c", 0}, {"b", 1}, {"a", 1}}, "[0 1 1]"},
		{5, []load{{"a", 1}, {"b", 2}, {"c", 2}}, "[1 2 2]"},
		{1, []load{{"b", 0}, {"a", 0}}, "[0 1]"},
	} {
		var got []int
		for _, l := range tt.loads {
			got = append(got, share(tt.n, l.id, tt.loads))
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%d among %v: %v, want %s", tt.n, tt.loads, got, tt.want)
		}
	}
}

func TestCandidates(t *testing.T) {
	taken := []bool{true, false, false, true}
	for _, self := range []string{"a", "b", "host-0f"} {
		if got := candidates(self, taken); !slices.Equal(slices.Sorted(slices.Values(got)), []int{1, 2}) {
			t.Errorf("%s: %v", self, got)
		}
	}
}

// table is leases and their holders; each member moves by what it has read
// last, which may be old.
type table struct {
	holders []string // "" = free
	members map[string][]load
}

func (s *table) loads() (all []load) {
	for id := range s.members {
		held := 0
		for _, h := range s.holders {
			if h == id {
				held++
			}
		}
		all = append(all, load{id, held})
	}
	return all
}

// move is a step of one member: false if it had nothing to do.
func (s *table) move(id string) bool {
	held := 0
	taken := make([]bool, len(s.holders))
	for i, h := range s.holders {
		if h == id {
			held++
		}
		taken[i] = h != ""
	}
	view := slices.Clone(s.members[id])
	view[slices.IndexFunc(view, func(l load) bool { return l.id == id })].held = held // its own it knows
	want := share(len(s.holders), id, view)
	moved := false
	for i := len(s.holders) - 1; i >= 0 && held > want; i-- {
		if s.holders[i] == id {
			s.holders[i], held, moved = "", held-1, true
		}
	}
	for _, i := range candidates(id, taken) {
		if held < want && s.holders[i] == "" {
			s.holders[i], held, moved = id, held+1, true
		}
	}
	return moved
}

// Members join, are killed, and move in any order and by old news; then nothing
// more happens. Asserted: after a few rounds in any order all leases are held,
// nobody has more than one more than another, and nothing moves any more.
func TestSharesSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &table{holders: make([]string, rapid.IntRange(1, 20).Draw(t, "leases")), members: map[string][]load{}}
		next := 0
		join := func() {
			id := fmt.Sprintf("m%02d", next)
			next++
			s.members[id] = nil
			s.members[id] = s.loads()
		}
		some := func() string {
			ids := make([]string, 0, len(s.members))
			for id := range s.members {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			return rapid.SampledFrom(ids).Draw(t, "who")
		}
		join()
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				join()
			case 1:
				if len(s.members) > 1 {
					gone := some()
					delete(s.members, gone)
					for i, h := range s.holders {
						if h == gone {
							s.holders[i] = ""
						}
					}
				}
			case 2:
				id := some()
				s.members[id] = s.loads()
			default:
				s.move(some())
			}
		}
		settle(t, s)
	})
}

func settle(t *rapid.T, s *table) {
	order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0)) //nolint:gosec // a test
	round := func() (moved bool) {
		ids := make([]string, 0, len(s.members))
		for id := range s.members {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		order.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids {
			s.members[id] = s.loads()
			moved = s.move(id) || moved
		}
		return moved
	}
	rounds := 0
	for round() {
		if rounds++; rounds > 4 {
			t.Fatalf("still moving after %d rounds: %v", rounds, s.loads())
		}
	}
	least, most, all := len(s.holders), 0, 0
	for _, l := range s.loads() {
		least, most, all = min(least, l.held), max(most, l.held), all+l.held
	}
	if all != len(s.holders) || most-least > 1 {
		t.Fatalf("%d of %d leases are held: %v", all, len(s.holders), s.loads())
	}
}
