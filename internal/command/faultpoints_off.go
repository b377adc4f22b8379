//go:build !faultpoints

package command

import "korvet-offload/offload"

// withFaults changes nothing: only a build for tests knows of faults.
func withFaults(p offload.Ports) offload.Ports { return p }
