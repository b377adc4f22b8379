package s3server

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets no server outlive a test process that is killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
