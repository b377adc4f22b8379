package config

import (
	"slices"
	"strconv"

	"korvet-offload/segment"
)

// Setting is one line of the report.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`            // a secret is shown as xxxxx
	Source string `json:"source"`           // default, file, environment or flag
	From   string `json:"from,omitempty"`   // file:line, variable or flag; "" for a default
	Secret bool   `json:"secret,omitempty"` // the value is, or has in it, a secret
}

// reportOf lists the settings of a Config and where each came from.
func (l *loader) reportOf(c Config) []Setting {
	var report []Setting
	for _, r := range l.rows {
		if c.Redis.URI != "" && (r.name == redisHost || r.name == redisPort) {
			continue // not in effect
		}
		raw := r.value(&c)
		shown := r.redact(raw)
		report = append(report, l.settingOf(r.name, shown, r.kind == kindSecret || shown != raw))
	}
	for i, index := range l.topicIndices() {
		report = append(report, l.topicReport("korvet.topics["+strconv.Itoa(index)+"].", c.Topics[i])...)
	}
	return report
}

func (l *loader) settingOf(name, shown string, secret bool) Setting {
	g := l.used[name]
	return Setting{Name: name, Value: shown, Source: g.source.String(), From: g.at, Secret: secret}
}

// topicIndices are the indices of the patterns, in their order.
func (l *loader) topicIndices() []int {
	var indices []int
	for i := range l.topics {
		indices = append(indices, i)
	}
	slices.Sort(indices)
	return indices
}

func (l *loader) topicReport(full string, p segment.TopicPattern) []Setting {
	report := []Setting{l.settingOf(full+"name", p.Name, false)}
	for _, flat := range l.topicNames()[1:] {
		if text, ok := p.Settings[flat]; ok {
			report = append(report, l.settingOf(full+flat, text, false))
		}
	}
	return report
}
