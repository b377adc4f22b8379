package segment

import (
	"encoding/json"
	"fmt"
)

// State is where a segment is in its life.
type State string

// The states of a segment.
const (
	Open     State = "OPEN"     // producers append
	Sealed   State = "SEALED"   // no more appends, but for late ones
	Deleting State = "DELETING" // hidden from readers, object being removed
)

// Tier says where readers find a segment.
type Tier string

// The tiers.
const (
	Local  Tier = "LOCAL"  // in Redis
	Remote Tier = "REMOTE" // a Parquet file on the object store
)

// LocalCopy says what is left in Redis of a REMOTE segment.
type LocalCopy string

// The states of a REMOTE segment's local copy.
const (
	Present  LocalCopy = "PRESENT"
	Dropping LocalCopy = "DROPPING"
	Gone     LocalCopy = "GONE"
)

// Entry is a manifest entry of contract v1. The zero of an id, of a time and
// of Object means "not there"; Count is NoCount when it is not there. An Entry
// made by ParseEntry remembers the fields that this program does not know, and
// Encode writes them back as they were.
type Entry struct {
	State    State
	Tier     Tier
	Rev      int64 // +1 at every change that this program makes
	Key      string
	Copy     int64 // which copy this is; 0 = the first
	From, To ID    // bounds, inclusive, of a range in a shared stream
	FirstID  ID
	LastID   ID
	Count    int64
	OpenedAt int64 // epoch ms by the Redis server's clock
	SealedAt int64
	RemoteAt int64
	Local    LocalCopy
	Object   *Object
	Source   *Source // of a REMOTE entry: the stream when it was copied

	DeletingAt int64 // when it became DELETING
	Aged       bool  // DELETING because of retention.ms
	WithTopic  State // of an entry that is DELETING because its topic is gone: what it was before

	fields []field // as they were read, in their order
}

// NoCount is the Count of an entry that does not say how many entries the
// segment holds.
const NoCount = -1

// Object is what a REMOTE entry says of its file.
type Object struct {
	Path   string `json:"path"`  // below the root
	Bytes  int64  `json:"bytes"` // size of the file
	ETag   string `json:"etag"`  // as the store gave it; "" where it gives none
	SHA256 string `json:"sha256"`
}

type field struct {
	name string
	raw  json.RawMessage
}

// Contents is what was copied of a segment: what its entry says once it is
// REMOTE.
type Contents struct {
	FirstID, LastID ID // zero when Count is 0
	Count           int64
}

// Shared says whether the segment is a range of ids in a stream that it
// shares with other segments.
func (e Entry) Shared() bool { return !e.From.IsZero() || !e.To.IsZero() }

// Flip is the entry after the commit point: SEALED LOCAL becomes SEALED
// REMOTE with what was copied, what the stream was then, and where it lies.
// at is the Redis server's time in epoch ms.
func (e Entry) Flip(c Contents, s StreamInfo, o Object, at int64) (Entry, error) {
	if e.State != Sealed || e.Tier != Local {
		return Entry{}, fmt.Errorf("flip a segment that is %s %s: only SEALED LOCAL may become REMOTE", e.State, e.Tier)
	}
	e.Tier, e.Local = Remote, Present
	e.FirstID, e.LastID, e.Count = c.FirstID, c.LastID, c.Count
	e.Object, e.Source, e.RemoteAt = &o, s.source(), at
	e.Rev++
	return e, nil
}

// NextCopy is the entry that takes the next path, because something else
// lies at the path of this one.
func (e Entry) NextCopy() (Entry, error) {
	if e.State != Sealed || e.Tier != Local {
		return Entry{}, fmt.Errorf("raise the copy of a segment that is %s %s: only of SEALED LOCAL", e.State, e.Tier)
	}
	e.Copy++
	e.Rev++
	return e, nil
}

// Due says whether a segment may be copied at now, epoch ms by the Redis
// server's clock: it is SEALED LOCAL and was sealed at least grace ms ago, so
// that appends under way have come in. A segment whose entry does not say when
// it was sealed, or names a time that is still to come, is due at once: the
// checks before the flip do not rest on the grace.
func (e Entry) Due(now, grace int64) bool {
	if e.State != Sealed || e.Tier != Local {
		return false
	}
	age := now - e.SealedAt
	return e.SealedAt == 0 || age >= grace || age < -grace
}

// Forget lets go of what only a change of the entry would need.
func (s *Stored) Forget() { s.Raw, s.Entry.fields = "", nil }

// Stored is a manifest entry with the bytes it was read from, which every
// write to it compares. Err is not nil where the value is not a legal entry;
// it is then left alone.
type Stored struct {
	Number Number
	Raw    string
	Entry  Entry
	Err    error
}

// Manifest is what the manifest of one partition holds: the entries in the
// order of their segments, and the fields whose name is not a segment id.
type Manifest struct {
	Partition Partition
	Entries   []Stored
	Alien     []string
}
