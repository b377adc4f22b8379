package offload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"korvet-offload/segment"
)

// Action is what is to be done with a segment.
type Action string

// The actions, in the order of a segment's life.
const (
	Create Action = "create" // give a partition without manifest its first entry
	Roll   Action = "roll"   // OPEN -> SEALED, and the next one OPEN
	Copy   Action = "copy"   // SEALED LOCAL -> REMOTE
	Drop   Action = "drop"   // remove the local copy of a REMOTE segment
	Hide   Action = "hide"   // -> DELETING
	Delete Action = "delete" // remove what is DELETING: object, stream, entry
	Return Action = "return" // take back what was hidden with a topic that is there again
)

// Job is one thing to do with one segment. Of a settled segment only the
// number is known at first; its entry is read before anything is done.
type Job struct {
	Action    Action
	Partition segment.Partition
	Settings  segment.TopicSettings
	Stored    segment.Stored
	Why       segment.Due
	Adopts    bool           // Create: under the partition's own key lies a stream, which becomes the first segment
	Next      segment.Number // Roll: that of the segment to open
	Gone      bool           // Hide: the topic is gone, so whatever state the segment is in

	aged  bool  // Hide: because of retention.ms
	since int64 // Hide, Delete: epoch ms, when it became overdue
}

// Plan is what a pass will do.
type Plan struct {
	At       time.Time // by the Redis server's clock
	Setup    []Job     // Create, Roll and Return
	Expiry   []Job     // Hide and Delete, the longest overdue first
	Jobs     [][]Job   // Drop and Copy: one list per partition that has some, the oldest segment first
	Forget   []string  // topics of which nothing is left
	Doubt    error     // why nothing is deleted; nil = it may be
	Problems []Problem // what can't be worked on
	Warnings []string  // what is legal and can't work
	Removed  []TopicState
	Paused   segment.Pauses // what of it is not worked on; it is counted
	Counts   Counts
	Lag      Lag
	Topics   []TopicLag // of which there are partitions, in the order of the scan
	Waiting  []Waiting  // what Lag counts, in the order of the scan
}

// jobs counts what there is to do.
func (p Plan) jobs() int {
	n := len(p.Setup) + len(p.Expiry)
	for _, jobs := range p.Jobs {
		n += len(jobs)
	}
	return n
}

// Counts is how many of each thing a scan found.
type Counts struct {
	Topics      int `json:"topics"`        // that are offloaded, plain streams among them
	OtherTopics int `json:"other_topics"`  // that are not: remote.storage.enable is not true
	Streams     int `json:"streams"`       // of the topics, plain streams
	Faulty      int `json:"faulty_topics"` // that can't be worked on: their settings, or name, make no sense
	Partitions  int `json:"partitions"`
	Open        int `json:"open"`
	Sealed      int `json:"sealed"` // SEALED LOCAL, due or not
	Grace       int `json:"grace"`  // of these, sealed too short a time ago
	Remote      int `json:"remote"`
	Both        int `json:"both"` // of these, with a local copy
	Deleting    int `json:"deleting"`
	Unuploaded  int `json:"unuploaded"` // past total retention and never copied; held
	Illegal     int `json:"illegal"`    // values that are no entry
}

// maxExpiry bounds the segments of which a pass deletes the objects, so that a
// retention that was lowered does not keep everything else waiting.
const maxExpiry = 10_000

// MakePlan decides what is due. It is pure: the same scan gives the same plan.
func MakePlan(s Scan, cfg Config) Plan {
	p := planner{cfg: cfg, scan: &s, now: s.At.UnixMilli(), remains: map[string]bool{}}
	p.At, p.Doubt = s.At, errors.Join(s.Clock, s.Registry)
	for _, stray := range s.strays {
		p.Problems = append(p.Problems, stray.problem)
	}
	for _, doubt := range []error{s.Clock, s.Registry} {
		if doubt != nil {
			p.Problems = append(p.Problems, Problem{Partition: -1, Reason: ReasonOf(doubt), Err: doubt})
		}
	}
	p.pauses(s.Paused)
	for _, t := range s.Topics {
		p.topic(t)
	}
	for i := range s.Partitions {
		p.Counts.Partitions++
		p.lag = p.lagOf(&s.Partitions[i])
		if s.Paused.Covers(s.Partitions[i].Partition) {
			p.look(&s.Partitions[i])
			continue
		}
		p.partition(&s.Partitions[i])
	}
	if s.unlooked > 0 {
		p.Warnings = append(p.Warnings, unlookedWarning(s.unlooked))
	}
	p.sumLag()
	p.forget(s.Topics)
	p.mostOverdue()
	p.Expiry = append(p.Expiry, p.waiting...)
	p.flatNames()
	return p.Plan
}

