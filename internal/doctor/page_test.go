package doctor

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	page      = "../../docs/doctor.md"
	pageBegin = "<!-- checks -->\n"
	pageEnd   = "<!-- end of checks -->\n"
)

// reference is the table of checks as Markdown.
func reference() string {
	var b strings.Builder
	area := Area("")
	for _, c := range Checks() {
		if c.Area() != area {
			area = c.Area()
			fmt.Fprintf(&b, "\n### %s\n\n| Check | Start | What it looks at | Where it is not right |\n|---|---|---|---|\n", strings.ToUpper(string(area[:1]))+string(area[1:]))
		}
		start := ""
		if c.Brief {
			start = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.ID, start, c.Asks, c.Means)
	}
	return b.String()
}

// With UPDATE_DOCS=1 it writes the page instead.
func TestDoctorPageIsCurrent(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(content), pageBegin)
	old, after, closed := strings.Cut(rest, pageEnd)
	if !ok || !closed {
		t.Fatalf("%s: no %s", page, strings.TrimSpace(pageBegin))
	}
	now := reference() + "\n"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(page, []byte(before+pageBegin+now+pageEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != now {
		t.Errorf("%s is out of date: make docs", page)
	}
}
