package config

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
)

// catalog finds settings by the many ways in which Spring lets them be
// written.
type catalog struct {
	rows      []row
	byName    map[string]named // by the folded name
	byEnv     map[string]named // by the environment variable
	sections  map[string]bool  // folded names of what has settings below it
	names     []string         // every name, for proposals
	variables []string         // every variable, for proposals
}

// named is a setting together with the one of its names that was used.
type named struct {
	row  *row
	name string
}

func newCatalog() catalog {
	c := catalog{
		rows:   table(),
		byName: map[string]named{}, byEnv: map[string]named{}, sections: map[string]bool{"korvet": true},
	}
	for i := range c.rows {
		for _, name := range c.rows[i].names() {
			c.add(named{&c.rows[i], name})
		}
	}
	return c
}

func (c *catalog) add(n named) {
	folded := fold(n.name)
	c.byName[folded] = n
	c.names = append(c.names, n.name)
	for i := range folded {
		if folded[i] == '.' {
			c.sections[folded[:i]] = true
		}
	}
	// Spring drops dashes; its documentation of older versions turns them
	// into underscores, as people expect.
	for _, v := range []string{variableOf(n.name), variableOf(strings.ReplaceAll(n.name, "-", ""))} {
		if _, taken := c.byEnv[v]; !taken {
			c.byEnv[v] = n
			c.variables = append(c.variables, v)
		}
	}
}

// find looks a path up.
func (c *catalog) find(path []string) (named, bool) {
	n, ok := c.byName[foldPath(path)]
	return n, ok
}

// above is the setting that the path goes on below, as if it were a section.
func (c *catalog) above(path []string) (named, bool) {
	for i := len(path) - 1; i > 0; i-- {
		if n, ok := c.find(path[:i]); ok {
			return n, true
		}
	}
	return named{}, false
}

// nearestName proposes a setting for a path that is none.
func (c *catalog) nearestName(path []string) string {
	words := make([]string, len(path))
	for i, p := range path {
		words[i] = kebab(p)
	}
	word := strings.Join(words, ".")
	return cmp.Or(nearest(word, c.names, meant), misplaced(word, c.names))
}

// brokerOnly are the sections that the broker alone reads, folded.
func brokerOnly() []string {
	return []string{
		"korvet.storage.local", "korvet.storage.remote.iceberg", "korvet.storage.remote.metrics",
		"korvet.storage.remote.index", "korvet.storage.remote.s3.credentials", "korvet.storage.s3.credentials",
		"korvet.redis.pool", "korvet.redis.iothreads", "korvet.redis.circuitbreaker", "korvet.redis.metrics",
	}
}

// isBrokerOnly says whether a folded name is the broker's, or below it.
func isBrokerOnly(folded string) bool {
	for _, b := range brokerOnly() {
		if folded == b || strings.HasPrefix(folded, b+".") || strings.HasPrefix(folded, b+"[") {
			return true
		}
	}
	return false
}

// strictSections are the sections in which a name that nobody knows is a
// fault.
func strictSections() []string { return []string{"storage", "redis", "topics", "streams"} }

// fold makes all of Spring's spellings of a name the same: remote-path,
// remotePath, remote_path, REMOTE-PATH.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// foldKafka makes Kafka's name of a topic setting the same in a file and in a
// variable.
func foldKafka(name string) string { return strings.ReplaceAll(fold(name), ".", "") }

func foldPath(path []string) string { return fold(joinPath(path)) }

// joinPath writes a path as a name: korvet.topics[0].name.
func joinPath(path []string) string {
	var b strings.Builder
	for i, p := range path {
		if i > 0 && !strings.HasPrefix(p, "[") {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

var pathPart = regexp.MustCompile(`\[\d*\]|[^.\[\]]+`)

// splitPath takes a name apart as Spring does: at its dots and indices.
func splitPath(name string) []string {
	if parts := pathPart.FindAllString(name, -1); parts != nil {
		return parts
	}
	return []string{name}
}

// kebab writes a name in the spelling of the reference: tickInterval and
// tick_interval become tick-interval.
func kebab(name string) string {
	var b strings.Builder
	last := '-'
	for _, r := range name {
		switch {
		case r == '_':
			r = '-'
		case unicode.IsUpper(r):
			if unicode.IsLower(last) || unicode.IsDigit(last) {
				b.WriteByte('-')
			}
		}
		last = r
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
