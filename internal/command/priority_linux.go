package command

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// niceness is what a worker's threads are set to: where it shares a machine
// with Redis, Redis and its clients go first.
const niceness = 10

// yieldToOthers lowers the priority of every thread of this process; those
// that come later inherit it. It never raises one.
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
		now, err := unix.Getpriority(unix.PRIO_PROCESS, id)
		if err != nil || 20-now >= niceness { // the system call counts from 40 down to 1
			continue
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, id, niceness); err != nil {
			return fmt.Errorf("lower the priority: %w", err)
		}
	}
	return nil
}
