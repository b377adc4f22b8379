package segment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Layout says which Redis key holds what, as patterns with {ns}, {topic},
// {partition}, {segment} and {key}. The defaults are manifest contract v1
// (docs/manifest.md).
type Layout struct {
	Namespace     string // {ns}
	Topics        string // registry: Set of names, or a JSON document
	Topic         string // registry: Hash of one topic
	Stream        string // stream key of a partition
	SegmentStream string // stream of a segment
	Manifest      string // manifest of a partition
	Lease         string // leader lease

	Streams        string // Set of the keys of plain streams
	StreamManifest string // manifest of a plain stream
	Known          string // Hash of the topics that were ever offloaded
	Members        string // Hash of the instances that run
	Paused         string // Hash of what people have paused
	Cluster        string // id of this Redis
}

// DefaultLayout is the layout of manifest contract v1.
func DefaultLayout() Layout {
	return Layout{
		Namespace:     "korvet",
		Topics:        "{ns}:topics",
		Topic:         "{ns}:topic:{topic}",
		Stream:        "{ns}:storage:local:{topic}:{partition}",
		SegmentStream: "{ns}:storage:local:{topic}:{partition}:{segment}",
		Manifest:      "{ns}:storage:manifest:{topic}:{partition}",
		Lease:         "{ns}:storage:offload:lease",

		Streams:        "{ns}:streams",
		StreamManifest: "{ns}:storage:stream-manifest:{key}",
		Known:          "{ns}:storage:offload:topics",
		Members:        "{ns}:storage:offload:members",
		Paused:         "{ns}:storage:offload:paused",
		Cluster:        "{ns}:storage:offload:cluster",
	}
}

// Validate returns one error per pattern that could make two things share a
// key; the errors name the setting's last part.
func (l Layout) Validate() []error {
	var errs []error
	if l.Namespace == "" || strings.ContainsAny(l.Namespace, "{}/\x00") {
		errs = append(errs, fmt.Errorf("namespace %q: want a text without { } and /", l.Namespace))
	}
	for _, p := range []struct{ name, pattern, needs string }{
		{"topics", l.Topics, ""},
		{"topic", l.Topic, "{topic}"},
		{"stream", l.Stream, "{topic} {partition}"},
		{"segment-stream", l.SegmentStream, "{topic} {partition} {segment}"},
		{"manifest", l.Manifest, "{topic} {partition}"},
		{"lease", l.Lease, ""},
		{"streams", l.Streams, ""},
		{"stream-manifest", l.StreamManifest, "{key}"},
		{"known", l.Known, ""},
		{"members", l.Members, ""},
		{"paused", l.Paused, ""},
		{"cluster", l.Cluster, ""},
	} {
		if p.pattern == "" {
			errs = append(errs, fmt.Errorf("layout.%s: it is empty", p.name))
		}
		rest := strings.ReplaceAll(p.pattern, "{ns}", "")
		for _, need := range strings.Fields(p.needs) {
			if !strings.Contains(rest, need) {
				errs = append(errs, fmt.Errorf("layout.%s = %q: %s is missing", p.name, p.pattern, need))
			}
			rest = strings.ReplaceAll(rest, need, "")
		}
		// What is left may hold a Redis Cluster hash tag such as {tag}, but
		// not one of the words above where it has no meaning.
		for _, word := range []string{"{topic}", "{partition}", "{segment}", "{key}"} {
			if strings.Contains(rest, word) {
				errs = append(errs, fmt.Errorf("layout.%s = %q: %s has no meaning here", p.name, p.pattern, word))
			}
		}
	}
	if len(errs) == 0 {
		errs = l.collisions()
	}
	return errs
}

// collisions looks for two things that would share a key, among names and
// numbers that differ only in where one ends and the next begins.
func (l Layout) collisions() []error {
	var errs []error
	whose := map[string]string{}
	add := func(key, thing string) {
		if other, taken := whose[key]; taken && other != thing {
			errs = append(errs, fmt.Errorf("layout: %s and %s would both be %s", other, thing, key))
		}
		whose[key] = thing
	}
	add(l.TopicsKey(), "layout.topics")
	add(l.LeaseKey(), "layout.lease")
	add(l.StreamsKey(), "layout.streams")
	add(l.KnownKey(), "layout.known")
	add(l.MembersKey(), "layout.members")
	add(l.PausedKey(), "layout.paused")
	add(l.ClusterKey(), "layout.cluster")
	for _, topic := range []string{"t", "t1", "t11"} {
		add(l.TopicKey(topic), "layout.topic of "+topic)
		add(l.ManifestKey(Partition{Topic: topic, Plain: true}), "layout.stream-manifest of "+topic)
		for _, n := range []int{1, 11} {
			p := Partition{Topic: topic, Number: n}
			add(l.StreamKey(p), "layout.stream of "+p.String())
			add(l.ManifestKey(p), "layout.manifest of "+p.String())
			for _, s := range []Number{1, 11} {
				add(l.SegmentKey(p, s), "layout.segment-stream of "+p.String()+"/"+s.String())
			}
		}
	}
	return errs
}

