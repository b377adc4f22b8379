package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of what a file may unfold to; anchors can make a short file endless.
const (
	maxSteps = 50_000
	maxDepth = 100
)

// readFile takes the settings of a YAML file of one or more documents. A later
// document wins over an earlier one, as with Spring.
func (l *loader) readFile(name string, content []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(content))
	for doc := 0; ; doc++ {
		var root yaml.Node
		err := dec.Decode(&root)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			l.fault("%s", yamlFault(name, err))
			return
		}
		l.readDocument(name, &root, doc)
	}
}

func (l *loader) readDocument(name string, root *yaml.Node, doc int) {
	f := flattener{name: name, twice: map[*yaml.Node]bool{}}
	f.walk(root, nil, false, 0)
	for _, fault := range f.faults {
		l.fault("%s", fault)
	}
	if i := slices.IndexFunc(f.leaves, isProfile); i >= 0 {
		l.warn("%s: the document is passed over: it is for a Spring profile, and this program has none", f.leaves[i].at)
		return
	}
	for _, leaf := range f.leaves {
		l.assign(leaf, sourceFile, doc)
	}
}

// isProfile says whether a leaf binds its document to a Spring profile.
func isProfile(f leaf) bool {
	name := foldPath(f.path)
	return name == "spring.profiles" || strings.HasPrefix(name, "spring.profiles[") ||
		strings.HasPrefix(name, "spring.config.activate.")
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// yamlFault is what the YAML library says, without the words that it takes
// from the file: an unquoted password may be among them.
func yamlFault(name string, err error) string {
	text := strings.TrimPrefix(oneLine(err.Error()), "yaml: ")
	if strings.Contains(text, "anchor '") {
		return name + ": a value begins with * and so names a YAML anchor that is not there: put the value in quotes"
	}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		name, text = name+":"+m[1], strings.Replace(text, m[0], "", 1)
	}
	if strings.ContainsAny(text, "'`\"") {
		return name + ": not valid YAML"
	}
	return name + ": not valid YAML: " + text
}

// flattener unfolds a document to leaves.
type flattener struct {
	name   string
	leaves []leaf
	faults []string
	twice  map[*yaml.Node]bool // keys already reported
	steps  int
	full   bool
}

func (f *flattener) faultAt(n *yaml.Node, format string, args ...any) {
	f.faults = append(f.faults, f.at(n)+": "+fmt.Sprintf(format, args...))
}

func (f *flattener) at(n *yaml.Node) string { return f.name + ":" + strconv.Itoa(n.Line) }

// walk adds the leaves at and below a node; flow says whether its name stands
// in {...}.
func (f *flattener) walk(n *yaml.Node, path []string, flow bool, depth int) {
	if f.spent(n, 1, depth) {
		return
	}
	switch n.Kind {
	case yaml.DocumentNode:
		f.walkDocument(n.Content[0], depth)
	case yaml.AliasNode:
		f.walk(n.Alias, path, flow, depth+1)
	case yaml.SequenceNode:
		for i, c := range n.Content {
			f.walk(c, extend(path, "["+strconv.Itoa(i)+"]"), flow, depth+1)
		}
	case yaml.MappingNode:
		for _, p := range f.pairs(n, depth) {
			f.walk(p.value, extend(path, splitPath(p.key)...), n.Style&yaml.FlowStyle != 0, depth+1)
		}
	}
	if n.Kind == yaml.ScalarNode || n.Kind != yaml.AliasNode && len(n.Content) == 0 {
		none := n.Kind != yaml.ScalarNode || n.Tag == "!!null"
		f.leaves = append(f.leaves, leaf{path: path, text: n.Value, none: none, flow: flow, at: f.at(n)})
	}
}

func (f *flattener) walkDocument(root *yaml.Node, depth int) {
	if root.Kind == yaml.MappingNode || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		f.walk(root, nil, false, depth+1)
		return
	}
	f.faultAt(root, "want sections and settings (korvet: ...), not a list or a single value")
}

// spent counts steps, and says whether there have been too many.
func (f *flattener) spent(n *yaml.Node, steps, depth int) bool {
	f.steps += steps
	over := f.steps > maxSteps || depth > maxDepth
	if over && !f.full {
		f.full = true
		f.faultAt(n, "the file unfolds to more than %d values or %d levels", maxSteps, maxDepth)
	}
	return over
}

func extend(path []string, parts ...string) []string {
	return append(slices.Clip(path), parts...)
}

// pair is a key of a mapping with its value.
type pair struct {
	key   string
	value *yaml.Node
}

// pairs lists a mapping's keys, those of merged mappings (<<) behind its own,
// which win. A key that stands twice in the mapping is a fault.
func (f *flattener) pairs(n *yaml.Node, depth int) []pair {
	if f.spent(n, len(n.Content), depth) {
		return nil
	}
	var own []pair
	var merged []*yaml.Node
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first, again := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode: // a key that is no text is nobody's setting
		case key.Tag == "!!merge":
			merged = append(merged, value)
		case again:
			f.faultTwice(n, key, first)
		default:
			seen[key.Value] = key.Line
			own = append(own, pair{key.Value, value})
		}
	}
	return f.merge(own, merged, seen, depth)
}

func (f *flattener) faultTwice(n, key *yaml.Node, first int) {
	if f.twice[key] {
		return
	}
	f.twice[key] = true
	name := "the key " + printable(key.Value)
	if n.Style&yaml.FlowStyle != 0 {
		name = "a key in the braces" // or the rest of a secret with a comma
	}
	f.faultAt(key, "%s is there twice, first in line %d: keep one", name, first)
}

// merge adds the pairs of merged mappings that are not there yet.
func (f *flattener) merge(own []pair, merged []*yaml.Node, seen map[string]int, depth int) []pair {
	for _, m := range merged {
		if f.spent(m, 1, depth) {
			break
		}
		if m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		switch m.Kind {
		case yaml.SequenceNode:
			own = f.merge(own, m.Content, seen, depth+1)
		case yaml.MappingNode:
			for _, p := range f.pairs(m, depth+1) {
				if _, there := seen[p.key]; !there {
					seen[p.key] = p.value.Line
					own = append(own, p)
				}
			}
		}
	}
	return own
}
