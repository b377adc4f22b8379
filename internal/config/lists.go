package config

import (
	"strconv"
	"strings"

	"korvet-offload/segment"
)

// list is a list of patterns among the settings: what may stand in an element
// of it, and what was given.
type list struct {
	section string                 // its name below korvet.
	thing   string                 // what its elements match
	id      string                 // flat name of the pattern, which every element must have
	wanted  string                 // what is right as a pattern
	table   []segment.TopicSetting // what else an element may have, by flat name
	open    bool                   // other names are passed over: they are the broker's
	refused map[string]string      // why a flat name is refused, although others know it
	flat    map[string]string      // flat name by its folded name
	others  map[string]string      // flat name by what it is called elsewhere, folded

	given map[int]map[string][]given // by element and flat name
}

// newTopics is korvet.topics[]. The broker reads it, too.
func newTopics() *list {
	l := newList("topics", "topic", "name", segment.TopicSettingTable())
	l.wanted, l.open = "a topic or a pattern such as orders-*", true
	return l
}

// newStreams is korvet.streams[], which only this program reads.
func newStreams() *list {
	l := newList("streams", "stream", "key", segment.StreamSettingTable())
	l.wanted = "the key of a stream or a pattern such as orders-*"
	l.refused = map[string]string{"partitions": "a plain stream has no partitions; leave it out"}
	l.others["name"] = "key"
	return l
}

func newList(section, thing, id string, table []segment.TopicSetting) *list {
	l := &list{
		section: section, thing: thing, id: id, table: table,
		flat: map[string]string{}, others: map[string]string{}, given: map[int]map[string][]given{},
	}
	for _, name := range l.names() {
		l.flat[fold(name)] = name
	}
	for _, t := range table {
		if t.Kafka != "" && t.Flat != "" {
			l.others[foldKafka(t.Kafka)] = t.Flat
		}
	}
	return l
}

// names are the flat names below an element, the pattern's first.
func (l *list) names() []string {
	names := []string{l.id}
	for _, t := range l.table {
		if t.Flat != "" {
			names = append(names, t.Flat)
		}
	}
	return names
}

// has says whether a folded name is the list's, or one below it.
func (l *list) has(folded string) bool {
	rest, ok := strings.CutPrefix(folded, "korvet."+l.section)
	return ok && (rest == "" || rest[0] == '[' || rest[0] == '.')
}

// element is the full name of an element.
func (l *list) element(index int) string {
	return "korvet." + l.section + "[" + strconv.Itoa(index) + "]"
}

// variable is the environment variable of a setting of an element.
func (l *list) variable(index int, flat string) string {
	return variableOf("korvet." + l.section + "." + strconv.Itoa(index) + "." + flat)
}

// example is an element as a file has it.
func (l *list) example() string { return "- " + l.id + ": orders" }

// meant is the setting that was probably meant by a name that is none: one
// that others call so, or that is a few letters off.
func (l *list) meant(name string) string {
	if flat, ok := l.others[foldKafka(name)]; ok {
		return flat
	}
	limit := meant
	if l.open {
		limit = slip
	}
	return nearest(kebab(name), l.names(), limit)
}

// unknown says what is wrong with a name that is no setting; "" if it may be
// the broker's. full turns a flat name into the one to propose.
func (l *list) unknown(name, none string, full func(flat string) string) string {
	if why, ok := l.refused[fold(name)]; ok {
		return why
	}
	near := l.meant(name)
	switch {
	case near != "":
		return none + "; " + proposal(full(near))
	case l.open:
		return ""
	}
	return none + "; " + proposal("")
}
