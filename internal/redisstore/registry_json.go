package redisstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// parseRegistry reads the JSON document of a topic registry. Its shape is
// not published in detail, so every one of these is taken:
//
//	{"orders": {...}, "payments": {...}}          name -> settings
//	[{"name": "orders", ...}, ...]                settings with their name
//	{"topics": either of the two, ...}            inside another document
//
// Settings go by Kafka's or Korvet's name. They may be nested: {"retention":
// {"ms": 1}} is retention.ms, and what stands in an object named config,
// configs or settings counts as if it stood outside it. Values may be
// numbers, true and false, or texts; null is as if it were not there.
//
// "topics" is the wrapper, and not a topic of that name, when it holds an
// array or an object of objects.
func parseRegistry(text []byte) (map[string]settings, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // a retention must not be rounded
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("%w: the topic registry is not JSON", errProtocol)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: something follows the topic registry's JSON", errProtocol)
	}
	if outer, ok := doc.(map[string]any); ok && holdsTopics(outer["topics"]) {
		doc = outer["topics"]
	}
	switch d := doc.(type) {
	case map[string]any:
		return byName(d), nil
	case []any:
		return listed(d), nil
	}
	return nil, fmt.Errorf("%w: the topic registry is neither a JSON object nor an array", errProtocol)
}

func holdsTopics(v any) bool {
	switch v := v.(type) {
	case []any:
		return true
	case map[string]any:
		for _, inner := range v {
			if _, ok := inner.(map[string]any); !ok {
				return false
			}
		}
		return true
	}
	return false
}

func byName(topics map[string]any) map[string]settings {
	own := make(map[string]settings, len(topics))
	for name, v := range topics {
		own[name] = settingsOf(v)
	}
	return own
}

// listed names an element without a name by its place: "#2" is not a legal
// topic name, so it can't hide a topic.
func listed(topics []any) map[string]settings {
	own := make(map[string]settings, len(topics))
	for i, v := range topics {
		object, _ := v.(map[string]any)
		name, ok := object["name"].(string)
		if !ok {
			name = fmt.Sprintf("#%d", i)
			own[name] = settings{err: fmt.Errorf("topic %s of the registry: want an object with a name", name)}
			continue
		}
		if _, twice := own[name]; twice {
			own[name] = settings{err: fmt.Errorf("topic %s stands twice in the registry", name)}
			continue
		}
		own[name] = settingsOf(v)
	}
	return own
}

func settingsOf(v any) settings {
	object, ok := v.(map[string]any)
	if !ok {
		return settings{err: errors.New("topic settings in the registry: want a JSON object")}
	}
	values := map[string]string{}
	if err := flatten(values, "", object); err != nil {
		return settings{err: err}
	}
	return settings{values: values}
}

// flatten refuses one setting with two values: a guessed retention deletes
// data.
func flatten(into map[string]string, prefix string, object map[string]any) error {
	for name, v := range object {
		inner, nested := v.(map[string]any)
		switch {
		case v == nil:
			continue
		case nested && prefix == "" && (name == "config" || name == "configs" || name == "settings"):
			if err := flatten(into, "", inner); err != nil {
				return err
			}
		case nested:
			if err := flatten(into, prefix+name+".", inner); err != nil {
				return err
			}
		default:
			text := scalar(v)
			if was, twice := into[prefix+name]; twice && was != text {
				return fmt.Errorf("topic setting %s in the registry is both %q and %q", prefix+name, was, text)
			}
			into[prefix+name] = text
		}
	}
	return nil
}

// scalar is the text of a value; an array comes as JSON, which no setting
// that this program acts on accepts.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // it was JSON a moment ago
	}
	return string(text)
}
