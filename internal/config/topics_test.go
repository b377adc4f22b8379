package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"korvet-offload/segment"
)

func TestTopicValues(t *testing.T) {
	l := loadYAML(t, `
korvet.topics:
  - name: orders
    remote-storage-enabled: on
    retention-time: 7d
    retentionBytes: 10GB
    local_retention_time: -2
    LOCAL-RETENTION-BYTES: -2
    segment-time: PT168H
    segment-bytes: 67108864
    average-message-bytes: 100
    partitions: 12
  - name: "*"
    retention-time: -1
    segment-time: 3600000
`)
	want := map[string]string{
		"remote-storage-enabled": "true", "retention-time": "604800000", "retention-bytes": "10737418240", "local-retention-time": "-2",
		"local-retention-bytes": "-2", "segment-time": "604800000", "segment-bytes": "67108864", "average-message-bytes": "100", "partitions": "12",
	}
	if len(l.Topics) != 2 || !maps.Equal(l.Topics[0].Settings, want) {
		t.Fatalf("topics %v", l.Topics)
	}
	if want := map[string]string{"retention-time": "-1", "segment-time": "3600000"}; !maps.Equal(l.Topics[1].Settings, want) {
		t.Errorf("second pattern %v", l.Topics[1])
	}
	topic := segment.ResolveTopic("orders", nil, l.Topics)
	if topic.Err != nil || !topic.Settings.RemoteStorage || topic.Settings.Partitions != 12 || topic.Settings.RetentionBytes != 10<<30 {
		t.Errorf("resolved %+v", topic)
	}
	if s := l.setting(t, "korvet.topics[0].retention-time"); s != (Setting{Name: s.Name, Value: "604800000", Source: "file", From: "korvet.yml:5"}) {
		t.Errorf("report %+v", s)
	}
}

func TestTopicFaults(t *testing.T) {
	const number = "want a whole number from "
	for _, tt := range []struct{ yml, want string }{
		{"- retention-time: 1d", "korvet.topics[0] (korvet.yml:2): the element has no name: want name: with a topic or a pattern such as orders-*"},
		{"- compression-type: zstd", "korvet.topics[0] (korvet.yml:2): the element has no name: want name: with a topic or a pattern such as orders-*"},
		{"- orders", "korvet.topics[0] (korvet.yml:2): want settings: - name: orders"},
		{"  orders: {retention-time: 1d}", "korvet.topics.orders.retention-time (korvet.yml:2): want a list of topic patterns: - name: orders"},
		{"- name: 'orders-['", `korvet.topics[0].name = "orders-[" (korvet.yml:2): want a topic or a pattern with *, ? and [a-z]; a [ needs its ]`},
		{"- name: a/b", `korvet.topics[0].name = "a/b" (korvet.yml:2): want 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', or a pattern with *, ? and [a-z]`},
		{"- name: ''", `korvet.topics[0].name = "" (korvet.yml:2): want 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', or a pattern with *, ? and [a-z]`},
		{"- name: [a]", "korvet.topics[0].name (korvet.yml:2): want one value here, not a list or a section; a text with {, [ or : needs quotes\nkorvet.topics[0] (korvet.yml:2): the element has no name: want name: with a topic or a pattern such as orders-*"},
		{"- {name: a, retention-time: -3}", `korvet.topics[0].retention-time = "-3" (korvet.yml:2): ` + number + "-1 upwards"},
		{"- {name: a, retention-time: soon}", `korvet.topics[0].retention-time = "soon" (korvet.yml:2): ` + errDuration.Error()},
		{"- {name: a, retention-time: 10us}", `korvet.topics[0].retention-time = "10us" (korvet.yml:2): want whole milliseconds, such as 90s, 1m, 2h, 7d or 60000`},
		{"- {name: a, segment-bytes: 0}", `korvet.topics[0].segment-bytes = "0" (korvet.yml:2): ` + number + "1 upwards"},
		{"- {name: a, segment-bytes: 1.5GB}", `korvet.topics[0].segment-bytes = "1.5GB" (korvet.yml:2): ` + errSize.Error()},
		{"- {name: a, partitions: 0}", `korvet.topics[0].partitions = "0" (korvet.yml:2): want a number from 1 to 1000000`},
		{"- {name: a, remote-storage-enabled: maybe}", `korvet.topics[0].remote-storage-enabled = "maybe" (korvet.yml:2): want true or false`},
		{"- {name: a, remote-storage-enabled: 5}", `korvet.topics[0].remote-storage-enabled = "5" (korvet.yml:2): want true or false`},
		{"- {name: a, retention-tim: 1d}", "korvet.topics[0].retention-tim (korvet.yml:2): there is no such setting; did you mean korvet.topics[0].retention-time?"},
		{"- {name: a, partition: 1}", "korvet.topics[0].partition (korvet.yml:2): there is no such setting; did you mean korvet.topics[0].partitions?"},
		{"- {name: a, retention: {ms: 1}}", "korvet.topics[0].retention.ms (korvet.yml:2): there is no such setting; did you mean korvet.topics[0].retention-time?"},
		{"- {name: a, segmentTime: 1, segment-time: 2}", `korvet.topics[0].segment-time = "1" (korvet.yml:2) and korvet.topics[0].segment-time = "2" (korvet.yml:2): the setting is given twice, with different values; keep one`},
	} {
		wantFaults(t, faultsOf(t, Input{}, "korvet.topics:\n"+tt.yml), splitLines(tt.want)...)
	}
}

