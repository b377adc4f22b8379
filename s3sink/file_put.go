package s3sink

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

const (
	// copyBuffer is how much is copied between two looks at the context, in bytes.
	copyBuffer = 256 << 10
	// staleAge is when an unfinished file is taken for one of a killed process.
	staleAge = 24 * time.Hour
)

var (
	errBodyShort = errors.New("body is shorter than announced")
	errNoUnnamed = errors.New("file system has no unnamed files")
	errNotAFile  = errors.New("it is not a regular file")
)

// Put makes a file whose name is free; see Store. The content goes into a file
// without a name, which vanishes with the process, and gets its name last, by
// a link that fails if the name is taken. That the content has the announced
// SHA-256 is not checked here; Stat hashes what is on the disk.
//
// Missing folders are made; of the root itself only the last.
func (f *files) Put(ctx context.Context, u Upload) (Info, error) {
	if err := u.check(); err != nil {
		return Info{}, f.fault("put", "", ClassInvalid, err)
	}
	if err := f.checkClaim("put", u.Key); err != nil {
		return Info{}, err
	}
	if err := f.makeRoot(); err != nil {
		return Info{}, f.classify("put", u.Key, err)
	}
	info := Info{Key: u.Key, Size: u.Size, SHA256: u.SHA256}
	err := f.within("put", u.Key, func(root *os.Root) error {
		dir, err := f.folder(root, path.Dir(u.Key))
		if err != nil {
			return err
		}
		defer dir.Close()
		info.ModTime, err = f.write(ctx, dir, path.Base(u.Key), u)
		return err
	})
	if err != nil {
		return Info{}, err
	}
	return info, nil
}

// folder opens the folder dir below root, made if it is missing.
func (f *files) folder(root *os.Root, dir string) (*os.Root, error) {
	f.making.Lock()
	defer f.making.Unlock()
	return f.makeDirs(root, dir)
}

// makeRoot makes the root folder in a folder that must be there. A root that is
// there already is made durable once, too, if its parent can be read: a process
// that made it may have been killed before the sync.
func (f *files) makeRoot() error {
	f.making.Lock()
	defer f.making.Unlock()
	err := os.Mkdir(f.dir, dirMode)
	made := err == nil
	switch {
	case errors.Is(err, fs.ErrExist) && f.durable[""]:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return errNoFolder
	case err != nil && !errors.Is(err, fs.ErrExist):
		return err
	}
	err = f.syncDir(filepath.Dir(f.dir))
	if err != nil && (made || !errors.Is(err, fs.ErrPermission)) {
		return err
	}
	f.durable[""] = true
	return nil
}

func (f *files) syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return f.sync(dir)
}

// makeDirs opens the folder dir below root, and makes what is missing on the
// way. A folder is durable before anything is put into it, also one that is
// there already: a process that made it may have been killed before the sync.
func (f *files) makeDirs(root *os.Root, dir string) (*os.Root, error) {
	at, err := root.OpenRoot(dir)
	missing := errors.Is(err, fs.ErrNotExist)
	if dir == "." || err != nil && !missing || err == nil && f.durable[dir] {
		return at, err
	}
	if err == nil {
		defer at.Close()
	}
	parent, err := f.makeDirs(root, path.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := parent.Mkdir(path.Base(dir), dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := f.syncRoot(parent); err != nil {
		return nil, err
	}
	f.durable[dir] = true
	return root.OpenRoot(dir)
}

func (f *files) syncRoot(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return f.sync(dir)
}

// write makes the file name in dir and returns when it was last written to.
func (f *files) write(ctx context.Context, dir *os.Root, name string, u Upload) (time.Time, error) {
	if _, err := dir.Lstat(name); err == nil {
		return time.Time{}, fs.ErrExist // spares the copying; the link decides
	}
	if !f.noUnnamed {
		modified, err := f.writeUnnamed(ctx, dir, name, u)
		if !errors.Is(err, errNoUnnamed) {
			return modified, err
		}
	}
	return f.writeTemporary(ctx, dir, name, u)
}

// writeTemporary is for file systems without unnamed files. What a killed
// process leaves is removed by a later put into the same folder.
func (f *files) writeTemporary(ctx context.Context, dir *os.Root, name string, u Upload) (time.Time, error) {
	if err := removeStale(dir, f.opt.Now()); err != nil {
		return time.Time{}, err
	}
	temp := temporaryName(name)
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = dir.Remove(temp) }() // after a success it has another name and this finds nothing
	defer file.Close()
	modified, err := f.fill(ctx, file, u)
	if err != nil {
		return time.Time{}, err
	}
	if err := dir.Link(temp, name); err != nil {
		return time.Time{}, err
	}
	if err := dir.Remove(temp); err != nil {
		return time.Time{}, err
	}
	return modified, f.syncRoot(dir)
}

func temporaryName(name string) string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return "." + name + "." + hex.EncodeToString(random[:]) + ".tmp"
}

// removeStale removes unfinished files that nobody can be writing any more.
func removeStale(dir *os.Root, now time.Time) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !temporary.MatchString(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < staleAge {
			continue
		}
		if err := dir.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// fill copies the body into a file and makes it durable.
func (f *files) fill(ctx context.Context, file *os.File, u Upload) (time.Time, error) {
	if err := copyBody(ctx, file, u, f.opt.Pace); err != nil {
		return time.Time{}, err
	}
	if err := f.sync(file); err != nil {
		return time.Time{}, err
	}
	info, err := file.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), ctx.Err()
}

func copyBody(ctx context.Context, file *os.File, u Upload, pace func(context.Context, int) error) error {
	buf := make([]byte, min(copyBuffer, u.Size+1))
	n, err := io.CopyBuffer(onlyWriter{file}, until(ctx, paced(ctx, u.bodyOrNothing(), pace)), buf)
	if err == nil && n < u.Size {
		err = fmt.Errorf("%w by %d bytes", errBodyShort, u.Size-n)
	}
	return err
}

func (u Upload) bodyOrNothing() io.Reader {
	if u.Body == nil {
		return eof{}
	}
	return u.section(0, u.Size)
}

// onlyWriter hides the file's own ways to copy, which don't look at contexts.
type onlyWriter struct{ io.Writer }

// readerFunc is a reader that is a function.
type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

// until reads until the context ends.
func until(ctx context.Context, from io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return from.Read(p)
	})
}

// paced reads no faster than pace lets it.
func paced(ctx context.Context, from io.Reader, pace func(context.Context, int) error) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		n, err := from.Read(p)
		if n == 0 {
			return n, err
		}
		if ended := pace(ctx, n); ended != nil {
			return 0, ended
		}
		return n, err
	})
}
