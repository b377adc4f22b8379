package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is one Go file of this repository.
type source struct {
	path  string // below the root, with slashes
	lines int
	fset  *token.FileSet
	tree  *ast.File
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// at makes a finding of a place in the file.
func (s source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...))
}

// imports are the paths that a file imports.
func (s source) imports() (paths []string) {
	for _, i := range s.tree.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser has seen that it is a string
		paths = append(paths, p)
	}
	return paths
}

func parse(t *testing.T, name, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return source{name, strings.Count(text, "\n"), fset, tree}
}

// repository reads every Go file, those of the modules for tests included.
func repository(t *testing.T) (all []source) {
	t.Helper()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		all = append(all, parse(t, name, string(text)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d files found", len(all))
	}
	return all
}

// rule returns what is wrong with a file.
type rule func(source) []string

// houseRules are all rules, each with an example that breaks it.
func houseRules() map[string]struct {
	rule rule
	path string
	bad  string
} {
	return map[string]struct {
		rule rule
		path string
		bad  string
	}{
		"segment imports the standard library only": {foreignImports, "segment/x.go", `package segment; import "github.com/google/uuid"`},
		"segment imports none of ours":              {ownImports, "segment/x.go", `package segment; import "korvet-offload/lease"`},
		"lease imports none of ours":                {ownImports, "lease/x.go", `package lease; import "korvet-offload/segment"`},
		"s3sink imports none of ours":               {ownImports, "s3sink/x.go", `package s3sink; import "korvet-offload/segment"`},
		"offload imports segment only":              {ownImports, "offload/x.go", `package offload; import "korvet-offload/s3sink"`},
		"redisstore looks down only":                {ownImports, "internal/redisstore/x.go", `package redisstore; import "korvet-offload/offload"`},
		"every package has its place":               {ownImports, "pkg/util/x.go", `package util; import "korvet-offload/segment"`},
		"tests need no more than test helpers":      {ownImports, "lease/x_test.go", `package lease; import "korvet-offload/offload"`},
		"redis has three users":                     {foreignImports, "offload/x_test.go", `package offload; import "github.com/redis/rueidis"`},
		"parquet has one user":                      {foreignImports, "internal/command/x.go", `package command; import "github.com/parquet-go/parquet-go/format"`},
		"s3 has one user":                           {foreignImports, "internal/command/x.go", `package command; import "github.com/minio/minio-go/v7"`},
		"the embedded redis is for demo and tests":  {foreignImports, "internal/redisstore/x.go", `package redisstore; import "github.com/alicebob/miniredis/v2"`},
		"flags have two users":                      {foreignImports, "internal/ops/x.go", `package ops; import "github.com/urfave/cli/v2"`},
		"no init":                                   {noInit, "a/x.go", "package a; func init() {}"},
		"no variables of a package":                 {noGlobals, "a/x.go", "package a; var cache = map[string]int{}"},
		"no variables of a package without value":   {noGlobals, "a/x.go", "package a; var count int"},
		"no made variables of a package":            {noGlobals, "a/x.go", `package a; var c = New("x")`},
		"no sleep in tests":                         {noSleep, "a/x_test.go", `package a; import "time"; func TestX(t *testing.T) { time.Sleep(1) }`},
		"no sleep elsewhere":                        {noSleep, "a/x.go", `package a; import "time"; func f() { time.Sleep(1) }`},
		"no skipped test":                           {noSkip, "a/x_test.go", "package a; func TestX(t *testing.T) { t.Skip() }"},
		"no skipped test with a reason":             {noSkip, "a/x_test.go", `package a; func TestX(x *testing.T) { x.Skipf("%d", 1) }`},
		"no skipped benchmark":                      {noSkip, "a/x_test.go", "package a; func BenchmarkX(b *testing.B) { b.SkipNow() }"},
		"no short mode":                             {noSkip, "a/x_test.go", "package a; func TestX(t *testing.T) { if testing.Short() { return } }"},
		"no long file":                              {shortFiles, "a/x.go", "package a" + strings.Repeat("\n", maxLines+1)},
		"no long main":                              {shortFiles, "main.go", "package main" + strings.Repeat("\n", maxMain+1)},
	}
}

func TestHouse(t *testing.T) {
	files := repository(t)
	for name, h := range houseRules() {
		if found := h.rule(parse(t, h.path, h.bad)); len(found) != 1 {
			t.Errorf("%s: the bad example gives %q", name, found)
		}
	}
	for _, check := range []rule{foreignImports, ownImports, noInit, noGlobals, noSleep, noSkip, shortFiles} {
		for _, f := range files {
			for _, found := range check(f) {
				t.Error(found)
			}
		}
	}
}

// What looks like a breach and is none.
func TestHouseAllows(t *testing.T) {
	for _, good := range []struct {
		rule rule
		path string
		text string
	}{
		{noGlobals, "a/x.go", `package a; var errA = errors.New("a")`},
		{noGlobals, "a/x.go", "package a; var p = regexp.MustCompile(`a`)"},
		{noGlobals, "a/x.go", `package a; var words = [...]string{"a"}`},
		{noGlobals, "a/x.go", "package a; var _ I = (*T)(nil)"},
		{noGlobals, "a/x.go", "package a\n\n//go:embed page.html\nvar page string"},
		{noGlobals, "a/x_test.go", `package a; var update = flag.Bool("update", false, "")`},
		{noGlobals, "a/x.go", "package a; func f() { var x int; _ = x }"},
		{noSleep, "a/x_test.go", "package a; func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }"},
		{noSkip, "a/x.go", "package a; func f(r *Reader) { r.Skip(3) }"},
		{ownImports, "internal/command/x.go", `package command; import "korvet-offload/internal/broker"`},
		{foreignImports, "internal/redisstore/x_test.go", `package redisstore; import "github.com/alicebob/miniredis/v2"`},
	} {
		if found := good.rule(parse(t, good.path, good.text)); len(found) != 0 {
			t.Errorf("%q", found)
		}
	}
}

// Every exception is still needed.
func TestHouseExceptionsAreInUse(t *testing.T) {
	files := repository(t)
	at := func(name string) (source, bool) {
		i := slices.IndexFunc(files, func(f source) bool { return f.path == name })
		return files[max(0, i)], i >= 0
	}
	for name := range longFiles() {
		if f, ok := at(name); !ok || f.lines <= maxLines {
			t.Errorf("%s needs no exception for its length", name)
		}
	}
	for name := range globals() {
		file, variable, _ := strings.Cut(name, " ")
		if f, ok := at(file); !ok || !slices.Contains(packageVars(f), variable) {
			t.Errorf("there is no %s", name)
		}
	}
}
