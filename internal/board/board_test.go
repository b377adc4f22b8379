package board

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/scans"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// start is when the tests begin, by both clocks.
func start() time.Time { return time.UnixMilli(1_700_000_000_000).UTC() }

// rig is a board that is fed with the scans of a world.
type rig struct {
	t      testing.TB
	world  *scans.World
	cfg    offload.Config
	worker *offload.Worker
	board  *Board
	here   time.Time // by this host's clock
}

// newRig is a rig with the manifests of topics, each partition's in the letters
// of scans.States.
func newRig(t testing.TB, topics map[string][]string) *rig {
	r := &rig{t: t, cfg: offload.DefaultConfig(), here: start()}
	r.cfg.Roll = false
	r.world = &scans.World{At: start(), Fields: func(p segment.Partition) map[string]string { return scans.States(topics[p.Topic][p.Number], start()) }}
	for name, parts := range topics {
		if strings.Contains(name, ":") {
			r.world.Plain(name)
		} else {
			r.world.Topic(name, len(parts))
		}
	}
	r.worker = r.world.Worker(r.cfg, nil)
	r.board = newBoard(Config{SLA: 2 * time.Minute, Enabled: true}, Sources{}, func() time.Time { return r.here })
	return r
}

// scan is what a pass tells before it works.
func (r *rig) scan() offload.Plan {
	r.t.Helper()
	s, plan, err := scans.Scan(r.t.Context(), r.worker, r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.board.Scanned(s)
	r.board.Planned(plan)
	return plan
}

// lead begins to lead, and scans.
func (r *rig) lead() offload.Plan {
	r.board.Leads()
	return r.scan()
}

// runs are those of a partition, in short.
func (r *rig) runs(p segment.Partition) string {
	r.t.Helper()
	at, _, known := r.board.Partition(p)
	if !known {
		return "unknown"
	}
	return short(at.Runs)
}

func short(runs []Run) string {
	parts := make([]string, len(runs))
	for i, r := range runs {
		parts[i] = fmt.Sprintf("%s %d-%d", r.State, r.First, r.Last)
		if r.Count != int(r.Last-r.First)+1 {
			parts[i] += fmt.Sprintf(" (%d)", r.Count)
		}
	}
	return strings.Join(parts, ", ")
}

func orders(n int) segment.Partition { return segment.Partition{Topic: "orders", Number: n} }

func TestRunsOfAPartition(t *testing.T) {
	for letters, want := range map[string]string{
		"":              "",
		"o":             "open 0-0",
		"rrrrrbbbso":    "remote 0-4, both 5-7, sealed 8-8, open 9-9",
		"rrr..rro":      "remote 0-6 (5), open 7-7",
		"ddrrbrbxsso":   "deleting 0-1, remote 2-3, both 4-4, remote 5-5, both 6-6, illegal 7-7, sealed 8-9, open 10-10",
		"brbr":          "both 0-0, remote 1-1, both 2-2, remote 3-3",
		"srs":           "sealed 0-0, remote 1-1, sealed 2-2",
		"....o":         "open 4-4",
		"xxx":           "illegal 0-2",
		"rrrrrrrrrrrrr": "remote 0-12",
	} {
		r := newRig(t, map[string][]string{"orders": {letters}})
		r.lead()
		if got := r.runs(orders(0)); got != want {
			t.Errorf("%s: %s, want %s", letters, got, want)
		}
	}
}

func TestARunSaysWhatItHolds(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"rrrrbbso"}})
	r.lead()
	p, _, _ := r.board.Partition(orders(0))
	for i, want := range []Run{{Messages: 40, Bytes: 4000}, {Messages: 20, Bytes: 2000}, {Messages: 10, Bytes: 500}, {}} {
		if got := p.Runs[i]; got.Messages != want.Messages || got.Bytes != want.Bytes {
			t.Errorf("%s: %d messages, %d bytes; want %d, %d", got.State, got.Messages, got.Bytes, want.Messages, want.Bytes)
		}
	}
	if first, last := p.Runs[0].FirstAt, p.Runs[0].LastAt; !first.Equal(start().Add(-8*time.Minute)) || !last.Equal(start().Add(-5*time.Minute)) {
		t.Errorf("remote from %s to %s", first, last)
	}
	if p.RemoteOnly != 4 || p.Both != 2 || p.Sealed != 1 || p.Open != 1 || p.Messages != 60 || p.Bytes != 6000 || p.OldestSeconds != 120 {
		t.Errorf("%+v", p.Totals)
	}
}

