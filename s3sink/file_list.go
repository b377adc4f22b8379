package s3sink

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
)

// errStop ends a walk whose consumer has seen enough.
var errStop = errors.New("stop")

// List gives files in the order of their keys' bytes, as S3 does; see Store. It
// holds the names of one folder and those around it.
func (f *files) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Info{}, f.fault("list", "", ClassInvalid, err))
			return
		}
		root, err := f.root()
		if err == nil {
			defer root.Close()
			err = listing{root.FS(), prefix, yield}.walk(ctx, ".")
		}
		switch {
		case err == nil, errors.Is(err, errStop), errors.Is(err, fs.ErrNotExist):
		default:
			yield(Info{}, f.classify("list", "", err))
		}
	}
}

// listing is one walk through the folders.
type listing struct {
	fs     fs.FS
	prefix string
	yield  func(Info, error) bool
}

func (l listing) walk(ctx context.Context, dir string) error {
	entries, err := fs.ReadDir(l.fs, dir)
	if errors.Is(err, fs.ErrNotExist) && dir != "." {
		return nil // removed since
	}
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortName(a), sortName(b)) })
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.visit(ctx, path.Join(dir, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

// sortName puts a folder where the keys below it belong: "a-b" is before "a/b".
func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

func (l listing) visit(ctx context.Context, key string, e fs.DirEntry) error {
	if e.IsDir() {
		if below := key + "/"; !strings.HasPrefix(below, l.prefix) && !strings.HasPrefix(l.prefix, below) {
			return nil
		}
		return l.walk(ctx, key)
	}
	if !e.Type().IsRegular() || !strings.HasPrefix(key, l.prefix) || key == MarkerKey || temporary.MatchString(e.Name()) {
		return nil
	}
	info, err := e.Info()
	if errors.Is(err, os.ErrNotExist) {
		return nil // removed since
	}
	if err != nil {
		return err
	}
	if !l.yield(Info{Key: key, Size: info.Size(), ModTime: info.ModTime(), Change: changeOf(info)}, nil) {
		return errStop
	}
	return nil
}
