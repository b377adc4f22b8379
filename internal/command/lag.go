package command

import (
	"fmt"
	"time"

	"korvet-offload/internal/words"
	"korvet-offload/offload"
)

// lagView is how far the remote tier and the deletions are behind.
type lagView struct {
	Segments      int      `json:"segments"`
	Bytes         int64    `json:"bytes"` // that these take in Redis, as far as known
	OldestSeconds float64  `json:"oldest_seconds"`
	SLASeconds    float64  `json:"sla_seconds"`            // tick-interval + sla
	Unknown       int      `json:"unknown"`                // of these segments, whose entry does not say when they were sealed
	LocalHeadroom *float64 `json:"local_headroom_seconds"` // until local retention reaches one of them; below 0 = so long ago, null = it does not
	TotalHeadroom *float64 `json:"total_headroom_seconds"` // until total retention does
	Overdue       int      `json:"overdue"`                // segments past a retention
	OverdueMost   float64  `json:"overdue_seconds"`        // the longest of them, by time
	SLAMet        *bool    `json:"sla_met"`                // null = not known: something could not be read, or does not say its age
}

func makeLag(plan offload.Plan, sla time.Duration) lagView {
	lag := plan.Lag
	return lagView{Segments: lag.Segments, Bytes: lag.Bytes, OldestSeconds: lag.Oldest.Seconds(), Unknown: lag.Unknown,
		LocalHeadroom: secondsLeft(lag.Local), TotalHeadroom: secondsLeft(lag.Total),
		SLASeconds: sla.Seconds(), SLAMet: slaMet(plan, sla),
		Overdue: lag.Overdue, OverdueMost: lag.LongestOverdue.Seconds()}
}

// secondsLeft is nil where there is no limit.
func secondsLeft(h offload.Headroom) *float64 {
	if !h.Limited {
		return nil
	}
	return new(h.Left.Seconds())
}

// slaMet says whether the SLA is met; nil where that can't be known.
func slaMet(plan offload.Plan, sla time.Duration) *bool {
	met := plan.Lag.Oldest <= sla
	if met && (plan.Lag.Unknown > 0 || len(plan.Problems) > 0) {
		return nil
	}
	return &met
}

// String is the lag for a person.
func (v lagView) String() string {
	sla := "not known"
	if v.SLAMet != nil {
		sla = map[bool]string{true: "met", false: "BROKEN"}[*v.SLAMet]
	}
	segments := words.Count(v.Segments, "segment")
	if v.Segments > 0 {
		segments += " (" + words.Size(v.Bytes) + ")"
	}
	return fmt.Sprintf("lag: %s, the oldest waits %s; SLA of %s %s; %s past a retention",
		segments, ago(seconds(v.OldestSeconds)), ago(seconds(v.SLASeconds)), sla, words.Count(v.Overdue, "segment"))
}

// headroom says, for a person, when each retention reaches data that is not
// copied yet.
func (v lagView) headroom() (lines []string) {
	for _, h := range []struct {
		name string
		left *float64
	}{{"local", v.LocalHeadroom}, {"total", v.TotalHeadroom}} {
		switch {
		case h.left == nil:
		case *h.left > 0:
			lines = append(lines, fmt.Sprintf("%s retention reaches data that is not copied yet in %s", h.name, ago(seconds(*h.left))))
		case *h.left == 0:
			lines = append(lines, h.name+" retention has reached data that is not copied yet")
		default:
			lines = append(lines, fmt.Sprintf("%s retention has reached data that is not copied yet %s ago", h.name, ago(seconds(-*h.left))))
		}
	}
	return lines
}
