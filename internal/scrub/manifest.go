package scrub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"korvet-offload/segment"
)

// errTorn: a manifest that can't be read whole.
var errTorn = errors.New("manifest changes faster than it can be read")

// row is one entry of a manifest. Its bytes are not kept: a manifest may hold a
// million of them.
type row struct {
	number segment.Number
	entry  segment.Entry // without what a change of it would need
	sum    uint64        // of the entry's bytes
	err    error         // why it is no entry
}

// holds says whether the bytes of an entry are still those that were read.
func (r row) holds(raw string) bool { return r.sum == sumOf(raw) }

func sumOf(raw string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(raw)) // never fails
	return h.Sum64()
}

// sealed says whether the row is a legal entry that is SEALED.
func (r row) sealed() bool { return r.err == nil && r.entry.State == segment.Sealed }

// ranged says whether it is sealed and known from which id to which it has messages.
func (r row) ranged() bool {
	e := r.entry
	return r.sealed() && !e.FirstID.IsZero() && !e.LastID.IsZero() && e.Count != 0
}

// manifest is what the manifest of a partition holds.
type manifest struct {
	rows  []row    // in the order of their numbers
	alien []string // fields whose names are no segment ids
}

func (m manifest) empty() bool { return len(m.rows)+len(m.alien) == 0 }

// find returns the row of a segment.
func (m manifest) find(n segment.Number) (row, bool) {
	i, there := slices.BinarySearchFunc(m.rows, n, func(r row, n segment.Number) int { return cmp.Compare(r.number, n) })
	if !there {
		return row{}, false
	}
	return m.rows[i], true
}

// manifestTries is how often a manifest is read that changes meanwhile.
const manifestTries = 5

// readManifest reads a whole manifest.
func readManifest(ctx context.Context, from Manifests, p segment.Partition) (manifest, error) {
	for range manifestTries {
		var m manifest
		alien := map[string]bool{}
		fields, err := from.Each(ctx, p, func(field, value string) {
			if n, err := segment.ParseNumber(field); err == nil {
				m.rows = append(m.rows, newRow(n, value))
			} else {
				alien[field] = true
			}
		})
		if err != nil {
			return manifest{}, fmt.Errorf("read the manifest of %s: %w", p, err)
		}
		m.alien = slices.Sorted(maps.Keys(alien))
		if m.latest(); int64(len(m.rows)+len(m.alien)) >= fields {
			return m, nil
		}
	}
	return manifest{}, fmt.Errorf("read the manifest of %s: %w", p, errTorn)
}

// latest puts the rows into order, and keeps of each number what came last.
func (m *manifest) latest() {
	slices.SortStableFunc(m.rows, func(a, b row) int { return cmp.Compare(a.number, b.number) })
	n := 0
	for i, r := range m.rows {
		if i+1 == len(m.rows) || m.rows[i+1].number != r.number {
			m.rows[n] = r
			n++
		}
	}
	clear(m.rows[n:])
	m.rows = m.rows[:n]
}

func newRow(n segment.Number, raw string) row {
	e, err := segment.ParseEntry([]byte(raw))
	if err == nil {
		err = wanting(e)
	}
	s := segment.Stored{Entry: e}
	s.Forget()
	return row{number: n, entry: s.Entry, sum: sumOf(raw), err: err}
}

// wanting says what a REMOTE entry lacks without which nobody can read its
// segment, or drop its local copy.
func wanting(e segment.Entry) error {
	switch {
	case e.Tier != segment.Remote:
		return nil
	case e.Object == nil || e.Object.Path == "":
		return fmt.Errorf("%w: REMOTE, and it names no object", segment.ErrIllegalEntry)
	case e.Count == segment.NoCount:
		return fmt.Errorf("%w: REMOTE, and it does not say how many messages were copied", segment.ErrIllegalEntry)
	}
	return nil
}
