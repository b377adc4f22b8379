package doctor

import (
	"fmt"
	"math"
	"time"

	"korvet-offload/internal/words"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// SettingsFacts are the settings that are judged together, and what the host
// says of them.
type SettingsFacts struct {
	Tick, Lease  time.Duration
	Concurrency  int
	SpoolDir     string
	NoSpool      error // why files can't grow there
	Spool        s3sink.FolderFacts
	SpoolMemory  int64 // bytes
	MemoryLimit  int64 // GOMEMLIMIT in bytes; math.MaxInt64 = none
	StorageClass string
	Topics       []segment.Topic // those that are offloaded; nil where they are not known
}

// OfSettings judges the settings.
func OfSettings(f SettingsFacts) []Finding {
	return []Finding{retention(f), leaseLength(f), spool(f), memoryLimit(f), storageClass(f)}
}

func retention(f SettingsFacts) Finding {
	const id = "settings.retention"
	if f.Topics == nil {
		return skip(id, "", "the topics are not known")
	}
	if len(f.Topics) == 0 {
		return skip(id, "", "no topic is offloaded")
	}
	odd := []Finding{}
	for _, t := range f.Topics {
		if one := topicRetention(t, f.Tick); one.Verdict != OK {
			odd = append(odd, one)
		}
	}
	if len(odd) == 0 {
		return good(id, "it fits segment.ms and the tick in %s", words.Count(len(f.Topics), "topic"))
	}
	w := worst(odd)
	if len(odd) > 1 {
		w.Seen += fmt.Sprintf(" (and %s like it)", words.Count(len(odd)-1, "topic"))
	}
	return w
}

func topicRetention(t segment.Topic, tick time.Duration) Finding {
	const id = "settings.retention"
	s := t.Settings
	switch {
	case s.RetentionMs >= 0 && s.RetentionMs <= tick.Milliseconds():
		return warn(id, "lengthen retention.ms, or shorten tick-interval", "topic %s: retention.ms %d is over before the next tick (%s) has looked at a segment", t.Name, s.RetentionMs, tick)
	case s.LocalRetentionMs >= 0 && s.LocalRetentionMs < s.SegmentMs:
		return warn(id, "shorten segment.ms to local.retention.ms or below: a segment is removed whole, after it was sealed",
			"topic %s: local.retention.ms %d is shorter than segment.ms %d, so that messages stay for longer than it says", t.Name, s.LocalRetentionMs, s.SegmentMs)
	}
	return good(id, "")
}

// A lease that is shorter changes hands at every pause of the host; after a
// crash, nobody works for as long as it lasts.
const (
	shortLease = 10 * time.Second
	longLease  = 15 * time.Minute
)

func leaseLength(f SettingsFacts) Finding {
	const id = "settings.lease"
	switch {
	case f.Lease < shortLease:
		return warn(id, "raise lease-duration to 10s or more", "lease-duration %s: a pause of the host of that length changes the leader", f.Lease)
	case f.Lease > longLease:
		return warn(id, "lower lease-duration", "lease-duration %s: after a crash nobody works for that long", f.Lease)
	}
	return good(id, "lease-duration %s, tick-interval %s", f.Lease, f.Tick)
}

func spool(f SettingsFacts) Finding {
	const id = "settings.spool"
	const name = "korvet.storage.offload.spool-dir"
	if f.NoSpool != nil {
		return fail(id, "set "+name+" to a folder that can be written", "%s", f.NoSpool)
	}
	if f.Spool.Type == "tmpfs" || f.Spool.Type == "ramfs" {
		return warn(id, "set "+name+" to a folder on a disk", "%s lies in memory (%s): what grows there counts as this program's", f.SpoolDir, f.Spool.Type)
	}
	largest := int64(0)
	for _, t := range f.Topics {
		largest = max(largest, t.Settings.SegmentBytes)
	}
	need := times(largest, f.Concurrency)
	if f.Spool.Space.Err != nil || f.Spool.Space.Value.Total == 0 {
		return good(id, "%s can be written", f.SpoolDir)
	}
	free := int64(min(f.Spool.Space.Value.Free, 1<<62))
	if free < need {
		return warn(id, "make room there, set "+name+", or lower concurrency or segment.bytes",
			"%s has %s free; %d segments at once of up to %s may need %s", f.SpoolDir, words.Size(free), f.Concurrency, words.Size(largest), words.Size(need))
	}
	return good(id, "%s can be written, %s free", f.SpoolDir, words.Size(free))
}

// times is a product that does not run over.
func times(n int64, by int) int64 {
	if n > 0 && int64(by) > math.MaxInt64/n {
		return math.MaxInt64
	}
	return n * int64(by)
}

// What the program needs beside spool-memory, in bytes, from the measurements
// of docs/performance.md: the peak of one copy, and of four, less the spool.
const (
	baseMemory = 32 << 20
	copyMemory = 32 << 20
)

// MemoryNeed is how much memory the program needs with these settings, in bytes.
func MemoryNeed(spoolMemory int64, concurrency int) int64 {
	return spoolMemory + baseMemory + times(copyMemory, concurrency)
}

func memoryLimit(f SettingsFacts) Finding {
	const id = "settings.memory"
	need := MemoryNeed(f.SpoolMemory, f.Concurrency)
	switch {
	case f.MemoryLimit == math.MaxInt64:
		return good(id, "GOMEMLIMIT is not set; about %s are needed", words.Size(need))
	case f.MemoryLimit < need:
		return warn(id, "raise GOMEMLIMIT, or lower spool-memory or concurrency: below what is live the collector takes several times the CPU",
			"GOMEMLIMIT is %s, and about %s are needed: spool-memory %s and %d copies at once", words.Size(f.MemoryLimit), words.Size(need), words.Size(f.SpoolMemory), f.Concurrency)
	}
	return good(id, "GOMEMLIMIT is %s, and about %s are needed", words.Size(f.MemoryLimit), words.Size(need))
}

func storageClass(f SettingsFacts) Finding {
	const id = "settings.storage-class"
	if unreadable(f.StorageClass) {
		return fail(id, "use another korvet.storage.s3.storage-class, such as STANDARD_IA or GLACIER_IR", "%s: no object can be verified or read", f.StorageClass)
	}
	if f.StorageClass == "" {
		return good(id, "the bucket's default")
	}
	return good(id, "%s", f.StorageClass)
}
