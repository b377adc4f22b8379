package config

import (
	"fmt"
	"slices"
	"strings"
)

// source is a kind of place that settings come from; a higher one wins.
type source int

const (
	sourceDefault source = iota
	sourceFile
	sourceSecrets
	sourceEnvironment
	sourceFlag
)

// String is the source as the report has it.
func (s source) String() string {
	return [...]string{"default", "file", "secrets", "environment", "flag"}[s]
}

// given is one value as somebody wrote it.
type given struct {
	name   string // the name that was used, in the reference's spelling
	text   string
	source source
	at     string // file:line, file of the secrets folder, variable or flag
	doc    int    // number of the document within the file
}

// loader collects what was given, and what is wrong with it.
type loader struct {
	catalog
	environ  map[string]string
	given    map[string][]given // by the setting's shown name
	used     map[string]given   // of those, the ones in effect
	topics   *list
	streams  *list
	bound    []element       // of the lists, in the order of the reference
	faulty   map[string]bool // settings with a fault: they are not checked further
	faults   Faults
	warnings []string
}

func newLoader(environ []string) *loader {
	l := &loader{
		catalog: newCatalog(), environ: map[string]string{}, topics: newTopics(), streams: newStreams(),
		given: map[string][]given{}, used: map[string]given{}, faulty: map[string]bool{},
	}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			l.environ[name] = value
		}
	}
	return l
}

func (l *loader) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// leaf is a value, or the lack of one, at the end of a path of names.
type leaf struct {
	path []string
	text string
	none bool // null, or an empty section
	flow bool // the last name stands in {...}
	at   string
}

// assign takes a leaf of a file or of --set.
func (l *loader) assign(f leaf, src source, doc int) {
	folded := foldPath(f.path)
	if n, ok := l.find(f.path); ok {
		l.take(n, f, src, doc)
	} else if i := slices.IndexFunc(l.lists(), func(to *list) bool { return to.has(folded) }); i >= 0 {
		l.assignElement(l.lists()[i], f, src, doc)
	} else if !isBrokerOnly(folded) {
		l.assignUnknown(f, folded, src)
	}
}

// wantOneValue is what is wrong with a list or a section below a setting,
// which is often a text that lacks its quotes.
const wantOneValue = "want one value here, not a list or a section; a text with {, [ or : needs quotes"

// take keeps the value of a setting. A null is no value: an empty text is
// written "".
func (l *loader) take(n named, f leaf, src source, doc int) {
	if f.none {
		return
	}
	g, ok := l.resolve(given{name: n.name, text: f.text, source: src, at: f.at, doc: doc})
	if !ok {
		l.faulty[n.row.name] = true
		return
	}
	if src == sourceFlag && n.row.redact(g.text) != g.text {
		l.warn("%s (%s): what is secret in it can be read by every user of the machine; keep it in the settings file, the secrets folder or the environment", n.name, f.at)
	}
	l.given[n.row.name] = append(l.given[n.row.name], g)
}

// resolve replaces the placeholders of a value that stands in a file.
func (l *loader) resolve(g given) (given, bool) {
	if g.source != sourceFile {
		return g, true
	}
	text, err := l.expand(g.text)
	if err != nil {
		l.fault("%s (%s): %v", g.name, g.at, err)
		return g, false
	}
	g.text = text
	return g, true
}

// assignUnknown judges a name that is no setting. Its value is never shown:
// it may be a secret under a misspelt name.
func (l *loader) assignUnknown(f leaf, folded string, src source) {
	name := printable(joinPath(f.path))
	if n, ok := l.above(f.path); ok {
		// What looks like a section may be a secret without its quotes.
		l.fault("%s (%s): %s", n.name, f.at, wantOneValue)
		return
	}
	if l.sections[folded] {
		if !f.none && f.text != "" {
			l.fault("%s (%s): want a section with settings below it, not a value", name, f.at)
		}
		return
	}
	if src == sourceFile && !isStrict(folded) {
		l.warnForeign(f)
		return
	}
	near := l.nearestName(f.path)
	if f.flow && near == "" {
		// What looks like a name may be the rest of a secret with a comma.
		l.fault("%s (%s): a name in the braces is no setting; docs/settings.md lists those there are; a text with a comma needs quotes", printable(joinPath(f.path[:len(f.path)-1])), f.at)
		return
	}
	l.fault("%s (%s): there is no such setting; %s", name, f.at, proposal(near))
}

// warnForeign speaks up where a section that is none of ours looks like one.
func (l *loader) warnForeign(f leaf) {
	if len(f.path) < 2 || fold(f.path[0]) != "korvet" {
		return
	}
	section := "korvet." + kebab(f.path[1])
	if near := nearest(section, topLevel(), slip); near != "" {
		l.warn("%s (%s) is passed over as none of this program's settings; did you mean %s?", printable(section), f.at, near)
	}
}

// topLevel is what can stand directly below korvet.
func topLevel() []string {
	names := []string{"korvet.namespace"}
	for _, s := range strictSections() {
		names = append(names, "korvet."+s)
	}
	return names
}

// isStrict says whether a folded name lies in a section of ours.
func isStrict(folded string) bool {
	for _, s := range strictSections() {
		if strings.HasPrefix(folded, "korvet."+s+".") || strings.HasPrefix(folded, "korvet."+s+"[") {
			return true
		}
	}
	return false
}

func proposal(near string) string {
	if near == "" {
		return "docs/settings.md lists those there are"
	}
	return "did you mean " + near + "?"
}