// Where states alternate without end, what is kept does not.
func TestManyRunsAreBounded(t *testing.T) {
	const pairs = 2000
	r := newRig(t, map[string][]string{"orders": {strings.Repeat("rb", pairs) + "o"}})
	r.lead()
	p, _, _ := r.board.Partition(orders(0))
	if len(p.Runs) != offload.MaxRuns || p.Runs[0].State != string(offload.RunMixed) || p.Runs[0].First != 0 {
		t.Fatalf("%d runs, the first %+v", len(p.Runs), p.Runs[0])
	}
	sum := 0
	for i, run := range p.Runs {
		sum += run.Count
		if i > 0 && run.First != p.Runs[i-1].Last+1 {
			t.Fatalf("run %d begins with %d, and the one before ends with %d", i, run.First, p.Runs[i-1].Last)
		}
	}
	if sum != 2*pairs+1 {
		t.Errorf("%d segments, want %d", sum, 2*pairs+1)
	}
}

// Between two scans the timeline follows what was done.
func TestWhatWasDoneIsSeenAtOnce(t *testing.T) {
	done := func(n segment.Number, result offload.Result) offload.Outcome {
		return offload.Outcome{Partition: orders(0), Segment: n, Result: result, Contents: segment.Contents{Count: 10}, BytesOut: 700}
	}
	r := newRig(t, map[string][]string{"orders": {"rrbssso"}})
	r.lead()
	for _, step := range []struct {
		o    offload.Outcome
		want string
	}{
		{done(3, offload.Copied), "remote 0-1, both 2-3, sealed 4-5, open 6-6"},
		{done(5, offload.Adopted), "remote 0-1, both 2-3, sealed 4-4, both 5-5, open 6-6"},
		{done(4, offload.LostRace), "remote 0-1, both 2-3, sealed 4-4, both 5-5, open 6-6"},
		{done(4, offload.Copied), "remote 0-1, both 2-5, open 6-6"},
		{done(2, offload.Dropped), "remote 0-2, both 3-5, open 6-6"},
		{done(4, offload.Reopened), "remote 0-2, both 3-3, sealed 4-4, both 5-5, open 6-6"},
		{done(0, offload.Hidden), "deleting 0-0, remote 1-2, both 3-3, sealed 4-4, both 5-5, open 6-6"},
		{done(0, offload.Returned), "remote 0-2, both 3-3, sealed 4-4, both 5-5, open 6-6"},
		{done(0, offload.Expired), "remote 1-2, both 3-3, sealed 4-4, both 5-5, open 6-6"},
		{done(6, offload.Rolled), "remote 1-2, both 3-3, sealed 4-4, both 5-5, sealed 6-6, open 7-7"},
		{done(7, offload.Created), "remote 1-2, both 3-3, sealed 4-4, both 5-5, sealed 6-6, open 7-7"},
	} {
		r.board.Finished(step.o)
		if got := r.runs(orders(0)); got != step.want {
			t.Errorf("after %s of %d: %s, want %s", step.o.Result, step.o.Segment, got, step.want)
		}
	}
	p, _, _ := r.board.Partition(orders(0))
	if p.RemoteOnly != 2 || p.Both != 2 || p.Sealed != 2 || p.Open != 1 || p.Deleting != 0 {
		t.Errorf("%+v", p.Totals)
	}
	s := r.board.Status(Query{})
	if s.Lag.Segments != 0 || s.Lag.OldestSeconds != 0 {
		t.Errorf("three were behind, and three were copied: %+v", s.Lag)
	}
	if s.Current == nil || s.Current.Done != 11 || s.Current.BytesOut != 2100 {
		t.Errorf("%+v", s.Current)
	}
	r.scan()
	if got, want := r.runs(orders(0)), "remote 0-1, both 2-2, sealed 3-5, open 6-6"; got != want {
		t.Errorf("after the next scan: %s, want %s", got, want)
	}
	r.board.Finished(offload.Outcome{Partition: orders(7), Result: offload.Copied}) // one that is not known
}

func problem(n string, reason offload.Reason) offload.Problem {
	return offload.Problem{Topic: "orders", Partition: 0, Segment: n, Reason: reason, Err: errors.New("cause of " + n)}
}

func TestWhatIsStuckSinceWhen(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"rrsssso", "ro"}})
	plan := r.lead()
	r.board.Failed(problem("3", offload.ReasonStore))
	if got, want := r.runs(orders(0)), "remote 0-1, sealed 2-2, parked 3-3, sealed 4-5, open 6-6"; got != want {
		t.Errorf("during the pass: %s, want %s", got, want)
	}
	retry := r.here.Add(time.Minute)
	first := problem("3", offload.ReasonStore)
	first.Retry = retry
	r.board.Passed(offload.Report{Plan: plan, Problems: []offload.Problem{first}}, nil)
	began := r.here.Add(0)
	r.here = r.here.Add(time.Hour)
	r.scan()
	r.board.Passed(offload.Report{Plan: plan, Problems: []offload.Problem{first, problem("5", offload.ReasonSourceMissing), problem("5", offload.ReasonSourceMissing)}}, nil)
	s := r.board.Status(Query{Limit: 10})
	if s.Problems.Total != 2 || s.Problems.Loss != 1 || s.Problems.ByReason["store"] != 1 {
		t.Errorf("%+v", s.Problems)
	}
	lost, old := s.Problems.List[0], s.Problems.List[1]
	if lost.Segment != "5" || !lost.Loss || !lost.Since.Equal(r.here) || lost.Retry != nil {
		t.Errorf("%+v", lost)
	}
	if old.Segment != "3" || !old.Since.Equal(began) || !old.Retry.Equal(retry) || old.Text != "cause of 3" || *old.Partition != 0 {
		t.Errorf("%+v", old)
	}
	if got, want := r.runs(orders(0)), "remote 0-1, sealed 2-2, parked 3-3, sealed 4-4, parked 5-5, open 6-6"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if stuck := r.board.Status(Query{Only: Stuck, Limit: 10}).Partitions; stuck.Total != 1 || stuck.Items[0].Problems != 3 {
		t.Errorf("%+v", stuck)
	}
	r.board.Passed(offload.Report{Plan: plan}, nil)
	if got := r.runs(orders(0)); strings.Contains(got, "parked") || r.board.Status(Query{}).Problems.Total != 0 {
		t.Errorf("nothing is stuck any more, and yet: %s", got)
	}
}