func TestTopicsFromSeveralSources(t *testing.T) {
	const yml = "korvet.topics:\n- {name: a, retention-time: 1d, segment-time: 1h}\n- {name: b, retention-time: 2d}\n"
	for _, tt := range []struct {
		what    string
		environ []string
		set     []string
		want    []segment.TopicPattern
		warning string
	}{
		{"file alone", nil, nil, patterns("a", "retention-time=86400000 segment-time=3600000", "b", "retention-time=172800000"), ""},
		{"one setting of an element", []string{"KORVET_TOPICS_0_RETENTION_TIME=3d"}, nil, patterns("a", "retention-time=259200000 segment-time=3600000", "b", "retention-time=172800000"), ""},
		{"without dashes", []string{"KORVET_TOPICS_1_RETENTIONTIME=1"}, nil, patterns("a", "retention-time=86400000 segment-time=3600000", "b", "retention-time=1"), ""},
		{"the same name again", []string{"KORVET_TOPICS_1_NAME=b"}, nil, patterns("a", "retention-time=86400000 segment-time=3600000", "b", "retention-time=172800000"), ""},
		{"another name", []string{"KORVET_TOPICS_1_NAME=c", "KORVET_TOPICS_1_SEGMENT_TIME=1"}, nil, patterns("a", "retention-time=86400000 segment-time=3600000", "c", "segment-time=1"),
			"korvet.topics[1].retention-time (korvet.yml:3) is passed over: KORVET_TOPICS_1_NAME makes the element another topic"},
		{"one more", []string{"KORVET_TOPICS_7_NAME=c"}, nil, patterns("a", "retention-time=86400000 segment-time=3600000", "b", "retention-time=172800000", "c", ""), ""},
		{"--set over all", []string{"KORVET_TOPICS_0_RETENTION_TIME=3d"}, []string{"korvet.topics[0].retention-time=-1"}, patterns("a", "retention-time=-1 segment-time=3600000", "b", "retention-time=172800000"), ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			l, err := load(Input{File: "korvet.yml", Environ: tt.environ, Set: tt.set}, []byte(yml))
			if err != nil {
				t.Fatal(err)
			}
			wantPatterns(t, l.Topics, tt.want)
			if tt.warning != "" {
				wantWarning(t, l, tt.warning)
			} else if len(l.Warnings) > 0 {
				t.Errorf("warnings %q", l.Warnings)
			}
		})
	}
}

func TestTopicsOfLaterDocument(t *testing.T) {
	l := loadYAML(t, "korvet.topics: [{name: a, retention-time: 1}, {name: b}]\n---\nkorvet.topics: [{name: c}]\n---\nkorvet.namespace: x", "KORVET_TOPICS_0_PARTITIONS=3")
	wantPatterns(t, l.Topics, patterns("c", "partitions=3"))
}

// patterns makes patterns of names, each followed by its settings.
func patterns(text ...string) []segment.TopicPattern {
	var ps []segment.TopicPattern
	for i := 0; i < len(text); i += 2 {
		p := segment.TopicPattern{Name: text[i], Settings: map[string]string{}}
		for _, s := range strings.Fields(text[i+1]) {
			name, value, _ := strings.Cut(s, "=")
			p.Settings[name] = value
		}
		ps = append(ps, p)
	}
	return ps
}

func wantPatterns(t *testing.T, got, want []segment.TopicPattern) {
	t.Helper()
	same := func(a, b segment.TopicPattern) bool { return a.Name == b.Name && maps.Equal(a.Settings, b.Settings) }
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("patterns %v, want %v", got, want)
	}
}

func splitLines(s string) []string { return strings.Split(s, "\n") }
