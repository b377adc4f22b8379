package doctor

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

func sound() SettingsFacts {
	return SettingsFacts{Tick: time.Minute, Lease: 2 * time.Minute, Concurrency: 2, SpoolDir: "/spool", SpoolMemory: 32 << 20, MemoryLimit: math.MaxInt64,
		Spool:  s3sink.FolderFacts{Type: "ext4", Space: s3sink.Answer[s3sink.Space]{Value: s3sink.Space{Free: 1 << 30, Total: 2 << 30}}},
		Topics: []segment.Topic{offloadedTopic("orders")}}
}

func TestSettings(t *testing.T) {
	for _, f := range OfSettings(sound()) {
		expect(t, f.ID, f, OK, "")
	}
	topic := func(change func(*segment.TopicSettings)) func(*SettingsFacts) {
		return func(f *SettingsFacts) { change(&f.Topics[0].Settings) }
	}
	for i, tt := range []struct {
		id     string
		change func(*SettingsFacts)
		want   Verdict
		word   string
	}{
		{"settings.retention", topic(func(s *segment.TopicSettings) { s.LocalRetentionMs = 3_600_000 }), Warn, "segment.ms 86400000"},
		{"settings.retention", topic(func(s *segment.TopicSettings) { s.RetentionMs = 60_000 }), Warn, "next tick"},
		{"settings.retention", topic(func(s *segment.TopicSettings) { s.RetentionMs = -1 }), OK, "1 topic"},
		{"settings.retention", func(f *SettingsFacts) {
			f.Topics = append(f.Topics, f.Topics[0], f.Topics[0])
			for i := range f.Topics {
				f.Topics[i].Settings.RetentionMs = 1
			}
		}, Warn, "and 2 topics like it"},
		{"settings.retention", func(f *SettingsFacts) { f.Topics = nil }, Skipped, "not known"},
		{"settings.retention", func(f *SettingsFacts) { f.Topics = []segment.Topic{} }, Skipped, "no topic"},
		{"settings.lease", func(f *SettingsFacts) { f.Lease = time.Second }, Warn, "10s"},
		{"settings.lease", func(f *SettingsFacts) { f.Lease = time.Hour }, Warn, "nobody works"},
		{"settings.spool", func(f *SettingsFacts) { f.NoSpool = errors.New("read-only") }, Fail, "read-only"},
		{"settings.spool", func(f *SettingsFacts) { f.Spool.Type = "tmpfs" }, Warn, "memory"},
		{"settings.spool", func(f *SettingsFacts) { f.Spool.Space.Value.Free = 200 << 20 }, Warn, "200.0 MiB free; 2 segments at once of up to 128.0 MiB may need 256.0 MiB"},
		{"settings.spool", topic(func(s *segment.TopicSettings) { s.SegmentBytes = math.MaxInt64 }), Warn, "8.0 EiB"},
		{"settings.spool", func(f *SettingsFacts) { f.Spool.Space.Err = errors.New("no") }, OK, "/spool"},
		{"settings.memory", func(f *SettingsFacts) { f.MemoryLimit = 64 << 20 }, Warn, "GOMEMLIMIT is 64.0 MiB, and about 128.0 MiB"},
		{"settings.memory", func(f *SettingsFacts) { f.MemoryLimit = 256 << 20 }, OK, "256.0 MiB"},
		{"settings.storage-class", func(f *SettingsFacts) { f.StorageClass = "DEEP_ARCHIVE" }, Fail, "STANDARD_IA"},
		{"settings.storage-class", func(f *SettingsFacts) { f.StorageClass = "GLACIER_IR" }, OK, "GLACIER_IR"},
	} {
		f := sound()
		tt.change(&f)
		expect(t, fmt.Sprintf("%d %s", i, tt.id), find(t, OfSettings(f), tt.id), tt.want, tt.word)
	}
}
