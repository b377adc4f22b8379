package segment

import "errors"

// What can be wrong with one segment or topic. Each means "park it": the
// thing is left as it is, reported, retried later, and holds up nothing else.
// Callers wrap them with the name of the thing and the facts.
var (
	// ErrSourceMissing: the manifest says LOCAL and more than 0 entries, and
	// the stream has none.
	ErrSourceMissing = errors.New("source stream missing")
	// ErrShortStream: the stream has never reached the last id in the manifest.
	ErrShortStream = errors.New("source stream too short")
	// ErrStreamChanged: the stream was written to, or trimmed, while it was
	// copied, or is not what was copied when it is to be dropped.
	ErrStreamChanged = errors.New("source stream changed")
	// ErrWrongType: the key holds something that is not a stream.
	ErrWrongType = errors.New("key is not a stream")
	// ErrFieldName: a field name is not UTF-8, so it can't be a Parquet STRING.
	ErrFieldName = errors.New("field name is not UTF-8")
	// ErrIllegalEntry: a manifest value that is not an entry of contract v1.
	ErrIllegalEntry = errors.New("illegal manifest entry")
	// ErrEntryVersion: a manifest entry of a version that this program does not know.
	ErrEntryVersion = errors.New("unknown manifest entry version")
	// ErrTopicName: a topic name outside Kafka's rule.
	ErrTopicName = errors.New("illegal topic name")
	// ErrStreamKey: a key that can't be that of a plain stream.
	ErrStreamKey = errors.New("illegal stream key")
	// ErrTopicSetting: a topic setting whose value makes no sense.
	ErrTopicSetting = errors.New("illegal topic setting")
	// ErrPause: a record of what is paused that can't be read.
	ErrPause = errors.New("illegal record of a pause")
)
