//go:build faultpoints

package command

import (
	"os"

	"korvet-offload/internal/points"
	"korvet-offload/offload"
)

// withFaults lets the tests' faults happen: see internal/points.
func withFaults(p offload.Ports) offload.Ports {
	p, err := points.FromEnvironment(p, os.Getenv)
	if err != nil {
		panic(err) // a test that is wrong; no such build is given away
	}
	return p
}
