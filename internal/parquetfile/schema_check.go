package parquetfile

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// checkSchema compares the columns with those of a segment file, and names
// the first that is not as expected.
func checkSchema(found *parquet.Schema) error {
	want := describe(newSchema())
	got := describe(found)
	for i, w := range want {
		if i == len(got) {
			return fmt.Errorf("%w: column %d is missing: found %.300s, want %s",
				ErrNotSegmentFile, i, strings.Join(got, "; "), strings.Join(want, "; "))
		}
		if got[i] != w {
			return fmt.Errorf("%w: column %d: found %.300s, want %s", ErrNotSegmentFile, i, got[i], w)
		}
	}
	if len(got) > len(want) {
		return fmt.Errorf("%w: column %d: found %.300s, want none", ErrNotSegmentFile, len(want), got[len(want)])
	}
	return nil
}

// describe lists the leaf columns, each with the nodes that lead to it.
func describe(schema *parquet.Schema) []string {
	var out []string
	var walk func(path string, n parquet.Node)
	walk = func(path string, n parquet.Node) {
		for _, f := range n.Fields() {
			at := path + f.Name() + " " + describeNode(f)
			if f.Leaf() {
				out = append(out, at)
				continue
			}
			walk(at+" / ", f)
		}
	}
	walk("", schema)
	return out
}

func describeNode(n parquet.Node) string {
	words := "required"
	switch {
	case n.Repeated():
		words = "repeated"
	case n.Optional():
		words = "optional"
	}
	if n.Leaf() {
		words += " " + n.Type().Kind().String()
	} else {
		words += " group"
	}
	if t := n.Type().LogicalType(); t != nil {
		words += " " + t.String()
	}
	return words
}
