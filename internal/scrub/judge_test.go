package scrub

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/catalog"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const now = int64(2_000_000_000_000)

// seg is a row whose newest message is so old, in seconds.
func seg(n segment.Number, age int64, change ...func(*segment.Entry)) row {
	ms := uint64(now - age*1000)
	e := segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Count: 10,
		FirstID: segment.ID{Ms: ms - 10}, LastID: segment.ID{Ms: ms},
		Object: &segment.Object{Path: segment.ObjectPath("korvet:storage:local:t:0", n, 0, ""), Bytes: 100}}
	for _, c := range change {
		c(&e)
	}
	return row{number: n, entry: e}
}

func isLocal(e *segment.Entry) { e.Tier, e.Local, e.Object = segment.Local, "", nil }
func present(e *segment.Entry) { e.Local = segment.Present }
func deleting(ago time.Duration) func(*segment.Entry) {
	return func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, now-ago.Milliseconds() }
}

// factsOf are those of topic t with objects of all rows that name one, and others.
func factsOf(ms, bytes int64, rows []row, others ...string) *facts {
	t := segment.Topic{Name: "t", Settings: segment.DefaultTopicSettings()}
	t.Settings.RetentionMs, t.Settings.RetentionBytes = ms, bytes
	f := &facts{partition: t.Partition(0), folder: "korvet:storage:local:t:0", topic: t, listed: true, manifest: manifest{rows: rows}, now: now}
	for _, r := range rows {
		if r.entry.Object != nil {
			others = append(others, r.entry.Object.Path)
		}
	}
	for _, path := range others {
		name, _ := segment.ParseObjectPath(path)
		f.group.Objects = append(f.group.Objects, catalog.Object{ObjectName: name, Info: s3sink.Info{Key: path, Size: 100}})
	}
	slices.SortFunc(f.group.Objects, func(a, b catalog.Object) int { return int(a.Segment) - int(b.Segment) }) //nolint:gosec // small
	return f
}

