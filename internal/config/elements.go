package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// present is the flat name under which an element is kept that has none of
// our settings, so that its lack of a pattern is seen.
const present = ""

func (l *list) add(index int, flat string, g given) {
	if l.given[index] == nil {
		l.given[index] = map[string][]given{}
	}
	l.given[index][flat] = append(l.given[index][flat], g)
}

// lists are all lists, in the order of the reference.
func (l *loader) lists() []*list { return []*list{l.topics, l.streams} }

// assignElement takes a leaf at or below a list.
func (l *loader) assignElement(to *list, f leaf, src source, doc int) {
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
		l.fault("%s (%s): want a list of %s patterns: %s", printable(joinPath(f.path)), f.at, to.thing, to.example())
	case len(rest) == 1:
		l.fault("%s (%s): want settings: %s", to.element(index), f.at, to.example())
	default:
		to.add(index, present, given{source: src, at: f.at, doc: doc})
		l.takeElement(to, index, rest[1:], f, src, doc)
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

// takeElement takes a setting of an element by its path below the element.
func (l *loader) takeElement(to *list, index int, rest []string, f leaf, src source, doc int) {
	full := func(flat string) string { return to.element(index) + "." + flat }
	flat, ours := to.flat[foldPath(rest)]
	if !ours {
		l.refuseBelow(to, rest, f, full)
		return
	}
	if f.none {
		return
	}
	if g, ok := l.resolve(given{name: full(flat), text: f.text, source: src, at: f.at, doc: doc}); ok {
		to.add(index, flat, g)
	}
}

// refuseBelow judges a name below an element that is none of ours.
func (l *loader) refuseBelow(to *list, rest []string, f leaf, full func(flat string) string) {
	if flat, ok := to.flat[fold(rest[0])]; ok {
		l.fault("%s (%s): %s", full(flat), f.at, wantOneValue)
		return
	}
	if why := to.unknown(joinPath(rest), "there is no such setting", full); why != "" {
		l.fault("%s (%s): %s", printable(full(joinPath(rest))), f.at, why)
	}
}

// readElementVariable takes KORVET_TOPICS_0_RETENTION_TIME, of which rest is
// 0_RETENTION_TIME.
func (l *loader) readElementVariable(to *list, rest string, f leaf) {
	digits, name, ok := strings.Cut(rest, "_")
	index := indexOf("[" + digits + "]")
	if !ok || index < 0 {
		l.fault("%s: want the number of an element and a setting: %s", f.at, to.variable(0, to.id))
		return
	}
	if flat, ours := to.flat[fold(name)]; ours {
		l.takeElement(to, index, []string{flat}, f, sourceEnvironment, 0)
		return
	}
	full := func(flat string) string { return to.variable(index, flat) }
	if why := to.unknown(name, noVariable, full); why != "" {
		l.fault("%s: %s", f.at, why)
	}
}

// element is one element of a list as it is in effect.
type element struct {
	of       *list
	name     string            // korvet.topics[0]
	pattern  given             // what it matches
	settings map[string]string // by flat name, in the form in which the registry has it
}

// bindList makes elements of what was given, in their order. Those without a
// pattern are left out.
func (l *loader) bindList(from *list) []element {
	from.dropOlder()
	var elements []element
	for _, i := range slices.Sorted(maps.Keys(from.given)) {
		if e, ok := l.bindElement(from, i); ok {
			elements = append(elements, e)
		}
	}
	l.bound = append(l.bound, elements...)
	return elements
}

// dropOlder keeps, of a file with several documents, the last list: as with
// Spring, lists replace one another and are not mixed.
func (l *list) dropOlder() {
	last := 0
	for _, element := range l.given {
		for _, gs := range element {
			for _, g := range gs {
				last = max(last, g.doc)
			}
		}
	}
	for index, element := range l.given {
		for flat, gs := range element {
			older := func(g given) bool { return g.source == sourceFile && g.doc < last }
			if element[flat] = slices.DeleteFunc(gs, older); len(element[flat]) == 0 {
				delete(element, flat)
			}
		}
		if len(element) == 0 {
			delete(l.given, index)
		}
	}
}

// bindElement makes one element. The settings that a lower source gives it
// hold only as long as it is still the same pattern: retention that was meant
// for another one would delete data.
func (l *loader) bindElement(from *list, index int) (element, bool) {
	e := element{of: from, name: from.element(index), settings: map[string]string{}}
	texts := from.given[index]
	patterns := texts[from.id]
	if len(patterns) == 0 {
		l.fault("%s (%s): the element has no %s: want %s: with %s", e.name, anyOf(texts).at, from.id, from.id, from.wanted)
		return element{}, false
	}
	e.pattern = l.choose(elementRow(e.name, from.id), patterns)
	l.used[e.pattern.name] = e.pattern
	for _, flat := range from.names()[1:] {
		other := func(g given) bool { return l.otherPattern(from, g, e.pattern, patterns) }
		if gs := slices.DeleteFunc(slices.Clone(texts[flat]), other); len(gs) > 0 {
			l.bindElementSetting(e, flat, gs)
		}
	}
	return e, true
}

// otherPattern says whether a setting was given by a source in which the
// element has another pattern than the one in effect.
func (l *loader) otherPattern(from *list, g, pattern given, patterns []given) bool {
	for _, p := range patterns {
		if p.source == g.source && p.text != pattern.text {
			l.warn("%s (%s) is passed over: %s makes the element another %s", g.name, g.at, pattern.at, from.thing)
			return true
		}
	}
	return false
}

// elementRow stands for a setting of an element where rows are compared and
// shown.
func elementRow(full, flat string) row {
	return row{name: full + "." + flat, field: func(c *Config) any { return &c.Redis.Host }}
}

func anyOf(texts map[string][]given) given {
	for _, flat := range slices.Sorted(maps.Keys(texts)) {
		return texts[flat][0]
	}
	return given{}
}

// bindElementSetting puts a setting into the element, after a trial.
func (l *loader) bindElementSetting(e element, flat string, gs []given) {
	r := elementRow(e.name, flat)
	g := l.choose(r, gs)
	text, err := patternText(flat, g.text)
	if err == nil {
		err = e.of.try(flat, text)
	}
	if err != nil {
		l.fault("%s: %v", describe(r, g), err)
		return
	}
	e.settings[flat] = text
	l.used[r.name] = g
}
