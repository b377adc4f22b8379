package doctor

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"korvet-offload/s3sink"
)

// expect checks one finding: its verdict, and a word of what was seen or of
// what to do. What is not ok says what to do; a skip may.
func expect(t *testing.T, what string, f Finding, want Verdict, word string) {
	t.Helper()
	if f.Verdict != want || !strings.Contains(f.Seen+"\n"+f.Do, word) {
		t.Errorf("%s: %+v, want %s and %q", what, f, want, word)
	}
	if (f.Verdict == Warn || f.Verdict == Fail) && f.Do == "" || f.Verdict == OK && f.Do != "" {
		t.Errorf("%s: %s with advice %q", what, f.Verdict, f.Do)
	}
	if f.Area != areaOf(f.ID) || f.Seen == "" {
		t.Errorf("%s: %+v", what, f)
	}
}

// find is the finding of a check; the test fails if there is not exactly one.
func find(t *testing.T, all []Finding, id string) Finding {
	t.Helper()
	var found []Finding
	for _, f := range all {
		if f.ID == id {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: %d findings", id, len(found))
	}
	return found[0]
}

func TestTableOfChecks(t *testing.T) {
	seen := map[string]bool{}
	brief := 0
	for _, c := range Checks() {
		if seen[c.ID] || c.Asks == "" || c.Means == "" || c.Area() != Redis && c.Area() != Store && c.Area() != Settings {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
		if c.Brief {
			brief++
		}
	}
	if brief == 0 || brief == len(seen) {
		t.Errorf("%d of %d at every start", brief, len(seen))
	}
}

// Every name of a check in the code stands in the table, and the other way round.
func TestEveryCheckIsMade(t *testing.T) {
	known := map[string]bool{}
	for _, c := range Checks() {
		known[c.ID] = false
	}
	names := regexp.MustCompile(`"((?:redis|store|settings)\.[a-z-]+)"`)
	for _, file := range []string{"redis.go", "redis_more.go", "store.go", "folder.go", "trials.go", "settings.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names.FindAllStringSubmatch(string(code), -1) {
			if _, ok := known[name[1]]; !ok {
				t.Errorf("%s: %s is not in the table", file, name[1])
			}
			known[name[1]] = true
		}
	}
	for _, step := range s3sink.Steps() {
		if _, ok := known["store."+string(step)]; !ok {
			t.Errorf("store.%s is not in the table", step)
		}
		known["store."+string(step)] = true
	}
	for id, made := range known {
		if !made {
			t.Errorf("nothing makes %s", id)
		}
	}
}

func TestSortedTallyBrief(t *testing.T) {
	all := Sorted([]Finding{good("settings.spool", "a"), warn("store.put", "b", "b"), good("redis.version", "c"), skip("redis.acl", "", "d"), fail("redis.reach", "e", "e")})
	var ids []string
	for _, f := range all {
		ids = append(ids, f.ID)
	}
	if want := []string{"redis.reach", "redis.version", "redis.acl", "store.put", "settings.spool"}; !reflect.DeepEqual(ids, want) {
		t.Errorf("%q, want %q", ids, want)
	}
	if got, want := Tally(all), (Count{OK: 2, Warn: 1, Fail: 1, Skips: 1}); got != want {
		t.Errorf("%+v", got)
	}
	if short := Brief(all); len(short) != 2 || short[0].ID != "redis.version" || short[1].ID != "settings.spool" || len(all) != 5 {
		t.Errorf("%+v", short)
	}
}

// Whatever a server answers, a finding is one line that a terminal can show.
func TestFindingsAreLines(t *testing.T) {
	f := fail("redis.reach", "do\nit", "%s", errors.New("\x1b[31mred\r\nline\u202e\xff"+strings.Repeat("x", 5000)))
	for _, text := range []string{f.Seen, f.Do} {
		if len(text) > maxLine+3 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", text)
		}
	}
}