// flatNames names the limits of plain streams as their settings are named.
func (p *planner) flatNames() {
	for _, jobs := range append([][]Job{p.Setup, p.Expiry}, p.Jobs...) {
		for i, j := range jobs {
			if j.Partition.Plain {
				jobs[i].Why = j.Why.Flat()
			}
		}
	}
}

// expire adds a job of Expiry, overdue since a time in epoch ms.
func (p *planner) expire(j Job, since int64) {
	j.since = since
	if p.scan.parked != nil && p.scan.parked(j) {
		p.waiting = append(p.waiting, j)
		return
	}
	if p.Expiry = append(p.Expiry, j); len(p.Expiry) >= 4*maxExpiry {
		p.mostOverdue()
	}
}

// mostOverdue keeps of Expiry what a pass can do, the longest overdue first.
// What waits to be hidden, which is always longer overdue, must not keep what
// is hidden from going.
func (p *planner) mostOverdue() {
	slices.SortStableFunc(p.Expiry, func(a, b Job) int { return cmp.Compare(a.since, b.since) })
	left := map[Action]int{Hide: maxExpiry, Delete: maxExpiry}
	p.Expiry = slices.DeleteFunc(p.Expiry, func(j Job) bool { left[j.Action]--; return left[j.Action] < 0 })
}

// CountTopics counts the topics and plain streams of a registry.
func CountTopics(topics []segment.Topic) Counts {
	states := newRoster(topics, nil, false, DefaultConfig(), time.Time{}).states
	return MakePlan(Scan{Topics: states}, DefaultConfig()).Counts
}

// planner is a plan in the making.
type planner struct {
	Plan
	cfg     Config
	scan    *Scan
	now     int64
	returns int             // Return jobs so far
	waiting []Job           // of Expiry, parked: they don't use up what a pass can do
	remains map[string]bool // topics of which something is left
	lag     *Lag            // of the topic whose partition it is at
}

func (p *planner) topic(t TopicState) {
	problem := func(err error) {
		p.Problems = append(p.Problems, Problem{Topic: t.Topic.Name, Plain: t.Topic.Plain, Partition: -1, Reason: ReasonOf(err), Err: err})
	}
	switch {
	case t.Topic.Err != nil:
		p.Counts.Faulty++
		if !t.Elsewhere {
			problem(t.Topic.Err)
		}
		return
	case t.Phase == "" || t.Phase == Disabled:
		p.Counts.OtherTopics++
	case t.Phase == Live:
		p.Counts.Topics++
		if t.Topic.Plain {
			p.Counts.Streams++
		}
		if text := t.Topic.Settings.Warning(); text != "" && !t.Topic.Plain && !t.Elsewhere { // of those the settings say it
			p.Warnings = append(p.Warnings, t.Topic.Name+": "+text)
		}
	case !t.Elsewhere:
		p.Removed = append(p.Removed, t)
	}
	if t.Keep != nil && !t.Elsewhere {
		problem(t.Keep)
	}
}

// forget lists the topics that need no longer be remembered: they are not
// offloaded any more, and nothing of them is left on the store or on its way.
func (p *planner) forget(topics []TopicState) {
	for _, t := range topics {
		if t.Topic.Err == nil && !t.Topic.Plain && !t.Elsewhere && (t.Phase == Disabled || t.Phase == Doomed) && !p.remains[t.Topic.Name] {
			p.Forget = append(p.Forget, t.Topic.Name)
		}
	}
}

func (p *planner) partition(s *PartitionScan) {
	part := s.Partition
	if s.Err != nil {
		p.remains[part.Topic] = true
		p.problem(part, "", s.Err)
		return
	}
	for _, name := range s.Alien {
		p.Counts.Illegal++
		p.problem(part, name, fmt.Errorf("%w: field %q is not a segment id", segment.ErrIllegalEntry, name))
	}
	p.Counts.Remote += len(s.index.gone.list) + len(s.index.present.list)
	p.Counts.Both += len(s.index.present.list)
	d := p.retain(s)
	var copies []Job
	for _, e := range s.Active {
		if j, due := p.entry(s, e, d); due {
			copies = append(copies, j)
		}
	}
	p.create(s)
	if s.Topic.Phase == Doomed && len(s.Active)+len(s.Alien) > 0 || d.left {
		p.remains[part.Topic] = true
	}
	if jobs := slices.Concat(d.drops, copies); len(jobs) > 0 {
		p.Jobs = append(p.Jobs, jobs)
	}
}

