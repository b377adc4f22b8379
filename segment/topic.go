package segment

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Partition names one partition of a topic, or a plain stream: one that
// applications write to and that no topic stands behind.
type Partition struct {
	Topic  string // of a plain stream its key
	Number int    // of a plain stream 0
	Plain  bool
}

// String is topic:number, as the keys have it; of a plain stream its key, in
// quotes where it is not a plain word.
func (p Partition) String() string {
	if !p.Plain {
		return p.Topic + ":" + strconv.Itoa(p.Number)
	}
	if SafeKey(p.Topic) != p.Topic {
		return strconv.Quote(p.Topic)
	}
	return p.Topic
}

// ValidateTopic checks a name against Kafka's rule: 1 to 249 of a-z, A-Z,
// 0-9, '.', '_', '-', and neither "." nor "..". Keys and object paths are
// built only from names that passed, so a name can't reach outside its
// folder or look like another key.
func ValidateTopic(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrTopicName)
	case len(name) > 249:
		return fmt.Errorf("%w: %d bytes long, 249 at most", ErrTopicName, len(name))
	case name == "." || name == "..":
		return fmt.Errorf("%w: %q", ErrTopicName, name)
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' {
			continue
		}
		return fmt.Errorf("%w: %q: only a-z, A-Z, 0-9, '.', '_' and '-' may be used", ErrTopicName, name)
	}
	return nil
}

// TopicSettings are the settings of a topic that this program acts on. Times
// are milliseconds and sizes bytes, with Kafka's -1 (no limit) and -2 (as the
// total).
type TopicSettings struct {
	RemoteStorage       bool   `json:"remote.storage.enable"`           // only such topics are offloaded
	RetentionMs         int64  `json:"retention.ms"`                    // over both tiers
	RetentionBytes      int64  `json:"retention.bytes"`                 // over both tiers
	LocalRetentionMs    int64  `json:"local.retention.ms"`              // in Redis
	LocalRetentionBytes int64  `json:"local.retention.bytes"`           // in Redis
	SegmentMs           int64  `json:"segment.ms"`                      // roll an open segment that is older
	SegmentBytes        int64  `json:"segment.bytes"`                   // roll an open segment that is larger
	AverageMessageBytes int64  `json:"average.message.bytes,omitempty"` // 0 = unset
	SegmentEntries      int64  `json:"segment-entries,omitempty"`       // plain streams only: roll an open segment that has more; 0 = unset
	Partitions          int    `json:"partitions"`                      // number of partitions, from 1
	ID                  string `json:"id,omitempty"`                    // the topic's UUID; "" when the registry has none
}

// DefaultTopicSettings are the settings of a topic that says nothing.
func DefaultTopicSettings() TopicSettings {
	return TopicSettings{
		RetentionMs: 604_800_000, RetentionBytes: -1,
		LocalRetentionMs: -2, LocalRetentionBytes: -2,
		SegmentMs: 86_400_000, SegmentBytes: 134_217_728,
		Partitions: 1,
	}
}

// MaxPartitions bounds the partitions of one topic, so that an absurd number
// in the registry can't make a scan endless.
const MaxPartitions = 1_000_000

// TopicSetting is one setting that a topic or a topic pattern can have: its
// names in the three places where it can stand, and how its text is taken.
type TopicSetting struct {
	Kafka  string // in the registry, by Kafka's name; "" where Kafka has none
	Camel  string // in the registry, by Korvet's name
	Flat   string // below korvet.topics[] in the settings
	Effect string // one line for the reference
	set    func(*TopicSettings, string) error
}

// TopicSettingTable lists the settings of a topic in the order in which they
// are documented.
func TopicSettingTable() []TopicSetting {
	return []TopicSetting{
		{"remote.storage.enable", "remoteStorageEnabled", "remote-storage-enabled", "only such topics are offloaded",
			func(s *TopicSettings, v string) (err error) { s.RemoteStorage, err = strconv.ParseBool(v); return }},
		{"retention.ms", "retentionTime", "retention-time", "total retention over both tiers; -1 = for ever",
			limit(-1, func(s *TopicSettings) *int64 { return &s.RetentionMs })},
		{"retention.bytes", "retentionBytes", "retention-bytes", "total size; -1 = no limit",
			limit(-1, func(s *TopicSettings) *int64 { return &s.RetentionBytes })},
		{"local.retention.ms", "localRetentionTime", "local-retention-time", "time in Redis; -2 = as the total",
			limit(-2, func(s *TopicSettings) *int64 { return &s.LocalRetentionMs })},
		{"local.retention.bytes", "localRetentionBytes", "local-retention-bytes", "size in Redis; -2 = as the total",
			limit(-2, func(s *TopicSettings) *int64 { return &s.LocalRetentionBytes })},
		{"segment.ms", "segmentTime", "segment-time", "roll an open segment that is older",
			limit(1, func(s *TopicSettings) *int64 { return &s.SegmentMs })},
		{"segment.bytes", "segmentBytes", "segment-bytes", "roll an open segment that is larger",
			limit(1, func(s *TopicSettings) *int64 { return &s.SegmentBytes })},
		{"average.message.bytes", "averageMessageBytes", "average-message-bytes", "when set, size = length x this",
			limit(1, func(s *TopicSettings) *int64 { return &s.AverageMessageBytes })},
		{"", "partitions", "partitions", "number of partitions",
			func(s *TopicSettings, v string) error {
				n, err := strconv.Atoi(v)
				if err != nil || n < 1 || n > MaxPartitions {
					return fmt.Errorf("want a number from 1 to %d", MaxPartitions)
				}
				s.Partitions = n
				return nil
			}},
		{"", "id", "", "the topic's UUID", func(s *TopicSettings, v string) error { s.ID = v; return nil }},
	}
}

