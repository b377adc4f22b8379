package checker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// mostFields is how many fields an entry may have.
const mostFields = 1000

// eachField hands out the fields of a JSON object in their order, with each
// value as it is written. What is not one object in UTF-8, or has a field
// twice, is an error.
func eachField(raw string, use func(name, value string) error) error {
	if !utf8.ValidString(raw) || !json.Valid([]byte(raw)) {
		return errors.New("not JSON in UTF-8")
	}
	s := scanner{rest: strings.Trim(raw, jsonSpace)}
	if s.rest[0] != '{' {
		return errors.New("not a JSON object")
	}
	s.skip(1)
	var room [24]string
	names := room[:0]
	for s.rest[0] != '}' {
		var name string
		if err := text("a name", s.value(), &name); err != nil {
			return err
		}
		s.skip(1) // the colon
		value := s.value()
		if s.rest[0] == ',' {
			s.skip(1)
		}
		if slices.Contains(names, name) {
			return fmt.Errorf("field %s is there twice", name)
		}
		if names = append(names, name); len(names) > mostFields {
			return fmt.Errorf("more than %d fields", mostFields)
		}
		if err := use(name, value); err != nil {
			return err
		}
	}
	return nil
}

const jsonSpace = " \t\r\n"

// scanner goes through JSON that is known to be valid.
type scanner struct{ rest string }

// skip goes on by so many bytes, and over the space behind them.
func (s *scanner) skip(n int) {
	s.rest = s.rest[n:]
	for s.rest != "" && strings.IndexByte(jsonSpace, s.rest[0]) >= 0 {
		s.rest = s.rest[1:]
	}
}

// value takes one value, and the space behind it.
func (s *scanner) value() string {
	n := s.length()
	v := s.rest[:n]
	s.skip(n)
	return v
}

// length is that of the value that comes.
func (s *scanner) length() int {
	switch s.rest[0] {
	case '"':
		return quoted(s.rest)
	case '{', '[':
		return nested(s.rest)
	}
	n := strings.IndexAny(s.rest, ",]}"+jsonSpace)
	if n < 0 {
		return len(s.rest)
	}
	return n
}

// quoted is the length of the text that a string begins with.
func quoted(s string) int {
	for i := 1; ; i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// nested is the length of the object or array that a string begins with.
func nested(s string) int {
	depth := 0
	for i := 0; ; i++ {
		switch s[i] {
		case '"':
			i += quoted(s[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

// text reads a JSON text; name is for the error.
func text(name, value string, to *string) error {
	if value[0] != '"' {
		return fmt.Errorf("%s is %s, no text", name, value)
	}
	if strings.IndexByte(value, '\\') < 0 {
		*to = value[1 : len(value)-1]
		return nil
	}
	if err := json.Unmarshal([]byte(value), to); err != nil {
		return fmt.Errorf("%s is %s, no text", name, value)
	}
	return nil
}
