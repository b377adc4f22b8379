package segment

import "fmt"

// The transitions below are those of a person's repair. No worker makes them by
// itself: each rests on an object or a stream that was just read whole.

// Retake is Recopy of a segment whose local copy was gone, and whose stream is
// there again, whole.
func (e Entry) Retake() (Entry, error) {
	if e.State != Sealed || e.Tier != Remote || e.Local != Gone {
		return Entry{}, fmt.Errorf("take back the stream of a segment that is %s %s %s: only of SEALED REMOTE GONE", e.State, e.Tier, e.Local)
	}
	e.Local = Present
	return e.Recopy()
}

// Repoint is the entry of a REMOTE segment that takes another object, which is
// its copy number copy and holds c, in the place of one that is not what it was.
func (e Entry) Repoint(c Contents, o Object, copy int64) (Entry, error) {
	if e.State != Sealed || e.Tier != Remote {
		return Entry{}, fmt.Errorf("point a segment that is %s %s to another object: only SEALED REMOTE", e.State, e.Tier)
	}
	e.FirstID, e.LastID, e.Count = c.FirstID, c.LastID, c.Count
	e.Object, e.Copy = &o, max(e.Copy, copy)
	e.Rev++
	return e, nil
}

// Found is the entry of a LOCAL segment that has lost its stream, and whose
// object, which is its copy number copy and holds c, was found. at is the Redis
// server's time in epoch ms.
func (e Entry) Found(c Contents, o Object, copy, at int64) (Entry, error) {
	if e.State != Sealed || e.Tier != Local {
		return Entry{}, fmt.Errorf("take a found object for a segment that is %s %s: only SEALED LOCAL", e.State, e.Tier)
	}
	e.Tier, e.Local, e.RemoteAt = Remote, Gone, at
	e.FirstID, e.LastID, e.Count = c.FirstID, c.LastID, c.Count
	e.Object, e.Source, e.Copy = &o, nil, max(e.Copy, copy)
	e.Rev++
	return e, nil
}

// NewSealed is the entry of a segment that has none any more, and of which c is
// known: as if it had just been sealed, its stream being there. The next object
// is its copy number copy.
func NewSealed(c Contents, copy, at int64) Entry {
	e := Entry{State: Sealed, Tier: Local, Rev: 1, Copy: copy, FirstID: c.FirstID, LastID: c.LastID, Count: c.Count, SealedAt: at}
	if ms := c.LastID.Ms; IsTime(ms) && ms < uint64(max(0, at)) {
		e.SealedAt = int64(ms) //nolint:gosec // less than at
	}
	return e
}

// Between gives the entry bounds in a stream that it shares with other segments.
func (e Entry) Between(key string, from, to ID) Entry {
	e.Key, e.From, e.To = key, from, to
	return e
}
