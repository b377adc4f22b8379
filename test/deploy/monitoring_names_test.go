package deploy

import (
	"regexp"
	"strings"
	"testing"
)

// italics are what a page names in italics, of whatever line.
func italics(text string) (names []string) {
	text = strings.ReplaceAll(text, "**", "")
	for _, m := range regexp.MustCompile(`(?:^|[\s(])\*([^\s*][^*]*)\*`).FindAllStringSubmatch(text, -1) {
		names = append(names, strings.Join(strings.Fields(m[1]), " "))
	}
	return names
}

// What the runbook sends people to is called so on the dashboard or the page.
func TestNamedPanelsAreThere(t *testing.T) {
	board, home := readFile(t, "deploy/monitoring/dashboard.json"), readFile(t, "internal/page/template/home.html")
	total := 0
	for _, page := range []string{"docs/runbook.md", "deploy/monitoring/README.md"} {
		for _, name := range italics(readFile(t, page)) {
			total++
			if name != "italics" && !strings.Contains(board, `: "`+name+`"`) && !strings.Contains(home, ">"+name+"<") {
				t.Errorf("%s: there is no %q", page, name)
			}
		}
	}
	if total < 10 {
		t.Errorf("only %d names were found", total)
	}
}
