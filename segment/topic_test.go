package segment

import (
	"errors"
	"strings"
	"testing"
)

func TestValidateTopic(t *testing.T) {
	for _, name := range []string{"orders", "a", "A.b_c-9", "...", strings.Repeat("x", 249), ".hidden"} {
		if err := ValidateTopic(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "a b", "a%2Fb", "ü", "a:b", "a\x00", "a\nb", "{ns}", strings.Repeat("x", 250)} {
		if err := ValidateTopic(name); !errors.Is(err, ErrTopicName) {
			t.Errorf("%q: %v, want ErrTopicName", name, err)
		}
	}
}

func TestResolveTopicPrecedence(t *testing.T) {
	patterns := []TopicPattern{
		{Name: "ord*", Settings: map[string]string{"retention-time": "2", "partitions": "4"}},
		{Name: "orders", Settings: map[string]string{"segment-bytes": "3"}},
	}
	own := map[string]string{"remote.storage.enable": "true", "retentionBytes": "9", "min.insync.replicas": "2"}
	got := ResolveTopic("orders", own, patterns)
	want := DefaultTopicSettings()
	want.RemoteStorage, want.RetentionBytes, want.RetentionMs, want.Partitions = true, 9, 2, 4
	if got.Err != nil || got.Settings != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := ResolveTopic("other", nil, patterns); got.Err != nil || got.Settings != DefaultTopicSettings() {
		t.Errorf("a topic that no pattern matches: %+v", got)
	}
}

func TestResolveTopicPrefersKafkasName(t *testing.T) {
	got := ResolveTopic("t", map[string]string{"retention.ms": "5", "retentionTime": "6"}, nil)
	if got.Err != nil || got.Settings.RetentionMs != 5 {
		t.Errorf("got %+v", got)
	}
}

func TestResolveTopicRefusesToGuess(t *testing.T) {
	for name, text := range map[string]string{
		"remote.storage.enable": "yes please", "retention.ms": "-2", "retentionTime": "7d", "retention.bytes": "",
		"local.retention.ms": "-3", "segment.ms": "0", "segment.bytes": "-1", "average.message.bytes": "0",
		"partitions": "0", "local.retention.bytes": "99999999999999999999",
	} {
		got := ResolveTopic("t", map[string]string{name: text}, nil)
		if !errors.Is(got.Err, ErrTopicSetting) || !strings.Contains(got.Err.Error(), text) {
			t.Errorf("%s = %q: %v", name, text, got.Err)
		}
	}
	if got := ResolveTopic("a/b", nil, nil); !errors.Is(got.Err, ErrTopicName) {
		t.Errorf("topic a/b: %v", got.Err)
	}
}

func TestObjectPath(t *testing.T) {
	for _, c := range []struct {
		copy   int64
		suffix string
		want   string
	}{
		{0, "", "korvet:storage:local:orders:0/7.parquet"},
		{2, "", "korvet:storage:local:orders:0/7-2.parquet"},
		{0, "ab", "korvet:storage:local:orders:0/7.ab.parquet"},
		{2, "ab", "korvet:storage:local:orders:0/7-2.ab.parquet"},
	} {
		if got := ObjectPath("korvet:storage:local:orders:0", 7, c.copy, c.suffix); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestLayoutKeys(t *testing.T) {
	l := DefaultLayout()
	l.Namespace = "ns"
	p := Partition{Topic: "orders", Number: 3}
	for got, want := range map[string]string{
		l.TopicsKey():        "ns:topics",
		l.TopicKey("orders"): "ns:topic:orders",
		l.StreamKey(p):       "ns:storage:local:orders:3",
		l.SegmentKey(p, 12):  "ns:storage:local:orders:3:12",
		l.ManifestKey(p):     "ns:storage:manifest:orders:3",
		l.LeaseKey():         "ns:storage:offload:lease",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestLayoutValidate(t *testing.T) {
	if errs := DefaultLayout().Validate(); len(errs) != 0 {
		t.Errorf("the default layout: %v", errs)
	}
	tagged := DefaultLayout()
	tagged.Stream = "{{ns}:{topic}:{partition}}"
	if errs := tagged.Validate(); len(errs) != 0 {
		t.Errorf("a layout with a hash tag: %v", errs)
	}
	for name, change := range map[string]func(*Layout){
		"layout.topics and layout.lease": func(l *Layout) { l.Lease = l.Topics },
		"both be korvet:t:111":           func(l *Layout) { l.SegmentStream = "{ns}:{topic}:{partition}{segment}" },
		"both be korvet:t:1":             func(l *Layout) { l.Manifest, l.Stream = "{ns}:{topic}:{partition}", "{ns}:{topic}:{partition}" },
		"layout.manifest of t1:1":        func(l *Layout) { l.Manifest = "{ns}:m{topic}{partition}" },
		"namespace":                      func(l *Layout) { l.Namespace = "" },
		"layout.manifest":                func(l *Layout) { l.Manifest = "{ns}:m:{topic}" },
		"layout.stream":                  func(l *Layout) { l.Stream = "" },
		"layout.lease":                   func(l *Layout) { l.Lease = "{ns}:{topic}" },
		"layout.segment-stream":          func(l *Layout) { l.SegmentStream = "{ns}:{topic}:{partition}" },
	} {
		l := DefaultLayout()
		change(&l)
		errs := l.Validate()
		if len(errs) == 0 || !strings.Contains(errs[0].Error(), name) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

func TestParseNumber(t *testing.T) {
	for _, s := range []string{"", "-1", "+1", "01", "1.0", "1e3", " 1", "9223372036854775808", "18446744073709551615", "18446744073709551616"} {
		if n, err := ParseNumber(s); err == nil {
			t.Errorf("ParseNumber(%q) = %s", s, n)
		}
	}
	if n, err := ParseNumber("9223372036854775807"); err != nil || n.String() != "9223372036854775807" {
		t.Errorf("the largest number: %s, %v", n, err)
	}
}

// The codec of values is told, and changes nothing else: not the settings, whose
// record is kept, and not what a topic without settings is.
func TestCodecIsNoSetting(t *testing.T) {
	plain := ResolveTopic("orders", map[string]string{"retention.ms": "5"}, nil)
	for name, want := range map[string]string{"storage.compression.type": "zstd", "storageCompressionType": "zstd", "compression.type": ""} {
		topic := ResolveTopic("orders", map[string]string{"retention.ms": "5", name: " zstd "}, nil)
		if topic.Codec != want || topic.Settings != plain.Settings || topic.Err != nil || topic.Bare {
			t.Errorf("%s: %+v", name, topic)
		}
	}
	if only := ResolveTopic("orders", map[string]string{"storage.compression.type": "who knows"}, nil); only.Err != nil || only.Codec != "who knows" {
		t.Errorf("%+v", only)
	}
}
