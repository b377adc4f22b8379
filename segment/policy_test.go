package segment

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// retentionPair is one pair of a total and a local limit by each of the ways
// in which they can be given.
type retentionPair struct {
	kafka, camel, flat string
	local              func(TopicSettings) int64
}

func retentionPairs() []retentionPair {
	return []retentionPair{
		{"retention.ms", "RetentionTime", "retention-time", func(s TopicSettings) int64 { return s.Local().Ms }},
		{"retention.bytes", "RetentionBytes", "retention-bytes", func(s TopicSettings) int64 { return s.Local().Bytes }},
	}
}

// given are all ways to say total and local: a topic's own settings by either
// name, a topic's pattern and a stream's.
func (p retentionPair) given(total, local string) map[string]Topic {
	own := func(names ...string) Topic {
		return ResolveTopic("t", map[string]string{names[0]: total, names[1]: local}, nil)
	}
	flat := map[string]string{p.flat: total, "local-" + p.flat: local}
	stream, _ := ResolveStream("t", DefaultLayout(), []StreamPattern{{Key: "t", Settings: flat}})
	return map[string]Topic{
		"kafka": own(p.kafka, "local."+p.kafka), "camel": own(strings.ToLower(p.camel[:1])+p.camel[1:], "local"+p.camel),
		"pattern": ResolveTopic("t", nil, []TopicPattern{{Name: "*", Settings: flat}}), "stream": stream,
	}
}

// All pairs, as Kafka has them: -2 takes the total, and with a total nothing
// local may be above it, or without limit.
func TestRetentionPairs(t *testing.T) {
	const huge = math.MaxInt64
	const illegal, above = "want a whole number from -1 upwards", " is above "
	values := []int64{-2, -1, 0, 1, huge}
	rows := []struct { // what local -2, -1, 0, 1 and huge give
		total int64
		local []int64
		says  []string
	}{
		{-2, []int64{0, 0, 0, 0, 0}, []string{illegal, illegal, illegal, illegal, illegal}},
		{-1, []int64{-1, -1, 0, 1, huge}, []string{"", "", "", "", ""}},
		{0, []int64{0, 0, 0, 0, 0}, []string{"", above, "", above, above}},
		{1, []int64{1, 0, 0, 1, 0}, []string{"", above, "", "", above}},
		{huge, []int64{huge, 0, 0, 1, huge}, []string{"", above, "", "", ""}},
	}
	for _, pair := range retentionPairs() {
		for _, row := range rows {
			for i, local := range values {
				for how, topic := range pair.given(strconv.FormatInt(row.total, 10), strconv.FormatInt(local, 10)) {
					at := pair.kafka + " by " + how + ": total " + strconv.FormatInt(row.total, 10) + ", local " + strconv.FormatInt(local, 10)
					if row.says[i] == "" {
						if topic.Err != nil || pair.local(topic.Settings) != row.local[i] {
							t.Errorf("%s: %d, %v; want %d", at, pair.local(topic.Settings), topic.Err, row.local[i])
						}
						continue
					}
					if !errors.Is(topic.Err, ErrTopicSetting) || !strings.Contains(topic.Err.Error(), row.says[i]) ||
						!strings.Contains(topic.Err.Error(), pair.kafka) || !strings.Contains(topic.Err.Error(), topic.what()+": ") {
						t.Errorf("%s: %v", at, topic.Err)
					}
				}
			}
		}
	}
}

func TestBothPairsAreNamed(t *testing.T) {
	s := DefaultTopicSettings()
	s.RetentionMs, s.LocalRetentionMs, s.RetentionBytes, s.LocalRetentionBytes = 1, 2, 3, -1
	err := s.Check()
	if err == nil || err.Error() != "local.retention.ms = 2 is above retention.ms = 1\nlocal.retention.bytes = -1 is above retention.bytes = 3" {
		t.Errorf("got %v", err)
	}
	topic := ResolveTopic("t", map[string]string{"retention.ms": "1", "local.retention.ms": "2", "retention.bytes": "3", "local.retention.bytes": "-1"}, nil)
	if topic.Err == nil || strings.Contains(topic.Err.Error(), "\n") {
		t.Errorf("the topic's error is not one line: %q", topic.Err)
	}
}

