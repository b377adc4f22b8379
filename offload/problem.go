package offload

import (
	"fmt"

	"korvet-offload/segment"
)

// Problem is something that can't be worked on as it is.
type Problem struct {
	Topic     string // of a plain stream its key
	Plain     bool
	Partition int    // -1: the whole topic
	Segment   string // "": the whole partition
	Reason    Reason
	Err       error
}

func problemOf(p segment.Partition, number string, err error) Problem {
	return Problem{Topic: p.Topic, Plain: p.Plain, Partition: p.Number, Segment: number, Reason: ReasonOf(err), Err: err}
}

// Where names what the problem is about.
func (p Problem) Where() string {
	part := segment.Partition{Topic: p.Topic, Number: p.Partition, Plain: p.Plain}
	switch {
	case p.Reason == ReasonClock:
		return "clock"
	case p.Topic == "":
		return "registry"
	case p.Plain && p.Segment == "":
		return "stream " + part.String()
	case p.Partition < 0:
		return fmt.Sprintf("topic %q", p.Topic)
	case p.Segment == "":
		return "partition " + part.String()
	}
	return fmt.Sprintf("segment %s/%s", part, p.Segment)
}

func (p Problem) Error() string { return p.Where() + ": " + p.Err.Error() }

// Unwrap gives the cause.
func (p Problem) Unwrap() error { return p.Err }
