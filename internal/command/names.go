package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/segment"
)

// form is a way to name what a command is to work on.
type form int

// The forms. A command takes some of them.
const (
	formTopic     form = 1 << iota // TOPIC
	formPartition                  // TOPIC:N
	formSegments                   // TOPIC:N/SEGMENTS
)

// grammar is which names a command takes, and how many.
type grammar struct {
	takes form
	// none: without a name all is meant; many: there may be several; streams: plain
	// streams can be named.
	none, many, streams bool
	hint                string // where to find what is asked for; "" = nothing more to say
}

// namesHelp explains the forms, in the same words wherever names are taken.
const namesHelp = `Names are TOPIC, TOPIC:N and TOPIC:N/SEGMENTS: a topic, one of its partitions, and
segments of that, such as orders, orders:0, orders:0/7 and orders:0/1-3,7. A plain
stream is named by --stream KEY, and segments of it follow: --stream KEY 1-3,7. The
usage above says which of them are taken.`

// forms lists what a command takes, for its usage.
func (g grammar) forms() string {
	var all []string
	for _, f := range []struct {
		form form
		text string
	}{{formTopic, "TOPIC"}, {formPartition, "TOPIC:N"}, {formSegments, "TOPIC:N/SEGMENTS"}} {
		if g.takes&f.form != 0 {
			all = append(all, f.text)
		}
	}
	if g.streams {
		all = append(all, "--stream KEY"+g.behind())
	}
	return strings.Join(all, " | ")
}

// behind is what follows --stream KEY.
func (g grammar) behind() string {
	switch {
	case g.takes&formSegments == 0:
		return ""
	case g.takes == formSegments:
		return " SEGMENTS"
	}
	return " [SEGMENTS]"
}

// usage is forms as it stands in the usage of a command.
func (g grammar) usage() string {
	text := g.forms()
	switch {
	case g.none && g.many:
		return "[" + text + "] ..."
	case g.none:
		return "[" + text + "]"
	case g.many:
		return "(" + text + ") ..."
	}
	return "(" + text + ")"
}

// refuse says which forms a command takes instead of what was given.
func (g grammar) refuse(format string, args ...any) error {
	want := "want "
	if !g.many {
		want += "one of "
	}
	text := fmt.Sprintf(format, args...) + ": " + want + strings.ReplaceAll(g.forms(), " | ", ", ")
	if g.takes&formSegments != 0 {
		text += ", SEGMENTS as in 7 or 1-3,7"
	}
	if g.hint != "" {
		text += "; " + g.hint
	}
	return cmdline.UsageError{Err: errors.New(text)}
}

// parse reads names. stream is the key that --stream names, if isStream.
func (g grammar) parse(args []string, stream string, isStream bool) (names, error) {
	if isStream {
		return g.parseStream(args, stream)
	}
	switch {
	case len(args) == 0 && !g.none:
		return nil, g.refuse("nothing is named")
	case len(args) > 1 && !g.many:
		return nil, g.refuse("%q is one too many", args[1])
	}
	var all names
	for _, text := range args {
		n, err := parseName(text)
		if err != nil {
			return nil, g.refuse("%q: %v", text, err)
		}
		if g.takes&n.form() == 0 {
			return nil, g.refuse("%q names %s", text, n.form())
		}
		all = all.with(n)
	}
	return all, nil
}

// parseStream reads the name of a plain stream, and of segments of it.
func (g grammar) parseStream(args []string, stream string) (names, error) {
	p, err := segment.ParsePartition(stream, true)
	if err != nil {
		return nil, cmdline.UsageError{Err: fmt.Errorf("--stream: %w", err)}
	}
	n := name{partition: p}
	for _, text := range args {
		numbers, err := parseNumbers(text)
		if err != nil || g.takes&formSegments == 0 {
			return nil, g.refuse("--stream and %q", text)
		}
		n.segments = n.segments.with(numbers)
	}
	if n.segments == nil && g.takes&(formTopic|formPartition) == 0 {
		return nil, g.refuse("--stream %s names no segment", stream)
	}
	return names{n}, nil
}

// named are the names on a command line.
func (g grammar) named(c *cli.Context) (names, error) {
	return g.parse(c.Args().Slice(), c.String("stream"), c.IsSet("stream"))
}

// scoped are the names on a command line that has --topic, too.
func (g grammar) scoped(c *cli.Context) (names, error) {
	if !c.IsSet("topic") {
		return g.named(c)
	}
	switch {
	case c.IsSet("stream"):
		return nil, cmdline.UsageError{Err: errors.New("--topic and --stream: want one of them")}
	case c.Args().Present():
		return nil, cmdline.UsageError{Err: fmt.Errorf("--topic and %q: want one of them; a name needs no --topic", c.Args().First())}
	}
	if err := segment.ValidateTopic(c.String("topic")); err != nil {
		return nil, cmdline.UsageError{Err: fmt.Errorf("--topic: %w", err)}
	}
	return names{{partition: segment.Partition{Topic: c.String("topic")}, topic: true}}, nil
}

// String is a form as people call it.
func (f form) String() string {
	switch f {
	case formTopic:
		return "a topic"
	case formPartition:
		return "a partition"
	}
	return "segments"
}

// name is a topic, a partition or plain stream, or segments of one.
type name struct {
	partition segment.Partition // of a topic its partition 0
	topic     bool              // all partitions are meant
	segments  numbers           // nil = all
}

