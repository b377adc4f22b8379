package lease

import (
	"cmp"
	"slices"
)

// load is how many leases a member holds.
type load struct {
	id   string
	held int
}

// share is how many of n leases a member should hold, so that all are held and
// no two members differ by more than one: whoever has most already keeps what
// does not divide, so that nothing moves without need. Among equals the id
// decides. loads has one line for each member, self among them.
func share(n int, self string, loads []load) int {
	loads = slices.Clone(loads)
	slices.SortFunc(loads, func(a, b load) int { return cmp.Or(cmp.Compare(b.held, a.held), cmp.Compare(a.id, b.id)) })
	each, rest := n/len(loads), n%len(loads)
	if i := slices.IndexFunc(loads, func(l load) bool { return l.id == self }); i < rest {
		each++
	}
	return each
}

// candidates are the leases that a member may try to take, of those that are
// not taken. They begin at a place of its own, so that two members that begin
// together do not ask for the same ones in the same order.
func candidates(self string, taken []bool) (free []int) {
	begin := uint32(2166136261) // FNV-1a
	for _, b := range []byte(self) {
		begin = (begin ^ uint32(b)) * 16777619
	}
	for i := range taken {
		if at := (int(begin%uint32(len(taken))) + i) % len(taken); !taken[at] { //nolint:gosec // MaxShards bounds it
			free = append(free, at)
		}
	}
	return free
}
