package test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// pages reads every Markdown page by its path below the root. The parts of
// docs/settings.md have links as that page has them, and are left out.
func pages(t *testing.T, root fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case path.Ext(name) != ".md" || strings.HasPrefix(name, "internal/config/reference_"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		all[name] = prose(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// prose is a page without its blocks of code.
func prose(text string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		} else if !code {
			b.WriteString(line)
		}
	}
	return b.String()
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	outside    = regexp.MustCompile(`^[a-z]+:`)
)

// links are the targets within this repository.
func links(text string) (targets []string) {
	for _, m := range linkTarget.FindAllStringSubmatch(inlineCode.ReplaceAllString(text, "x"), -1) {
		if !outside.MatchString(m[1]) {
			targets = append(targets, m[1])
		}
	}
	return targets
}

// anchors are the fragments that the headings of a page have, as GitHub makes
// them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		title := strings.TrimLeft(line, "#")
		if title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		slug := strings.Map(slugRune, strings.ToLower(strings.TrimSpace(title)))
		id := slug
		for n := 1; all[id]; n++ {
			id = fmt.Sprint(slug, "-", n)
		}
		all[id] = true
	}
	return all
}

func slugRune(r rune) rune {
	switch {
	case r == ' ':
		return '-'
	case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
		return r
	}
	return -1
}

// deadLinks lists what leads nowhere, and says how many links there are.
func deadLinks(t *testing.T, root fs.FS) (dead []string, total int) {
	t.Helper()
	all := pages(t, root)
	for name, text := range all {
		for _, target := range links(text) {
			total++
			file, anchor, _ := strings.Cut(target, "#")
			if file = path.Join(path.Dir(name), file); strings.HasPrefix(target, "#") {
				file = name
			}
			page, isPage := all[file]
			if _, err := fs.Stat(root, file); err != nil || anchor != "" && (!isPage || !anchors(page)[anchor]) {
				dead = append(dead, name+": "+target)
			}
		}
	}
	return dead, total
}

func TestLinksLeadSomewhere(t *testing.T) {
	dead, total := deadLinks(t, os.DirFS(".."))
	for _, d := range dead {
		t.Error(d)
	}
	if total < 100 {
		t.Errorf("only %d links were found", total)
	}
}

// What a check lets through it must be seen not to let through.
func TestDeadLinksAreFound(t *testing.T) {
	root := fstest.MapFS{
		"a.md": {Data: []byte("# A, `b`: c\n## Twice\n## Twice\n[x](#a-b-c) [x](#twice-1) [x](d/b.md#b) [x](https://there) `[x](code.md)`\n```\n[x](code.md)\n```\n" +
			"[x](#twice-2) [x](b.md) [x](d/b.md#a) [x](d/c.txt#b)\n")},
		"d/b.md":  {Data: []byte("# B\n[a](../a.md) [c](c.txt) [out](../../b.md)\n")},
		"d/c.txt": {Data: []byte("# B\n")},
	}
	dead, total := deadLinks(t, root)
	if len(dead) != 5 || total != 10 {
		t.Errorf("%d of %d: %q", len(dead), total, dead)
	}
}
