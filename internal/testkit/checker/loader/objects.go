package loader

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// objects reads every object below a root. Files with a dot in front are the
// store's own, such as those that are being written.
func objects(ctx context.Context, root string, now int64) (map[string]checker.Object, error) {
	all := map[string]checker.Object{}
	if root == "" {
		return all, nil
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == root:
			return nil // nothing was put yet
		case err != nil:
			return err
		case strings.HasPrefix(d.Name(), ".") && path != root:
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			name = filepath.ToSlash(name)
			all[name], err = object(ctx, path, name, now)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the objects of %s: %w", root, err)
	}
	return all, nil
}

func object(ctx context.Context, path, name string, now int64) (checker.Object, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return checker.Object{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return checker.Object{}, err
	}
	digest := sha256.Sum256(body)
	o := checker.Object{Size: int64(len(body)), SHA256: hex.EncodeToString(digest[:]), Age: max(0, time.UnixMilli(now).Sub(info.ModTime()))} // clocks differ a little
	if o.Messages, err = rows(ctx, name, body); err != nil {
		o.Bad = err.Error()
	}
	return o, nil
}

// rows reads a segment file, which has to be one of the segment that its path
// is made of.
func rows(ctx context.Context, name string, body []byte) (all []checker.Message, err error) {
	file, err := parquetfile.Open(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, err
	}
	of := file.Meta().FileID
	if !segment.IsObjectOf(name, of.StreamKey, of.Segment) && !segment.IsObjectOf(name, segment.SafeKey(of.StreamKey), of.Segment) {
		return nil, fmt.Errorf("it is the file of %s", of)
	}
	err = file.Read(ctx, func(p *segment.Page) error {
		for i := range p.Len() {
			lo, hi := p.Fields(i)
			fields := make([][]byte, 0, 2*(hi-lo))
			for f := lo; f < hi; f++ {
				fields = append(fields, p.Name(f), p.Value(f))
			}
			all = append(all, checker.Message{ID: p.ID(i).String(), Sum: sum(broker.SumOf(fields...))})
		}
		return nil
	})
	return all, err
}
