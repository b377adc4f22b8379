package test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

const module = "korvet-offload/"

// ownImport says what of ours the files of a folder may import, and their
// tests beside that.
type ownImport struct{ code, tests []string }

// ownAllowed is the house: imports point down only.
func ownAllowed() map[string]ownImport {
	const kit = "internal/testkit/"
	redis, s3 := kit+"redisserver", kit+"s3server"
	return map[string]ownImport{
		".":                    {code: []string{"internal/command"}},
		"segment":              {},
		"lease":                {tests: []string{redis}},
		"s3sink":               {tests: []string{"s3sink/storetest", kit + "memstore", s3}},
		"s3sink/storetest":     {code: []string{"s3sink"}},
		"offload":              {code: []string{"segment"}, tests: []string{kit + "checker"}},
		"internal/redisstore":  {code: []string{"segment"}, tests: []string{"lease", redis, kit + "rawread", kit + "redisproxy"}},
		"internal/parquetfile": {code: []string{"segment"}, tests: []string{kit + "dataset"}},
		"internal/ops":         {},
		"docs":                 {},
		"internal/board":       {code: []string{"segment", "offload", "internal/words"}, tests: []string{kit + "scans"}},
		"internal/page":        {code: []string{"segment", "docs", "internal/board"}, tests: []string{"offload", kit + "scans"}},
		kit + "scans":          {code: []string{"segment", "offload"}},
		"internal/broker":      {code: []string{"segment", kit + "dataset"}, tests: []string{redis}},
		"internal/config": {code: []string{"segment", "offload", "lease", "s3sink", "internal/redisstore", "internal/ops",
			"internal/scrub", "internal/serve", "internal/segcache"}},
		"internal/words":      {},
		"internal/cmdline":    {code: []string{"internal/config"}},
		"internal/catalog":    {code: []string{"segment", "s3sink"}},
		"internal/objectfile": {tests: []string{"segment", "s3sink", "internal/parquetfile", kit + "dataset", s3}},
		"internal/tieredlog":  {code: []string{"segment", "internal/parquetfile", "internal/objectfile"}},
		"internal/message":    {code: []string{"segment"}, tests: []string{kit + "dataset"}},
		"internal/scrub":      {code: []string{"segment", "offload", "internal/words", "internal/catalog", "internal/parquetfile", "internal/objectfile"}, tests: []string{"s3sink", "internal/redisstore", redis, s3}},
		"internal/repair": {
			code:  []string{"segment", "offload", "internal/scrub", "internal/catalog", "internal/parquetfile", "internal/objectfile"},
			tests: []string{"s3sink", "internal/redisstore", redis, s3},
		},
		"internal/gc":       {code: []string{"segment", "s3sink", "internal/catalog"}, tests: []string{kit + "memstore"}},
		"internal/restore":  {code: []string{"segment", "internal/words", "internal/catalog", "internal/parquetfile", "internal/objectfile"}, tests: []string{"s3sink", kit + "memstore", kit + "dataset"}},
		"internal/segcache": {},
		"internal/serve":    {code: []string{"segment", "internal/ops"}},
		"internal/command": {
			code: []string{"segment", "offload", "lease", "s3sink", "internal/redisstore", "internal/parquetfile", "internal/config",
				"internal/ops", "internal/board", "internal/page", "internal/doctor", "internal/metrics", "internal/points", "internal/broker", kit + "dataset",
				"internal/words", "internal/catalog", "internal/objectfile", "internal/tieredlog", "internal/message", "internal/scrub", "internal/repair",
				"internal/gc", "internal/restore", "internal/segcache", "internal/serve", "internal/cmdline"},
			tests: []string{redis, s3},
		},
		"internal/doctor":      {code: []string{"segment", "s3sink", "internal/redisstore", "internal/words"}},
		"internal/metrics":     {code: []string{"segment", "offload", "s3sink", "internal/scrub"}},
		"internal/points":      {code: []string{"segment", "offload"}},
		kit + "checker":        {tests: []string{"segment"}},
		kit + "checker/loader": {code: []string{"segment", "internal/broker", "internal/parquetfile", kit + "checker", redis}, tests: []string{kit + "dataset"}},
		kit + "dataset":        {code: []string{"segment"}},
		kit + "memstore":       {code: []string{"s3sink"}},
		kit + "rawread":        {tests: []string{redis}},
		kit + "redisproxy":     {},
		kit + "redisserver":    {},
		kit + "s3server":       {},
		kit + "standin":        {},
		kit + "stage":          {code: []string{"segment", "internal/broker", "internal/parquetfile", kit + "checker", kit + "checker/loader", redis}},
		"test/torture":         {code: []string{"segment", "internal/points", kit + "checker", kit + "stage", kit + "standin", redis}},
		"test/guards":          {},
		"test/deploy":          {tests: []string{"segment", redis, s3}},
		"test/deploy/schemas":  {},
		"test/load":            {tests: []string{"segment", "internal/parquetfile", redis, s3}},
		"test":                 {tests: []string{"segment", "test/guards", "test/torture", "internal/points", "internal/broker", "internal/parquetfile", kit + "checker", kit + "checker/loader", kit + "dataset", kit + "redisproxy", kit + "stage", redis, s3}},
	}
}

