//go:build linux

package stage

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when its parent is gone.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// state is the kernel's letter for what a process does: T = stopped; 0 = it is
// gone.
func state(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	name := bytes.LastIndexByte(stat, ')') // it may have spaces
	if name < 0 || name+2 >= len(stat) {
		return 0
	}
	return stat[name+2]
}
