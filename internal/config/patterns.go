package config

import (
	"path"
	"strconv"
	"strings"
	"time"

	"korvet-offload/segment"
)

// patternText turns durations into milliseconds and sizes into bytes; -1 and
// -2 stay what they are.
func patternText(flat, text string) (string, error) {
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

// try applies a setting to settings that nobody needs. Of the error only the
// end is kept: what is right.
func (l *list) try(flat, text string) error {
	for _, t := range l.table {
		if t.Flat == flat {
			var s segment.TopicSettings
			return lastOf(t.Apply(&s, text))
		}
	}
	return nil
}

// joined are the errors that an error is made of.
func joined(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()
	}
	return []error{err}
}

// lastOf is the last of them, which says what is wrong: before it come the
// name of the thing and a sentinel error.
func lastOf(err error) error {
	if err == nil {
		return nil
	}
	errs := joined(err)
	return errs[len(errs)-1]
}

// bindTopics makes the patterns of korvet.topics[].
func (l *loader) bindTopics() []segment.TopicPattern {
	var patterns []segment.TopicPattern
	for _, e := range l.bindList(l.topics) {
		p := segment.TopicPattern{Name: e.pattern.text, Settings: e.settings}
		l.checkTopic(p, e)
		patterns = append(patterns, p)
	}
	return patterns
}

// checkTopic refuses a pattern that can match nothing. Whether its settings
// contradict each other is seen when a topic is made of them: the topic's own
// come before them.
func (l *loader) checkTopic(p segment.TopicPattern, e element) {
	if _, err := path.Match(p.Name, ""); err != nil {
		l.fault("%s: want a topic or a pattern with *, ? and [a-z]; a [ needs its ]", describe(row{}, e.pattern))
	} else if p.Declares() && segment.ValidateTopic(p.Name) != nil {
		l.fault("%s: want 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', or a pattern with *, ? and [a-z]", describe(row{}, e.pattern))
	}
}

// bindStreams makes the patterns of korvet.streams[].
func (l *loader) bindStreams(layout segment.Layout) []segment.StreamPattern {
	var patterns []segment.StreamPattern
	elements := l.bindList(l.streams)
	for i, e := range elements {
		p := segment.StreamPattern{Key: e.pattern.text, Settings: e.settings}
		l.checkKey(p, e, layout)
		l.checkOrder(p, patterns, elements[:i+1])
		l.checkRetention(e)
		patterns = append(patterns, p)
	}
	return patterns
}

// checkKey refuses a pattern that can match nothing, and a key that can't be
// that of a plain stream.
func (l *loader) checkKey(p segment.StreamPattern, e element, layout segment.Layout) {
	if _, err := path.Match(p.Key, ""); err != nil {
		l.fault("%s: want the key of a stream or a pattern with *, ? and [a-z]; a [ needs its ], and a \\ something behind it", describe(row{}, e.pattern))
	} else if p.Declares() {
		bare := segment.StreamPattern{Key: p.Key} // its settings are not the question
		if t, _ := segment.ResolveStream(p.Key, layout, []segment.StreamPattern{bare}); t.Err != nil {
			l.fault("%s: %v", describe(row{}, e.pattern), lastOf(t.Err))
		}
	}
}

// checkOrder looks for an earlier element with the same key, or one that
// matches a plain key, so that the settings of the key's own element never
// hold. The last of the elements is the one in question; the others are those
// of the earlier patterns.
func (l *loader) checkOrder(p segment.StreamPattern, earlier []segment.StreamPattern, elements []element) {
	own := elements[len(earlier)].pattern
	for i, other := range earlier {
		before := elements[i].pattern
		switch {
		case other.Key == p.Key:
			l.fault("%s and %s: the key is there twice; keep one", describe(row{}, before), describe(row{}, own))
		case !p.Declares() || !other.Matches(p.Key):
			continue
		default:
			l.warn("%s has no effect on its stream: %s matches it, and the first that matches counts; put the plain key first", describe(row{}, own), describe(row{}, before))
		}
		return
	}
}

// checkRetention refuses settings of streams that contradict each other:
// unlike those of a topic there are no others before them.
func (l *loader) checkRetention(e element) {
	s := segment.DefaultStreamSettings()
	for _, t := range l.streams.table {
		if text, ok := e.settings[t.Flat]; ok {
			_ = t.Apply(&s, text) // it went well in the trial
		}
	}
	if err := s.Check(); err != nil {
		for _, err := range joined(err) {
			l.fault("%s (%s): %s", e.name, e.pattern.at, l.streams.flatten(err.Error()))
		}
		return
	}
	if text := s.Warning(); text != "" {
		l.warn("%s (%s): %s", e.name, e.pattern.at, l.streams.flatten(text))
	}
}

// flatten writes flat names for Kafka's: a plain stream has no others.
func (l *list) flatten(text string) string {
	for _, before := range []string{"local.", ""} { // retention.ms is a part of local.retention.ms
		for _, t := range l.table {
			if t.Kafka != "" && strings.HasPrefix(t.Kafka, before) {
				text = strings.ReplaceAll(text, t.Kafka, t.Flat)
			}
		}
	}
	return text
}
