package s3sink

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
)

// Delete removes files, and syncs each of their folders once; see Store.
// Folders stay. A root that is not there is an error: its disk may not be
// mounted.
func (f *files) Delete(ctx context.Context, keys []string) []error {
	return deleteEach(keys, f.checkDelete, func(keys []string, a *answers) {
		if err := f.deleteAll(ctx, keys, a); err != nil {
			for _, key := range keys {
				a.set(key, f.classify("delete", key, err))
			}
		}
	})
}

func (f *files) checkDelete(key string) error {
	err := CheckDelete(key)
	if err == nil {
		err = checkFileKey(key)
	}
	if err != nil {
		return f.fault("delete", "", ClassInvalid, err)
	}
	return nil
}

// deleteAll returns an error if nothing could be tried.
func (f *files) deleteAll(ctx context.Context, keys []string, a *answers) error {
	if err := f.checkClaim("delete", ""); err != nil {
		return err
	}
	root, err := f.root()
	if errors.Is(err, fs.ErrNotExist) {
		return errNoFolder
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for dir, removed := range f.removeFiles(ctx, root, keys, a) {
		err := f.syncFolder(root, dir)
		for _, key := range removed {
			f.answer(a, key, err)
		}
	}
	return nil
}

// removeFiles removes what it can and returns it by folder; it is not durable
// yet. The other keys have their answers.
func (f *files) removeFiles(ctx context.Context, root *os.Root, keys []string, a *answers) map[string][]string {
	removed := map[string][]string{}
	for _, key := range keys {
		switch there, err := remove(ctx, root, key); {
		case there:
			removed[path.Dir(key)] = append(removed[path.Dir(key)], key)
		default:
			f.answer(a, key, err)
		}
	}
	return removed
}

// remove removes a file and says whether there was one.
func remove(ctx context.Context, root *os.Root, key string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if info, err := root.Lstat(key); err == nil && info.IsDir() {
		return false, fs.ErrNotExist // a folder is no object
	}
	err := root.Remove(key)
	return err == nil, err
}

// answer notes what came of a key.
func (f *files) answer(a *answers, key string, err error) {
	if err != nil {
		if e := f.classify("delete", key, err); e.Class != ClassMissing {
			a.set(key, e)
			return
		}
	}
	a.set(key, nil)
}

func (f *files) syncFolder(root *os.Root, dir string) error {
	folder, err := root.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return f.syncRoot(folder)
}

// Close has nothing to do: every call closes what it opens.
func (f *files) Close() {}

// Check looks whether the folder is there, or can be made, and is readable;
// see Store.
func (f *files) Check(ctx context.Context) []Problem {
	root, err := f.root()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // the first put makes it
	case err != nil:
		return []Problem{{Tried: "open the folder", Err: f.classify("check", "", err)}}
	}
	defer root.Close()
	var found []Problem
	if _, err := fs.ReadDir(root.FS(), "."); err != nil {
		found = append(found, Problem{Tried: "read the folder", Err: f.classify("check", "", err)})
	}
	if err := writable(f.dir); err != nil {
		found = append(found, Problem{Tried: "see whether the folder can be written to", Err: f.classify("check", "", err)})
	}
	if f.opt.Owner.Namespace != "" {
		if err := f.CheckOwner(ctx); err != nil {
			found = append(found, Problem{Tried: "read the owner marker", Err: err})
		}
	}
	return found
}
