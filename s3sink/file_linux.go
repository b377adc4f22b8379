package s3sink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// writeUnnamed fills a file that has no name and links it to its name.
// errNoUnnamed means that this can't be done here, and nothing was done.
func (f *files) writeUnnamed(ctx context.Context, dir *os.Root, name string, u Upload) (time.Time, error) {
	folder, err := dir.Open(".")
	if err != nil {
		return time.Time{}, err
	}
	defer folder.Close()
	at := int(folder.Fd())
	fd, err := unix.Openat(at, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, fileMode)
	if err != nil {
		return time.Time{}, unnamedError("open unnamed file", err)
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if _, err := os.Lstat(procName(fd)); err != nil {
		return time.Time{}, errNoUnnamed // no /proc, so no way to name it later
	}
	modified, err := f.fill(ctx, file, u)
	if err != nil {
		return time.Time{}, err
	}
	if err := unix.Linkat(unix.AT_FDCWD, procName(fd), at, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return time.Time{}, &os.LinkError{Op: "linkat", Old: "unnamed file", New: name, Err: err}
	}
	return modified, f.sync(folder)
}

func procName(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// unnamedError tells a file system that has no unnamed files from one that has
// a problem.
func unnamedError(op string, err error) error {
	for _, no := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.ENOENT, unix.EINVAL} {
		if errors.Is(err, no) {
			return errNoUnnamed
		}
	}
	return os.NewSyscallError(op, err)
}

// changeOf is a file's inode and the time of its last change, which can't be set.
func changeOf(info os.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", s.Ino, s.Ctim.Sec, s.Ctim.Nsec)
}

func writable(dir string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}
