package config

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"korvet-offload/segment"
)

// topicList is what was given below korvet.topics[], by element and flat name.
type topicList map[int]map[string][]given

func (t *topicList) add(index int, flat string, g given) {
	if *t == nil {
		*t = topicList{}
	}
	if (*t)[index] == nil {
		(*t)[index] = map[string][]given{}
	}
	(*t)[index][flat] = append((*t)[index][flat], g)
}

// present is the flat name under which an element is kept that has none of
// our settings, so that its lack of a name is seen.
const present = ""

// assignTopic takes a leaf at or below korvet.topics.
func (l *loader) assignTopic(f leaf, src source, doc int) {
	rest := f.path[2:]
	if len(rest) == 0 && (f.none || f.text == "") {
		return
	}
	index := -1
	if len(rest) > 0 {
		index = indexOf(rest[0])
	}
	switch {
	case index < 0:
		l.fault("%s (%s): want a list of topic patterns: - name: orders", printable(joinPath(f.path)), f.at)
	case len(rest) == 1:
		l.fault("korvet.topics[%d] (%s): want settings: - name: orders", index, f.at)
	default:
		l.topics.add(index, present, given{source: src, at: f.at, doc: doc})
		l.takeTopic(index, rest[1:], f, src, doc)
	}
}

// indexOf reads [3], -1 for anything else.
func indexOf(part string) int {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(part, "]"), "[")
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil {
		return -1
	}
	return int(n)
}

// takeTopic takes a setting of a topic pattern by its path below the element.
// A name that is none of ours is the broker's, unless it looks like a slip.
func (l *loader) takeTopic(index int, rest []string, f leaf, src source, doc int) {
	full := "korvet.topics[" + strconv.Itoa(index) + "]."
	written := joinPath(rest)
	flat, ours := l.topic[foldPath(rest)]
	if !ours {
		if want := l.topicSlip(rest); want != "" {
			l.fault("%s (%s): there is no such setting; did you mean %s%s?", printable(full+written), f.at, full, want)
		}
		return
	}
	if f.none {
		return
	}
	if g, ok := l.resolve(given{name: full + flat, text: f.text, source: src, at: f.at, doc: doc}); ok {
		l.topics.add(index, flat, g)
	}
}

// topicSlip is the setting that was probably meant by a name that is none of
// ours: one that is at most two letters off, goes on below a setting, or is
// Kafka's.
func (l *loader) topicSlip(rest []string) string {
	if flat, ok := l.topic[fold(rest[0])]; ok {
		return flat
	}
	if flat, ok := l.kafka[foldKafka(joinPath(rest))]; ok {
		return flat
	}
	return nearest(kebab(joinPath(rest)), l.topicNames(), slip)
}

// readTopicVariable takes KORVET_TOPICS_0_RETENTION_TIME, of which rest is
// 0_RETENTION_TIME.
func (l *loader) readTopicVariable(rest string, f leaf) {
	digits, name, ok := strings.Cut(rest, "_")
	index := indexOf("[" + digits + "]")
	if !ok || index < 0 {
		l.fault("%s: want the number of an element and a setting: KORVET_TOPICS_0_NAME", f.at)
		return
	}
	if flat, ours := l.topic[fold(name)]; ours {
		l.takeTopic(index, []string{flat}, f, sourceEnvironment, 0)
	} else if want := l.topicSlip([]string{name}); want != "" {
		l.fault("%s: there is no setting of this environment variable; did you mean KORVET_TOPICS_%d_%s?", f.at, index, variableOf(want))
	}
}

