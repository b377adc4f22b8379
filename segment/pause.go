package segment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scope is what a pause is about: a topic, a plain stream, or everything.
type Scope struct {
	Topic  string // "" = no topic
	Stream string // key of a plain stream; "" = no stream
}

// The fields of the Hash of what is paused.
const (
	allField     = "*"
	topicPrefix  = "topic:"
	streamPrefix = "stream:"
)

// All says whether the scope is everything.
func (s Scope) All() bool { return s == Scope{} }

// Field is the field of the Hash under which a pause of this scope is kept.
func (s Scope) Field() string {
	switch {
	case s.Topic != "":
		return topicPrefix + s.Topic
	case s.Stream != "":
		return streamPrefix + s.Stream
	}
	return allField
}

// String names the scope in a sentence.
func (s Scope) String() string {
	switch {
	case s.Topic != "":
		return "topic " + s.Topic
	case s.Stream != "":
		return "stream " + Partition{Topic: s.Stream, Plain: true}.String()
	}
	return "everything"
}

// Covers says whether a partition lies in the scope.
func (s Scope) Covers(p Partition) bool {
	return s.All() || p.Plain && p.Topic == s.Stream || !p.Plain && p.Topic == s.Topic
}

// parseScope reads a field; false for one that names nothing.
func parseScope(field string) (Scope, bool) {
	if field == allField {
		return Scope{}, true
	}
	if topic, ok := strings.CutPrefix(field, topicPrefix); ok {
		return Scope{Topic: topic}, ValidateTopic(topic) == nil
	}
	key, ok := strings.CutPrefix(field, streamPrefix)
	return Scope{Stream: key}, ok && key != ""
}

// Pause says that nothing in a scope may be changed.
type Pause struct {
	Scope  Scope
	Since  time.Time // by the Redis server's clock; zero = not known
	By     string    // who has paused it, for people
	Reason string    // why, for people
	// Err says why the rest is not known. The scope is paused all the same.
	Err error
}

const pauseVersion = 1

// MaxTime is the last millisecond of the year 9999, in epoch ms: JSON has no later
// times.
const MaxTime = 253402300799999

// pauseJSON is a pause as Redis has it.
type pauseJSON struct {
	V      int    `json:"v"`
	Since  int64  `json:"since"` // epoch ms; 0 = not known
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Encode is the value that is kept under Scope.Field.
func (p Pause) Encode() string {
	v := pauseJSON{V: pauseVersion, By: p.By, Reason: p.Reason}
	if !p.Since.IsZero() {
		v.Since = p.Since.UnixMilli()
	}
	raw, _ := json.Marshal(v) // plain values always have a JSON form
	return string(raw)
}

// ParsePause reads a field of the Hash and its value. A value that can't be
// read gives a Pause that says so in its Err: better too much is paused than
// too little. An error means that the field itself names nothing that could be
// paused.
func ParsePause(field, value string) (Pause, error) {
	scope, ok := parseScope(field)
	if !ok {
		return Pause{}, fmt.Errorf("%w: field %q names neither a topic nor a stream, so it pauses nothing; remove it (HDEL), and use the pause command",
			ErrPause, field)
	}
	p := Pause{Scope: scope}
	var v pauseJSON
	err := json.Unmarshal([]byte(value), &v)
	switch {
	case err != nil:
	case v.V != pauseVersion:
		err = errors.New("it is not of version 1")
	case v.Since < 0 || v.Since > MaxTime:
		err = fmt.Errorf("since %d is no time", v.Since)
	}
	if err != nil {
		p.Err = fmt.Errorf("%w: the value of field %q can't be read (%w), so %s is paused; use the resume command", ErrPause, field, err, scope)
		return p, nil
	}
	if v.Since > 0 {
		p.Since = time.UnixMilli(v.Since)
	}
	p.By, p.Reason = v.By, v.Reason
	return p, nil
}

// Pauses is all that is paused at one time.
type Pauses struct {
	// List: everything first, then topics, then streams, each in the order of their
	// names. In another order, some of it would not be found.
	List []Pause
	// Errs are fields that name nothing that could be paused.
	Errs []error
}

// ParsePauses reads the whole Hash.
func ParsePauses(fields map[string]string) Pauses {
	var all Pauses
	for field, value := range fields {
		p, err := ParsePause(field, value)
		if err != nil {
			all.Errs = append(all.Errs, err)
			continue
		}
		all.List = append(all.List, p)
	}
	slices.SortFunc(all.List, func(a, b Pause) int { return a.order(b.Scope) })
	slices.SortFunc(all.Errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return all
}

// order is that of Pauses.List.
func (p Pause) order(of Scope) int {
	return cmp.Or(cmp.Compare(p.Scope.Stream, of.Stream), cmp.Compare(p.Scope.Topic, of.Topic))
}

// Of is the pause of a scope, not of a wider one.
func (a Pauses) Of(s Scope) (Pause, bool) {
	i, paused := slices.BinarySearchFunc(a.List, s, Pause.order)
	if !paused {
		return Pause{}, false
	}
	return a.List[i], true
}

// Covers says whether a partition is paused. It is asked for each of very many.
func (a Pauses) Covers(p Partition) bool {
	narrow := Scope{Topic: p.Topic}
	if p.Plain {
		narrow = Scope{Stream: p.Topic}
	}
	_, all := a.Of(Scope{})
	_, one := a.Of(narrow)
	return all || one
}
