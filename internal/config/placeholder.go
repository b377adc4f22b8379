package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// maxNesting bounds placeholders in the defaults of placeholders.
const maxNesting = 8

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.\-]*$`)

// expand resolves Spring's placeholders, ${VAR} and ${VAR:default}, from the
// environment. What a variable holds is taken as it is: a password may have a
// ${ in it. The error never repeats the text.
func (l *loader) expand(text string) (string, error) { return l.expandNested(text, 0) }

func (l *loader) expandNested(text string, depth int) (string, error) {
	if depth > maxNesting {
		return "", fmt.Errorf("placeholders are nested more than %d deep", maxNesting)
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		end := closing(rest)
		if !found || end < 0 {
			out.WriteString(text) // one that is never closed is text, as with Spring
			return out.String(), nil
		}
		value, err := l.placeholder(rest[:end], depth)
		if err != nil {
			return "", err
		}
		out.WriteString(before + value)
		text = rest[end+1:]
	}
}

// closing is the index of the brace that ends a placeholder, -1 for none.
func closing(s string) int {
	open := 0
	for i := range len(s) {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			open++
		case s[i] == '}' && open == 0:
			return i
		case s[i] == '}':
			open--
		}
	}
	return -1
}

// placeholder resolves what stands between ${ and }.
func (l *loader) placeholder(inner string, depth int) (string, error) {
	name, fallback, hasDefault := strings.Cut(inner, ":")
	if !variableName.MatchString(name) {
		return "", errors.New("a ${...} in it names no environment variable: want ${VARIABLE} or ${VARIABLE:default}")
	}
	for _, n := range []string{name, variableOf(name)} {
		if value, ok := l.environ[n]; ok {
			return value, nil
		}
	}
	if hasDefault {
		return l.expandNested(fallback, depth+1)
	}
	return "", fmt.Errorf("the environment variable %s in ${%s} is not set: set it, or write ${%s:default}", name, name, name)
}