func (n name) form() form {
	switch {
	case n.topic:
		return formTopic
	case n.segments == nil:
		return formPartition
	}
	return formSegments
}

// covers says whether something of a partition is meant.
func (n name) covers(p segment.Partition) bool {
	if n.topic {
		return !p.Plain && p.Topic == n.partition.Topic
	}
	return p == n.partition
}

// String is the name without its segments.
func (n name) String() string {
	switch {
	case n.topic:
		return "topic " + n.partition.Topic
	case n.partition.Plain:
		return "stream " + n.partition.String()
	}
	return "partition " + n.partition.String()
}

// parseName reads TOPIC, TOPIC:N or TOPIC:N/SEGMENTS.
func parseName(text string) (n name, err error) {
	of, list, some := strings.Cut(text, "/")
	topic, number, part := strings.Cut(of, ":")
	if err := segment.ValidateTopic(topic); err != nil {
		return n, err
	}
	switch {
	case !part && some:
		return n, errors.New("segments are those of a partition")
	case !part:
		return name{partition: segment.Partition{Topic: topic}, topic: true}, nil
	}
	if n.partition, err = segment.ParsePartition(of, false); err != nil {
		return n, fmt.Errorf("partition %q is no number below %d", number, segment.MaxPartitions)
	}
	if some {
		n.segments, err = parseNumbers(list)
	}
	return n, err
}

// names are what a command is to work on; none = everything. No two of them are
// of the same topic, partition or plain stream.
type names []name

// with adds a name to others that may be of the same partition.
func (all names) with(n name) names {
	i := slices.IndexFunc(all, func(o name) bool { return o.partition == n.partition && o.topic == n.topic })
	switch {
	case i < 0:
		return append(all, n)
	case all[i].segments == nil || n.segments == nil:
		all[i].segments = nil
	default:
		all[i].segments = all[i].segments.with(n.segments)
	}
	return all
}

// covers says whether something of a partition is meant.
func (all names) covers(p segment.Partition) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(n name) bool { return n.covers(p) })
}

// has says whether a segment is meant.
func (all names) has(p segment.Partition, number segment.Number) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(n name) bool {
		return n.covers(p) && (n.segments == nil || n.segments.has(number))
	})
}

// of are the segments of a partition that are named one by one; nil = there are none
// such.
func (all names) of(p segment.Partition) numbers {
	if !all.some(p) {
		return nil
	}
	for _, n := range all {
		if n.covers(p) {
			return n.segments
		}
	}
	return nil
}

// some says whether only some segments of a partition are meant.
func (all names) some(p segment.Partition) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(n name) bool { return n.covers(p) && n.segments == nil })
}

// anySome says whether of any partition only some segments are meant.
func (all names) anySome() bool {
	return slices.ContainsFunc(all, func(n name) bool { return n.segments != nil })
}

// partitions are those that are named as such, or of which segments are.
func (all names) partitions() (parts []segment.Partition) {
	for _, n := range all {
		if !n.topic {
			parts = append(parts, n.partition)
		}
	}
	return parts
}

// anyTopic says whether a whole topic is named.
func (all names) anyTopic() bool {
	return slices.ContainsFunc(all, func(n name) bool { return n.topic })
}

// scope is the topic or plain stream that all names are of; the zero Scope if
// there is no such one.
func (all names) scope() (s segment.Scope) {
	for i, n := range all {
		of := segment.Scope{Topic: n.partition.Topic}
		if n.partition.Plain {
			of = segment.Scope{Stream: n.partition.Topic}
		}
		if i > 0 && s != of {
			return segment.Scope{}
		}
		s = of
	}
	return s
}

// span is a range of segments, both inclusive.
type span struct{ first, last segment.Number }

// numbers are ranges of segments, in their order, that neither overlap nor touch.
type numbers []span

// parseNumbers reads a list such as 7 or 1-3,7.
func parseNumbers(text string) (all numbers, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, many := strings.Cut(part, "-")
		var s span
		if s.first, err = segment.ParseNumber(from); err != nil {
			return nil, err
		}
		if s.last = s.first; many {
			if s.last, err = segment.ParseNumber(to); err != nil {
				return nil, err
			}
			if s.last < s.first {
				return nil, fmt.Errorf("segments %s: %s is above %s", part, from, to)
			}
		}
		all = append(all, s)
	}
	return all.with(nil), nil
}

// with are all segments of two lists.
func (a numbers) with(b numbers) (merged numbers) {
	for _, s := range slices.SortedFunc(slices.Values(slices.Concat(a, b)), func(x, y span) int { return cmp.Compare(x.first, y.first) }) {
		if last := len(merged) - 1; last >= 0 && s.first <= merged[last].last+1 {
			merged[last].last = max(merged[last].last, s.last)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// without are the ranges in which a segment is not.
func (a numbers) without(n segment.Number) numbers {
	if len(a) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(a), func(s span) bool { return s.first <= n && n <= s.last })
}

func (a numbers) has(n segment.Number) bool {
	return slices.ContainsFunc(a, func(s span) bool { return s.first <= n && n <= s.last })
}

// String is the list as parseNumbers reads it.
func (a numbers) String() string {
	parts := make([]string, len(a))
	for i, s := range a {
		if parts[i] = s.first.String(); s.last != s.first {
			parts[i] += "-" + s.last.String()
		}
	}
	return strings.Join(parts, ",")
}
