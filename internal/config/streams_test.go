package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"korvet-offload/segment"
)

func TestStreamValues(t *testing.T) {
	l := loadYAML(t, `
korvet:
  streams:
    - key: "{user:1}/events of today"
      remote-storage-enabled: off
      retention-time: 7d
      retentionBytes: 10GB
      local_retention_time: PT1H
      LOCAL-RETENTION-BYTES: -2
      segmentTime: 60000
      segment-bytes: 64MB
      average-message-bytes: 100
      segment-entries: 5000
    - {key: "events:*"}
`)
	wantStreams(t, l.Streams, []segment.StreamPattern{
		{Key: "{user:1}/events of today", Settings: map[string]string{
			"remote-storage-enabled": "false", "retention-time": "604800000", "retention-bytes": "10737418240", "local-retention-time": "3600000",
			"local-retention-bytes": "-2", "segment-time": "60000", "segment-bytes": "67108864", "average-message-bytes": "100", "segment-entries": "5000",
		}},
		{Key: "events:*", Settings: map[string]string{}},
	})
	stream, ok := segment.ResolveStream("{user:1}/events of today", l.Redis.Layout, l.Streams)
	if !ok || stream.Err != nil || stream.Settings.RemoteStorage || stream.Settings.SegmentEntries != 5000 || stream.Settings.LocalRetentionMs != 3_600_000 {
		t.Errorf("resolved %+v, %t", stream, ok)
	}
	if s := l.setting(t, "korvet.streams[0].segment-time"); s != (Setting{Name: s.Name, Value: "60000", Source: "file", From: "korvet.yml:10"}) {
		t.Errorf("report %+v", s)
	}
	if s := l.setting(t, "korvet.streams[1].key"); s.Value != "events:*" || s.From != "korvet.yml:14" {
		t.Errorf("report %+v", s)
	}
	if len(l.Warnings) > 0 {
		t.Errorf("warnings %q", l.Warnings)
	}
}

// Any text may be the key of a stream.
func TestStreamKeys(t *testing.T) {
	for yml, want := range map[string]string{
		"orders": "orders", "orders:eu": "orders:eu", "a/b": "a/b", "'a: b'": "a: b", "' a '": " a ", "7": "7", "true": "true", "'{x}y'": "{x}y", "..": "..", "-1": "-1",
		`"a\nb"`: "a\nb", "ключ": "ключ", `"*"`: "*", `"a\\*"`: `a\*`, "x-${TIER}": "x-hot", "${UNSET:y}": "y", "korvet": "korvet", "korvet:events": "korvet:events",
	} {
		for _, yml := range []string{"korvet.streams:\n- key: " + yml, "korvet:\n  Streams:\n  - KEY: " + yml, "korvet.streams[0].key: " + yml} {
			if l := loadYAML(t, yml, "TIER=hot"); len(l.Streams) != 1 || l.Streams[0].Key != want {
				t.Errorf("%s: streams %q, want %q", yml, l.Streams, want)
			}
		}
	}
	l := loadYAML(t, "", "KORVET_STREAMS_0_KEY=a${b\xff")
	if len(l.Streams) != 1 || l.Streams[0].Key != "a${b\xff" {
		t.Errorf("from the environment: %q", l.Streams)
	}
}

