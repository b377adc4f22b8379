package offload

import (
	"fmt"
	"time"

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
	Retry     time.Time // not before this is it tried again, by this host's clock; zero = at the next pass, or not known

	Action Action        // what was tried; "" where nothing was
	Took   time.Duration // the attempt
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
	case p.Reason == ReasonPause && p.Topic == "":
		return "pause"
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
