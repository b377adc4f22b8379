package checker

import (
	"fmt"
	"maps"
	"slices"
)

// History watches how entries change. It is shown the manifests again and
// again, as often as its owner likes, and finds what no sequence of changes
// that the contract allows (docs/manifest.md) leads to. Since every change
// raises rev by one, it knows how many there were between two looks.
//
// It does not see what came and went between two looks, and knows nothing of
// time: whether a segment was old enough to go is not its matter. It is not
// safe for concurrent use.
type History struct {
	last map[string]map[string]seen // by partition and field
}

// seen is an entry as it was when it was seen last.
type seen struct {
	raw   string
	entry entry
	legal bool
}

// NewHistory has seen nothing.
func NewHistory() *History { return &History{last: map[string]map[string]seen{}} }

// Look compares all manifests of a world with what was seen last.
func (h *History) Look(w World) (found []Finding) {
	for i := range w.Partitions {
		p := &w.Partitions[i]
		found = append(found, h.See(p.Name, p.Manifest)...)
	}
	return found
}

// See compares one manifest with what was seen of it last. The findings are of
// kind Illegal; that an entry is none by itself is left to Check.
func (h *History) See(partition string, manifest map[string]string) (found []Finding) {
	before := h.last[partition]
	now := make(map[string]seen, len(manifest))
	h.last[partition] = now
	at := func(field, text string) {
		found = append(found, Finding{Kind: Illegal, Partition: partition, Segment: field, Text: text})
	}
	for _, field := range slices.Sorted(maps.Keys(manifest)) {
		was, known := before[field]
		is := was
		if raw := manifest[field]; !known || raw != was.raw {
			e, err := parseEntry(raw)
			is = seen{raw, e, err == nil}
		}
		now[field] = is
		if !known || is.raw == was.raw || !is.legal || !was.legal {
			continue
		}
		if text := wrongChange(&was.entry, &is.entry); text != "" {
			at(field, fmt.Sprintf("%s: it was %s, and is %s", text, was.raw, is.raw))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(before)) {
		if was := before[field]; now[field].raw == "" && was.entry.state != stateDeleting {
			at(field, "the entry went without having been DELETING: it was "+was.raw)
		}
	}
	return found
}

// Forget says that a partition was deleted, and may be made anew, by somebody
// else.
func (h *History) Forget(partition string) { delete(h.last, partition) }

// wrongChange says what is wrong about how an entry has changed; "" = nothing.
func wrongChange(was, is *entry) string {
	steps := is.rev - was.rev
	switch {
	case steps <= 0:
		return "it has changed, and rev has not grown"
	case is.from != was.from, !was.to.none() && is.to != was.to:
		return "its range has changed"
	case is.key != was.key && was.state != stateOpen:
		return "its stream has changed"
	case was.sealedAt != 0 && is.sealedAt != was.sealedAt && is.state != stateOpen:
		return "the time at which it was sealed has changed"
	}
	if text := wrongObject(was, is); text != "" {
		return text
	}
	if !reaches(phaseOf(was), phaseOf(is), is.copy-was.copy, steps) {
		return fmt.Sprintf("no %d changes lead from the one to the other", steps)
	}
	return ""
}

// wrongObject is about the object of an entry that had one and has one: the
// same for as long as the copy is the same, another for another copy.
func wrongObject(was, is *entry) string {
	if !was.described || !is.described {
		return ""
	}
	same := was.object == is.object && was.count == is.count && was.firstID == is.firstID && was.lastID == is.lastID
	switch {
	case was.copy == is.copy && !same:
		return "its object has changed in place"
	case was.copy != is.copy && was.object.path == is.object.path:
		return "another copy has the same path"
	}
	return ""
}
