package segment

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// overdue writes what Overdue gives: number limit over, number limit over ...
func overdue(r Retention, now, total int64, spans iter.Seq[Span]) string {
	var out []string
	for s, d := range r.Overdue(now, total, spans) {
		out = append(out, s.Number.String()+" "+d.Limit+" "+strconv.FormatInt(d.Over, 10))
	}
	return strings.Join(out, ", ")
}

func TestOverdue(t *testing.T) {
	const huge = math.MaxInt64
	const now = 100
	three := []Span{{0, 10, 30}, {1, 50, 30}, {2, 90, 30}}
	for _, c := range []struct {
		what      string
		ms, bytes int64
		total     int64
		spans     []Span
		want      string
	}{
		{"no limits", -1, -1, 90, three, ""},
		{"none is too old", 90, -1, 90, three, ""},
		{"one is older by 1", 89, -1, 90, three, "0 retention.ms 1"},
		{"two are older", 49, -1, 90, three, "0 retention.ms 41, 1 retention.ms 1"},
		{"all are older than nothing", 0, -1, 90, three, "0 retention.ms 90, 1 retention.ms 50, 2 retention.ms 10"},
		{"one of this very moment", 0, -1, 30, []Span{{0, now, 30}}, ""},
		{"as large as the limit", -1, 90, 90, three, ""},
		{"a segment may go only as a whole", -1, 61, 90, three, ""},
		{"one is too much", -1, 60, 90, three, "0 retention.bytes 30"},
		{"two are too much", -1, 30, 90, three, "0 retention.bytes 60, 1 retention.bytes 30"},
		{"nothing may stay", -1, 0, 90, three, "0 retention.bytes 90, 1 retention.bytes 60, 2 retention.bytes 30"},
		{"what is not among them counts", -1, 60, 120, three, "0 retention.bytes 60, 1 retention.bytes 30"},
		{"time first, then size", 80, 30, 90, three, "0 retention.ms 10, 1 retention.bytes 30"},
		{"time frees the size", 40, 30, 90, three, "0 retention.ms 50, 1 retention.ms 10"},
		{"it stops at the first that stays", 50, -1, 90, []Span{{0, 90, 30}, {1, 10, 30}}, ""},
		{"it stops at the first that is too large to go", -1, 50, 90, []Span{{0, 10, 60}, {1, 20, 30}}, ""},
		{"an unknown age is passed over", 49, -1, 90, []Span{{0, 0, 30}, {1, 10, 30}, {2, 20, 30}}, "1 retention.ms 41, 2 retention.ms 31"},
		{"an unknown size is passed over", -1, 60, 90, []Span{{0, 10, 0}, {1, 20, 30}}, "1 retention.bytes 30"},
		{"an unknown size goes by its age", 79, -1, 90, []Span{{0, 10, 0}}, "0 retention.ms 11"},
		{"an unknown age goes by its size", 1, 0, 30, []Span{{0, 0, 30}}, "0 retention.bytes 30"},
		{"nothing is known", 0, 0, 90, []Span{{0, 0, 0}}, ""},
		{"of the future", 0, -1, 30, []Span{{0, huge, 30}}, ""},
		{"of the future, but too large", 0, 0, 30, []Span{{0, huge, 30}}, "0 retention.bytes 30"},
		{"limits without end", huge, huge, huge, []Span{{0, 1, huge}}, ""},
		{"sizes without end and no limit", 0, -1, huge, []Span{{0, 1, huge}, {1, 1, huge}, {2, now, 1}}, "0 retention.ms 99, 1 retention.ms 99"},
		{"sizes without end", -1, 0, huge, []Span{{0, 1, huge}, {1, 1, 1}}, "0 retention.bytes 9223372036854775807"},
		{"sizes beyond what there is in all", 0, huge, 0, []Span{{0, 1, 3}, {1, now, 1}}, "0 retention.ms 99"},
		{"no segments", 0, 0, huge, nil, ""},
	} {
		r := TopicSettings{RetentionMs: c.ms, RetentionBytes: c.bytes}.Total()
		if got := overdue(r, now, c.total, slices.Values(c.spans)); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// A limit is named as it was set: the total's where the local one is -2.
func TestOverdueNamesTheLimit(t *testing.T) {
	spans := slices.Values([]Span{{0, 10, 30}, {1, 99, 30}})
	for want, s := range map[string]TopicSettings{
		"0 local.retention.ms 80":    {RetentionMs: 95, RetentionBytes: -1, LocalRetentionMs: 10, LocalRetentionBytes: -2},
		"0 retention.ms 80":          {RetentionMs: 10, RetentionBytes: -1, LocalRetentionMs: -2, LocalRetentionBytes: -2},
		"0 local.retention.bytes 30": {RetentionMs: -1, RetentionBytes: 40, LocalRetentionMs: -2, LocalRetentionBytes: 30},
		"0 retention.bytes 30":       {RetentionMs: -1, RetentionBytes: 30, LocalRetentionMs: -2, LocalRetentionBytes: -2},
	} {
		if got := overdue(s.Local(), 100, 60, spans); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// Who takes no more gets no more.
func TestOverdueStopsWhenAsked(t *testing.T) {
	seen := 0
	spans := func(yield func(Span) bool) {
		for n := range Number(10) {
			if seen++; !yield(Span{n, 1, 1}) {
				return
			}
		}
	}
	for s := range (Retention{Ms: 0, Bytes: -1}).Overdue(100, 10, spans) {
		if s.Number == 2 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d segments were looked at, want 3", seen)
	}
}

// What is left when all that is overdue is gone is within the limits, or would
// be below the limit with one segment less; and nothing goes without need.
func TestWhatOverdueLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const now = 1000
		var spans []Span
		total := rapid.Int64Range(0, 50).Draw(t, "open")
		for n := range Number(rapid.IntRange(0, 8).Draw(t, "segments")) {
			s := Span{n, rapid.Int64Range(1, 1010).Draw(t, "at"), rapid.Int64Range(1, 40).Draw(t, "size")}
			spans, total = append(spans, s), total+s.Bytes
		}
		slices.SortFunc(spans, func(a, b Span) int { return int(a.At - b.At) })
		r := Retention{Ms: rapid.Int64Range(-1, 1000).Draw(t, "ms"), Bytes: rapid.Int64Range(-1, 200).Draw(t, "bytes"), MsName: "ms", BytesName: "bytes"}
		gone := 0
		for s, d := range r.Overdue(now, total, slices.Values(spans)) {
			if s != spans[gone] {
				t.Fatalf("segment %v is overdue before %v", s, spans[gone])
			}
			byAge, bySize := r.Ms >= 0 && now-s.At > r.Ms, r.Bytes >= 0 && total-s.Bytes >= r.Bytes
			if d.Limit == "ms" && (!byAge || d.Over != now-s.At-r.Ms) || d.Limit == "bytes" && (byAge || !bySize || d.Over != total-r.Bytes) {
				t.Fatalf("segment %v of %d bytes goes by %+v", s, total, d)
			}
			gone, total = gone+1, total-s.Bytes
		}
		if gone == len(spans) {
			return
		}
		first := spans[gone]
		if r.Ms >= 0 && now-first.At > r.Ms || r.Bytes >= 0 && total-first.Bytes >= r.Bytes {
			t.Fatalf("segment %v stays with %d bytes in all, past %+v", first, total, r)
		}
	})
}

// No number, however large, makes a segment go that no limit asks for.
func TestOverdueOfAnyNumbers(t *testing.T) {
	any64 := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.SampledFrom([]int64{0, 1, math.MaxInt64 - 1, math.MaxInt64}))
	limits := rapid.OneOf(rapid.Just(int64(-1)), any64)
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Span {
			return Span{Number(rapid.Uint64().Draw(t, "n")), any64.Draw(t, "at"), any64.Draw(t, "size")}
		})).Draw(t, "spans")
		r := Retention{Ms: limits.Draw(t, "ms"), Bytes: limits.Draw(t, "bytes"), MsName: "ms", BytesName: "bytes"}
		now, total := any64.Draw(t, "now"), any64.Draw(t, "total")
		for s, d := range r.Overdue(now, total, slices.Values(spans)) {
			switch {
			case d.Over < 0:
				t.Fatalf("%v is over by %+v", s, d)
			case d.Limit == "ms" && (r.Ms < 0 || s.At == 0 || s.At > now || now-s.At <= r.Ms):
				t.Fatalf("%v goes by its age at %d with %+v", s, now, r)
			case d.Limit == "bytes" && (r.Bytes < 0 || s.Bytes == 0 || total-r.Bytes < s.Bytes):
				t.Fatalf("%v goes by its size of %d in all with %+v", s, total, r)
			}
		}
	})
}