// limit takes a number from least upwards into the field that at names.
func limit(least int64, at func(*TopicSettings) *int64) func(*TopicSettings, string) error {
	return func(s *TopicSettings, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least {
			return fmt.Errorf("want a whole number from %d upwards", least)
		}
		*at(s) = n
		return nil
	}
}

// Apply sets the setting from its text; the error names the setting and
// wraps ErrTopicSetting.
func (t TopicSetting) Apply(s *TopicSettings, text string) error {
	if err := t.set(s, strings.TrimSpace(text)); err != nil {
		return fmt.Errorf("%w: %s = %q: %w", ErrTopicSetting, cmp.Or(t.Kafka, t.Camel, t.Flat), text, err)
	}
	return nil
}

// TopicPattern is one element of korvet.topics[]: a glob over topic names and
// the settings, by flat name, of the topics that it matches.
type TopicPattern struct {
	Name     string            // a glob: *, ?, [a-z]
	Settings map[string]string // flat name -> text
}

// Declares says whether the pattern is a plain name, which also makes the
// topic known.
func (p TopicPattern) Declares() bool { return !strings.ContainsAny(p.Name, `*?[\`) }

// Matches says whether the pattern applies to a topic.
func (p TopicPattern) Matches(topic string) bool {
	ok, err := path.Match(p.Name, topic)
	return err == nil && ok
}

// Topic is a topic, or a plain stream, with its settings; Err is not nil where
// it can't be worked on, and then the settings mean nothing.
type Topic struct {
	Name     string // of a plain stream its key
	Plain    bool   // a plain stream
	Settings TopicSettings
	Declared bool // known from this program's settings alone, not from the registry
	Bare     bool // the registry holds no setting of it
	// Codec is how the broker keeps the values of its messages, as the registry has
	// it (storage.compression.type); "" where that does not say. It is no setting
	// that this program acts on: values are moved as they are.
	Codec string
	Err   error
}

// Partition names one of the topic's partitions.
func (t Topic) Partition(n int) Partition { return Partition{Topic: t.Name, Number: n, Plain: t.Plain} }

// The names of a topic's codec in the registry.
const (
	codecKafka = "storage.compression.type"
	codecCamel = "storageCompressionType"
)

// ResolveTopic makes a topic of its own settings (by Kafka's or Korvet's
// name, as the registry has them) and the patterns: per setting the topic's
// own, then that of the first matching pattern, then the default. Settings
// that this program does not act on are passed over; one whose value makes no
// sense parks the topic, since a guessed retention deletes data.
func ResolveTopic(name string, own map[string]string, patterns []TopicPattern) Topic {
	t := Topic{Name: name, Settings: DefaultTopicSettings()}
	if t.Err = ValidateTopic(name); t.Err != nil {
		return t
	}
	var flat map[string]string
	for _, p := range patterns {
		if p.Matches(name) {
			flat = p.Settings
			break
		}
	}
	t.Bare = len(own) == 0
	t.Codec = strings.TrimSpace(cmp.Or(own[codecKafka], own[codecCamel]))
	t.apply(TopicSettingTable(), own, flat)
	return t
}

// apply takes each setting from the topic's own texts or the pattern's.
func (t *Topic) apply(table []TopicSetting, own, flat map[string]string) {
	for _, s := range table {
		text, ok := own[s.Kafka]
		if !ok || s.Kafka == "" {
			text, ok = own[s.Camel]
		}
		if !ok && s.Flat != "" {
			text, ok = flat[s.Flat]
		}
		if !ok {
			continue
		}
		if err := s.Apply(&t.Settings, text); err != nil {
			t.Err = fmt.Errorf("%s: %w", t.what(), err)
			return
		}
	}
	if err := t.Settings.Check(); err != nil {
		t.Err = fmt.Errorf("%s: %w: %s", t.what(), ErrTopicSetting, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

func (t *Topic) what() string {
	if t.Plain {
		return "stream " + t.Partition(0).String()
	}
	return "topic " + t.Name
}
