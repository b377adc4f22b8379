package segment

import (
	"math"
	"testing"
)

func mendEntry(state State, tier Tier, local LocalCopy) Entry {
	e := Entry{State: state, Tier: tier, Local: local, Rev: 4, Copy: 2, Count: 3, FirstID: ID{Ms: 1}, LastID: ID{Ms: 3}}
	if tier == Remote {
		e.Object, e.Source, e.RemoteAt = &Object{Path: "f/0-2.parquet", SHA256: "a"}, &Source{LastID: ID{Ms: 3}, Added: 3}, 7
	}
	return e
}

// each transition of a repair is legal from its own states alone, counts the
// revision up, and gives what can be read again.
func TestMendTransitions(t *testing.T) {
	c, o := Contents{FirstID: ID{Ms: 1}, LastID: ID{Ms: 4}, Count: 4}, Object{Path: "f/0-5.parquet", Bytes: 9, SHA256: "b"}
	for name, x := range map[string]struct {
		do   func(Entry) (Entry, error)
		from map[string]bool
		want func(Entry) bool
	}{
		"retake": {Entry.Retake, map[string]bool{"SEALED REMOTE GONE": true}, func(e Entry) bool {
			return e.Tier == Local && e.Local == "" && e.Copy == 3 && e.Object == nil && e.Source == nil && e.Count == 3
		}},
		"repoint": {func(e Entry) (Entry, error) { return e.Repoint(c, o, 5) },
			map[string]bool{"SEALED REMOTE GONE": true, "SEALED REMOTE PRESENT": true, "SEALED REMOTE DROPPING": true},
			func(e Entry) bool { return *e.Object == o && e.Copy == 5 && e.Count == 4 && e.Source != nil }},
		"found": {func(e Entry) (Entry, error) { return e.Found(c, o, 1, 99) }, map[string]bool{"SEALED LOCAL ": true},
			func(e Entry) bool {
				return e.Tier == Remote && e.Local == Gone && *e.Object == o && e.Copy == 2 && e.Count == 4 && e.RemoteAt == 99 && e.Source == nil
			}},
	} {
		for _, state := range []State{Open, Sealed, Deleting} {
			for _, at := range []struct {
				tier  Tier
				local LocalCopy
			}{{Local, ""}, {Remote, Present}, {Remote, Dropping}, {Remote, Gone}} {
				was := mendEntry(state, at.tier, at.local)
				got, err := x.do(was)
				key := string(state) + " " + string(at.tier) + " " + string(at.local)
				if x.from[key] != (err == nil) {
					t.Errorf("%s of %s: %v", name, key, err)
				}
				if err != nil {
					continue
				}
				again, err := ParseEntry(got.Encode())
				if err != nil || got.Rev != 5 || !x.want(got) || !x.want(again) {
					t.Errorf("%s of %s gives %s, %v", name, key, got.Encode(), err)
				}
				if was.Tier == Remote && was.Object.Path != "f/0-2.parquet" {
					t.Errorf("%s of %s has changed the entry that it was made of", name, key)
				}
			}
		}
	}
}

func TestNewSealed(t *testing.T) {
	c := Contents{FirstID: ID{Ms: 1}, LastID: ID{Ms: 1_700_000_000_000}, Count: 2}
	for _, x := range []struct {
		last ID
		at   int64
		want int64
	}{
		{c.LastID, 1_800_000_000_000, 1_700_000_000_000},   // as old as its newest entry
		{c.LastID, 1_600_000_000_000, 1_600_000_000_000},   // which lies in the future
		{ID{Ms: 12}, 1_600_000_000_000, 1_600_000_000_000}, // or is no time
	} {
		c.LastID = x.last
		e := NewSealed(c, 3, x.at)
		if e.SealedAt != x.want || e.Copy != 3 || e.Count != 2 || e.State != Sealed || e.Tier != Local {
			t.Errorf("at %d: %s", x.at, e.Encode())
		}
		if e = e.Between("k", ID{Ms: 1}, x.last); !e.Shared() || e.Key != "k" {
			t.Errorf("between: %s", e.Encode())
		}
	}
}

func TestPrevUndoesNext(t *testing.T) {
	for _, id := range []ID{{}, {Seq: 1}, {Ms: 1}, {Ms: 5, Seq: 9}, {Ms: 5, Seq: math.MaxUint64}} {
		next, _ := id.Next()
		if prev, ok := next.Prev(); !ok || prev != id {
			t.Errorf("%s, %s, %s", id, next, prev)
		}
	}
	if _, ok := (ID{}).Prev(); ok {
		t.Error("there is an id before the first")
	}
}