// TopicsKey is the key of the topic registry.
func (l Layout) TopicsKey() string { return l.expand(l.Topics, Partition{}, 0) }

// TopicKey is the key of one topic's Hash.
func (l Layout) TopicKey(topic string) string { return l.expand(l.Topic, Partition{Topic: topic}, 0) }

// StreamKey is the stream key of a partition: of a topic's the name from
// which the segments' keys are made, of a plain stream its key.
func (l Layout) StreamKey(p Partition) string {
	if p.Plain {
		return p.Topic
	}
	return l.expand(l.Stream, p, 0)
}

// Folder is what the object paths of a partition begin with: its stream key,
// of a plain stream written so that any key is a legal path (SafeKey).
func (l Layout) Folder(p Partition) string {
	if p.Plain {
		return SafeKey(p.Topic)
	}
	return l.StreamKey(p)
}

// SegmentKey is the stream of a segment whose entry names no key of its own.
func (l Layout) SegmentKey(p Partition, n Number) string {
	if p.Plain {
		return p.Topic
	}
	return l.expand(l.SegmentStream, p, n)
}

// ManifestKey is the key of a partition's manifest.
func (l Layout) ManifestKey(p Partition) string {
	if p.Plain {
		return l.expand(l.StreamManifest, p, 0)
	}
	return l.expand(l.Manifest, p, 0)
}

// LeaseKey is the key of the leader lease.
func (l Layout) LeaseKey() string { return l.expand(l.Lease, Partition{}, 0) }

// StreamsKey is the key of the Set of plain streams.
func (l Layout) StreamsKey() string { return l.expand(l.Streams, Partition{}, 0) }

// KnownKey is the key of the Hash of the topics that were ever offloaded.
func (l Layout) KnownKey() string { return l.expand(l.Known, Partition{}, 0) }

// MembersKey is the key of the Hash of the instances that run.
func (l Layout) MembersKey() string { return l.expand(l.Members, Partition{}, 0) }

// PausedKey is the key of the Hash of what people have paused.
func (l Layout) PausedKey() string { return l.expand(l.Paused, Partition{}, 0) }

// ClusterKey is the key of the id of this Redis.
func (l Layout) ClusterKey() string { return l.expand(l.Cluster, Partition{}, 0) }

// expand fills a pattern in. What is filled in is not looked at again.
func (l Layout) expand(pattern string, p Partition, n Number) string {
	var key strings.Builder
	for {
		text, rest, ok := strings.Cut(pattern, "{")
		key.WriteString(text)
		if !ok {
			return key.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		switch name {
		case "ns":
			key.WriteString(l.Namespace)
		case "topic", "key":
			key.WriteString(p.Topic)
		case "partition":
			key.WriteString(strconv.Itoa(p.Number))
		case "segment":
			key.WriteString(n.String())
		default: // no placeholder
			key.WriteByte('{')
			after = rest
		}
		pattern = after
	}
}

// Number is a segment's id: 0, 1, 2 ... within its partition.
type Number uint64

// ParseNumber reads a segment id in plain decimal; "07" and "+7" are refused,
// since two fields of a manifest must not name one segment.
func ParseNumber(s string) (Number, error) {
	n, err := parseUint(s)
	if err != nil || n > math.MaxInt64 || strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("segment id %q: want a decimal number up to %d", s, math.MaxInt64)
	}
	return Number(n), nil
}

func (n Number) String() string { return strconv.FormatUint(uint64(n), 10) }

// ObjectPath is the path, below the root, of copy number copy of a segment:
// <folder>/<segment>.parquet, or <folder>/<segment>-<copy>.parquet, the folder
// being that of the partition (Layout.Folder). A suffix that is not empty makes the path unique to one attempt, for stores
// that can't put an object only if it is absent.
func ObjectPath(folder string, n Number, copy int64, suffix string) string {
	name := folder + "/" + n.String()
	if copy != 0 {
		name += "-" + strconv.FormatInt(copy, 10)
	}
	if suffix != "" {
		name += "." + suffix
	}
	return name + ".parquet"
}

// IsObjectOf says whether a path is one that ObjectPath makes for any copy of
// a segment. Only such an object is ever deleted for it.
func IsObjectOf(path, folder string, n Number) bool {
	rest, ok := strings.CutPrefix(path, folder+"/"+n.String())
	if !ok || strings.Contains(rest, "/") {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, ".parquet"); !ok {
		return false
	}
	name, suffix, unique := strings.Cut(rest, ".")
	copy, again := strings.CutPrefix(name, "-")
	number, err := ParseNumber(copy)
	return (name == "" || again && err == nil && number > 0) && (suffix != "" || !unique)
}
