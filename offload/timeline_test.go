package offload

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"korvet-offload/segment"
)

// kinds are the entries that a manifest may have, by the state of their run.
func kinds(at int64) map[RunState]string {
	entry := func(e segment.Entry) string { return string(e.Encode()) }
	remote := segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Count: 7, SealedAt: at, Object: &segment.Object{Path: "p", Bytes: 11}}
	both, deleting := remote, remote
	both.Local, deleting.State, deleting.DeletingAt = segment.Present, segment.Deleting, at
	return map[RunState]string{
		RunRemote: entry(remote), RunBoth: entry(both), RunDeleting: entry(deleting),
		RunSealed:  entry(segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: 7, SealedAt: at}),
		RunOpen:    entry(segment.Entry{State: segment.Open, Tier: segment.Local, Count: segment.NoCount, OpenedAt: at}),
		RunIllegal: "no entry",
	}
}

// scanOf is what a scan has of a manifest.
func scanOf(t tb, fields map[segment.Number]string) *PartitionScan {
	t.Helper()
	r := reading{now: 2_000_000_000_000}
	for n, raw := range fields {
		r.field(n.String(), raw)
	}
	x, ok := r.index(int64(len(fields)), time.Time{})
	if !ok {
		t.Fatal("torn")
	}
	p := &PartitionScan{Partition: orders0}
	p.show(x)
	return p
}

// inRuns is a timeline as it should be, made one segment after another.
func inRuns(states map[segment.Number]RunState, numbers []segment.Number) string {
	var runs []Run
	for _, n := range numbers {
		runs = AppendRun(runs, Run{State: states[n], First: n, Last: n, Count: 1})
	}
	return runsText(ShortenRuns(runs))
}

func runsText(runs []Run) string {
	var text strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&text, "%s %d-%d (%d) ", r.State, r.First, r.Last, r.Count)
	}
	return text.String()
}

// A timeline has each segment once, in its state and in its place, and sums up
// what all of them hold; a fingerprint that is the same stands for the same.
func TestTimelineOfAnyManifest(t *testing.T) {
	seed := maphash.MakeSeed()
	rapid.Check(t, func(t *rapid.T) {
		all := kinds(1_700_000_000_000)
		states, fields := map[segment.Number]RunState{}, map[segment.Number]string{}
		n := segment.Number(rapid.IntRange(0, 5).Draw(t, "first"))
		for range rapid.IntRange(0, 40).Draw(t, "stretches") {
			state := rapid.SampledFrom([]RunState{RunRemote, RunBoth, RunSealed, RunOpen, RunDeleting, RunIllegal}).Draw(t, "state")
			for range rapid.IntRange(1, 12).Draw(t, "length") {
				states[n], fields[n] = state, all[state]
				n += segment.Number(rapid.SampledFrom([]int{1, 1, 1, 1, 2, 9}).Draw(t, "gap"))
			}
		}
		var numbers []segment.Number
		for n := range states {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		p := scanOf(t, fields)
		runs := p.Timeline()
		if got, want := runsText(runs), inRuns(states, numbers); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		mustSumUp(t, p, runs)
		if again := scanOf(t, fields); again.Print(seed) != p.Print(seed) {
			t.Fatal("the same manifest has two fingerprints")
		}
		if len(numbers) == 0 {
			return
		}
		changed := rapid.SampledFrom(numbers).Draw(t, "changed")
		if states[changed] == RunRemote {
			fields[changed] = all[RunBoth]
		} else {
			fields[changed] = all[RunRemote]
		}
		if scanOf(t, fields).Print(seed) == p.Print(seed) {
			t.Fatalf("segment %d has changed, and the fingerprint has not", changed)
		}
		delete(fields, changed)
		if scanOf(t, fields).Print(seed) == p.Print(seed) {
			t.Fatalf("segment %d is gone, and the fingerprint is as it was", changed)
		}
	})
}

// mustSumUp compares a timeline with the totals, which are counted elsewhere.
func mustSumUp(t *rapid.T, p *PartitionScan, runs []Run) {
	t.Helper()
	count := map[RunState]int{}
	var messages, bytes int64
	for _, r := range runs {
		count[r.State] += r.Count
		if r.State == RunRemote || r.State == RunBoth {
			messages, bytes = messages+r.Messages, bytes+r.Bytes
		}
	}
	total := p.Totals()
	if count[RunMixed] > 0 {
		return
	}
	if count[RunOpen] != total.Open || count[RunSealed] != total.Sealed || count[RunRemote] != total.Remote-total.Both || count[RunBoth] != total.Both ||
		count[RunDeleting] != total.Deleting || count[RunIllegal] != total.Illegal || messages != total.Messages || bytes != total.Bytes {
		t.Fatalf("%v, %d messages, %d bytes; want %+v", count, messages, bytes, total)
	}
}

// looker keeps the timelines that it is shown.
type looker struct {
	Observer
	seen  []string
	order []string
}

func (l *looker) Scanned(s *Scan) {
	l.order = append(l.order, "scanned")
	for i := range s.Partitions {
		l.seen = append(l.seen, runsText(s.Partitions[i].Timeline()))
	}
}

func (l *looker) Planned(p Plan) {
	l.order = append(l.order, "planned")
	l.Observer.Planned(p)
}

// Who wants to see a scan sees it before anything is done.
func TestAScanIsShown(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.sealed(orders0, 0, 3)
	w.sealed(orders0, 1, 3)
	w.open(orders0, 2, 1)
	worker := w.worker()
	l := &looker{Observer: worker.observer}
	worker.observer = l
	runOnce(t, worker)
	runOnce(t, worker)
	want := []string{"sealed 0-1 (2) open 2-2 (1) ", "both 0-1 (2) open 2-2 (1) "}
	if !slices.Equal(l.seen, want) || !slices.Equal(l.order, []string{"scanned", "planned", "scanned", "planned"}) {
		t.Errorf("%q %q, want %q", l.seen, l.order, want)
	}
}

// What is parked says when it is tried again.
func TestAProblemSaysWhenItIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.sealed(orders0, 0, 3)
	delete(w.streams, segment.DefaultLayout().SegmentKey(orders0, 0))
	worker := w.worker()
	runOnce(t, worker)
	r := runOnce(t, worker)
	if len(r.Problems) != 1 {
		t.Fatalf("%v", r.Problems)
	}
	if wait := r.Problems[0].Retry.Sub(worker.now()); wait <= 0 || wait > worker.cfg.TickInterval {
		t.Errorf("it is tried again in %s", wait)
	}
}
