package checker

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"korvet-offload/segment"
)

// entryAt is an entry by a few words: state, tier and local as they follow one
// another in a life, rev, copy and an addition.
func entryAt(phase string, rev, copied, more string) string {
	known := map[string]string{
		"open":           `"state":"OPEN","tier":"LOCAL"`,
		"local":          `"state":"SEALED","tier":"LOCAL","sealedAt":5`,
		"present":        `"state":"SEALED","tier":"REMOTE","sealedAt":5,"local":"PRESENT"`,
		"dropping":       `"state":"SEALED","tier":"REMOTE","sealedAt":5,"local":"DROPPING"`,
		"gone":           `"state":"SEALED","tier":"REMOTE","sealedAt":5,"local":"GONE"`,
		"deleting":       `"state":"DELETING","tier":"REMOTE","sealedAt":5,"local":"GONE"`,
		"deleting local": `"state":"DELETING","tier":"LOCAL","sealedAt":5`,
	}[phase]
	text := `{"v":1,"rev":` + rev + `,"copy":` + copied + `,` + known
	if strings.Contains(known, "REMOTE") {
		text += `,"firstId":"5-5","lastId":"5-6","count":2,"object":{"path":"p/0-` + copied + `.parquet","bytes":7,"etag":"e","sha256":"ab"}`
	}
	return text + more + "}"
}

// change is from one entry to the next that is seen.
type change struct{ was, is string }

func legalChanges() map[string]change {
	return map[string]change{
		"nothing":                         {entryAt("open", "1", "0", ""), entryAt("open", "1", "0", "")},
		"adopted":                         {entryAt("open", "1", "0", ""), entryAt("open", "2", "0", `,"key":"k"`)},
		"rolled":                          {entryAt("open", "1", "0", ""), entryAt("local", "2", "0", "")},
		"a range rolled":                  {entryAt("open", "1", "0", `,"from":"5-5"`), entryAt("local", "2", "0", `,"from":"5-5","to":"5-6"`)},
		"flipped":                         {entryAt("local", "2", "0", ""), entryAt("present", "3", "0", "")},
		"the next copy":                   {entryAt("local", "2", "0", ""), entryAt("local", "3", "1", "")},
		"dropping":                        {entryAt("present", "3", "0", ""), entryAt("dropping", "4", "0", "")},
		"dropping, once more":             {entryAt("dropping", "4", "0", ""), entryAt("dropping", "5", "0", "")},
		"dropped":                         {entryAt("dropping", "4", "0", ""), entryAt("gone", "5", "0", "")},
		"dropped, there was nothing left": {entryAt("present", "3", "0", ""), entryAt("gone", "4", "0", "")},
		"copied again":                    {entryAt("present", "3", "0", ""), entryAt("local", "4", "1", "")},
		"copied again, while dropping":    {entryAt("dropping", "4", "2", ""), entryAt("local", "5", "3", "")},
		"copied and dropped between":      {entryAt("local", "2", "0", ""), entryAt("gone", "5", "0", "")},
		"a whole copy between":            {entryAt("present", "3", "0", ""), entryAt("present", "5", "1", "")},
		"hidden":                          {entryAt("gone", "5", "0", ""), entryAt("deleting", "6", "0", `,"aged":true,"deletingAt":9`)},
		"hidden for its size":             {entryAt("gone", "5", "0", ""), entryAt("deleting", "6", "0", `,"deletingAt":9`)},
		"hidden, never copied":            {entryAt("local", "2", "0", ""), entryAt("deleting local", "3", "0", `,"deletingAt":9`)},
		"hidden with its topic":           {entryAt("open", "1", "0", ""), entryAt("deleting local", "2", "0", `,"withTopic":"OPEN","deletingAt":9`)},
		"back with its topic":             {entryAt("deleting local", "2", "0", `,"withTopic":"OPEN","deletingAt":9`), entryAt("open", "3", "0", "")},
		"back for its age":                {entryAt("deleting", "6", "0", `,"aged":true`), entryAt("gone", "7", "0", "")},
		"back and hidden again":           {entryAt("deleting", "6", "0", `,"aged":true`), entryAt("deleting", "8", "0", `,"aged":true`)},
		"not to come back":                {entryAt("deleting", "6", "0", `,"aged":true`), entryAt("deleting", "7", "0", "")},
		"written to when hidden":          {entryAt("deleting local", "3", "0", ""), entryAt("local", "4", "0", "")},
		"erased":                          {entryAt("deleting", "6", "0", ""), ""},
		"new":                             {"", entryAt("present", "6", "0", "")},
		"very many copies":                {entryAt("local", "2", "0", ""), entryAt("present", "60", "20", "")},
		"many changes":                    {entryAt("local", "2", "0", ""), entryAt("present", "40", "3", "")},
	}
}