func TestStreamFaults(t *testing.T) {
	const number = "want a whole number from "
	const none = "there is no such setting; "
	const noKey = "the element has no key: want key: with the key of a stream or a pattern such as orders-*"
	const own = "it is a key of the namespace: segments of topics are offloaded by their topic"
	for _, tt := range []struct{ yml, want string }{
		{"- retention-time: 1d", "korvet.streams[0] (korvet.yml:2): " + noKey},
		{"- key:", "korvet.streams[0] (korvet.yml:2): " + noKey},
		{"- orders", "korvet.streams[0] (korvet.yml:2): want settings: - key: orders"},
		{"  orders: {retention-time: 1d}", "korvet.streams.orders.retention-time (korvet.yml:2): want a list of stream patterns: - key: orders"},
		{"- key: ''", `korvet.streams[0].key = "" (korvet.yml:2): it is empty`},
		{"- key: " + strings.Repeat("x", 251), `korvet.streams[0].key = "` + strings.Repeat("x", 200) + `..." (korvet.yml:2): as a folder it has 251 bytes, 250 at most`},
		{"- key: 'a['", `korvet.streams[0].key = "a[" (korvet.yml:2): want the key of a stream or a pattern with *, ? and [a-z]; a [ needs its ], and a \ something behind it`},
		{`- key: 'a\'`, `korvet.streams[0].key = "a\\" (korvet.yml:2): want the key of a stream or a pattern with *, ? and [a-z]; a [ needs its ], and a \ something behind it`},
		{"- key: {x}", "korvet.streams[0].key (korvet.yml:2): want one value here, not a list or a section; a text with {, [ or : needs quotes\nkorvet.streams[0] (korvet.yml:2): " + noKey},
		{"- key: [x]", "korvet.streams[0].key (korvet.yml:2): want one value here, not a list or a section; a text with {, [ or : needs quotes\nkorvet.streams[0] (korvet.yml:2): " + noKey},
		{"- key: *", "korvet.yml:2: not valid YAML: did not find expected alphabetic or numeric character"},
		{"- key: x-${UNSET}", "korvet.streams[0].key (korvet.yml:2): the environment variable UNSET in ${UNSET} is not set: set it, or write ${UNSET:default}\nkorvet.streams[0] (korvet.yml:2): " + noKey},
		{"- key: korvet:streams", `korvet.streams[0].key = "korvet:streams" (korvet.yml:2): ` + own},
		{"- key: korvet:topic:orders", `korvet.streams[0].key = "korvet:topic:orders" (korvet.yml:2): ` + own},
		{"- key: korvet:storage:local:orders:0", `korvet.streams[0].key = "korvet:storage:local:orders:0" (korvet.yml:2): ` + own},
		{"- key: korvet:storage:stream-manifest:x", `korvet.streams[0].key = "korvet:storage:stream-manifest:x" (korvet.yml:2): ` + own},
		{"- {key: a, name: b}", "korvet.streams[0].name (korvet.yml:2): " + none + "did you mean korvet.streams[0].key?"},
		{"- {key: a, partitions: 1}", "korvet.streams[0].partitions (korvet.yml:2): a plain stream has no partitions; leave it out"},
		{"- {key: a, retention-tim: 1d}", "korvet.streams[0].retention-tim (korvet.yml:2): " + none + "did you mean korvet.streams[0].retention-time?"},
		{"- {key: a, retention.ms: 1}", "korvet.streams[0].retention.ms (korvet.yml:2): " + none + "did you mean korvet.streams[0].retention-time?"},
		{"- {key: a, remote: {storage: {enable: true}}}", "korvet.streams[0].remote.storage.enable (korvet.yml:2): " + none + "did you mean korvet.streams[0].remote-storage-enabled?"},
		{"- {key: a, segment.entries: 1}", "korvet.streams[0].segment.entries (korvet.yml:2): " + none + "did you mean korvet.streams[0].segment-entries?"},
		{"- {key: a, compression-type: zstd}", "korvet.streams[0].compression-type (korvet.yml:2): " + none + "docs/settings.md lists those there are"},
		{"- {key: a, cleanup: {policy: }}", "korvet.streams[0].cleanup.policy (korvet.yml:2): " + none + "docs/settings.md lists those there are"},
		{"- {key: a, retention-time: {ms: 1}}", "korvet.streams[0].retention-time (korvet.yml:2): want one value here, not a list or a section; a text with {, [ or : needs quotes"},
		{"- {key: a, retention-time: -2}", `korvet.streams[0].retention-time = "-2" (korvet.yml:2): ` + number + "-1 upwards"},
		{"- {key: a, retention-time: soon}", `korvet.streams[0].retention-time = "soon" (korvet.yml:2): ` + errDuration.Error()},
		{"- {key: a, local-retention-bytes: -3}", `korvet.streams[0].local-retention-bytes = "-3" (korvet.yml:2): ` + number + "-2 upwards"},
		{"- {key: a, local-retention-bytes: ''}", `korvet.streams[0].local-retention-bytes = "" (korvet.yml:2): ` + errSize.Error()},
		{"- {key: a, segment-entries: 0}", `korvet.streams[0].segment-entries = "0" (korvet.yml:2): ` + number + "1 upwards"},
		{"- {key: a, segment-entries: 5k}", `korvet.streams[0].segment-entries = "5k" (korvet.yml:2): ` + number + "1 upwards"},
		{"- {key: a, average-message-bytes: 0}", `korvet.streams[0].average-message-bytes = "0" (korvet.yml:2): ` + number + "1 upwards"},
		{"- {key: a, retention-time: 99999999999999999999}", `korvet.streams[0].retention-time = "99999999999999999999" (korvet.yml:2): ` + number + "-1 upwards"},
		{"- {key: a, remote-storage-enabled: maybe}", `korvet.streams[0].remote-storage-enabled = "maybe" (korvet.yml:2): want true or false`},
		{"- {key: a, segmentTime: 1, segment-time: 2}", `korvet.streams[0].segment-time = "1" (korvet.yml:2) and korvet.streams[0].segment-time = "2" (korvet.yml:2): the setting is given twice, with different values; keep one`},
		{"- key: a\n- key: b\n- key: a", `korvet.streams[0].key = "a" (korvet.yml:2) and korvet.streams[2].key = "a" (korvet.yml:4): the key is there twice; keep one`},
		{"- key: a*\n- key: a*", `korvet.streams[0].key = "a*" (korvet.yml:2) and korvet.streams[1].key = "a*" (korvet.yml:3): the key is there twice; keep one`},
		{"- {key: a, retention-time: 1h, local-retention-time: 2h}", "korvet.streams[0] (korvet.yml:2): local-retention-time = 7200000 is above retention-time = 3600000"},
		{"- {key: 'a*', retention-bytes: 1KB, local-retention-bytes: -1}", "korvet.streams[0] (korvet.yml:2): local-retention-bytes = -1 is above retention-bytes = 1024"},
		{"- {key: a, retention-time: 1, local-retention-time: 2, retention-bytes: 3, local-retention-bytes: 4}", "korvet.streams[0] (korvet.yml:2): local-retention-time = 2 is above retention-time = 1\n" +
			"korvet.streams[0] (korvet.yml:2): local-retention-bytes = 4 is above retention-bytes = 3"},
	} {
		wantFaults(t, faultsOf(t, Input{}, "korvet.streams:\n"+tt.yml), splitLines(tt.want)...)
	}
}

