package segment

import "testing"

func TestObjectPathsAreReadBack(t *testing.T) {
	for path, want := range map[string]ObjectName{
		"korvet:storage:local:orders:0/7.parquet":                  {Folder: "korvet:storage:local:orders:0", Segment: 7},
		"korvet:storage:local:orders:0/7-2.parquet":                {Folder: "korvet:storage:local:orders:0", Segment: 7, Copy: 2},
		"korvet:storage:local:orders:0/7.0123456789abcdef.parquet": {Folder: "korvet:storage:local:orders:0", Segment: 7, Suffix: "0123456789abcdef"},
		"a/b/9223372036854775807-9223372036854775807.x.parquet":    {Folder: "a/b", Segment: 1<<63 - 1, Copy: 1<<63 - 1, Suffix: "x"},
	} {
		got, ok := ParseObjectPath(path)
		if !ok || got != want || got.Path() != path {
			t.Errorf("%s: %+v %v, want %+v", path, got, ok, want)
		}
	}
	for _, path := range []string{"", "/", "7.parquet", "/7.parquet", "a/7", "a/07.parquet", "a/7-0.parquet", "a/7-01.parquet", "a/7-.parquet", "a/-1.parquet", "a/7..parquet", "a/7.parquet/", "a/x.parquet", "_korvet_offload.json"} {
		if got, ok := ParseObjectPath(path); ok {
			t.Errorf("%q: %+v", path, got)
		}
	}
}

func TestFoldersAreReadBack(t *testing.T) {
	turned := DefaultLayout()
	turned.Stream = "{partition}.of.{topic}.{ns}"
	for _, l := range []Layout{DefaultLayout(), turned} {
		for _, p := range []Partition{
			{Topic: "orders"}, {Topic: "a-b.c_D", Number: 12}, {Topic: "0", Number: 0}, {Topic: "sensor/7 ü", Plain: true}, {Topic: "..", Plain: true}, {Topic: "events", Plain: true},
		} {
			if got, ok := l.PartitionOf(l.Folder(p)); !ok || got != p {
				t.Errorf("%s: %+v %v", l.Folder(p), got, ok)
			}
		}
		for _, folder := range []string{"", "..", "a/b", "%zz", "_x", l.Folder(Partition{Topic: "orders", Number: MaxPartitions})} {
			if got, ok := l.PartitionOf(folder); ok {
				t.Errorf("%q: %+v", folder, got)
			}
		}
	}
}

func TestPartitionsThatPeopleWrite(t *testing.T) {
	for text, want := range map[string]Partition{"orders:0": {Topic: "orders"}, "a.b:12": {Topic: "a.b", Number: 12}} {
		if got, err := ParsePartition(text, false); err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "orders", "orders:", ":0", "orders:-1", "orders:01", "orders:x", "a/b:0", "orders:1000000"} {
		if got, err := ParsePartition(text, false); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got, err := ParsePartition("events:7", true); err != nil || got != (Partition{Topic: "events:7", Plain: true}) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := ParsePartition("", true); err == nil {
		t.Error("an empty key is taken")
	}
}
