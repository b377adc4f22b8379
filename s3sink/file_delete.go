package s3sink

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
)

// Delete removes a file and makes that durable; see Store. Folders stay.
func (f *files) Delete(ctx context.Context, key string) error {
	err := f.within("delete", key, func(root *os.Root) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if info, err := root.Lstat(key); err == nil && info.IsDir() {
			return fs.ErrNotExist // a folder is no object
		}
		if err := root.Remove(key); err != nil {
			return err
		}
		dir, err := root.OpenRoot(path.Dir(key))
		if err != nil {
			return err
		}
		defer dir.Close()
		return syncRoot(dir)
	})
	if errors.Is(err, ErrMissing) {
		return nil
	}
	return err
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