// ownModules are folders with a module of their own, which uses this one from
// outside.
func ownModules() []string {
	return []string{"test/bench", "test/goreaders", "test/network", "test/k8sverify", "test/deploy/compose", "iceberg"}
}

func ownImports(s source) (found []string) {
	if slices.Contains(ownModules(), s.dir()) {
		return nil
	}
	allowed, known := ownAllowed()[s.dir()]
	if !known {
		return []string{s.path + ": decide in house_rules_test.go what this package may import"}
	}
	for _, p := range s.imports() {
		name, ours := strings.CutPrefix(p, module)
		inTest := s.isTest() && (name == s.dir() || slices.Contains(allowed.tests, name))
		if ours && !inTest && !slices.Contains(allowed.code, name) {
			found = append(found, fmt.Sprintf("%s: it may not import %s", s.path, name))
		}
	}
	return found
}

// libraries are the libraries of which only some folders may know, and who
// beside them may in tests.
func libraries() map[string]ownImport {
	return map[string]ownImport{
		"github.com/redis/rueidis":         {code: []string{"lease", "internal/redisstore", "internal/broker"}},
		"github.com/parquet-go/parquet-go": {code: []string{"internal/parquetfile"}},
		"github.com/minio/minio-go/":       {code: []string{"s3sink", "internal/testkit/s3server"}},
		"github.com/alicebob/miniredis/":   {code: []string{"internal/command"}, tests: []string{"internal/redisstore", "internal/broker"}},
		"github.com/urfave/cli/":           {code: []string{"internal/command", "internal/cmdline", "internal/config"}},
		"github.com/coreos/go-systemd/":    {code: []string{"internal/command"}},
		"github.com/prometheus/":           {code: []string{"internal/metrics"}},
	}
}

func foreignImports(s source) (found []string) {
	if slices.Contains(ownModules(), s.dir()) {
		return nil
	}
	for _, p := range s.imports() {
		if s.dir() == "segment" && !s.isTest() && strings.Contains(p, ".") {
			found = append(found, fmt.Sprintf("%s: segment may import the standard library only, not %s", s.path, p))
		}
		for library, who := range libraries() {
			inTest := s.isTest() && slices.Contains(who.tests, s.dir())
			if strings.HasPrefix(p, library) && !inTest && !slices.Contains(who.code, s.dir()) {
				found = append(found, fmt.Sprintf("%s: it may not import %s", s.path, p))
			}
		}
	}
	return found
}

func noInit(s source) (found []string) {
	for _, d := range s.tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			found = append(found, s.at(f, "func init"))
		}
	}
	return found
}

