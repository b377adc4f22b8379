package segment

import (
	"encoding/json"
	"fmt"
)

// Source is what a REMOTE entry says of the stream that it was copied from,
// as the server told it at that time. Count is in the entry.
type Source struct {
	LastID       ID    // last-generated-id
	Added        int64 // entries-added; -1 where the server does not say
	MaxDeletedID ID    // max-deleted-entry-id; zero where there is none, or the server does not say
	CRC32C       int64 // of a range: of all that was copied (Page.Digest); 0 = not known
}

// read takes an entry's field source.
func (s *Source) read(raw []byte) error {
	*s = Source{Added: -1}
	return readFields(raw, func(f field) error {
		switch f.name {
		case "lastId":
			return readID(f.raw, &s.LastID)
		case "added":
			return readNumber(f.raw, &s.Added)
		case "maxDeletedId":
			return readID(f.raw, &s.MaxDeletedID)
		case "crc32c":
			return readNumber(f.raw, &s.CRC32C)
		}
		return nil
	})
}

func (s Source) encode() json.RawMessage {
	out := []byte{'{'}
	if !s.LastID.IsZero() {
		out = appendField(out, "lastId", mustJSON(s.LastID.String()))
	}
	if s.Added >= 0 {
		out = appendField(out, "added", mustJSON(s.Added))
	}
	if !s.MaxDeletedID.IsZero() {
		out = appendField(out, "maxDeletedId", mustJSON(s.MaxDeletedID.String()))
	}
	if s.CRC32C != 0 {
		out = appendField(out, "crc32c", mustJSON(s.CRC32C))
	}
	return append(out, '}')
}

func (s StreamInfo) source() *Source {
	return &Source{LastID: s.LastID, Added: s.EntriesAdded, MaxDeletedID: s.MaxDeletedID}
}

// NewOpen is the entry of a segment that begins at a time, epoch ms by the
// Redis server's clock, with the usual stream or, if key is not empty, that one.
func NewOpen(key string, at int64) Entry {
	return Entry{State: Open, Tier: Local, Rev: 1, Key: key, Count: NoCount, OpenedAt: at}
}

// Adopt is the entry with another stream: that of somebody who knows of no
// segments. The segment is OPEN and its own stream has no entries.
func (e Entry) Adopt(key string, openedAt int64) Entry {
	e.Key, e.OpenedAt = key, openedAt
	e.Rev++
	return e
}

// NewOpenRange is the entry of a segment that begins at an id of a shared
// stream and takes all that comes behind it. s is the stream at that place,
// from which the server tells how much has come since.
func NewOpenRange(key string, from ID, s Source, at int64) Entry {
	e := NewOpen(key, at)
	e.From, e.Source = from, &s
	return e
}

// Seal is the entry of an OPEN segment that takes no more appends, with what
// it held just before, so that a later loss shows; of a range in a shared
// stream c is exact, and the range ends with it.
func (e Entry) Seal(c Contents, at int64) (Entry, error) {
	if e.State != Open || e.Tier != Local {
		return Entry{}, fmt.Errorf("seal a segment that is %s %s: only OPEN may become SEALED", e.State, e.Tier)
	}
	if e.Shared() && c.LastID.Compare(e.From) < 0 {
		return Entry{}, fmt.Errorf("seal a segment from %s with the last id %s: it would end before it begins", e.From, c.LastID)
	}
	e.State, e.SealedAt, e.Source = Sealed, at, nil
	e.FirstID, e.LastID, e.Count = c.FirstID, c.LastID, c.Count
	if e.Shared() {
		e.To = c.LastID
	}
	e.Rev++
	return e, nil
}

// Drop is the entry of a segment whose local copy is about to be removed.
// One that is being removed already is written anew, so that a wait for
// replicas has a write to wait for.
func (e Entry) Drop() (Entry, error) {
	if e.State != Sealed || e.Tier != Remote || e.Local == Gone {
		return Entry{}, fmt.Errorf("drop the local copy of a segment that is %s %s %s: only of SEALED REMOTE that has one", e.State, e.Tier, e.Local)
	}
	e.Local = Dropping
	e.Rev++
	return e, nil
}

// Dropped is the entry of a segment whose local copy is no longer there.
func (e Entry) Dropped() (Entry, error) {
	if e.State != Sealed || e.Tier != Remote || e.Local == Gone {
		return Entry{}, fmt.Errorf("mark the local copy gone of a segment that is %s %s %s", e.State, e.Tier, e.Local)
	}
	e.Local = Gone
	e.Rev++
	return e, nil
}