func told(all []Finding) string {
	var lines []string
	for _, f := range all {
		note := ""
		if f.Note {
			note = "note "
		}
		lines = append(lines, fmt.Sprintf("%s%s %s", note, f.Kind, f.Segment))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func TestGaps(t *testing.T) {
	const day = 86_400_000
	object := func(n segment.Number) string { return segment.ObjectPath("korvet:storage:local:t:0", n, 0, "") }
	for _, tt := range []struct {
		what      string
		ms, bytes int64
		rows      []row
		objects   []string
		want      string
	}{
		{"retention at the front", day, -1, []row{seg(7, 5), seg(8, 4)}, nil, ""},
		{"a copy of what has expired", day, -1, []row{seg(7, 5), seg(8, 4)}, []string{object(3)}, "note orphan 3"},
		{"nothing expires", -1, -1, []row{seg(7, 50), seg(9, 40)}, nil, "gap 8"},
		{"nothing expires, and its object is there", -1, -1, []row{seg(7, 50), seg(9, 40)}, []string{object(8)}, "orphan 8"},
		{"objects within", -1, -1, []row{seg(1, 50), seg(9, 40)}, []string{object(3), object(4), object(6)}, "gap 2, gap 5, gap 7, orphan 3, orphan 4, orphan 6"},
		{"nothing has expired", day, -1, []row{seg(7, 50), seg(9, 40)}, nil, "gap 8"},
		{"the one before waits to expire", day, -1, []row{seg(7, 100_000), seg(9, 40)}, nil, "note gap 8"},
		{"the one before is held", day, -1, []row{seg(7, 100_000, isLocal), seg(9, 40)}, nil, "note gap 8"},
		{"the one before is young", day, -1, []row{seg(7, 100, isLocal), seg(9, 40)}, nil, "gap 8"},
		{"the one before is going", day, -1, []row{seg(7, 100, deleting(time.Minute)), seg(9, 40)}, nil, "note gap 8"},
		{"one before that is not", day, -1, []row{seg(6, 100), seg(7, 100, deleting(time.Minute)), seg(9, 40)}, nil, "gap 8"},
		{"its age is not known", day, -1, []row{seg(7, 100, func(e *segment.Entry) { e.FirstID, e.LastID = segment.ID{}, segment.ID{} }), seg(9, 40)}, nil, "note gap 8"},
		{"by size", -1, 250, []row{seg(5, 60), seg(7, 50), seg(9, 40), seg(10, 30)}, nil, "gap 8, note gap 6"},
		{"by size, and it is small enough", -1, 400, []row{seg(7, 50), seg(9, 40), seg(10, 30)}, nil, "gap 8"},
		{"by size, and what was never copied has none", -1, 250, []row{seg(7, 50, isLocal), seg(9, 40)}, nil, "note gap 8"},
		{"a value that is no entry", -1, -1, []row{{number: 7, err: segment.ErrIllegalEntry}, seg(9, 40)}, nil, "illegal_entry 7, note gap 8"},
		{"a very large number", -1, -1, []row{seg(1, 50), seg(1<<63-1, 40)}, nil, "gap 2"},
		{"local copies", -1, -1, []row{seg(1, 50, present), seg(3, 40, present)}, nil, "gap 2"},
	} {
		if got := told(judge(factsOf(tt.ms, tt.bytes, tt.rows, tt.objects...))); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
	f := factsOf(-1, -1, []row{seg(7, 50), seg(9, 40)})
	if f.listed = false; told(judge(f)) != "note gap 8" {
		t.Errorf("of a topic that is removed: %s", told(judge(f)))
	}
}

func TestHalfDeleted(t *testing.T) {
	const grace = 5 * time.Minute
	for _, tt := range []struct {
		what   string
		ago    time.Duration
		object bool
		want   string
	}{
		{"within the grace", time.Minute, true, ""},
		{"just over", grace + time.Hour, true, ""},
		{"long over", grace + 25*time.Hour, true, "half_deleted 7"},
		{"the object has just gone", grace + time.Minute, false, ""},
		{"the object has gone", grace + 2*time.Hour, false, "half_deleted 7"},
		{"by a clock that is ahead", -100 * time.Hour, true, ""},
	} {
		f := factsOf(-1, -1, []row{seg(7, 50, deleting(tt.ago))})
		if f.grace = grace; !tt.object {
			f.group.Objects = nil
		}
		if got := told(judge(f)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}

func TestOrphansOfALiveSegment(t *testing.T) {
	at := func(copied int64, suffix string) string {
		return segment.ObjectPath("korvet:storage:local:t:0", 7, copied, suffix)
	}
	copied := func(n int64) func(*segment.Entry) {
		return func(e *segment.Entry) {
			if e.Copy = n; e.Object != nil {
				e.Object.Path = at(n, "")
			}
		}
	}
	isOpen := func(e *segment.Entry) { isLocal(e); e.State = segment.Open }
	for _, tt := range []struct {
		what   string
		row    row
		object string
		want   string
	}{
		{"an older copy", seg(7, 50, copied(2)), at(1, ""), "note orphan 7"},
		{"a newer copy", seg(7, 50, copied(2)), at(3, ""), "orphan 7"},
		{"another attempt, where paths are unique", seg(7, 50, copied(2)), at(2, "0123"), "note orphan 7"},
		{"being copied", seg(7, 50, isLocal, copied(2)), at(2, ""), ""},
		{"copied, and the next copy lost", seg(7, 50, isLocal, copied(2)), at(3, ""), ""},
		{"copied before", seg(7, 50, isLocal, copied(2)), at(1, ""), "note orphan 7"},
		{"still open", seg(7, 50, isOpen), at(0, ""), "orphan 7"},
		{"an entry that names another's object", seg(7, 50, func(e *segment.Entry) { e.Object.Path = "elsewhere/7.parquet" }), at(0, ""), "illegal_entry 7, orphan 7"},
		{"the entry took an older copy again", seg(7, 50, func(e *segment.Entry) { e.Copy = 1 }), at(1, ""), "note orphan 7"},
		{"no entry can be read", row{number: 7, err: segment.ErrIllegalEntry}, at(0, ""), "illegal_entry 7"},
	} {
		if got := told(judge(factsOf(-1, -1, []row{tt.row, seg(8, 40)}, tt.object))); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
	before := segment.ObjectPath("korvet:storage:local:t:0", 7, 0, "")
	for _, tt := range []struct {
		ms, bytes int64
		want      string
	}{{-1, -1, "orphan 7"}, {1000, -1, "note orphan 7"}, {-1, 1000, "note orphan 7"}} {
		if got := told(judge(factsOf(tt.ms, tt.bytes, []row{seg(8, 40)}, before))); got != tt.want {
			t.Errorf("before the first entry, retention %d ms, %d bytes: %s, want %s", tt.ms, tt.bytes, got, tt.want)
		}
	}
	if got := told(judge(factsOf(-1, -1, []row{seg(8, 40)}, segment.ObjectPath("korvet:storage:local:t:0", 9, 0, "")))); got != "orphan 9" {
		t.Errorf("above all: %q", got)
	}
}

func TestOverlapsOfRanges(t *testing.T) {
	id := func(ms uint64) segment.ID { return segment.ID{Ms: ms} }
	ranged := func(n segment.Number, first, last uint64, shared bool) row {
		return seg(n, 50, func(e *segment.Entry) {
			if e.FirstID, e.LastID = id(first), id(last); shared {
				e.From, e.To = e.FirstID, e.LastID
			}
		})
	}
	for _, tt := range []struct {
		rows []row
		want string
	}{
		{[]row{ranged(1, 10, 19, true), ranged(2, 20, 29, true)}, ""},
		{[]row{ranged(1, 10, 20, true), ranged(2, 20, 29, true)}, "overlap 2"},
		{[]row{ranged(1, 10, 40, true), ranged(2, 20, 29, true), ranged(3, 30, 50, true)}, "overlap 2, overlap 3"},
		{[]row{ranged(1, 10, 20, false), ranged(2, 20, 29, false)}, "note overlap 2"},
	} {
		if got := told(judge(factsOf(-1, -1, tt.rows))); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// Whatever segments have been there before, each two that overlap are compared.
func TestWhichSegmentsAreCompared(t *testing.T) {
	ranged := func(n segment.Number, first, last uint64) row {
		return seg(n, 50, func(e *segment.Entry) { e.FirstID, e.LastID = segment.ID{Ms: first}, segment.ID{Ms: last} })
	}
	many := make([]row, 0, maxOverlapping+3)
	for n := range segment.Number(maxOverlapping + 3) {
		many = append(many, ranged(n, 10, 200-uint64(n))) //nolint:gosec // small
	}
	for _, tt := range []struct {
		rows []row
		want string
	}{
		{[]row{ranged(1, 10, 19), ranged(2, 20, 29)}, ""},
		{[]row{ranged(1, 10, 20), ranged(2, 20, 29)}, "1-2"},
		{[]row{ranged(1, 10, 100), ranged(2, 20, 200), ranged(3, 50, 60)}, "1-2 1-3 2-3"},
		{[]row{ranged(1, 10, 40), ranged(2, 45, 200), ranged(3, 30, 35)}, "1-3"},
		{[]row{ranged(1, 50, 60), ranged(2, 10, 20), ranged(3, 15, 55)}, "2-3 1-3"},
		{[]row{ranged(1, 0, 40), ranged(2, 20, 0), {number: 3, err: segment.ErrIllegalEntry}}, ""},
	} {
		var got []string
		for a, b := range factsOf(-1, -1, tt.rows).overlapping() {
			got = append(got, fmt.Sprintf("%d-%d", a.number, b.number))
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	with := 0
	for _, b := range factsOf(-1, -1, many).overlapping() {
		if b.number == segment.Number(len(many)-1) {
			with++
		}
	}
	if with != maxOverlapping {
		t.Errorf("the last one is compared with %d", with)
	}
}
