package board

import (
	"time"

	"korvet-offload/offload"
)

// keptPasses is how many passes are remembered.
const keptPasses = 50

// passOf sums up a pass that has just ended.
func passOf(r offload.Report, err error, ended time.Time) Pass {
	p := Pass{StartedAt: ended.Add(-r.Duration).UTC(), Seconds: r.Duration.Seconds(), Phases: []Phase{}, Did: map[string]int{},
		Problems: len(r.Problems), Left: r.Left}
	for _, f := range r.Phases {
		p.Phases = append(p.Phases, Phase{Name: string(f.Phase), Seconds: f.Duration.Seconds()})
	}
	for _, o := range r.Outcomes {
		p.Did[string(o.Result)]++
		p.BytesIn += o.BytesIn
		p.BytesOut += o.BytesOut
	}
	if err != nil {
		p.Error = shorten(err.Error())
	}
	return p
}
