// Package doctor judges whether Redis, the object store and the settings are
// fit for this program: facts in, findings out. It asks nobody and changes
// nothing; what the facts are is in the packages that fetch them.
//
// What it promises: the same facts give the same findings, in the order of
// Checks; every finding belongs to a check of that table; one that is not ok
// says what to do; and what could not be asked is a skip, never a fail.
//
// What it does not promise: that a set-up without a finding works. It sees one
// moment, through one user's eyes.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Verdict is what a finding comes to.
type Verdict string

// The verdicts, from good to bad.
const (
	Skipped Verdict = "skip" // it could not be looked at, or does not matter here
	OK      Verdict = "ok"
	Warn    Verdict = "warn" // it works, and may cost something later
	Fail    Verdict = "fail" // it does not work, or loses data
)

// Area is what a finding is about.
type Area string

// The areas.
const (
	Redis    Area = "redis"
	Store    Area = "store"
	Settings Area = "settings"
)

// Finding is the outcome of one check.
type Finding struct {
	ID      string  `json:"id"`
	Area    Area    `json:"area"`
	Verdict Verdict `json:"verdict"`
	Seen    string  `json:"seen"`         // what was found, one line
	Do      string  `json:"do,omitempty"` // what to do, where there is something to do
}

// Count is how many findings of each kind there are.
type Count struct {
	OK    int `json:"ok"`
	Warn  int `json:"warn"`
	Fail  int `json:"fail"`
	Skips int `json:"skips"`
}

// Tally counts findings.
func Tally(all []Finding) (c Count) {
	for _, f := range all {
		switch f.Verdict {
		case OK:
			c.OK++
		case Warn:
			c.Warn++
		case Fail:
			c.Fail++
		case Skipped:
			c.Skips++
		}
	}
	return c
}

// Sorted puts findings into the order of the table.
func Sorted(all []Finding) []Finding {
	place := map[string]int{}
	for i, c := range Checks() {
		place[c.ID] = i
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	return all
}

// Brief are the findings of the checks that every start makes.
func Brief(all []Finding) []Finding {
	brief := map[string]bool{}
	for _, c := range Checks() {
		brief[c.ID] = c.Brief
	}
	return slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return !brief[f.ID] })
}

func finding(id string, v Verdict, do, format string, args ...any) Finding {
	return Finding{ID: id, Area: areaOf(id), Verdict: v, Seen: oneLine(fmt.Sprintf(format, args...)), Do: oneLine(do)}
}

// maxLine is how much of a line is kept, in bytes: servers can answer anything.
const maxLine = 600

// oneLine is a text as a terminal may get it.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "..."
	}
	return text
}

func good(id, format string, args ...any) Finding { return finding(id, OK, "", format, args...) }

func warn(id, do, format string, args ...any) Finding { return finding(id, Warn, do, format, args...) }

func fail(id, do, format string, args ...any) Finding { return finding(id, Fail, do, format, args...) }

func skip(id, do, format string, args ...any) Finding {
	return finding(id, Skipped, do, format, args...)
}

// worst is the worst of findings, the first of equals.
func worst(all []Finding) Finding {
	rank := []Verdict{Skipped, OK, Warn, Fail}
	w := slices.MaxFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(rank, a.Verdict), slices.Index(rank, b.Verdict))
	})
	return w
}

// andMore names the first of several, and how many others there are.
func andMore(first string, others int) string {
	if others == 0 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, others)
}
