package command

import (
	"fmt"

	"korvet-offload/internal/words"
)

// lossLines says for a person what the table of restore --manifests does not. n is
// how many manifests it is about.
func lossLines(v lossView, n int) []string {
	var lines []string
	switch v.Claim.Result {
	case claimWould:
		if v.Claim.Root == "" {
			lines = append(lines, "the root has no owner marker; this Redis would claim it as it is")
			break
		}
		lines = append(lines, fmt.Sprintf("this Redis would take over the root of cluster %q", v.Claim.Root))
	case claimDone:
		if v.Claim.Root == "" {
			lines = append(lines, "this Redis has claimed the root as it is")
			break
		}
		lines = append(lines, fmt.Sprintf("this Redis has taken over the root of cluster %q", v.Claim.Root))
	case claimSame:
		if len(v.Partitions) == 0 && v.Error == "" {
			lines = append(lines, "the root belongs to this Redis already")
		}
	}
	lines = append(lines, v.Notes...)
	for _, p := range v.Partitions {
		lines = append(lines, p.Notes...)
	}
	for _, t := range v.Topics {
		switch t.Result {
		case "missing":
			lines = append(lines, fmt.Sprintf("topic %s: %s", t.Topic, t.Why))
		case "would_register":
			lines = append(lines, fmt.Sprintf("topic %s would be registered with %s", t.Topic, words.Count(t.Partitions, "partition")))
		case "registered":
			lines = append(lines, fmt.Sprintf("topic %s is registered with %s, and retention.ms=-1: set what it should have", t.Topic, words.Count(t.Partitions, "partition")))
		}
	}
	if len(v.Partitions) > 0 || v.Claim.Result == claimWould {
		lines = append(lines, lastLine(v, n))
	}
	return lines
}

func lastLine(v lossView, n int) string {
	switch {
	case !v.Done && len(v.Partitions) == 0:
		return "--yes does it"
	case !v.Done:
		return fmt.Sprintf("%s would be restored; --yes does it", words.Count(n, "manifest"))
	}
	return fmt.Sprintf("%s restored", words.Count(n, "manifest"))
}