// What was not read from a text, but from a record, is checked as well.
func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	for want, set := range map[string]func(*TopicSettings){
		"retention.ms = -2: want a whole number from -1 upwards":          func(s *TopicSettings) { s.RetentionMs = -2 },
		"retention.bytes = -9: want a whole number from -1 upwards":       func(s *TopicSettings) { s.RetentionBytes = -9 },
		"local.retention.ms = -3: want a whole number from -2 upwards":    func(s *TopicSettings) { s.LocalRetentionMs = -3 },
		"local.retention.bytes = -3: want a whole number from -2 upwards": func(s *TopicSettings) { s.LocalRetentionBytes = -3 },
		"segment.ms = 0: want a whole number from 1 upwards":              func(s *TopicSettings) { s.SegmentMs = 0 },
		"segment.bytes = 0: want a whole number from 1 upwards":           func(s *TopicSettings) { s.SegmentBytes = 0 },
		"average.message.bytes = -1: want a whole number from 0 upwards":  func(s *TopicSettings) { s.AverageMessageBytes = -1 },
		"segment-entries = -1: want a whole number from 0 upwards":        func(s *TopicSettings) { s.SegmentEntries = -1 },
	} {
		s := DefaultTopicSettings()
		if s.Check() != nil {
			t.Fatalf("the defaults: %v", s.Check())
		}
		set(&s)
		if err := s.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A number that makes no sense parks the topic, and says which and whose.
func TestAbsurdNumbersParkTheTopic(t *testing.T) {
	for _, setting := range TopicSettingTable() {
		if setting.Kafka == "" || setting.Kafka == "remote.storage.enable" {
			continue
		}
		least := map[string]string{"retention.ms": "-2", "retention.bytes": "-2", "local.retention.ms": "-3", "local.retention.bytes": "-3"}[setting.Kafka]
		if least == "" {
			least = "0" // of a segment, or a message
		}
		for _, text := range []string{least, "-9223372036854775808", "9223372036854775808", "1e3", "1.0", "0x10", "1_000", "7d", "1MB", "one", "", " ", "NaN", "--1", "1 2"} {
			topic := ResolveTopic("orders", map[string]string{setting.Kafka: text}, nil)
			if !errors.Is(topic.Err, ErrTopicSetting) || !strings.Contains(topic.Err.Error(), "topic orders: ") ||
				!strings.Contains(topic.Err.Error(), setting.Kafka+" = "+strconv.Quote(text)) {
				t.Errorf("%s = %q: %v", setting.Kafka, text, topic.Err)
			}
		}
		if topic := ResolveTopic("orders", map[string]string{setting.Kafka: " 9223372036854775807 "}, []TopicPattern{{Name: "*", Settings: map[string]string{"retention-time": "-1"}}}); topic.Err != nil {
			t.Errorf("%s = the largest number: %v", setting.Kafka, topic.Err)
		}
	}
}

func TestWarningOfSettings(t *testing.T) {
	for _, c := range []struct {
		s    TopicSettings
		want string
	}{
		{TopicSettings{SegmentMs: 10, LocalRetentionMs: 10, RetentionMs: -1}, ""},
		{TopicSettings{SegmentMs: 10, LocalRetentionMs: -1, RetentionMs: -1}, ""},
		{TopicSettings{SegmentMs: 10, LocalRetentionMs: -2, RetentionMs: -1}, ""},
		{TopicSettings{SegmentMs: 10, LocalRetentionMs: 9, RetentionMs: 20}, "segment.ms = 10 is above local.retention.ms = 9: "},
		{TopicSettings{SegmentMs: 10, LocalRetentionMs: 0, RetentionMs: -1}, "segment.ms = 10 is above local.retention.ms = 0: "},
		{TopicSettings{SegmentMs: 10, LocalRetentionMs: -2, RetentionMs: 9}, "segment.ms = 10 is above retention.ms = 9: "},
	} {
		if got := c.s.Warning(); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}

func TestRollDue(t *testing.T) {
	const now = 1_000_000_000
	const huge = math.MaxInt64
	plain := TopicSettings{SegmentMs: 1000, SegmentBytes: 5000}
	average := TopicSettings{SegmentMs: 1000, SegmentBytes: 5000, AverageMessageBytes: 100}
	counted := TopicSettings{SegmentMs: 1000, SegmentBytes: 5000, SegmentEntries: 7}
	large := TopicSettings{SegmentMs: huge, SegmentBytes: huge, AverageMessageBytes: huge, SegmentEntries: huge}
	for _, c := range []struct {
		what   string
		s      TopicSettings
		opened int64
		o      OpenStream
		want   string
		over   int64
	}{
		{"young and small", plain, now - 999, OpenStream{Length: 1, Bytes: 4999}, "", 0},
		{"just old enough", plain, now - 1000, OpenStream{Length: 1, Bytes: 0}, "segment.ms", 0},
		{"older", plain, now - 1500, OpenStream{Length: 1, Bytes: 9999}, "segment.ms", 500},
		{"empty, however old", plain, 1, OpenStream{Length: 0, Bytes: huge, FirstMs: 1}, "", 0},
		{"just large enough", plain, now, OpenStream{Length: 1, Bytes: 5000}, "segment.bytes", 0},
		{"larger", plain, now, OpenStream{Length: 1, Bytes: 5001}, "segment.bytes", 1},
		{"not measured", plain, now, OpenStream{Length: huge, Bytes: -1}, "", 0},
		{"by the average, below", average, now, OpenStream{Length: 49, Bytes: 9999}, "", 0},
		{"by the average", average, now, OpenStream{Length: 51, Bytes: -1}, "segment.bytes", 100},
		{"by the average, beyond all numbers", TopicSettings{SegmentMs: 1000, SegmentBytes: 5000, AverageMessageBytes: huge}, now, OpenStream{Length: huge}, "segment.bytes", huge - 5000},
		{"few entries", counted, now, OpenStream{Length: 6, Bytes: -1}, "", 0},
		{"enough entries", counted, now, OpenStream{Length: 7, Bytes: -1}, "segment-entries", 0},
		{"more entries", counted, now, OpenStream{Length: 9, Bytes: 0}, "segment-entries", 2},
		{"entries without a limit", plain, now, OpenStream{Length: huge, Bytes: 0}, "", 0},
		{"age by the first entry", plain, 0, OpenStream{Length: 1, FirstMs: now - 1001}, "segment.ms", 1},
		{"young by the first entry", plain, 0, OpenStream{Length: 1, FirstMs: now}, "", 0},
		{"opened later than the first entry", plain, now, OpenStream{Length: 1, FirstMs: 1}, "", 0},
		{"age not known", plain, 0, OpenStream{Length: 1}, "", 0},
		{"age not known, but large", plain, 0, OpenStream{Length: 1, Bytes: 6000}, "segment.bytes", 1000},
		{"opened a little in the future", plain, now + clockTolerance, OpenStream{Length: 1}, "", 0},
		{"opened by another clock", plain, now + clockTolerance + 1, OpenStream{Length: 1}, "segment.ms", 0},
		{"opened at the end of time", plain, huge, OpenStream{Length: 1}, "segment.ms", 0},
		{"limits without end", large, 1, OpenStream{Length: huge - 1, Bytes: huge}, "segment.bytes", 0},
		{"limits without end, one entry less", TopicSettings{SegmentMs: huge, SegmentBytes: huge, SegmentEntries: huge}, 1, OpenStream{Length: huge - 1, Bytes: huge - 1}, "", 0},
	} {
		due, ok := c.s.RollDue(Entry{OpenedAt: c.opened}, c.o, now)
		if ok != (c.want != "") || due != (Due{c.want, c.over}) {
			t.Errorf("%s: %+v, %t; want %s by %d", c.what, due, ok, c.want, c.over)
		}
	}
}

func TestRollDueNeverOfAnEmptySegmentAndNeverNegative(t *testing.T) {
	any64 := rapid.Int64Range(0, math.MaxInt64)
	limits := rapid.Int64Range(1, math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) {
		s := TopicSettings{SegmentMs: limits.Draw(t, "ms"), SegmentBytes: limits.Draw(t, "bytes"), AverageMessageBytes: any64.Draw(t, "average"), SegmentEntries: any64.Draw(t, "entries")}
		o := OpenStream{Length: rapid.OneOf(rapid.Just(int64(0)), any64).Draw(t, "length"), Bytes: rapid.Int64Range(-1, math.MaxInt64).Draw(t, "measured"), FirstMs: any64.Draw(t, "first")}
		due, ok := s.RollDue(Entry{OpenedAt: any64.Draw(t, "opened")}, o, any64.Draw(t, "now"))
		if ok && (o.Length == 0 || due.Over < 0 || due.Limit == "") || !ok && due != (Due{}) {
			t.Fatalf("%+v, %t of %+v with %+v", due, ok, o, s)
		}
	})
}

func TestSize(t *testing.T) {
	for _, c := range []struct{ average, count, measured, want int64 }{
		{0, 7, 100, 100}, {0, NoCount, 100, 100}, {0, 7, -1, 0}, {10, 7, 100, 70}, {10, 0, 100, 0}, {10, NoCount, 100, 100}, {10, NoCount, -1, 0},
		{math.MaxInt64, 2, 0, math.MaxInt64}, {2, math.MaxInt64, 0, math.MaxInt64}, {1, math.MaxInt64, 0, math.MaxInt64}, {3037000500, 3037000500, 0, math.MaxInt64},
	} {
		if got := (TopicSettings{AverageMessageBytes: c.average}).Size(c.count, c.measured); got != c.want {
			t.Errorf("average %d, count %d, measured %d: %d, want %d", c.average, c.count, c.measured, got, c.want)
		}
	}
}

func TestDueByOtherNames(t *testing.T) {
	for limit, want := range map[string][2]string{
		"":                      {"", "ms"},
		"segment.ms":            {"segment-time", "ms"},
		"segment.bytes":         {"segment-bytes", "bytes"},
		"segment-entries":       {"segment-entries", "entries"},
		"local.retention.ms":    {"local-retention-time", "ms"},
		"local.retention.bytes": {"local-retention-bytes", "bytes"},
		"retention.ms":          {"retention-time", "ms"},
		"retention.bytes":       {"retention-bytes", "bytes"},
		"delete-grace":          {"delete-grace", "ms"},
	} {
		d := Due{Limit: limit, Over: 7}
		if f := d.Flat(); f.Limit != want[0] || f.Over != 7 || d.Unit() != want[1] || f.Unit() != want[1] {
			t.Errorf("%q: %+v in %s and %s", limit, f, d.Unit(), f.Unit())
		}
	}
}
