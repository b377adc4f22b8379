package deploy

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// catalogue is what docs/metrics.md, which is made from the code, says there is.
type catalogue struct {
	metrics map[string]metric
	lists   map[string][]string // values by the name of their list
}

// metric is one row.
type metric struct {
	kind   string              // counter, gauge, histogram
	labels map[string][]string // values by the label; none = any text
}

var (
	inTicks = regexp.MustCompile("`([^`]+)`")
	inStars = regexp.MustCompile(`\*([a-z]+)\*`)
	listRow = regexp.MustCompile(`^- \*([a-z]+)\*: `)
)

// readCatalogue reads the page.
func readCatalogue(t *testing.T) catalogue {
	t.Helper()
	c := catalogue{metrics: map[string]metric{}, lists: map[string][]string{}}
	text := readFile(t, "docs/metrics.md")
	for line := range strings.Lines(text) {
		if m := listRow.FindStringSubmatch(line); m != nil {
			c.lists[m[1]] = ticked(line)
		}
	}
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, "|"); len(cells) > 5 && strings.HasPrefix(line, "| `korvet_") {
			c.metrics[ticked(cells[1])[0]] = metric{kind: strings.TrimSpace(strings.Split(cells[2], ",")[0]), labels: c.labels(cells[3])}
		}
	}
	if len(c.metrics) < 40 || len(c.lists) < 3 {
		t.Fatalf("docs/metrics.md: found %d metrics and %d lists", len(c.metrics), len(c.lists))
	}
	return c
}

func ticked(text string) (all []string) {
	for _, m := range inTicks.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// labels reads "`phase`: `scan`, `roll`<br>`error_type`: *reasons*".
func (c catalogue) labels(cell string) map[string][]string {
	labels := map[string][]string{}
	for _, part := range strings.Split(cell, "<br>") {
		name, values, ok := strings.Cut(part, ":")
		if !ok {
			continue
		}
		all := ticked(values)
		for _, m := range inStars.FindAllStringSubmatch(values, -1) {
			all = append(all, c.lists[m[1]]...)
		}
		if strings.Contains(values, ";") {
			all = nil // a description, not a list
		}
		labels[ticked(name)[0]] = all
	}
	return labels
}

// find looks a metric up by the name of one of its series.
func (c catalogue) find(series string) (metric, bool) {
	if m, ok := c.metrics[series]; ok && m.kind != "histogram" {
		return m, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(series, suffix); ok && c.metrics[base].kind == "histogram" {
			return c.metrics[base], true
		}
	}
	return metric{}, false
}

var (
	selector = regexp.MustCompile(`\b(korvet_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring) \(([^)]*)\)`)
)

// ofTheScrape are labels that Prometheus gives.
func ofTheScrape() []string { return []string{"job", "namespace", "instance"} }

// check says what an expression names that is not there.
func (c catalogue) check(expr string) (wrong []string) {
	known := append(ofTheScrape(), "le")
	found := selector.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		wrong = append(wrong, "it names no metric of ours")
	}
	for _, s := range found {
		m, ok := c.find(s[1])
		if !ok {
			wrong = append(wrong, "there is no series "+s[1])
			continue
		}
		for label := range m.labels {
			known = append(known, label)
		}
		wrong = append(wrong, m.check(s[1], s[2])...)
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(g[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(known, label) {
				wrong = append(wrong, "no metric of it has a label "+label)
			}
		}
	}
	return wrong
}

// check holds the matchers of one selector against the labels of its metric.
func (m metric) check(series, matchers string) (wrong []string) {
	for _, found := range matcher.FindAllStringSubmatch(matchers, -1) {
		label, value := found[1], found[3]
		values, ok := m.labels[label]
		switch {
		case slices.Contains(ofTheScrape(), label):
		case !ok:
			wrong = append(wrong, series+" has no label "+label)
		case len(values) > 0 && !strings.HasPrefix(value, "$"):
			for _, v := range strings.Split(value, "|") {
				if !slices.Contains(values, v) {
					wrong = append(wrong, series+" never has "+label+"="+v)
				}
			}
		}
	}
	return wrong
}

func TestTheCatalogueKnowsWhatIsWrong(t *testing.T) {
	c := readCatalogue(t)
	for expr, wrong := range map[string]int{
		`sum by (reason) (korvet_storage_parked{reason=~"store|redis", job=~"$job"})`: 0,
		`korvet_storage_topic_parked{topic=~"$topic"}`:                                0,
		`rate(korvet_storage_s3_seconds_bucket[5m])`:                                  0,
		`korvet_storage_s3_seconds`:                                                   1,
		`korvet_storage_worker_up_total`:                                              1,
		`korvet_storage_parked{cause="store"}`:                                        1,
		`korvet_storage_parked{reason!~"store|shop"}`:                                 1,
		`sum by (topic) (korvet_storage_parked)`:                                      1,
		`up == 0`:                                                                     1,
	} {
		if got := c.check(expr); len(got) != wrong {
			t.Errorf("%s: %q, want %d", expr, got, wrong)
		}
	}
}
