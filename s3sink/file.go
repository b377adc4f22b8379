package s3sink

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

const (
	dirMode  = 0o750 // subject to umask, as fileMode is
	fileMode = 0o640
)

// files is a Store in a folder. Every path is resolved below the folder, also
// through symbolic links that somebody puts there; one that leads outside is
// an error.
type files struct {
	dir   string
	opt   Options
	claim claim

	claimed   atomic.Bool     // the owner marker has been seen
	making    sync.Mutex      // held while folders are made, so that none is used before it is durable
	durable   map[string]bool // folders that are, below the root; guarded by making
	noUnnamed bool            // for tests: as if the file system had no unnamed files

	sync func(*os.File) error // makes a file or a folder durable; for tests
}

func newFiles(dir string, opt Options) *files {
	return &files{dir: dir, opt: opt, claim: newClaim(), durable: map[string]bool{}, sync: (*os.File).Sync}
}

// errNoFolder says that not even the folder around the root is there, which is
// what a disk that is not mounted looks like.
var errNoFolder = errors.New("folder does not exist")

// root opens the root folder. The caller closes it. It is opened anew each
// time, so that a folder that was moved away or mounted over is noticed.
func (f *files) root() (*os.Root, error) {
	root, err := os.OpenRoot(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, perr := os.Stat(filepath.Dir(f.dir)); perr != nil {
			return nil, errNoFolder
		}
	}
	return root, err
}

// within calls do with the root folder.
func (f *files) within(op, key string, do func(*os.Root) error) error {
	if err := checkFileKey(key); err != nil {
		return f.fault(op, "", ClassInvalid, err)
	}
	root, err := f.root()
	if err != nil {
		return f.classify(op, key, err)
	}
	defer root.Close()
	if err := do(root); err != nil {
		return f.classify(op, key, err)
	}
	return nil
}

// temporary matches the names that unfinished files have where the file system
// has no unnamed ones.
var temporary = regexp.MustCompile(`^\..+\.[0-9a-f]{16}\.tmp$`)

func checkFileKey(key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if temporary.MatchString(path.Base(key)) {
		return errors.New("key looks like an unfinished file")
	}
	return nil
}

func (f *files) fault(op, key string, class Class, err error) *Error {
	return &Error{Op: op, Bucket: "file://" + filepath.ToSlash(f.dir), Key: key, Class: class, Err: err}
}

// classify turns an error of the file system into one of this package.
func (f *files) classify(op, key string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := f.fault(op, key, ClassOther, err)
	e.Class, e.Hint = classOfFile(err)
	if op != "put" && errors.Is(err, syscall.ENOTDIR) {
		e.Class = ClassMissing // a part of the way to it is a file
	}
	switch e.Class {
	case ClassExists:
		e.Err = ErrExists
	case ClassMissing:
		e.Err = ErrMissing
	case ClassNoBucket:
		e.Key, e.Err = "", errNoFolder
	}
	return e
}

func classOfFile(err error) (Class, string) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return ClassTimeout, ""
	case errors.Is(err, errNoFolder):
		return ClassNoBucket, "create it, mount its disk, or mend remote-path"
	case errors.Is(err, fs.ErrExist):
		return ClassExists, ""
	case errors.Is(err, fs.ErrNotExist):
		return ClassMissing, ""
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return ClassFull, "make room on the disk of remote-path"
	case errors.Is(err, syscall.EROFS):
		return ClassDenied, "mount the disk of remote-path writable"
	case errors.Is(err, syscall.EIO):
		return ClassUnavailable, "the disk of remote-path has a fault; look at what the kernel says of it (dmesg)"
	case errors.Is(err, syscall.ESTALE), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENOTCONN):
		return ClassUnavailable, "mount the disk of remote-path again"
	case errors.Is(err, fs.ErrPermission):
		return ClassDenied, "let this process read and write below remote-path"
	case errors.Is(err, errBodyShort), errors.Is(err, errNotAFile), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP), isRefusal(err):
		return ClassInvalid, ""
	}
	return ClassOther, ""
}

// isRefusal recognizes the errors of os.Root that have no name.
func isRefusal(err error) bool {
	return strings.Contains(err.Error(), "path escapes from parent") || strings.Contains(err.Error(), "not a directory")
}

// CreateOnly claims the root; see Store. Files are always create-only.
func (f *files) CreateOnly(ctx context.Context) (bool, error) {
	createOnly, err := f.claim.once(ctx, f, f.opt.Owner, f.opt.Now())
	f.claimed.Store(err == nil)
	return createOnly, at("file://"+f.dir, MarkerKey, err)
}

// errMarkerGone says that the root is not the one that was claimed.
var errMarkerGone = errors.New("the owner marker " + MarkerKey + " is gone: the folder was removed, or its disk is not mounted")

// checkClaim refuses a root whose marker has vanished. What is put there would
// lie on the wrong disk, and what is to be deleted would seem to be gone.
func (f *files) checkClaim(op, key string) error {
	if !f.claimed.Load() || key == MarkerKey {
		return nil
	}
	if _, err := os.Stat(filepath.Join(f.dir, MarkerKey)); errors.Is(err, fs.ErrNotExist) {
		return f.fault(op, key, ClassNoBucket, errMarkerGone)
	}
	return nil
}

// CheckOwner reads the owner marker; see Store.
func (f *files) CheckOwner(ctx context.Context) error {
	return at("file://"+f.dir, MarkerKey, ReadOwner(ctx, f, f.opt.Owner))
}
