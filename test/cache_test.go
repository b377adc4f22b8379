package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// lookAtSources looks at what the program is made of: "go test" takes a result
// from its cache unless a file has changed that the test itself has looked at,
// and does not know what the build has read.
func lookAtSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case filepath.Ext(path) == ".go" || filepath.Base(path) == "go.mod":
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
