package stage

import (
	"bytes"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is a program that runs. Its methods may be called from any goroutine.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// launch starts the program, which dies with this process.
func launch(program string, env []string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p, p
	dieWithParent(p.cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel kills the child when the thread that started it ends
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.ended)
		}
	}()
	return p, <-started
}

// Write takes what the program writes.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// Log is what the program has written so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Kill ends the program as a power cut does, and returns when it is dead.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Signal sends a signal; one that has ended does not mind.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Ended says whether the program has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Wait waits for the end and says whether it came in time.
func (p *Process) Wait(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// Code is the exit code of a program that has ended; -1 after a signal.
func (p *Process) Code() int { return p.cmd.ProcessState.ExitCode() }

// Killed says whether a program that has ended was killed.
func (p *Process) Killed() bool {
	status, is := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Stopped says whether the program stands still after SIGSTOP.
func (p *Process) Stopped() bool { return state(p.cmd.Process.Pid) == 'T' }
