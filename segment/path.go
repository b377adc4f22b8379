package segment

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ObjectName is what the path of a segment's object says.
type ObjectName struct {
	Folder  string // of the partition (Layout.Folder)
	Segment Number
	Copy    int64  // 0 = the first
	Suffix  string // of one attempt, on stores that can't put an object only if it is absent
}

// Path is the path that ObjectPath makes of the name.
func (o ObjectName) Path() string { return ObjectPath(o.Folder, o.Segment, o.Copy, o.Suffix) }

// ParseObjectPath reads a path that ObjectPath has made; false for any other.
func ParseObjectPath(path string) (ObjectName, bool) {
	at := strings.LastIndexByte(path, '/')
	if at < 1 {
		return ObjectName{}, false
	}
	name, ok := strings.CutSuffix(path[at+1:], ".parquet")
	if !ok {
		return ObjectName{}, false
	}
	o := ObjectName{Folder: path[:at]}
	name, o.Suffix, _ = strings.Cut(name, ".")
	number, copied, again := strings.Cut(name, "-")
	n, err := ParseNumber(number)
	if err != nil {
		return ObjectName{}, false
	}
	o.Segment = n
	if again {
		c, err := ParseNumber(copied)
		if err != nil {
			return ObjectName{}, false
		}
		o.Copy = int64(c)
	}
	return o, o.Path() == path
}

// PartitionOf is the partition whose objects lie in a folder: the reverse of
// Folder. What could be a topic's is a topic's. False means that no partition
// has this folder.
func (l Layout) PartitionOf(folder string) (Partition, bool) {
	pattern := l.folderPattern()
	if m := pattern.FindStringSubmatch(folder); m != nil {
		n, err := strconv.Atoi(m[pattern.SubexpIndex("partition")])
		p := Partition{Topic: m[pattern.SubexpIndex("topic")], Number: n}
		if err == nil && n < MaxPartitions && ValidateTopic(p.Topic) == nil && l.Folder(p) == folder {
			return p, true
		}
	}
	key, err := KeyOf(folder)
	if err != nil || l.checkPlain(key) != nil {
		return Partition{}, false
	}
	return Partition{Topic: key, Plain: true}, true
}

// folderPattern matches the folder of a topic's partition and names its parts.
func (l Layout) folderPattern() *regexp.Regexp {
	text := regexp.QuoteMeta(strings.ReplaceAll(l.Stream, "{ns}", l.Namespace))
	text = strings.Replace(text, `\{topic\}`, `(?P<topic>[a-zA-Z0-9._-]+)`, 1)
	text = strings.Replace(text, `\{partition\}`, `(?P<partition>[0-9]+)`, 1)
	return regexp.MustCompile("^" + text + "$")
}

// ParsePartition reads what a person calls a partition: topic:number, or with
// plain the key of a plain stream.
func ParsePartition(text string, plain bool) (Partition, error) {
	if plain {
		if text == "" {
			return Partition{}, fmt.Errorf("%w: it is empty", ErrStreamKey)
		}
		return Partition{Topic: text, Plain: true}, nil
	}
	topic, number, ok := strings.Cut(text, ":")
	if !ok {
		return Partition{}, fmt.Errorf("partition %q: want TOPIC:NUMBER", text)
	}
	if err := ValidateTopic(topic); err != nil {
		return Partition{}, err
	}
	n, err := ParseNumber(number)
	if err != nil || n >= MaxPartitions {
		return Partition{}, fmt.Errorf("partition %q: want TOPIC:NUMBER, the number below %d", text, MaxPartitions)
	}
	return Partition{Topic: topic, Number: int(n)}, nil
}
