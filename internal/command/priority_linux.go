package command

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// yieldToOthers puts every thread of this process into the scheduler's idle
// class; those that come later inherit it. Where the worker shares its CPUs
// with Redis, a producer's XADD then never waits for an encoder to finish its
// time slice. The kernel weighs threads within one control group only, so a
// container or a service with a share of its own keeps that.
func yieldToOthers() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("lower the priority: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
		if err := unix.SchedSetAttr(id, &attr, 0); err != nil {
			return fmt.Errorf("lower the priority: %w", err)
		}
	}
	return nil
}
