package config

import (
	_ "embed"
	"fmt"
	"strings"

	"korvet-offload/segment"
)

// referenceHead and referenceRules are the prose of the reference, before and
// behind the tables.
var (
	//go:embed reference_head.md
	referenceHead string
	//go:embed reference_rules.md
	referenceRules string
)

// Reference is docs/settings.md: every setting, and the rules by which they
// are read.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	section := ""
	for _, r := range table() {
		if s := sectionOf(r.name); s != section {
			section = s
			fmt.Fprintf(&b, "\n## %s\n\n| Setting | Default | Variable, flag | Meaning |\n|---|---|---|---|\n", section)
		}
		writeRow(&b, r)
	}
	writeTopics(&b)
	b.WriteString("\n" + referenceRules)
	return b.String()
}

// sectionOf is the heading below which the reference lists a setting.
func sectionOf(name string) string {
	for _, s := range []struct{ prefix, title string }{
		{workerFamily, "Worker"},
		{"korvet.storage.layout.", "Keys in Redis"},
		{"korvet.storage.", "Object store"},
	} {
		if strings.HasPrefix(name, s.prefix) {
			return s.title
		}
	}
	return "Redis"
}

func writeRow(b *strings.Builder, r row) {
	names := "`" + strings.Join(r.names(), "`<br>`") + "`"
	access := "`" + r.variable() + "`"
	if r.flag != "" {
		access += "<br>`--" + r.flag + "`"
	}
	meaning := r.help
	switch r.kind {
	case kindSecret:
		meaning += " (secret)"
	case kindBool, kindNumber, kindDuration, kindSize:
		meaning += " (" + r.kind.String() + ")"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", names, defaultCell(r), access, meaning)
}

func defaultCell(r row) string {
	switch text := r.defaultText(); {
	case text == "":
		return "unset"
	case r.preset != "" && strings.Contains(text, " "):
		return text
	default:
		return "`" + text + "`"
	}
}

func writeTopics(b *strings.Builder) {
	b.WriteString("\n## Topics\n\n`korvet.topics[]` is a list; each element has a `name` (a topic, or a pattern with `*`, `?` and `[a-z]`) and any of these.\n" +
		"The first element that matches a topic counts, below the topic's own settings in Redis. A name without wildcard also declares the topic.\n\n" +
		"| Setting | Variable of the first element | Kafka's name | Meaning |\n|---|---|---|---|\n")
	for _, t := range segment.TopicSettingTable() {
		if t.Flat == "" {
			continue
		}
		kafka := "-"
		if t.Kafka != "" {
			kafka = "`" + t.Kafka + "`"
		}
		fmt.Fprintf(b, "| `%s` | `KORVET_TOPICS_0_%s` | %s | %s |\n", t.Flat, variableOf(t.Flat), kafka, t.Effect)
	}
}
