package metrics

import (
	"time"

	"korvet-offload/internal/scrub"
)

func verifyTable() []metric {
	return []metric{
		{name: verifyFindings, kind: gauge, scope: withVerify, help: "What the last background verify has found to be wrong, by kind (docs/verify.md); with several shards, each instance has its own part.", labels: []label{findingKinds()},
			bad: "above 0: `korvet-offload verify` says of what"},
		{name: verifyCompleted, kind: gauge, scope: withVerify, unit: "unix s", help: "When the last background verify came to its end.", bad: "much older than verify.interval: it is paused, it can't read all, or verify.rate is too low for what there is"},
		{name: verifyObjects, kind: counter, help: "Objects that the background verify has read whole."},
		{name: verifyBytes, kind: counter, unit: "bytes", help: "What the background verify has read of objects.", bad: "stands still for long with verify.deep"},
	}
}

func findingKinds() label { return closed("kind", texts(scrub.Kinds())...) }

// VerifyRead counts what the background verify has read of the store.
func (r *Registry) VerifyRead(objects, bytes int64) {
	r.count.verifyObjects.Add(float64(objects))
	r.count.verifyBytes.Add(float64(bytes))
}

// Verified takes what a background verify that came to its end has found. It
// counts for as long as this instance leads.
func (r *Registry) Verified(found map[scrub.Kind]int64) {
	now := r.opt.Now()
	r.set(func(s *state) {
		if s.leads {
			s.verified = &verified{found, now}
		}
	})
}

// verified is what the last background verify has found.
type verified struct {
	found map[scrub.Kind]int64
	at    time.Time
}

func (v *view) verified(last *verified) {
	v.set(verifyCompleted, float64(last.at.UnixMilli())/1000)
	for _, k := range scrub.Kinds() {
		v.set(verifyFindings, float64(last.found[k]), string(k))
	}
}