// A key is the namespace's by the layout that is in effect.
func TestStreamKeyOfAnotherNamespace(t *testing.T) {
	const yml = "korvet.streams: [{key: 'team1:topic:a'}]"
	if l := loadYAML(t, yml); len(l.Streams) != 1 {
		t.Errorf("streams %v", l.Streams)
	}
	wantFaults(t, faultsOf(t, Input{Environ: []string{"KORVET_NAMESPACE=team1"}}, yml),
		`korvet.streams[0].key = "team1:topic:a" (korvet.yml:1): it is a key of the namespace: segments of topics are offloaded by their topic`)
}

func TestStreamWarnings(t *testing.T) {
	for _, tt := range []struct{ yml, want string }{
		{"- {key: a, segment-time: 2h, local-retention-time: 1h}", "korvet.streams[0] (korvet.yml:2): segment-time = 7200000 is above local-retention-time = 3600000: a segment is sealed later than its local copy should be gone"},
		{"- {key: a, retention-time: 1h}", "korvet.streams[0] (korvet.yml:2): segment-time = 86400000 is above retention-time = 3600000: a segment is sealed later than its local copy should be gone"},
		{"- key: 'a*'\n- key: b\n- key: ab", `korvet.streams[2].key = "ab" (korvet.yml:4) has no effect on its stream: korvet.streams[0].key = "a*" (korvet.yml:2) matches it, and the first that matches counts; put the plain key first`},
		{"- key: a\n- key: '*'\n- {key: 'a*', retention-time: 1d}", ""},
		{"- {key: a, segment-time: 1h, local-retention-time: 1h, retention-time: 1h}", ""},
		{"- {key: a, local-retention-time: -1, local-retention-bytes: -1}", ""},
	} {
		l := loadYAML(t, "korvet.streams:\n"+tt.yml)
		if got := strings.Join(l.Warnings, "\n"); got != tt.want {
			t.Errorf("%s: warnings %q, want %q", tt.yml, got, tt.want)
		}
	}
}

// What contradicts itself in a topic pattern may be completed by the topic's
// own settings, and parks the topic where it is not.
func TestTopicPatternMayContradictItself(t *testing.T) {
	l := loadYAML(t, "korvet.topics: [{name: a, retention-time: 1h, local-retention-time: 2h}]")
	if topic := segment.ResolveTopic("a", nil, l.Topics); topic.Err == nil || len(l.Warnings) > 0 {
		t.Errorf("topic %+v, warnings %q", topic, l.Warnings)
	}
	if topic := segment.ResolveTopic("a", map[string]string{"retention.ms": "9000000"}, l.Topics); topic.Err != nil {
		t.Error(topic.Err)
	}
}

