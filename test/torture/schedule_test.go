package torture

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRandomSchedulesHaveAText(t *testing.T) {
	kinds := map[Kind]int{}
	for seed := range uint64(300) {
		s := Random(seed)
		if again := Random(seed); again.String() != s.String() {
			t.Fatalf("seed %d gives two schedules", seed)
		}
		back, err := Parse(s.String())
		if err != nil || back.String() != s.String() || len(s) < shortest {
			t.Fatalf("%s\nread back as\n%s: %v", s, back, err)
		}
		for _, step := range s {
			kinds[step.Kind]++
		}
	}
	for _, k := range Kinds() {
		if kinds[k] == 0 {
			t.Errorf("no schedule has %s", k)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"jump 3":           "no such kind",
		"produce keep:0":   "wants 1 numbers",
		"produce lost:0 3": "no such partition",
		"read":             "a partition: true",
		"wait soon":        "invalid syntax",
		"redis 1":          "wants 0 numbers",
		"wait 1; ; kill":   `step "kill"`,
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if s, err := Parse(" wait 5 ;\n redis; "); err != nil || s.String() != "wait 5; redis" {
		t.Errorf("%q, %v", s, err)
	}
}

// contains says whether steps come in this order, with any others between.
func contains(s Schedule, kinds ...Kind) bool {
	for _, step := range s {
		if len(kinds) > 0 && step.Kind == kinds[0] {
			kinds = kinds[1:]
		}
	}
	return len(kinds) == 0
}

func TestShrinkFindsThePlantedFailure(t *testing.T) {
	for seed := range uint64(50) {
		s := Random(seed)
		s = slices.Concat(s[:4], Schedule{{Kind: Redis}}, s[4:9], Schedule{{Kind: Remove}}, s[9:])
		runs := 0
		short := Shrink(s, time.Now().Add(time.Hour), func(s Schedule) bool {
			runs++
			return contains(s, Redis, Remove)
		})
		if short.String() != "redis; remove" || runs > 300 {
			t.Fatalf("seed %d: after %d runs %s", seed, runs, short)
		}
	}
}

// A failure that shows only every third time is not lost.
func TestShrinkTriesAgain(t *testing.T) {
	s, err := Parse("wait 1; redis; wait 2; wait 3; back; wait 4")
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	short := Shrink(s, time.Now().Add(time.Hour), func(s Schedule) bool {
		runs++
		return contains(s, Redis, Back) && runs%3 == 0
	})
	if !contains(short, Redis, Back) || len(short) > 4 {
		t.Errorf("%s", short)
	}
}

func TestShrinkEndsInTime(t *testing.T) {
	s := Random(1)
	until, runs := time.Now(), 0
	if short := Shrink(s, until, func(Schedule) bool { runs++; return true }); runs != 0 || short.String() != s.String() {
		t.Errorf("%d runs after the end", runs)
	}
}

func TestTallyTellsWhatNeverHappened(t *testing.T) {
	tally := NewTally()
	if missing := tally.Never(); !slices.Contains(missing, Copied) || !slices.Contains(missing, string(Recreate)) {
		t.Errorf("%q", missing)
	}
	for _, what := range tally.Never() {
		tally.Add(what, 2)
	}
	if missing := tally.Never(); len(missing) != 0 || !strings.Contains(tally.String(), "2 kill") {
		t.Errorf("%q, %s", missing, tally)
	}
}
