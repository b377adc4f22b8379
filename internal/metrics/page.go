package metrics

import (
	_ "embed"
	"fmt"
	"strings"
)

// pageHead is the prose before the tables.
//
//go:embed page_head.md
var pageHead string

// Page is docs/metrics.md: every metric with its labels, unit, meaning, and
// what a bad value is.
func Page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, c := range chapters() {
		fmt.Fprintf(&b, "\n## %s\n\n| Metric | Type, unit | Labels | Meaning | Bad when |\n|---|---|---|---|---|\n", c.title)
		for _, m := range c.rows {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, m.typeText(), m.labelText(), cell(m.help)+m.scopeText(), cell(m.bad))
		}
	}
	b.WriteString("\n## Lists of values\n\n")
	for _, l := range []struct {
		name string
		of   label
	}{{"reasons", reasons("reason")}, {"classes", classes("error_type")}, {"operations", operations()}} {
		fmt.Fprintf(&b, "- *%s*: `%s`\n", l.name, strings.Join(l.of.values, "`, `"))
	}
	return b.String()
}

func (m metric) typeText() string {
	if m.unit == "" {
		return string(m.kind)
	}
	return string(m.kind) + ", " + m.unit
}

// scopeText says when a metric is there.
func (m metric) scopeText() string {
	switch m.scope {
	case withScan, withSuccess, withVerify:
		return " *(leader)*"
	case perTopic:
		return " *(leader, metrics.topics)*"
	}
	return ""
}

func (m metric) labelText() string {
	texts := make([]string, len(m.labels))
	for i, l := range m.labels {
		texts[i] = "`" + l.name + "`: " + l.valueText()
	}
	return strings.Join(texts, "<br>")
}

// longList is from how many values on a list stands apart.
const longList = 9

func (l label) valueText() string {
	switch {
	case l.values == nil:
		return l.open
	case len(l.values) <= longList || l.name == "outcome" && l.values[0] != outcomeOK:
		return "`" + strings.Join(l.values, "`, `") + "`"
	case l.name == "operation":
		return "*operations*"
	case l.values[0] == outcomeOK:
		return "`ok`, *classes*"
	case len(l.values) == len(classes("").values):
		return "*classes*"
	}
	return "*reasons*"
}

// cell is a text inside a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
