package segment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// maxFields is more than any entry has; what has more is none, and would take
// long to look through.
const maxFields = 1000

// parseObject splits a JSON object into its fields. encoding/json alone would
// take the last of two fields of one name, take names in any case, lose the
// fields that are not in the struct, and take ten times as long: a manifest
// has a million of them.
func parseObject(raw []byte) ([]field, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("not UTF-8")
	}
	if !json.Valid(raw) {
		return nil, errors.New("not a JSON object")
	}
	s := splitter{raw: raw}
	if s.space(); s.raw[s.at] != '{' {
		return nil, errors.New("not a JSON object")
	}
	var room [24]field // more than most entries have: what is kept is no longer than it must be
	fields := room[:0]
	for s.at++; s.more(); {
		name, err := s.name()
		if err != nil {
			return nil, err
		}
		if len(fields) == maxFields {
			return nil, fmt.Errorf("more than %d fields", maxFields)
		}
		if slices.ContainsFunc(fields, func(o field) bool { return o.name == name }) {
			return nil, fmt.Errorf("field %q stands twice", name)
		}
		fields = append(fields, field{name, s.value()})
	}
	return append(make([]field, 0, len(fields)), fields...), nil
}

// splitter walks over the fields of an object that is known to be valid JSON.
type splitter struct {
	raw []byte
	at  int
}

func (s *splitter) space() {
	for s.at < len(s.raw) && (s.raw[s.at] == ' ' || s.raw[s.at] == '\t' || s.raw[s.at] == '\n' || s.raw[s.at] == '\r') {
		s.at++
	}
}

// more goes to the next name, if there is one.
func (s *splitter) more() bool {
	s.space()
	if s.raw[s.at] == ',' {
		s.at++
		s.space()
	}
	return s.raw[s.at] != '}'
}

// name takes a name and the colon behind it.
func (s *splitter) name() (string, error) {
	text := s.text()
	s.space()
	s.at++ // the colon
	return unquote(text)
}

// value takes a value.
func (s *splitter) value() json.RawMessage {
	s.space()
	begin, depth := s.at, 0
	for {
		switch s.raw[s.at] {
		case '"':
			s.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return bytes.TrimRight(s.raw[begin:s.at], " \t\n\r")
			}
			depth--
		case ',':
			if depth == 0 {
				return bytes.TrimRight(s.raw[begin:s.at], " \t\n\r")
			}
		}
		s.at++
	}
}

// text takes a text with its quotes.
func (s *splitter) text() []byte {
	begin := s.at
	for s.at++; s.raw[s.at] != '"'; s.at++ {
		if s.raw[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	return s.raw[begin:s.at]
}

// unquote reads a JSON text.
func unquote(raw []byte) (string, error) {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil || raw[0] != '"' {
		return "", fmt.Errorf("%s is not a text", shorten(raw))
	}
	return text, nil
}
