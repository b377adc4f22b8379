package offload

import (
	"time"

	"korvet-offload/segment"
)

// Result is how an attempt at one segment ended that did not fail.
type Result string

// The results.
const (
	Created           Result = "created"            // the partition has its first entry
	Rolled            Result = "rolled"             // sealed, and the next one opened
	Copied            Result = "copied"             // uploaded and flipped
	Adopted           Result = "adopted"            // the object was there already, with this very content; flipped
	Dropped           Result = "dropped"            // the local copy was removed
	Held              Result = "held"               // a consumer group still needs the local copy
	Reopened          Result = "reopened"           // LOCAL again: what was copied is not what is there
	Hidden            Result = "hidden"             // DELETING; readers no longer see it
	Returned          Result = "returned"           // no longer DELETING: its topic has come back
	Expired           Result = "expired"            // object and entry were deleted
	ExpiredUnuploaded Result = "expired_unuploaded" // stream and entry were deleted; there never was an object
	LostRace          Result = "lost_race"          // somebody else changed the entry first; nothing was done
	Nothing           Result = "nothing"            // there was nothing to do any more
)

// Results lists every result.
func Results() []Result {
	return []Result{Created, Rolled, Copied, Adopted, Dropped, Held, Reopened, Hidden, Returned, Expired, ExpiredUnuploaded, LostRace, Nothing}
}

// UsedStore says whether the store had to work for it.
func (r Result) UsedStore() bool {
	switch r {
	case Copied, Adopted, Dropped, Reopened, Expired:
		return true
	}
	return false
}

// Outcome is what became of one segment that was worked on.
type Outcome struct {
	Action    Action
	Partition segment.Partition
	Segment   segment.Number
	Result    Result
	Why       segment.Due
	Contents  segment.Contents
	Missing   int64  // of a range, as far as known: entries that came and were removed before it was sealed (Roll), or since (Copy)
	Cause     error  // of Reopened
	Path      string // of the object, below the root
	BytesIn   int64  // as they came from Redis
	BytesOut  int64  // of the object
	Duration  time.Duration

	raw string // the entry as this attempt has left it; "" = as it was
}