// globals are the variables of packages that are neither sentinel errors nor
// compiled patterns nor arrays, and why they may be.
func globals() map[string]string {
	return map[string]string{
		"internal/command/version.go linkedVersion":  "the linker fills it in",
		"internal/command/version.go linkedRevision": "the linker fills it in",
		"iceberg/app.go linkedVersion":               "the linker fills it in",
		"iceberg/app.go linkedRevision":              "the linker fills it in",

		"s3sink/classify.go codeClasses":   "a table that is only read",
		"s3sink/classify.go statusClasses": "a table that is only read",
		"s3sink/classify.go permissions":   "a table that is only read",
	}
}

// noGlobals leaves tests alone: a flag of theirs is one.
func noGlobals(s source) (found []string) {
	if s.isTest() {
		return nil
	}
	eachGlobal(s, func(spec *ast.ValueSpec, name *ast.Ident, value ast.Expr) {
		_, excepted := globals()[s.path+" "+name.Name]
		if name.Name != "_" && !excepted && !constant(value) {
			found = append(found, s.at(spec, "variable %s of a package", name.Name))
		}
	})
	return found
}

// eachGlobal visits the variables of a package that the build does not fill
// in. The value is nil where there is none.
func eachGlobal(s source, visit func(*ast.ValueSpec, *ast.Ident, ast.Expr)) {
	for _, d := range s.tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR || embeds(g.Doc) {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				var value ast.Expr
				if i < len(v.Values) {
					value = v.Values[i]
				}
				if !embeds(v.Doc) {
					visit(v, name, value)
				}
			}
		}
	}
}

func packageVars(s source) (names []string) {
	eachGlobal(s, func(_ *ast.ValueSpec, name *ast.Ident, _ ast.Expr) { names = append(names, name.Name) })
	return names
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// constant says whether nobody can change what a variable holds without
// assigning to it: a sentinel error, a compiled pattern, an array or a struct.
func constant(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.CallExpr:
		f, ok := v.Fun.(*ast.SelectorExpr)
		return ok && (isCall(f, "errors", "New") || isCall(f, "regexp", "MustCompile"))
	case *ast.CompositeLit:
		switch kind := v.Type.(type) {
		case *ast.ArrayType:
			return kind.Len != nil // a slice can be changed
		case *ast.Ident, *ast.SelectorExpr, *ast.StructType:
			return true
		}
	}
	return false
}

func isCall(f *ast.SelectorExpr, pkg, name string) bool {
	x, ok := f.X.(*ast.Ident)
	return ok && x.Name == pkg && f.Sel.Name == name
}

// noSleep allows time.Sleep in bubbles only, where it takes no time, and in
// the benchmark, which measures for a while.
func noSleep(s source) (found []string) {
	if s.dir() == "test/bench" {
		return nil
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name, ok := call.Fun.(*ast.SelectorExpr)
		switch {
		case ok && isCall(name, "time", "Sleep"):
			found = append(found, s.at(n, "time.Sleep: wait for a condition, or use a bubble of testing/synctest"))
		case ok && isCall(name, "synctest", "Test"):
			return false
		}
		return true
	})
	return found
}

func noSkip(s source) (found []string) {
	if !s.isTest() {
		return nil
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		f, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if isCall(f, "testing", "Short") || slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, f.Sel.Name) {
			found = append(found, s.at(n, "%s: a test that does not run proves nothing", f.Sel.Name))
		}
		return true
	})
	return found
}

const (
	maxLines = 400
	maxMain  = 40
)

// longFiles may be longer, and why.
func longFiles() map[string]string {
	return map[string]string{
		"offload/copy_test.go": "one table of faults over one protocol",
	}
}

func shortFiles(s source) []string {
	limit := maxLines
	if s.path == "main.go" {
		limit = maxMain
	}
	if _, excepted := longFiles()[s.path]; excepted || s.lines <= limit {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d lines, want %d at most", s.path, s.lines, limit)}
}
