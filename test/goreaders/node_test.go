package goreaders

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const nodeReaders = "../readers"

func TestDuckDB(t *testing.T) {
	eachNodeCase(t, "duckdb", func(r row) row { return r })
}

// TestHyparquet knows that this reader makes JavaScript objects of maps: the
// last of fields with one name wins, and their order is not that of the file.
func TestHyparquet(t *testing.T) {
	eachNodeCase(t, "hyparquet", asObject)
}

// asObject is a row with one field a name, sorted.
func asObject(r row) row {
	last := make(map[string]string)
	for _, f := range r.Fields {
		last[f[0]] = f[1]
	}
	out := row{ID: r.ID, Fields: [][2]string{}}
	for name, value := range last {
		out.Fields = append(out.Fields, [2]string{name, value})
	}
	slices.SortFunc(out.Fields, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return out
}

// eachNodeCase reads all cases in one run of a reader, since the reader's
// start takes longer than its reading.
func eachNodeCase(t *testing.T, reader string, seenAs func(row) row) {
	dir := t.TempDir()
	all := cases()
	args := []string{"read.mjs", reader}
	for _, c := range all {
		args = append(args, writeCase(t, dir, c))
	}
	files := runNode(t, args)
	for i, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			got, want := files[args[2+i]], rowsOf(c.Entries)
			for j := range want {
				want[j] = seenAs(want[j])
			}
			for j := range got {
				got[j] = seenAs(got[j])
			}
			compare(t, got, want)
		})
	}
}

// runNode returns the rows of each file that the reader printed.
func runNode(t *testing.T, args []string) map[string][]row {
	t.Helper()
	if _, err := os.Stat(nodeReaders + "/node_modules"); err != nil {
		t.Fatal("the JavaScript readers are not installed: run npm ci in test/readers")
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = nodeReaders
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node %s: %v: %s", strings.Join(args[:2], " "), err, stderr.String())
	}
	return parseLines(t, out)
}

func parseLines(t *testing.T, out []byte) map[string][]row {
	t.Helper()
	files := make(map[string][]row)
	var file string
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			File string `json:"file"`
			row
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("line %.200s: %v", lines.Bytes(), err)
		}
		if line.File != "" {
			file = line.File
			files[file] = []row{}
			continue
		}
		files[file] = append(files[file], line.row)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return files
}
