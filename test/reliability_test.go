package test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"korvet-offload/test/guards"
)

const reliabilityPage = "../docs/reliability.md"

// fault is one line of the form
//
//	//fault:<kind> | <what goes wrong> | <how it is injected> | <what must hold>
//
// in or above the test that it speaks of.
type fault struct{ kind, what, how, holds, test string }

// kinds are all kinds of faults, with their headings, in the page's order.
func kinds() [][2]string {
	return [][2]string{
		{"crash", "Crashes"},
		{"leaders", "Leaders that sleep, and two at once"},
		{"late-data", "Messages that come late"},
		{"redis", "Redis"},
		{"store", "Object stores"},
		{"network", "The network"},
		{"time", "Clocks"},
		{"topics", "Topics that come and go"},
		{"load", "Load and size"},
		{"input", "Input"},
		{"operator", "What people do meanwhile"},
	}
}

// The tables of docs/reliability.md are made of the tests. `make docs` writes
// them again.
func TestReliabilityPageIsCurrent(t *testing.T) {
	page, err := os.ReadFile(reliabilityPage)
	if err != nil {
		t.Fatal(err)
	}
	faults, errs := allFaults(repository(t))
	for _, e := range errs {
		t.Error(e)
	}
	if len(faults) < 100 {
		t.Errorf("only %d faults", len(faults))
	}
	want := replaceBlock(t, string(page), "faults", faultTables(t, faults))
	want = replaceBlock(t, want, "guards", guardTable())
	if f := flag.Lookup("test.run"); strings.Contains(f.Value.String(), "TestReliabilityPageIsCurrent") && os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(reliabilityPage, []byte(want), 0o644); err != nil { //nolint:gosec // a page for everybody
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Error("docs/reliability.md is not what the tests say: run make docs")
	}
}

// A command of the page runs something.
func TestReliabilityCommandsExist(t *testing.T) {
	page, err := os.ReadFile(reliabilityPage)
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, m := range regexp.MustCompile("`make ([a-z-]+)").FindAllStringSubmatch(string(page), -1) {
		commands++
		if !strings.Contains(string(makefile), "\n"+m[1]+":") {
			t.Errorf("there is no make %s", m[1])
		}
	}
	files := repository(t)
	for _, m := range regexp.MustCompile("`go test \\./(\\S+) -run '([^']+)'`").FindAllStringSubmatch(string(page), -1) {
		commands++
		for pattern := range strings.SplitSeq(m[2], `\|`) {
			if !slices.ContainsFunc(files, func(f source) bool { return f.dir() == m[1] && f.hasTest(pattern) }) {
				t.Errorf("no test of %s matches %s", m[1], pattern)
			}
		}
	}
	if commands < 8 {
		t.Errorf("only %d commands found", commands)
	}
}

func (s source) hasTest(pattern string) bool {
	return slices.ContainsFunc(s.tree.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && strings.HasPrefix(f.Name.Name, "Test") && strings.Contains(f.Name.Name, pattern)
	})
}

func replaceBlock(t *testing.T, page, name, body string) string {
	t.Helper()
	begin, end := "<!-- "+name+": made of the tests by make docs -->\n", "<!-- end of "+name+" -->"
	head, rest, ok := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("the page has no place for %s", name)
	}
	return head + begin + "\n" + body + "\n" + end + tail
}

