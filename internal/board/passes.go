package board

import (
	"time"

	"korvet-offload/offload"
)

// stored is how many bytes came to the store; of a segment that was dropped or
// deleted, an outcome has the size of the object that was there before.
func stored(o offload.Outcome) int64 {
	if o.Result == offload.Copied || o.Result == offload.Adopted {
		return o.BytesOut
	}
	return 0
}

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
		p.BytesOut += stored(o)
	}
	if err != nil {
		p.Error = shorten(err.Error())
	}
	return p
}
