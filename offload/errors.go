package offload

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"korvet-offload/segment"
)

// What the ports say beside success. Adapters wrap their own errors in these.
var (
	// ErrObjectExists: the path is taken.
	ErrObjectExists = errors.New("object exists")
	// ErrObjectMissing: there is no object at the path.
	ErrObjectMissing = errors.New("object missing")
	// ErrObjectUnknown: the store does not let us look whether there is one.
	ErrObjectUnknown = errors.New("object not visible")
	// ErrDeleteDenied: the store keeps an object although it should go.
	ErrDeleteDenied = errors.New("object may not be deleted")
	// ErrNotReplicated: a change of a manifest has not reached as many replicas,
	// or the disk, in time.
	ErrNotReplicated = errors.New("change not replicated in time")
	// ErrStoreDown: the fault does not seem to lie with this object alone: the
	// bucket is missing, the credentials are refused, the store does not answer.
	ErrStoreDown = errors.New("object store can't be used")
	// ErrRedisDown: the same of Redis.
	ErrRedisDown = errors.New("redis can't be used")
	// ErrDataLost: Redis has nothing any more of what this process has seen there.
	ErrDataLost = errors.New("redis seems to have lost its data")
)

// What planning and retention find.
var (
	errOpenBehind = errors.New("segment is OPEN, and is not the last of its partition: nothing seals it; seal it, or remove the entry that follows by mistake")
	errAmbiguous  = errors.New("stream can't be taken over")
	errTorn       = errors.New("manifest changes faster than it can be read")
	errClock      = errors.New("clock jump")
	errRegistry   = errors.New("topic registry in doubt")
	errStray      = errors.New("stray stream")
	errForeign    = errors.New("foreign object")
)

// errConflict: too many paths were taken by other content.
var errConflict = errors.New("objects with other content at every path tried")

// errObject: what the store shows is not what was put.
var errObject = errors.New("object differs from what was put")

// Reason is why a segment, partition or topic is parked: one word of a closed
// list, for reports and metrics.
type Reason string

// The reasons.
const (
	ReasonIllegalEntry  Reason = "illegal_entry"
	ReasonEntryVersion  Reason = "entry_version"
	ReasonOpenBehind    Reason = "open_behind"
	ReasonAmbiguous     Reason = "ambiguous_stream"
	ReasonTorn          Reason = "manifest_unsteady"
	ReasonClock         Reason = "clock_jump"
	ReasonRegistry      Reason = "registry_doubt"
	ReasonStray         Reason = "stray_stream"
	ReasonPause         Reason = "pause_unreadable"
	ReasonForeign       Reason = "foreign_object"
	ReasonDenied        Reason = "delete_denied"
	ReasonNotReplicated Reason = "not_replicated"
	ReasonStreamKey     Reason = "stream_key"
	ReasonTopicName     Reason = "topic_name"
	ReasonTopicSetting  Reason = "topic_setting"
	ReasonSourceMissing Reason = "source_missing"
	ReasonShortStream   Reason = "short_stream"
	ReasonChanged       Reason = "stream_changed"
	ReasonWrongType     Reason = "wrong_type"
	ReasonFieldName     Reason = "field_name"
	ReasonConflict      Reason = "object_conflict"
	ReasonObject        Reason = "object_damaged"
	ReasonDiskFull      Reason = "disk_full"
	ReasonStore         Reason = "store"
	ReasonRedis         Reason = "redis"
	ReasonTimeout       Reason = "timeout"
	ReasonOther         Reason = "other"
)

// Reasons lists every reason, in the order of docs/reasons.md.
func Reasons() []Reason {
	return []Reason{
		ReasonIllegalEntry, ReasonEntryVersion, ReasonOpenBehind, ReasonAmbiguous, ReasonTorn, ReasonClock, ReasonRegistry,
		ReasonPause, ReasonTopicName, ReasonTopicSetting, ReasonStreamKey, ReasonSourceMissing, ReasonShortStream, ReasonChanged, ReasonStray,
		ReasonWrongType, ReasonFieldName, ReasonConflict, ReasonObject, ReasonForeign, ReasonDenied, ReasonNotReplicated,
		ReasonDiskFull, ReasonStore, ReasonRedis, ReasonTimeout, ReasonOther,
	}
}

// Loss says whether data seems to be lost, or out of every reader's sight.
func (r Reason) Loss() bool {
	switch r {
	case ReasonSourceMissing, ReasonShortStream, ReasonObject, ReasonStray:
		return true
	}
	return false
}

// ReasonOf sorts an error into the closed list.
func ReasonOf(err error) Reason {
	for _, r := range []struct {
		is     error
		reason Reason
	}{
		{segment.ErrIllegalEntry, ReasonIllegalEntry},
		{segment.ErrEntryVersion, ReasonEntryVersion},
		{errOpenBehind, ReasonOpenBehind},
		{errAmbiguous, ReasonAmbiguous},
		{errTorn, ReasonTorn},
		{errClock, ReasonClock},
		{errRegistry, ReasonRegistry},
		{errStray, ReasonStray},
		{segment.ErrPause, ReasonPause},
		{errForeign, ReasonForeign},
		{ErrDeleteDenied, ReasonDenied},
		{ErrNotReplicated, ReasonNotReplicated},
		{segment.ErrStreamKey, ReasonStreamKey},
		{segment.ErrTopicName, ReasonTopicName},
		{segment.ErrTopicSetting, ReasonTopicSetting},
		{segment.ErrSourceMissing, ReasonSourceMissing},
		{segment.ErrShortStream, ReasonShortStream},
		{segment.ErrStreamChanged, ReasonChanged},
		{segment.ErrWrongType, ReasonWrongType},
		{segment.ErrFieldName, ReasonFieldName},
		{errConflict, ReasonConflict},
		{errObject, ReasonObject},
		{syscall.ENOSPC, ReasonDiskFull},
		{syscall.EDQUOT, ReasonDiskFull},
		{ErrStoreDown, ReasonStore},
		{ErrRedisDown, ReasonRedis},
		{context.DeadlineExceeded, ReasonTimeout},
		{fs.ErrPermission, ReasonStore},
	} {
		if errors.Is(err, r.is) {
			return r.reason
		}
	}
	return ReasonOther
}
