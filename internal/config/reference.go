package config

import (
	_ "embed"
	"fmt"
	"strings"
)

// The prose of the reference: before the tables, above those of the two lists,
// and behind them all.
var (
	//go:embed reference_head.md
	referenceHead string
	//go:embed reference_topics.md
	referenceTopics string
	//go:embed reference_streams.md
	referenceStreams string
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
	writeStreams(&b)
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
	if notes := notesOf(r); len(notes) > 0 {
		meaning += " (" + strings.Join(notes, "; ") + ")"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", names, defaultCell(r), access, meaning)
}

// notesOf says of which kind a setting is, and whether it is live.
func notesOf(r row) (notes []string) {
	switch r.kind {
	case kindSecret:
		notes = append(notes, "secret")
	case kindBool, kindNumber, kindDuration, kindSize:
		notes = append(notes, r.kind.String())
	}
	if r.live {
		notes = append(notes, "live")
	}
	return notes
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
	b.WriteString("\n## Topics\n\n" + referenceTopics +
		"| Setting | Variable of the first element | Kafka's name | Meaning |\n|---|---|---|---|\n")
	l := newTopics()
	for _, t := range l.table {
		if t.Flat == "" {
			continue
		}
		kafka := "-"
		if t.Kafka != "" {
			kafka = "`" + t.Kafka + "`"
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s | %s |\n", t.Flat, l.variable(0, t.Flat), kafka, t.Effect)
	}
}

func writeStreams(b *strings.Builder) {
	b.WriteString("\n## Plain streams\n\n" + referenceStreams +
		"| Setting | Variable of the first element | Meaning |\n|---|---|---|\n")
	l := newStreams()
	for _, t := range l.table {
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", t.Flat, l.variable(0, t.Flat), t.Effect)
	}
}
