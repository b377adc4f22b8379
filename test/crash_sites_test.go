package test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// callSites lists every call of a port in the source of the worker, as the
// points name them: the function and the port's method.
func callSites(t *testing.T) []string {
	t.Helper()
	const dir = "../offload"
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range goList(t, `{{range .GoFiles}}{{.}}{{"\n"}}{{end}}`, dir) {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	pkg, err := (&types.Config{Importer: compiled(t, fset, dir)}).Check("korvet-offload/offload", fset, files, &info)
	if err != nil {
		t.Fatal(err)
	}
	sites := map[string]bool{}
	ports := portsOf(pkg)
	for _, f := range files {
		for _, d := range f.Decls {
			fn, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if sel, is := n.(*ast.SelectorExpr); is && info.Selections[sel] != nil {
					if port := interfaceName(info.Selections[sel].Recv()); ports[port] {
						sites[functionName(fn)+" "+port+"."+sel.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(sites))
}

// portsOf are the interfaces of offload.Ports, and those that they hand out. Left
// out are those that change nothing anywhere and have no points: they say what
// may be worked on.
func portsOf(pkg *types.Package) map[string]bool {
	ports := map[string]bool{}
	fields := pkg.Scope().Lookup("Ports").Type().Underlying().(*types.Struct)
	for i := range fields.NumFields() {
		if slices.Contains([]string{"Gate", "Share", "Pauses"}, fields.Field(i).Name()) {
			continue
		}
		port := fields.Field(i).Type()
		ports[interfaceName(port)] = true
		methods := port.Underlying().(*types.Interface)
		for j := range methods.NumMethods() {
			results := methods.Method(j).Signature().Results()
			for k := range results.Len() {
				if name := interfaceName(results.At(k).Type()); name != "" {
					ports[name] = true
				}
			}
		}
	}
	return ports
}

// interfaceName is the name of an interface of this module; "" where the type
// is none.
func interfaceName(t types.Type) string {
	named, is := types.Unalias(t).(*types.Named)
	if !is || !types.IsInterface(t) || named.Obj().Pkg() == nil || !strings.HasPrefix(named.Obj().Pkg().Path(), module) {
		return ""
	}
	return named.Obj().Name()
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	owner := f.Recv.List[0].Type
	if star, is := owner.(*ast.StarExpr); is {
		owner = star.X
	}
	return owner.(*ast.Ident).Name + "." + f.Name.Name
}

// compiled imports what the compiler has made of the packages that one needs.
func compiled(t *testing.T, fset *token.FileSet, dir string) types.Importer {
	t.Helper()
	files := map[string]string{}
	for _, line := range goList(t, "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}", "-export", "-deps", dir) {
		name, file, _ := strings.Cut(line, " ")
		files[name] = file
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}

func goList(t *testing.T, format string, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-f", format}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %q: %v", args, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
