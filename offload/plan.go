package offload

import (
	"fmt"
	"time"

	"korvet-offload/segment"
)

// Job is one segment that is due to be copied.
type Job struct {
	Partition segment.Partition
	Stored    segment.Stored
}

// Plan is what a pass will do. Jobs has one list per partition that has
// something to do, the oldest segment first.
type Plan struct {
	At       time.Time // by the Redis server's clock
	Jobs     [][]Job
	Problems []Problem // what can't be worked on
	Counts   Counts
	Lag      Lag
}

// Counts is how many of each thing a scan found.
type Counts struct {
	Topics      int `json:"topics"`       // that are offloaded
	OtherTopics int `json:"other_topics"` // that are not: remote.storage.enable is not true
	Partitions  int `json:"partitions"`
	Open        int `json:"open"`
	Sealed      int `json:"sealed"` // SEALED LOCAL, due or not
	Grace       int `json:"grace"`  // of these, sealed too short a time ago
	Remote      int `json:"remote"`
	Deleting    int `json:"deleting"`
	Illegal     int `json:"illegal"` // values that are no entry
}

// Lag is how far the remote tier is behind: the sealed segments that are not
// there yet.
type Lag struct {
	Segments int           `json:"segments"`
	Oldest   time.Duration `json:"oldest_ns"` // since the oldest of them was sealed, as far as known
	Unknown  int           `json:"unknown"`   // of these segments, whose entry does not say when they were sealed
}

// Problem is something that can't be worked on as it is.
type Problem struct {
	Topic     string
	Partition int    // -1: the whole topic
	Segment   string // "": the whole partition
	Reason    Reason
	Err       error
}

// Where names what the problem is about.
func (p Problem) Where() string {
	switch {
	case p.Topic == "":
		return "registry"
	case p.Partition < 0:
		return fmt.Sprintf("topic %q", p.Topic)
	case p.Segment == "":
		return fmt.Sprintf("partition %s:%d", p.Topic, p.Partition)
	}
	return fmt.Sprintf("segment %s:%d/%s", p.Topic, p.Partition, p.Segment)
}

func (p Problem) Error() string { return p.Where() + ": " + p.Err.Error() }

// Unwrap gives the cause.
func (p Problem) Unwrap() error { return p.Err }

// MakePlan decides what is due. It is pure: the same scan gives the same plan.
func MakePlan(s Scan, grace time.Duration) Plan {
	p := Plan{At: s.At}
	for _, t := range s.Topics {
		switch {
		case t.Err != nil:
			p.Problems = append(p.Problems, Problem{Topic: t.Name, Partition: -1, Reason: ReasonOf(t.Err), Err: t.Err})
		case t.Settings.RemoteStorage:
			p.Counts.Topics++
		default:
			p.Counts.OtherTopics++
		}
	}
	for _, part := range s.Partitions {
		p.Counts.Partitions++
		p.partition(part, grace)
	}
	return p
}

func (p *Plan) partition(s PartitionScan, grace time.Duration) {
	part := s.Manifest.Partition
	problem := func(segment string, err error) {
		p.Problems = append(p.Problems, Problem{Topic: part.Topic, Partition: part.Number,
			Segment: segment, Reason: ReasonOf(err), Err: err})
	}
	if s.Err != nil {
		problem("", s.Err)
		return
	}
	for _, name := range s.Manifest.Alien {
		p.Counts.Illegal++
		problem(name, fmt.Errorf("%w: field %q is not a segment id", segment.ErrIllegalEntry, name))
	}
	var jobs []Job
	for _, e := range s.Manifest.Entries {
		switch due, err := p.entry(e, grace); {
		case err != nil:
			problem(e.Number.String(), err)
		case due:
			jobs = append(jobs, Job{Partition: part, Stored: e})
		}
	}
	if len(jobs) > 0 {
		p.Jobs = append(p.Jobs, jobs)
	}
}

// entry counts an entry and says whether it is due.
func (p *Plan) entry(s segment.Stored, grace time.Duration) (bool, error) {
	e := s.Entry
	switch {
	case s.Err != nil:
		p.Counts.Illegal++
		return false, s.Err
	case e.State == segment.Open:
		p.Counts.Open++
	case e.State == segment.Deleting:
		p.Counts.Deleting++
	case e.Tier == segment.Remote:
		p.Counts.Remote++
	default:
		return p.sealed(e, grace)
	}
	return false, nil
}

func (p *Plan) sealed(e segment.Entry, grace time.Duration) (bool, error) {
	p.Counts.Sealed++
	p.Lag.Segments++
	now := p.At.UnixMilli()
	if e.SealedAt == 0 || e.SealedAt > now {
		p.Lag.Unknown++
	}
	if age := time.Duration(now-e.SealedAt) * time.Millisecond; e.SealedAt != 0 && age > p.Lag.Oldest {
		p.Lag.Oldest = age
	}
	if e.Shared() {
		return false, errSharedStream
	}
	if !e.Due(now, grace.Milliseconds()) {
		p.Counts.Grace++
		return false, nil
	}
	return true, nil
}
