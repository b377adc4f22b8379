package segment

import (
	"fmt"
	"strings"
)

// NewRemote is the entry of a segment of which only its file is known: SEALED
// REMOTE without a local copy. at is when the file was written, epoch ms; copy is
// which copy it is.
func NewRemote(c Contents, o Object, copy, at int64) Entry {
	return Entry{State: Sealed, Tier: Remote, Local: Gone, Rev: 1, Copy: copy,
		FirstID: c.FirstID, LastID: c.LastID, Count: c.Count, SealedAt: at, RemoteAt: at, Object: &o}
}

// Restore is the entry of a segment whose local copy is there again, in a stream
// that was filled from its object: s is that stream, so that a later drop can tell
// whether it still is what was put there.
func (e Entry) Restore(s StreamInfo) (Entry, error) {
	switch {
	case e.State != Sealed || e.Tier != Remote || e.Local != Gone:
		return Entry{}, fmt.Errorf("bring the local copy back of a segment that is %s %s %s: only of SEALED REMOTE GONE", e.State, e.Tier, e.Local)
	case e.Shared():
		return Entry{}, fmt.Errorf("bring the local copy back of a range from %s to %s: its stream is shared with other segments", e.From, e.To)
	case !s.Exists || s.Length != e.Count || s.LastID != e.LastID:
		return Entry{}, fmt.Errorf("bring a local copy back of %d entries up to %s: the stream has %d up to %s", e.Count, e.LastID, s.Length, s.LastID)
	}
	e.Local, e.Source = Present, s.source()
	e.Rev++
	return e, nil
}

// Owns says whether a key could be one of the layout's: nothing else may be put
// there.
func (l Layout) Owns(key string) bool {
	if l.owns(key) {
		return true
	}
	for _, own := range []string{l.MembersKey(), l.PausedKey(), l.ClusterKey()} {
		if key == own || strings.HasPrefix(key, own+":") {
			return true
		}
	}
	return strings.HasPrefix(key, l.LeaseKey()+":")
}