func TestStreamsFromSeveralSources(t *testing.T) {
	const yml = "korvet.streams:\n- {key: a, retention-time: 10d, segment-time: 1h}\n- {key: 'b:c', retention-time: 2d}\n"
	a, b := "retention-time=864000000 segment-time=3600000", "retention-time=172800000"
	for _, tt := range []struct {
		what    string
		environ []string
		set     []string
		want    []segment.StreamPattern
		warning string
	}{
		{"file alone", nil, nil, streams("a", a, "b:c", b), ""},
		{"one setting of an element", []string{"KORVET_STREAMS_0_RETENTION_TIME=3d"}, nil, streams("a", "retention-time=259200000 segment-time=3600000", "b:c", b), ""},
		{"without dashes", []string{"KORVET_STREAMS_1_SEGMENTENTRIES=1"}, nil, streams("a", a, "b:c", b+" segment-entries=1"), ""},
		{"the same key again", []string{"KORVET_STREAMS_1_KEY=b:c"}, nil, streams("a", a, "b:c", b), ""},
		{"another key", []string{"KORVET_STREAMS_1_KEY=c", "KORVET_STREAMS_1_SEGMENT_TIME=1"}, nil, streams("a", a, "c", "segment-time=1"),
			"korvet.streams[1].retention-time (korvet.yml:3) is passed over: KORVET_STREAMS_1_KEY makes the element another stream"},
		{"one more", []string{"KORVET_STREAMS_7_KEY=d"}, nil, streams("a", a, "b:c", b, "d", ""), ""},
		{"another key by --set", nil, []string{"korvet.streams[0].key=x=y"}, streams("x=y", "", "b:c", b), "korvet.streams[0].retention-time (korvet.yml:2) is passed over: --set makes the element another stream"},
		{"--set over all", []string{"KORVET_STREAMS_0_RETENTION_TIME=3d"}, []string{"korvet.streams[0].retention-time=-1"}, streams("a", "retention-time=-1 segment-time=3600000", "b:c", b), ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			l, err := load(Input{File: "korvet.yml", Environ: tt.environ, Set: tt.set}, []byte(yml))
			if err != nil {
				t.Fatal(err)
			}
			wantStreams(t, l.Streams, tt.want)
			if tt.warning != "" {
				wantWarning(t, l, tt.warning)
			} else if len(l.Warnings) > 0 {
				t.Errorf("warnings %q", l.Warnings)
			}
		})
	}
}

// Lists replace one another, each by itself.
func TestStreamsOfLaterDocument(t *testing.T) {
	l := loadYAML(t, "korvet: {streams: [{key: a, segment-time: 1}, {key: b}], topics: [{name: t}]}\n---\nkorvet.streams: [{key: c}]\n---\nkorvet.namespace: x", "KORVET_STREAMS_0_SEGMENT_ENTRIES=3")
	wantStreams(t, l.Streams, streams("c", "segment-entries=3"))
	wantPatterns(t, l.Topics, patterns("t", ""))
}

func TestNoStreams(t *testing.T) {
	for _, yml := range []string{"", "korvet.streams:", "korvet.streams: []", "korvet.streams: ''", "korvet.streams: {}"} {
		if l := loadYAML(t, yml); len(l.Streams) != 0 || len(l.Warnings) > 0 {
			t.Errorf("%q: streams %v, warnings %q", yml, l.Streams, l.Warnings)
		}
	}
	l := loadYAML(t, "korvet.stream: [{key: a}]")
	wantWarning(t, l, "korvet.stream (korvet.yml:1) is passed over", "did you mean korvet.streams?")
}

// streams makes patterns of keys, each followed by its settings.
func streams(text ...string) []segment.StreamPattern {
	var ps []segment.StreamPattern
	for _, p := range patterns(text...) {
		ps = append(ps, segment.StreamPattern{Key: p.Name, Settings: p.Settings})
	}
	return ps
}

func wantStreams(t *testing.T, got, want []segment.StreamPattern) {
	t.Helper()
	same := func(a, b segment.StreamPattern) bool { return a.Key == b.Key && maps.Equal(a.Settings, b.Settings) }
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("patterns %v, want %v", got, want)
	}
}
