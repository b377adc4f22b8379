package metrics

import (
	"testing"

	"korvet-offload/internal/scrub"
)

func TestVerify(t *testing.T) {
	b := newBench(t)
	none := map[string]string{`verify_findings{kind="gap"}`: "", "verify_last_completed_timestamp_seconds": "", "verify_objects_total": "0", "verify_bytes_total": "0"}
	b.must(none)
	b.Verified(map[scrub.Kind]int64{scrub.Gap: 2}) // one that ended when the lead was lost already
	b.must(none)
	b.LoopObserver().Leads()
	b.Verified(map[scrub.Kind]int64{scrub.Gap: 2})
	b.VerifyRead(1, 5)
	b.VerifyRead(2, 0)
	b.must(map[string]string{`verify_findings{kind="gap"}`: "2", `verify_findings{kind="orphan"}`: "0", "verify_last_completed_timestamp_seconds": "1e+06",
		"verify_objects_total": "3", "verify_bytes_total": "5"})
	b.Verified(nil)
	b.must(map[string]string{`verify_findings{kind="gap"}`: "0"})
	b.LoopObserver().Follows()
	b.must(map[string]string{`verify_findings{kind="gap"}`: "", "verify_last_completed_timestamp_seconds": "", "verify_objects_total": "3"})
}