// bindTopics makes the patterns of what was given.
func (l *loader) bindTopics() []segment.TopicPattern {
	l.dropOlderLists()
	var patterns []segment.TopicPattern
	for _, i := range slices.Sorted(maps.Keys(l.topics)) {
		if p, ok := l.bindTopic(i, l.topics[i]); ok {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// dropOlderLists keeps, of a file with several documents, the last list: as
// with Spring, lists replace one another and are not mixed.
func (l *loader) dropOlderLists() {
	last := 0
	for _, element := range l.topics {
		for _, gs := range element {
			for _, g := range gs {
				last = max(last, g.doc)
			}
		}
	}
	for index, element := range l.topics {
		for flat, gs := range element {
			older := func(g given) bool { return g.source == sourceFile && g.doc < last }
			if element[flat] = slices.DeleteFunc(gs, older); len(element[flat]) == 0 {
				delete(element, flat)
			}
		}
		if len(element) == 0 {
			delete(l.topics, index)
		}
	}
}

// bindTopic makes one pattern. The settings that a lower source gives the
// element hold only as long as it is still the same topic: retention that was
// meant for another one would delete data.
func (l *loader) bindTopic(index int, element map[string][]given) (segment.TopicPattern, bool) {
	full := "korvet.topics[" + strconv.Itoa(index) + "]"
	names := element["name"]
	if len(names) == 0 {
		l.fault("%s (%s): the element has no name: want name: with a topic or a pattern such as orders-*", full, anyOf(element).at)
		return segment.TopicPattern{}, false
	}
	name := l.choose(topicRow(full, "name"), names)
	l.checkGlob(name)
	p := segment.TopicPattern{Name: name.text, Settings: map[string]string{}}
	l.used[full+".name"] = name
	for _, flat := range l.topicNames()[1:] {
		gs := slices.DeleteFunc(slices.Clone(element[flat]), func(g given) bool { return l.otherTopic(g, name, names) })
		if len(gs) > 0 {
			l.bindTopicSetting(&p, topicRow(full, flat), flat, gs)
		}
	}
	return p, true
}

// otherTopic says whether a setting was given by a source in which the
// element has another name than the one in effect.
func (l *loader) otherTopic(g, name given, names []given) bool {
	for _, n := range names {
		if n.source == g.source && n.text != name.text {
			l.warn("%s (%s) is passed over: %s makes the element another topic", g.name, g.at, name.at)
			return true
		}
	}
	return false
}

// topicRow stands for a setting of a topic pattern where rows are compared
// and shown.
func topicRow(full, flat string) row {
	return row{name: full + "." + flat, field: func(c *Config) any { return &c.Redis.Host }}
}

func anyOf(element map[string][]given) given {
	for _, flat := range slices.Sorted(maps.Keys(element)) {
		return element[flat][0]
	}
	return given{}
}

// checkGlob refuses a pattern that can match nothing.
func (l *loader) checkGlob(name given) {
	if _, err := path.Match(name.text, ""); err != nil {
		l.fault("%s: want a topic or a pattern with *, ? and [a-z]; a [ needs its ]", describe(row{}, name))
		return
	}
	if (segment.TopicPattern{Name: name.text}).Declares() && segment.ValidateTopic(name.text) != nil {
		l.fault("%s: want 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', or a pattern with *, ? and [a-z]", describe(row{}, name))
	}
}

// bindTopicSetting puts a setting into the pattern, in the form in which the
// registry has it, after a trial.
func (l *loader) bindTopicSetting(p *segment.TopicPattern, r row, flat string, gs []given) {
	g := l.choose(r, gs)
	text, err := topicText(flat, g.text)
	if err == nil {
		err = tryTopicSetting(flat, text)
	}
	if err != nil {
		l.fault("%s: %v", describe(r, g), err)
		return
	}
	p.Settings[flat] = text
	l.used[r.name] = g
}

// topicText turns durations into milliseconds and sizes into bytes; -1 and -2
// stay what they are.
func topicText(flat, text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case flat == "remote-storage-enabled":
		b, err := parseBool(text)
		return formatBool(b), err
	case isDigits(strings.TrimPrefix(text, "-")):
		return text, nil
	case strings.HasSuffix(flat, "-time"):
		d, err := parseDuration(text)
		if err == nil && d%time.Millisecond != 0 {
			err = errMillis
		}
		return strconv.FormatInt(d.Milliseconds(), 10), err
	case strings.HasSuffix(flat, "-bytes"):
		n, err := parseSize(text)
		return strconv.FormatInt(n, 10), err
	}
	return text, nil
}

// tryTopicSetting applies a setting to settings that nobody needs. Of the
// error only the end is kept: what is right.
func tryTopicSetting(flat, text string) error {
	for _, t := range segment.TopicSettingTable() {
		if t.Flat != flat {
			continue
		}
		var s segment.TopicSettings
		err := t.Apply(&s, text)
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			errs := several.Unwrap()
			return errs[len(errs)-1]
		}
		return err
	}
	return nil
}
