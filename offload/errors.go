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
	// ErrStoreDown: the fault does not seem to lie with this object alone: the
	// bucket is missing, the credentials are refused, the store does not answer.
	ErrStoreDown = errors.New("object store can't be used")
	// ErrRedisDown: the same of Redis.
	ErrRedisDown = errors.New("redis can't be used")
)

// errSharedStream: the entry is a range of a stream that it shares.
var errSharedStream = errors.New("segment is a range of a shared stream, which this version does not copy")

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
	ReasonSharedStream  Reason = "shared_stream"
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

// ReasonOf sorts an error into the closed list.
func ReasonOf(err error) Reason {
	for _, r := range []struct {
		is     error
		reason Reason
	}{
		{segment.ErrIllegalEntry, ReasonIllegalEntry},
		{segment.ErrEntryVersion, ReasonEntryVersion},
		{errSharedStream, ReasonSharedStream},
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
