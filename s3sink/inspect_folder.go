package s3sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"
)

// errHangs stands for a file system that does not answer.
var errHangs = errors.New("the file system does not answer")

// patiently does what may hang, as a dead network file system does, where
// nothing can interrupt it: it is left behind then, and ends when the file system
// does, one way or the other.
func patiently[T any](ctx context.Context, grace time.Duration, do func() T, hung func() T) T {
	done := make(chan T, 1)
	go func() { done <- do() }()
	select {
	case got := <-done:
		return got
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case got := <-done:
		return got
	case <-late.C:
		return hung()
	}
}

// inspectGrace is how much longer than its caller's context a look at a folder
// may take.
const inspectGrace = 200 * time.Millisecond

// Inspect looks at the folder and its file system; see Inspector.
func (f *files) Inspect(ctx context.Context) Facts {
	return patiently(ctx, inspectGrace, func() Facts { return f.inspect(ctx) }, func() Facts {
		reach := f.fault("check", "", ClassTimeout, errHangs)
		reach.Hint = "mount the disk of remote-path again"
		return Facts{Folder: &FolderFacts{Path: f.dir, Reach: reach}}
	})
}

func (f *files) inspect(ctx context.Context) Facts {
	facts := &FolderFacts{Path: f.dir}
	all := Facts{Folder: facts}
	at := f.dir
	if _, err := os.Stat(f.dir); errors.Is(err, fs.ErrNotExist) {
		facts.Missing, at = true, filepath.Dir(f.dir)
	} else {
		facts.Mount = isMount(f.dir)
	}
	switch err := usable(at); {
	case facts.Missing && errors.Is(err, fs.ErrNotExist):
		facts.Reach = f.classify("check", "", errNoFolder)
	case errors.Is(err, syscall.ENOTDIR):
		facts.Reach = f.fault("check", "", ClassInvalid, errNotAFolder)
	case err != nil:
		facts.Reach = f.classify("check", "", err)
	default:
		facts.system(at)
	}
	if !facts.Missing && facts.Reach == nil {
		all.Owner = inspectOwner(ctx, f)
	}
	return all
}

var errNotAFolder = errors.New("it is a file, and not a folder")

// LookAtFolder says what is known of a folder that is there, and of its file
// system. It tries nothing.
func LookAtFolder(dir string) FolderFacts {
	f := FolderFacts{Path: dir, Mount: isMount(dir)}
	f.system(dir)
	return f
}

// usable says what is in the way of reading a folder and writing to it.
func usable(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	if _, err := folder.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return writable(dir)
}

// Try puts, reads and removes a throw-away file; see Inspector. It makes no
// root: a folder that is not there yet may be that of a disk which is not mounted.
func (f *files) Try(ctx context.Context) Trials {
	p := newPutting(f)
	return patiently(ctx, CleanUpTime, func() Trials { return f.try(ctx, p) }, func() Trials {
		return Trials{Done: []Trial{{StepDelete, errHangs}}, Left: []string{p.key}}
	})
}

func (f *files) try(ctx context.Context, p *putting) Trials {
	steps := []step{
		{StepPut, p.put},
		{StepHead, p.head},
		{StepGet, p.get},
		{StepList, p.list},
		{StepCreateOnly, p.again},
		{StepLink, f.atProbes(f.tryLink)},
		{StepUnnamed, f.atProbes(tryUnnamed)},
		{StepSyncFolder, f.atProbes(f.syncRoot)},
	}
	if _, err := os.Stat(f.dir); errors.Is(err, fs.ErrNotExist) {
		return untried(steps)
	}
	done := walk(ctx, steps)
	left, err := p.cleanUp(ctx, p.key)
	_ = os.Remove(filepath.Join(f.dir, filepath.FromSlash(path.Clean(ProbeFolder)))) // another's may lie there
	return Trials{Done: append(done, Trial{StepDelete, err}), Left: left}
}

func untried(steps []step) Trials {
	var t Trials
	for _, s := range append(steps, step{name: StepDelete}) {
		t.Done = append(t.Done, Trial{s.name, ErrNotYet})
	}
	return t
}

// atProbes calls do with the folder of the throw-away files.
func (f *files) atProbes(do func(*os.Root) error) func(context.Context) error {
	return func(context.Context) error {
		return f.within("check", ProbeFolder+"x", func(root *os.Root) error {
			dir, err := f.folder(root, path.Clean(ProbeFolder))
			if err != nil {
				return err
			}
			defer dir.Close()
			return do(dir)
		})
	}
}

// tryLink links a file to a second name, and again, which must be refused. It
// leaves nothing.
func (f *files) tryLink(dir *os.Root) error {
	first := temporaryName("link")
	second := temporaryName("link")
	file, err := dir.OpenFile(first, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Remove(first) }()
	if err := file.Close(); err != nil {
		return err
	}
	if err := dir.Link(first, second); err != nil {
		return err
	}
	defer func() { _ = dir.Remove(second) }()
	switch err := dir.Link(first, second); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err == nil:
		return ErrReplaced
	default:
		return fmt.Errorf("link to a name that is taken: %w", err)
	}
}