// Recopy is the entry of a segment that goes back to LOCAL, to be copied again
// to the next path: its object is not what it was, or its stream has grown.
// What it held stays written as the least that the stream has to hold.
func (e Entry) Recopy() (Entry, error) {
	if e.State != Sealed || e.Tier != Remote || e.Local == Gone {
		return Entry{}, fmt.Errorf("copy again a segment that is %s %s %s: its local copy has to be there", e.State, e.Tier, e.Local)
	}
	e.Tier, e.Local, e.Object, e.Source, e.RemoteAt = Local, "", nil, nil, 0
	e.Copy++
	e.Rev++
	return e, nil
}

// Delete is the entry of a segment that readers no longer see. Of one that is
// still LOCAL, s is its stream, which is removed later only if it is still
// that. One without deletingAt, marked by somebody else, gets it.
func (e Entry) Delete(s StreamInfo, at int64) (Entry, error) {
	known := e.Tier == Remote || e.Source != nil // where not, somebody else has hidden it
	if e.State == Deleting && e.DeletingAt != 0 && known && e.DeletingAt-at <= clockTolerance {
		return Entry{}, fmt.Errorf("mark a segment deleting that is so since %d", e.DeletingAt)
	}
	if e.Tier == Local {
		e.Source = s.source()
		if s.Exists { // else what it should have is all that is known
			e.Count, e.LastID = s.Length, s.LastID
		}
	}
	e.State, e.DeletingAt = Deleting, at
	e.Rev++
	return e, nil
}

// DeleteWithTopic is Delete for a segment whose topic is gone, whatever state
// it is in: the entry remembers that, for the case that the topic comes back.
func (e Entry) DeleteWithTopic(s StreamInfo, at int64) (Entry, error) {
	was := e.State
	e, err := e.Delete(s, at)
	if was != Deleting {
		e.WithTopic = was
	}
	return e, err
}

// Return is the entry of a segment that should not be hidden any more, because
// its topic has come back or its retention was raised: as it was before it was
// hidden. Where a part of it was deleted already (whole is false), it
// stays DELETING, and goes.
func (e Entry) Return(whole bool) (Entry, error) {
	if e.State != Deleting || e.WithTopic == "" && !e.Aged {
		return Entry{}, fmt.Errorf("bring back a segment that is %s: it was not hidden for its age, or with its topic", e.State)
	}
	if whole {
		e.DeletingAt = 0
		if e.State = e.WithTopic; e.State == "" {
			e.State = Sealed
		}
		if e.Tier == Local {
			e.Source = nil
		}
		if e.State == Open {
			e.FirstID, e.LastID, e.Count = ID{}, ID{}, NoCount
		}
	}
	e.WithTopic, e.Aged = "", false
	e.Rev++
	return e, nil
}

// Undelete is the entry of a LOCAL segment whose stream has changed while it
// was DELETING: what came is newer than what was to go.
func (e Entry) Undelete() (Entry, error) {
	if e.State != Deleting || e.Tier != Local {
		return Entry{}, fmt.Errorf("take back the deletion of a segment that is %s %s: only of DELETING LOCAL", e.State, e.Tier)
	}
	e.State, e.DeletingAt, e.WithTopic, e.Aged, e.Source = Sealed, 0, "", false, nil
	e.Rev++
	return e, nil
}

// firstTime is the smallest number, epoch ms, that an id's first part is taken
// for a time: below it (1973) it is a counter that somebody has chosen.
const firstTime = 100_000_000_000

// IsTime says whether the first part of an id is taken for a time.
func IsTime(ms uint64) bool { return ms >= firstTime }

// LastAppend is when the newest entry of the segment came, epoch ms, for its
// age: by the last entry's id, or by when the segment was sealed where that id
// lies in the future of now, or is no time at all. An id of before the segment
// was opened can't say when it was appended; the opening does then. False means
// that the entry says too little, and that the segment has no age.
func (e Entry) LastAppend(now int64) (int64, bool) {
	if ms := e.LastID.Ms; IsTime(ms) && ms <= uint64(max(0, now)) {
		return max(int64(ms), min(e.OpenedAt, now)), true
	}
	for _, at := range []int64{e.SealedAt, e.RemoteAt} {
		if at != 0 {
			return at, true
		}
	}
	return 0, false
}
