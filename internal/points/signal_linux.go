package points

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// kill ends the process as nothing else does: no deferred call, no flush.
func kill(point string) error { return signal(point, unix.SIGKILL) }

// stop stops the process until somebody continues it.
func stop(point string) error { return signal(point, unix.SIGSTOP) }

// signal goes to this very thread, which therefore does not return before the
// signal has come; either of them concerns the whole process then.
func signal(point string, s unix.Signal) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), s); err != nil {
		return fmt.Errorf("send %s to this process at %s: %w", s, point, err)
	}
	return nil
}