func illegalChanges() map[string]change {
	return map[string]change{
		"open again":                       {entryAt("local", "2", "0", ""), entryAt("open", "3", "0", "")},
		"open again, many changes":         {entryAt("local", "2", "0", ""), entryAt("open", "30", "5", "")},
		"local without a new copy":         {entryAt("present", "3", "0", ""), entryAt("local", "4", "0", "")},
		"local after two changes":          {entryAt("present", "3", "0", ""), entryAt("local", "5", "0", "")},
		"local, its stream gone":           {entryAt("gone", "5", "0", ""), entryAt("local", "6", "1", "")},
		"present, its stream gone":         {entryAt("gone", "5", "0", ""), entryAt("present", "6", "0", "")},
		"dropping, its stream gone":        {entryAt("gone", "5", "0", ""), entryAt("dropping", "6", "0", "")},
		"present again":                    {entryAt("dropping", "4", "0", ""), entryAt("present", "5", "0", "")},
		"flipped while open":               {entryAt("open", "1", "0", ""), entryAt("present", "2", "0", "")},
		"flipped with another copy":        {entryAt("local", "2", "0", ""), entryAt("present", "3", "1", "")},
		"gone at once":                     {entryAt("local", "2", "0", ""), entryAt("gone", "3", "0", "")},
		"hidden while its stream is there": {entryAt("present", "3", "0", ""), entryAt("deleting", "4", "0", `,"aged":true`)},
		"hidden while open":                {entryAt("open", "1", "0", ""), entryAt("deleting local", "2", "0", "")},
		"hidden with a topic it was not":   {entryAt("local", "2", "0", ""), entryAt("deleting local", "3", "0", `,"withTopic":"OPEN"`)},
		"back, and was not aged":           {entryAt("deleting", "6", "0", ""), entryAt("gone", "7", "0", "")},
		"back as another":                  {entryAt("deleting local", "2", "0", `,"withTopic":"OPEN"`), entryAt("local", "3", "0", "")},
		"back with a stream":               {entryAt("deleting", "6", "0", `,"aged":true`), entryAt("present", "7", "0", "")},
		"rev as it was":                    {entryAt("open", "1", "0", ""), entryAt("local", "1", "0", "")},
		"rev smaller":                      {entryAt("present", "3", "0", ""), entryAt("dropping", "2", "0", "")},
		"changed, rev as it was":           {entryAt("gone", "5", "0", ""), entryAt("gone", "5", "0", `,"x":1`)},
		"a copy less":                      {entryAt("local", "2", "1", ""), entryAt("local", "3", "0", "")},
		"two copies at once":               {entryAt("local", "2", "0", ""), entryAt("local", "3", "2", "")},
		"its object in place":              {entryAt("present", "3", "0", ""), strings.Replace(entryAt("dropping", "4", "0", ""), `"ab"`, `"cd"`, 1)},
		"its count in place":               {entryAt("present", "3", "0", ""), strings.Replace(entryAt("dropping", "4", "0", ""), `"count":2`, `"count":3`, 1)},
		"another copy, the same path":      {entryAt("present", "3", "0", ""), strings.Replace(entryAt("present", "5", "1", ""), "0-1", "0-0", 1)},
		"another stream":                   {entryAt("local", "2", "0", ""), entryAt("present", "3", "0", `,"key":"k"`)},
		"another beginning":                {entryAt("open", "1", "0", `,"from":"5-5"`), entryAt("local", "2", "0", `,"from":"5-6","to":"5-9"`)},
		"another end":                      {entryAt("local", "2", "0", `,"from":"5-5","to":"5-6"`), entryAt("present", "3", "0", `,"from":"5-5","to":"5-7"`)},
		"sealed at another time":           {entryAt("local", "2", "0", ""), strings.Replace(entryAt("present", "3", "0", ""), `"sealedAt":5`, `"sealedAt":6`, 1)},
		"erased, not hidden":               {entryAt("gone", "5", "0", ""), ""},
		"erased while open":                {entryAt("open", "1", "0", ""), ""},
	}
}

// seen shows a history two states of a manifest.
func (c change) seen() []Finding {
	h := NewHistory()
	var found []Finding
	for _, raw := range []string{c.was, c.is} {
		w := World{Partitions: []Partition{{Name: "t:0", Manifest: map[string]string{"1": entryAt("open", "1", "0", "")}}}}
		if raw != "" {
			w.Partitions[0].Manifest["0"] = raw
		}
		found = append(found, h.Look(w)...)
	}
	return found
}