func (p *planner) problem(part segment.Partition, number string, err error) {
	p.Problems = append(p.Problems, problemOf(part, number, err))
}

func (p *planner) create(s *PartitionScan) {
	there := s.Streams[0].Length > 0
	if s.Empty && s.Topic.Phase == Live && (there || p.cfg.Roll && !s.Partition.Plain) {
		p.Setup = append(p.Setup, Job{Action: Create, Partition: s.Partition, Settings: s.Topic.Topic.Settings, Adopts: there})
	}
}

// entry counts an active entry and says whether it is to be copied. Other
// jobs it puts where they belong.
func (p *planner) entry(s *PartitionScan, e segment.Stored, d decisions) (Job, bool) {
	j := Job{Partition: s.Partition, Settings: s.Topic.Topic.Settings, Stored: e}
	switch {
	case e.Err != nil:
		p.Counts.Illegal++
		p.problem(s.Partition, e.Number.String(), e.Err)
	case e.Entry.State == segment.Open:
		p.Counts.Open++
		p.roll(s, j)
	case e.Entry.State == segment.Deleting:
		p.Counts.Deleting++
		p.deleting(s, j)
	case e.Entry.Tier == segment.Remote: // DROPPING
		p.Counts.Remote++
		p.Counts.Both++
	default:
		return p.sealed(s, j, d)
	}
	return Job{}, false
}

func (p *planner) roll(s *PartitionScan, j Job) {
	if !s.Topic.Works() || !p.cfg.Roll && !s.Partition.Plain {
		return
	}
	if last, ok := s.open(); !ok || last.Number != j.Stored.Number {
		p.problem(s.Partition, j.Stored.Number.String(), errOpenBehind)
		return
	}
	switch {
	case s.Base > 0 && s.Streams[0].Length == 0: // who writes here knows of no segments
		j.Action, j.Adopts = Create, true
		p.Setup = append(p.Setup, j)
		return
	case s.Base > 0:
		p.problem(s.Partition, "", fmt.Errorf("%w: there are entries under the partition's own key too, and no segment is there: nobody reads or copies them; see who writes them, and move them on", errAmbiguous))
	}
	j.Next = s.index.high + 1
	if why, due := j.Settings.RollDue(j.Stored.Entry, s.Streams[j.Stored.Number], p.now); due {
		j.Action, j.Why = Roll, why
		p.Setup = append(p.Setup, j)
	}
}

func (p *planner) deleting(s *PartitionScan, j Job) {
	e := j.Stored.Entry
	since := e.DeletingAt
	over := p.now - since - p.cfg.DeleteGrace.Milliseconds()
	switch {
	case p.keeps(s):
		return
	case e.WithTopic != "" && s.Topic.Phase != Doomed, e.Aged && s.Topic.Phase != Doomed && !p.aged(e, j.Settings):
		if j.Action = Return; p.returns < maxDrops {
			p.Setup = append(p.Setup, j)
			p.returns++
		}
		return
	case since == 0 || e.Tier == segment.Local && e.Source == nil || since-p.now > clockJump.Milliseconds():
		j.Action = Hide // by somebody else, or by another clock: the grace begins now
	case over >= 0:
		j.Action = Delete
	default:
		return
	}
	j.Why = segment.Due{Limit: "delete-grace", Over: over}
	p.expire(j, p.now-max(0, over))
}

// aged says whether a segment is past total retention by time.
func (p *planner) aged(e segment.Entry, s segment.TopicSettings) bool {
	at, known := e.LastAppend(p.now)
	return known && s.RetentionMs >= 0 && p.now-at > s.RetentionMs
}

// keeps says whether nothing of the partition may be deleted in this pass.
func (p *planner) keeps(s *PartitionScan) bool {
	return p.scan.Clock != nil || p.scan.Registry != nil && !s.Partition.Plain || s.Topic.Keep != nil
}

func (p *planner) sealed(s *PartitionScan, j Job, d decisions) (Job, bool) {
	e := j.Stored.Entry
	if !s.Topic.Works() || d.hidden[j.Stored.Number] {
		p.Counts.Sealed++
		return Job{}, false
	}
	p.Counts.Sealed++
	p.behind(s, j)
	if err := s.missing[j.Stored.Number]; err != nil {
		p.problem(s.Partition, j.Stored.Number.String(), err)
		return Job{}, false
	}
	if !e.Due(p.now, p.cfg.SealGrace.Milliseconds()) {
		p.Counts.Grace++
		return Job{}, false
	}
	j.Action = Copy
	return j, true
}