// A pass that found nothing out leaves what is known.
func TestAPassThatFails(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"so"}})
	plan := r.lead()
	r.board.Passed(offload.Report{Plan: plan, Problems: []offload.Problem{problem("0", offload.ReasonStore)}}, nil)
	r.board.Passed(offload.Report{Duration: time.Second, Phases: []offload.PhaseTime{{Phase: offload.PhaseScan, Duration: time.Second}}}, errors.New("redis is away"))
	s := r.board.Status(Query{Limit: 1})
	if s.Problems.Total != 1 || s.Partitions.Total != 1 || s.Passes[0].Error != "redis is away" || s.Passes[0].Phases[0].Name != "scan" {
		t.Errorf("%+v", s)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"o"}})
	plan := r.lead()
	var many []offload.Problem
	for i := range 5 * maxProblems {
		many = append(many, offload.Problem{Topic: fmt.Sprintf("t%d", i), Partition: -1, Reason: offload.ReasonStore, Err: errors.New(strings.Repeat("é", 10_000))})
	}
	many = append(many, problem("0", offload.ReasonSourceMissing))
	for _, p := range many[:2*maxProblems] {
		r.board.Failed(p)
	}
	r.board.Passed(offload.Report{Plan: plan, Problems: many}, nil)
	s := r.board.Status(Query{})
	if len(s.Problems.List) != maxProblems || s.Problems.Total != len(many) || s.Problems.List[0].Reason != "source_missing" {
		t.Errorf("%d in the list, %d in all, the first %s", len(s.Problems.List), s.Problems.Total, s.Problems.List[0].Reason)
	}
	if n := len([]rune(s.Problems.List[1].Text)); n > maxText+1 {
		t.Errorf("a text of %d letters", n)
	}
}

func TestPassesAreBounded(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"o"}})
	plan := r.lead()
	for i := range keptPasses + 5 {
		r.board.Passed(offload.Report{Plan: plan, Left: i, Outcomes: []offload.Outcome{{Result: offload.Copied, BytesIn: 5, BytesOut: 3}, {Result: offload.Copied}}}, nil)
	}
	s := r.board.Status(Query{})
	if len(s.Passes) != keptPasses || s.Passes[0].Left != keptPasses+4 || s.Passes[0].Did["copied"] != 2 || s.Passes[0].BytesIn != 5 || s.Passes[0].BytesOut != 3 {
		t.Errorf("%d passes, the newest %+v", len(s.Passes), s.Passes[0])
	}
}

// An instance that no longer leads shows nothing that another one changes.
func TestAFollowerShowsNoPartitions(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"so"}})
	plan := r.lead()
	r.board.Passed(offload.Report{Plan: plan, Problems: []offload.Problem{problem("0", offload.ReasonStore)}}, nil)
	r.here = r.here.Add(time.Minute)
	r.board.Lost(errors.New("the lease is gone"))
	if s := r.board.Status(Query{Limit: 5}); s.Role != Starting || s.Lost != "the lease is gone" || s.Partitions.Total != 1 {
		t.Errorf("%s %q, %d partitions", s.Role, s.Lost, s.Partitions.Total)
	}
	r.board.Follows()
	r.board.Follows()
	s := r.board.Status(Query{Limit: 5, TopicLimit: 5})
	if s.Role != Following || !s.RoleSince.Equal(r.here) || s.Partitions.Total+s.Topics.Total+s.Problems.Total != 0 || s.ScannedAt != nil || len(s.Passes) != 1 {
		t.Errorf("%+v", s)
	}
	if s.Lag.SLA != SLAUnknown || s.Health.Level != LevelWaiting {
		t.Errorf("%s, %+v", s.Lag.SLA, s.Health)
	}
	r.board.Leads()
	if r.scan(); r.board.Status(Query{}).Lost != "" || r.runs(orders(0)) != "sealed 0-0, open 1-1" {
		t.Errorf("%q, %s", r.board.Status(Query{}).Lost, r.runs(orders(0)))
	}
}