func TestHistory(t *testing.T) {
	for name, c := range legalChanges() {
		if found := c.seen(); len(found) > 0 {
			t.Errorf("%s: found %v", name, found)
		}
	}
	for name, c := range illegalChanges() {
		found := c.seen()
		if len(found) != 1 || found[0].Kind != Illegal || found[0].Segment != "0" || found[0].Partition != "t:0" {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

// Each look is compared with the one before, a partition that was made anew
// with none, and a value that is no entry is left to Check.
func TestHistoryRemembers(t *testing.T) {
	h := NewHistory()
	see := func(raw string) int { return len(h.See("t:0", map[string]string{"0": raw})) }
	if n := see(entryAt("present", "3", "0", "")) + see(entryAt("dropping", "4", "0", "")) + see(entryAt("dropping", "4", "0", "")); n != 0 {
		t.Errorf("%d findings in a legal history", n)
	}
	if n := see(entryAt("present", "3", "0", "")); n != 1 {
		t.Errorf("%d findings when an entry was put back", n)
	}
	if n := len(h.See("t:1", map[string]string{"0": openNow})); n != 0 {
		t.Errorf("%d findings in another partition", n)
	}
	h.Forget("t:0")
	if n := see(entryAt("open", "1", "0", "")) + see("x") + see(entryAt("open", "1", "0", "")); n != 0 {
		t.Errorf("%d findings after it was made anew", n)
	}
}

// life is a random life by the program's own changes, from entry to entry.
func life(random *rand.Rand) (all []string) {
	e := segment.NewOpen("", 1)
	for range 3 + random.IntN(20) {
		all = append(all, string(e.Encode()))
		var next []segment.Entry
		may := func(e segment.Entry, err error) {
			if err == nil {
				next = append(next, e)
			}
		}
		contents := segment.Contents{FirstID: segment.ID{Ms: 5, Seq: 5}, LastID: segment.ID{Ms: 5, Seq: 6}, Count: 2}
		object := segment.Object{Path: segment.ObjectPath("p", 0, e.Copy, ""), Bytes: 7, SHA256: "ab"}
		may(e.Seal(contents, 5))
		may(e.Flip(contents, segment.StreamInfo{}, object, 6))
		may(e.NextCopy())
		may(e.Drop())
		may(e.Dropped())
		may(e.Recopy())
		may(e.Return(true))
		may(e.Return(false))
		if e.WithTopic != segment.Open { // then it is brought back instead
			may(e.Undelete())
		}
		if e.State == segment.Sealed && (e.Tier == segment.Local || e.Local == segment.Gone) {
			hidden, err := e.Delete(segment.StreamInfo{}, 9)
			hidden.Aged = random.IntN(2) == 0
			may(hidden, err)
		}
		if e.State != segment.Deleting {
			may(e.DeleteWithTopic(segment.StreamInfo{}, 9))
		}
		if len(next) == 0 {
			break
		}
		e = next[random.IntN(len(next))]
	}
	return all
}

// What the program can do to an entry is legal, however much of it is seen,
// and what takes back or skips a part of it is not.
func TestHistoryAgreesWithTheProgram(t *testing.T) {
	backs, skips := 0, 0
	for seed := range uint64(1500) {
		random := rand.New(rand.NewPCG(seed, 0))
		all := life(random)
		h := NewHistory()
		for i, raw := range all {
			if random.IntN(2) == 0 && i < len(all)-1 {
				continue // not seen
			}
			if found := h.See("t:0", map[string]string{"0": raw}); len(found) > 0 {
				t.Fatalf("seed %d: %v in %s", seed, found, strings.Join(all[:i+1], "\n"))
			}
		}
		last := all[len(all)-1]
		if i := random.IntN(len(all)); i < len(all)-1 {
			backs++
			if found := h.See("t:0", map[string]string{"0": all[i]}); len(found) == 0 {
				t.Errorf("seed %d: back from\n%s to\n%s, and nothing is found", seed, last, all[i])
			}
		}
		// A change that did more than one step, and counted one.
		if i := random.IntN(len(all)); i < len(all)-2 && !oneStep(all[i], all[i+2]) {
			skips++
			is, _ := segment.ParseEntry([]byte(all[i+2]))
			is.Rev--
			if found := (change{all[i], string(is.Encode())}).seen(); len(found) == 0 {
				t.Errorf("seed %d: from\n%s to\n%s, and nothing is found", seed, all[i], is.Encode())
			}
		}
	}
	if backs < 300 || skips < 150 {
		t.Errorf("%d put back, %d skipped", backs, skips)
	}
}

// oneStep says whether two steps lead where one can lead too.
func oneStep(from, to string) bool {
	a, _ := parseEntry(from)
	b, _ := parseEntry(to)
	return slices.Contains(phaseOf(&a).next(), step{phaseOf(&b), b.copy - a.copy})
}
