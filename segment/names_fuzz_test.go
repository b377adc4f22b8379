package segment

import (
	"strings"
	"testing"
)

// Names that others have chosen become paths, and paths are read back: each
// folder belongs to one key, and each path to one segment.
//
//fault:input | Keys, folders and object paths of any bytes | fuzzing | a key and its folder turn into one another, a folder is one legal part of a path, a path belongs to at most one segment
func FuzzNames(f *testing.F) {
	for _, key := range []string{"orders", "..", "a/b", "%2F", "\xff", "korvet:storage:local:orders:0", "100%", ""} {
		f.Add(key, key+"/7-1.parquet", uint64(7), int64(1), "")
	}
	f.Add("%2E.", "%2E./0.x.parquet", uint64(0), int64(0), "x")
	f.Fuzz(func(t *testing.T, key, path string, n uint64, copies int64, suffix string) {
		folder := SafeKey(key)
		if back, err := KeyOf(folder); err != nil || back != key {
			t.Fatalf("%q as a folder is %q, and that as a key %q, %v", key, folder, back, err)
		}
		if back, err := KeyOf(key); err == nil && SafeKey(back) != key {
			t.Fatalf("folder %q is of key %q, whose folder is %q", key, back, SafeKey(back))
		}
		if strings.ContainsAny(folder, "/\\\x00 ") || folder != "" && strings.ContainsAny(folder[:1], "._-") || len(folder) > 3*len(key) {
			t.Fatalf("%q as a folder is %q", key, folder)
		}
		number := Number(n >> 1)
		if back, err := ParseNumber(number.String()); err != nil || back != number {
			t.Fatalf("%s is read as %s, %v", number, back, err)
		}
		if n, err := ParseNumber(path); err == nil && n.String() != path {
			t.Fatalf("%q is read as %s", path, n)
		}
		if copies >= 0 && !strings.Contains(suffix, "/") {
			if made := ObjectPath(folder, number, copies, suffix); !IsObjectOf(made, folder, number) || IsObjectOf(made, folder, number+1) {
				t.Fatalf("%q is not known as an object of segment %s alone", made, number)
			}
		}
		owners := 0
		for n := range Number(200) {
			if IsObjectOf(path, folder, n) {
				owners++
			}
		}
		if owners > 1 {
			t.Fatalf("%q belongs to %d segments", path, owners)
		}
	})
}

// Whatever stands in the registry, or below korvet.topics[]: a topic is parked,
// or its settings are such as the program can act on.
//
//fault:input | Settings of topics and streams that make no sense | fuzzing of names, patterns and values | the topic is parked with one line, or every limit is in its range, whichever of its names the setting has
func FuzzSettings(f *testing.F) {
	for _, s := range TopicSettingTable() {
		f.Add("orders", "ord*", s.Flat, "1", int64(2))
	}
	f.Add("a b", "[", "retention-time", " -1 ", int64(-3))
	f.Add("events:1", "*[*]*[*?", "local-retention-bytes", "9223372036854775808", int64(0))
	f.Add(strings.Repeat("a", 300), strings.Repeat("*a", 100), "segment-entries", "1e3", int64(1))
	f.Fuzz(func(t *testing.T, name, glob, setting, value string, retention int64) {
		flat := map[string]string{setting: value}
		topic := ResolveTopic(name, nil, []TopicPattern{{Name: glob, Settings: flat}})
		checkSettings(t, topic)
		if p := (TopicPattern{Name: glob}); p.Matches(name) && topic.Err == nil {
			sameByEachName(t, name, setting, value, topic.Settings)
		}
		stream, ours := ResolveStream(name, DefaultLayout(), []StreamPattern{{Key: glob, Settings: flat}})
		if p := (StreamPattern{Key: glob}); p.Declares() && ours != (name == glob) {
			t.Fatalf("%q declares %q: %t", glob, name, ours)
		}
		if !ours {
			return
		}
		checkSettings(t, stream)
		if stream.Err == nil && (name == "" || len(SafeKey(name)) > maxFolder || strings.HasPrefix(name, "korvet:storage:local:") && strings.Count(name, ":") > 3) {
			t.Fatalf("%q is taken for a plain stream", name)
		}
		if o := (OpenStream{Length: 5, FirstMs: retention, Bytes: retention}); stream.Err == nil {
			if why, due := stream.Settings.RollDue(Entry{OpenedAt: retention}, o, 1<<41); due && why.Limit == "" {
				t.Fatalf("a roll without a reason: %+v", why)
			}
		}
	})
}

// checkSettings looks at what everything else relies on.
func checkSettings(t *testing.T, topic Topic) {
	t.Helper()
	s := topic.Settings
	if topic.Err != nil {
		if strings.ContainsAny(topic.Err.Error(), "\n\r") {
			t.Fatalf("%q is not one line", topic.Err)
		}
		return
	}
	if s.RetentionMs < -1 || s.RetentionBytes < -1 || s.LocalRetentionMs < -2 || s.LocalRetentionBytes < -2 || s.SegmentMs < 1 || s.SegmentBytes < 1 ||
		s.AverageMessageBytes < 0 || s.SegmentEntries < 0 || s.Partitions < 1 || s.Partitions > MaxPartitions || s.Check() != nil {
		t.Fatalf("%q is worked on with %+v", topic.Name, s)
	}
}

// sameByEachName: Kafka's name, Korvet's and the flat one mean the same.
func sameByEachName(t *testing.T, name, setting, value string, want TopicSettings) {
	t.Helper()
	for _, s := range TopicSettingTable() {
		if s.Flat != setting || s.Flat == "" {
			continue
		}
		for _, as := range []string{s.Kafka, s.Camel} {
			if as == "" {
				continue
			}
			if got := ResolveTopic(name, map[string]string{as: value}, nil); got.Err != nil || got.Settings != want {
				t.Fatalf("%s = %q gives %+v, %v; by its flat name %+v", as, value, got.Settings, got.Err, want)
			}
		}
	}
}
