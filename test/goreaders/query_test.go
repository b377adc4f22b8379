package goreaders

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/segment"
)

// queryChecks tell what the queries of docs/query.md have to give, by their
// headings. one is partition 1, all is every partition.
func queryChecks() map[string]func(t *testing.T, got [][]string, one []row, all map[string][]row) {
	return map[string]func(*testing.T, [][]string, []row, map[string][]row){
		"Messages": func(t *testing.T, got [][]string, one []row, _ map[string][]row) {
			equal(t, len(got), 10)
			for _, r := range got { // quotes are the only odd bytes here
				hasRow(t, one, r[0], map[string]string{"key": r[1], "value": strings.ReplaceAll(r[2], `\x22`, `"`)})
			}
		},
		"Values as text": func(t *testing.T, got [][]string, one []row, _ map[string][]row) {
			equal(t, len(got), 10)
			for _, r := range got {
				hasRow(t, one, r[0], map[string]string{"value": r[1]})
			}
		},
		"In stream order": func(t *testing.T, got [][]string, one []row, _ map[string][]row) {
			equal(t, column0(got), idsOf(inOrder(one)))
		},
		"One message": func(t *testing.T, got [][]string, _ []row, _ map[string][]row) {
			for _, r := range got {
				equal(t, r[0], "1708956789000-0")
			}
			equal(t, len(got), 3) // one in each of the segments, whose ids begin alike
		},
		"A range of time": func(t *testing.T, got [][]string, one []row, _ map[string][]row) {
			want := slices.DeleteFunc(inOrder(one), func(id segment.ID) bool { return id.Ms >= 1708956789250 })
			equal(t, column0(got), idsOf(want))
		},
		"Counting": func(t *testing.T, got [][]string, one []row, _ map[string][]row) {
			equal(t, counted(t, got), len(one))
			equal(t, got[0][0], "2024-02-26 14:13:09")
		},
		"Counting by file": func(t *testing.T, got [][]string, _ []row, _ map[string][]row) {
			equal(t, got, [][]string{{"0.parquet", "2000"}, {"1.parquet", "2000"}, {"2.parquet", "2000"}})
		},
		"Fields of JSON": func(t *testing.T, got [][]string, one []row, _ map[string][]row) {
			count := map[string]int{}
			for _, m := range one {
				var headers struct{ Source string }
				if err := json.Unmarshal([]byte(field(m, "headers")), &headers); err != nil {
					t.Fatal(err)
				}
				count[headers.Source]++
			}
			for _, r := range got {
				equal(t, r[1], strconv.Itoa(count[r[0]]))
			}
			equal(t, len(got), len(count))
		},
		"All fields, with duplicates": func(t *testing.T, got [][]string, _ []row, all map[string][]row) {
			want := [][]string{}
			for _, m := range all["0:0"] {
				if values := every(m, "a"); len(values) > 0 {
					want = append(want, []string{m.ID, strings.Join(values, ",")})
				}
			}
			found := [][]string{}
			for _, r := range got {
				found = append(found, []string{r[0], strings.NewReplacer("[", "", "]", "", "'", "", " ", "").Replace(r[2])})
			}
			equal(t, found, want)
			equal(t, len(want) > 2, true)
		},
		"What a file is": func(t *testing.T, got [][]string, _ []row, _ map[string][]row) {
			equal(t, got[0], []string{"korvet.offload.schema-version", "1"})
			equal(t, got[1], []string{"korvet.offload.stream-key", "korvet:storage:local:orders:1"})
		},
	}
}

// Every query of docs/query.md runs as it stands there, on segments that the
// program has moved, and gives what it says.
func TestQueriesOfTheDocs(t *testing.T) {
	redis, s3 := redisserver.Start(t), s3server.Start(t, s3server.Options{})
	all := loadTopic(t, redis)
	runProgram(t, redis, s3)
	var one []row
	for segment := range 3 {
		one = append(one, all[fmt.Sprintf("1:%d", segment)]...)
	}
	names, queries := docQueries(t)
	results := runQueries(t, filepath.Join(s3.Dir, "korvet"), queries)
	checks := queryChecks()
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			check, ok := checks[name]
			if !ok {
				t.Fatal("nothing says what this query of docs/query.md gives")
			}
			check(t, results[i], one, all)
		})
	}
	if len(names) != len(checks) {
		t.Errorf("docs/query.md has %d queries, and %d are checked", len(names), len(checks))
	}
}

// docQueries are the blocks of SQL of the page, and the headings above them.
func docQueries(t *testing.T) (names, queries []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "query.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(string(page), "\n### ")[1:] {
		name, _, _ := strings.Cut(section, "\n")
		for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(section, -1) {
			names, queries = append(names, name), append(queries, m[1])
		}
	}
	return names, queries
}

func runQueries(t *testing.T, dir string, queries []string) [][][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"query.mjs", dir}, queries...)...)
	cmd.Dir = nodeReaders
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node query.mjs: %v: %s", err, stderr.String())
	}
	var results [][][]string
	for line := range bytes.Lines(out) {
		var rows [][]string
		if err := json.Unmarshal(line, &rows); err != nil {
			t.Fatal(err)
		}
		results = append(results, rows)
	}
	if len(results) != len(queries) {
		t.Fatalf("%d results of %d queries", len(results), len(queries))
	}
	return results
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %.300v, want %.300v", got, want)
	}
}

// hasRow checks that there is a message with an id and such fields.
func hasRow(t *testing.T, rows []row, id string, fields map[string]string) {
	t.Helper()
	if !slices.ContainsFunc(rows, func(r row) bool {
		for name, value := range fields {
			if field(r, name) != value {
				return false
			}
		}
		return r.ID == id
	}) {
		t.Errorf("there is no message %s with %q", id, fields)
	}
}

// field is the first of a name.
func field(r row, name string) string {
	values := every(r, name)
	if len(values) == 0 {
		return ""
	}
	b, _ := hex.DecodeString(values[0])
	return string(b)
}

// every is the values of a name, in hex.
func every(r row, name string) (values []string) {
	for _, f := range r.Fields {
		if f[0] == hex.EncodeToString([]byte(name)) {
			values = append(values, strings.ToUpper(f[1]))
		}
	}
	return values
}

func column0(rows [][]string) []string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r[0]
	}
	return ids
}

// inOrder are the ids as two numbers.
func inOrder(rows []row) []segment.ID {
	ids := make([]segment.ID, len(rows))
	for i, r := range rows {
		ids[i], _ = segment.ParseID(r.ID)
	}
	slices.SortFunc(ids, segment.ID.Compare)
	return ids
}

func idsOf(ids []segment.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return out
}

// counted is the sum of the counts behind the first column.
func counted(t *testing.T, rows [][]string) (sum int) {
	t.Helper()
	for _, r := range rows {
		n, err := strconv.Atoi(r[1])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