func faultTables(t *testing.T, faults []fault) string {
	t.Helper()
	var b strings.Builder
	for _, k := range kinds() {
		fmt.Fprintf(&b, "### %s\n\n| What goes wrong | How it is injected | What must hold | Test |\n|---|---|---|---|\n", k[1])
		n := 0
		for _, f := range faults {
			if f.kind == k[0] {
				n++
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.what, f.how, f.holds, f.test)
			}
		}
		if n == 0 {
			t.Errorf("no fault of kind %s", k[0])
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func guardTable() string {
	var b strings.Builder
	b.WriteString("| Guard | Without it | Who notices |\n|---|---|---|\n")
	for _, g := range guards.All() {
		who := "`" + strings.Trim(g.Test, "^$") + "` in " + strings.TrimPrefix(g.Package, "./")
		if g.Model {
			who = "the model: " + strings.ReplaceAll(strings.TrimSuffix(g.Test[strings.Index(g.Test, "/^")+2:], "$"), "_", " ")
		}
		note := ""
		if g.Note != "" {
			note = " " + g.Note
		}
		fmt.Fprintf(&b, "| %s | %s.%s | %s |\n", upper(g.Name), upper(g.Against), note, strings.ReplaceAll(who, "|", ", "))
	}
	return b.String()
}

// allFaults reads the lines of all tests.
func allFaults(files []source) (all []fault, errs []string) {
	for _, f := range files {
		for _, group := range f.tree.Comments {
			for _, c := range group.List {
				text, is := strings.CutPrefix(c.Text, "//fault:")
				if !is || strings.HasPrefix(text, "test ") {
					continue
				}
				one, err := f.fault(text, c.Pos())
				if err != "" {
					errs = append(errs, f.at(c, "%s", err))
					continue
				}
				all = append(all, one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Or(cmp.Compare(a.test, b.test)) })
	return slices.Compact(all), errs
}

func (s source) fault(text string, at token.Pos) (fault, string) {
	parts := strings.Split(text, " | ")
	if len(parts) != 4 {
		return fault{}, fmt.Sprintf("%d parts, want <kind> | <what> | <how> | <what must hold>", len(parts))
	}
	if !slices.ContainsFunc(kinds(), func(k [2]string) bool { return k[0] == parts[0] }) {
		return fault{}, "no such kind: " + parts[0]
	}
	test := s.testAround(at)
	if test == "" {
		return fault{}, "it stands at no test"
	}
	return fault{parts[0], upper(parts[1]), upper(parts[2]), upper(parts[3]), "`" + test + "` in " + s.dir()}, ""
}

// testAround is the test in or above which a line stands. A function that is no
// test says with //fault:test whose it is.
func (s source) testAround(at token.Pos) string {
	for _, d := range s.tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || at > f.End() || at < f.Pos() && (f.Doc == nil || at < f.Doc.Pos()) {
			continue
		}
		if regexp.MustCompile(`^(Test|Fuzz)[A-Z]`).MatchString(f.Name.Name) {
			return f.Name.Name
		}
		for _, group := range s.tree.Comments {
			for _, c := range group.List {
				name, ok := strings.CutPrefix(c.Text, "//fault:test ")
				if ok && c.Pos() >= f.Pos() && c.Pos() <= f.End() {
					return name
				}
			}
		}
	}
	return ""
}

// upper begins a text with a capital letter, unless it begins with the name of
// a setting or the like.
func upper(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if strings.ContainsAny(first, "_:-/.0123456789") || slices.Contains([]string{"maxmemory", "config"}, first) {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// A line that is wrong is found.
func TestFaultLines(t *testing.T) {
	for line, want := range map[string]string{
		"//fault:crash | a | b | c":        "",
		"//fault:crash | a | b":            "a/x_test.go:3: 3 parts",
		"//fault:nonsense | a | b | c":     "a/x_test.go:3: no such kind",
		"//fault:crash | a | b | c | d":    "a/x_test.go:3: 5 parts",
		"//fault:late-data | what | h | o": "",
	} {
		faults, errs := allFaults([]source{parse(t, "a/x_test.go", "package a\n\n"+line+"\nfunc TestX(t *testing.T) {}\n")})
		got := strings.Join(errs, "")
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) || len(faults)+len(errs) != 1 {
			t.Errorf("%s: %v, %q", line, faults, got)
		}
	}
	if _, errs := allFaults([]source{parse(t, "a/x_test.go", "package a\n\n//fault:crash | a | b | c\nfunc helper() {}\n")}); len(errs) != 1 {
		t.Errorf("a line at no test: %q", errs)
	}
}
