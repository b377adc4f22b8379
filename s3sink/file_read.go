package s3sink

import (
	"context"
	"encoding/hex"
	"io"
	"os"
	"path"
)

// Stat reads the whole file and hashes it; see Store. There is no record of a
// checksum to trust, and this is the strongest check there is.
func (f *files) Stat(ctx context.Context, key string) (Info, error) {
	info := Info{Key: key}
	err := f.within("stat", key, func(root *os.Root) error {
		file, stat, err := openFile(root, key)
		if err != nil {
			return err
		}
		defer file.Close()
		info.ModTime = stat.ModTime()
		if info.Size, info.SHA256, err = hashAll(ctx, file); err != nil {
			return err
		}
		return f.makeDurable(root, key, file)
	})
	if err != nil {
		return Info{}, err
	}
	return info, nil
}

// makeDurable syncs a file and its name. Whoever put it may have been killed
// before it could, and what Stat has shown is relied upon.
func (f *files) makeDurable(root *os.Root, key string, file *os.File) error {
	if err := f.sync(file); err != nil {
		return err
	}
	dir, err := root.Open(path.Dir(key))
	if err != nil {
		return err
	}
	defer dir.Close()
	return f.sync(dir)
}

func hashAll(ctx context.Context, from io.Reader) (int64, string, error) {
	h := newSHA256()
	n, err := io.CopyBuffer(h, until(ctx, from), make([]byte, copyBuffer))
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// openFile opens a regular file; folders and whatever else may lie there are
// not objects.
func openFile(root *os.Root, key string) (*os.File, os.FileInfo, error) {
	info, err := root.Stat(key)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return nil, nil, os.ErrNotExist
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNotAFile
	}
	file, err := root.Open(key)
	if err != nil {
		return nil, nil, err
	}
	return file, info, nil
}

// Open reads a whole file; see Store.
func (f *files) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	file, err := f.open(key)
	if err != nil {
		return nil, err
	}
	return fileBody{until(ctx, file), file}, nil
}

// OpenRange reads a part of a file; see Store.
func (f *files) OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error) {
	if offset < 0 || n < 0 {
		return nil, f.fault("get", "", ClassInvalid, errNegativeRange)
	}
	file, err := f.open(key)
	if err != nil {
		return nil, err
	}
	return fileBody{until(ctx, io.NewSectionReader(file, offset, n)), file}, nil
}

func (f *files) open(key string) (*os.File, error) {
	var file *os.File
	err := f.within("get", key, func(root *os.Root) error {
		var err error
		file, _, err = openFile(root, key)
		return err
	})
	return file, err
}

type fileBody struct {
	io.Reader
	io.Closer
}
