package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"korvet-offload/internal/scrub"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Options say how far a repair goes.
type Options struct {
	Yes            bool   // act; else nothing is changed
	IncludeExpired bool   // segments below the first entry of a manifest are taken over, too
	SpoolDir       string // for objects while they are read; "" = the system's
}

// Result is what came of an action.
type Result string

// The results.
const (
	Would    Result = "would"     // it would be done: a dry run
	Done     Result = "done"      //
	Left     Result = "left"      // can't be healed for certain
	Healthy  Result = "healthy"   // there was nothing wrong (any more)
	LostRace Result = "lost_race" // the entry, the stream or the object has changed meanwhile; nothing was done
	Failed   Result = "failed"    // Step.Err says why
)

// Results lists all results.
func Results() []Result { return []Result{Would, Done, Left, Healthy, LostRace, Failed} }

// Step is one action, and what came of it.
type Step struct {
	Action
	Result Result
	Copied offload.Outcome // of an action that copies, when it was done
	Err    error
}

// Report counts the steps of a Run by their result.
type Report struct {
	Findings int64            `json:"findings"` // that were given, without notes
	Steps    map[Result]int64 `json:"steps"`
}

// Open says whether something is left that was not healed.
func (r Report) Open() bool { return r.Steps[Left]+r.Steps[Failed]+r.Steps[LostRace] > 0 }

// Repairer repairs. One Run at a time.
type Repairer struct {
	ports  Ports
	layout segment.Layout
	opt    Options
}

// New makes a repairer.
func New(ports Ports, layout segment.Layout, o Options) *Repairer {
	return &Repairer{ports: ports, layout: layout, opt: o}
}

// maxOutages is after how many steps in a row that failed because of the store or
// Redis a Run is given up.
const maxOutages = 3

// Run plans an action for every segment that the findings name, partition by
// partition in the order of the segments, and carries it out if the options say
// so. told is called after each. An error means that it was given up, because
// Redis or the store can't be used, the root is not ours, or the context has
// ended; what was told before counts.
func (r *Repairer) Run(ctx context.Context, findings []scrub.Finding, told func(Step)) (Report, error) {
	report := Report{Steps: map[Result]int64{}}
	if err := r.ports.Store.Owner(ctx); err != nil {
		return report, fmt.Errorf("nothing is repaired: %w", err)
	}
	outages := 0
	tell := func(s Step) error {
		report.Steps[s.Result]++
		told(s)
		if !errors.Is(s.Err, offload.ErrStoreDown) && !errors.Is(s.Err, offload.ErrRedisDown) {
			outages = 0
		} else if outages++; outages == maxOutages {
			return fmt.Errorf("given up after %d steps that failed in a row: %w", outages, s.Err)
		}
		return nil
	}
	for _, c := range sorted(findings) {
		report.Findings += c.findings()
		if err := r.partition(ctx, c, tell); err != nil {
			return report, err
		}
	}
	return report, nil
}

// cases is what was found of one partition.
type cases struct {
	partition segment.Partition
	segments  map[segment.Number][]scrub.Finding
	other     []scrub.Finding // that are of no segment
}

func (c *cases) findings() (n int64) {
	for _, f := range c.segments {
		n += int64(len(f))
	}
	return n + int64(len(c.other))
}

// sorted are the findings by partition, without the notes, of which only a drop
// that was begun is something to end.
func sorted(findings []scrub.Finding) []*cases {
	all := map[segment.Partition]*cases{}
	for _, f := range findings {
		if f.Note && f.Kind != scrub.HalfDeleted {
			continue
		}
		c := all[f.Partition]
		if c == nil {
			c = &cases{partition: f.Partition, segments: map[segment.Number][]scrub.Finding{}}
			all[f.Partition] = c
		}
		if f.HasSegment {
			c.segments[f.Segment] = append(c.segments[f.Segment], f)
		} else {
			c.other = append(c.other, f)
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *cases) int {
		return cmp.Or(cmp.Compare(a.partition.Topic, b.partition.Topic), cmp.Compare(a.partition.Number, b.partition.Number))
	})
}

// partition goes through what was found of one partition.
func (r *Repairer) partition(ctx context.Context, c *cases, tell func(Step) error) error {
	for _, f := range c.other {
		if err := tell(Step{Action: advise(f), Result: Left}); err != nil {
			return err
		}
	}
	part := &part{Repairer: r, partition: c.partition, planned: map[segment.Number]segment.Entry{}}
	for _, n := range slices.Sorted(maps.Keys(c.segments)) {
		findings := c.segments[n]
		for len(findings) > 0 {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			step := part.step(ctx, n, findings)
			if err := tell(step); err != nil {
				return err
			}
			findings = step.follows()
		}
	}
	return nil
}

// follows is what the step has left to do: the stream of a segment that is REMOTE
// now is a stray one.
func (s Step) follows() []scrub.Finding {
	if s.Deed != Reflip || s.Result != Done || s.held == nil || s.held.Contents.Count == 0 || s.entry.Shared() {
		return nil
	}
	return []scrub.Finding{{Kind: scrub.StrayStream, Partition: s.Partition, Segment: s.Segment, HasSegment: true}}
}

// step plans what is to be done about one segment, and does it.
func (p *part) step(ctx context.Context, n segment.Number, findings []scrub.Finding) Step {
	a, err := p.plan(ctx, n, findings)
	s := Step{Action: a}
	switch {
	case err != nil:
		s.Result, s.Err = Failed, err
	case a.Deed == Leave:
		s.Result = Left
	case a.Deed == Nothing:
		s.Result = Healthy
	case !p.opt.Yes:
		leave, err := p.enter(a)
		if err != nil {
			s.Result, s.Err = Failed, err
			break
		}
		leave()
		s.Result = Would
		p.expects(a)
	default:
		s.Result, s.Copied, s.Err = p.act(ctx, a)
		if s.Result == Done {
			p.expects(a)
		}
	}
	return s
}

// expects notes an entry that is added, for the neighbors of others.
func (p *part) expects(a Action) {
	if a.Deed == TakeOver {
		p.planned[a.Segment] = a.entry
	}
}
