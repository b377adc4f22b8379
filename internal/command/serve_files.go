package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"korvet-offload/internal/segcache"
	"korvet-offload/internal/serve"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// bucketFiles are files that are passed on from a store.
type bucketFiles struct{ store s3sink.Store }

// Local implements serve.Files.
func (bucketFiles) Local(context.Context, segment.Object) (*os.File, bool, error) {
	return nil, false, nil
}

// OpenRange implements serve.Files.
func (f bucketFiles) OpenRange(ctx context.Context, o segment.Object, offset, n int64) (io.ReadCloser, error) {
	body, err := f.store.OpenRange(ctx, o.Path, offset, n)
	if err != nil {
		return nil, servedError(err)
	}
	return servedBody{body}, nil
}

// servedBody says of what goes wrong in the middle what it means to the server.
type servedBody struct{ io.ReadCloser }

func (b servedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, servedError(err) // io.EOF stays as it is
}

func servedError(err error) error {
	if errors.Is(err, s3sink.ErrMissing) {
		return fmt.Errorf("%w: %w", serve.ErrMissing, err)
	}
	return err
}

// folderFiles are files of this machine.
type folderFiles struct{ store s3sink.Local }

// Local implements serve.Files.
func (f folderFiles) Local(_ context.Context, o segment.Object) (*os.File, bool, error) {
	file, err := f.store.OpenFile(o.Path)
	return file, err == nil, servedError(err)
}

// OpenRange implements serve.Files.
func (f folderFiles) OpenRange(ctx context.Context, o segment.Object, offset, n int64) (io.ReadCloser, error) {
	return bucketFiles{f.store}.OpenRange(ctx, o, offset, n)
}

// cachedFiles are those of a bucket, kept in a folder.
type cachedFiles struct {
	bucketFiles
	cache *segcache.Cache
	sums  *serve.Recent[segment.Object, string]
}

// The SHA-256 of objects whose entries do not tell it, since there are none.
const (
	sumsAge  = time.Hour
	sumsKept = 10_000
)

func newCachedFiles(store s3sink.Store, cache *segcache.Cache) cachedFiles {
	return cachedFiles{bucketFiles{store}, cache, serve.NewRecent(sumsAge, sumsKept, func(ctx context.Context, o segment.Object) (string, error) {
		info, err := store.Stat(ctx, o.Path)
		if err == nil && (info.Size != o.Bytes || info.ETag != "" && info.ETag != o.ETag) {
			err = fmt.Errorf("object %s is another one by now: %w", o.Path, serve.ErrDamaged)
		}
		return info.SHA256, servedError(err)
	})}
}

// Local implements serve.Files.
func (f cachedFiles) Local(ctx context.Context, o segment.Object) (*os.File, bool, error) {
	sum := o.SHA256
	if sum == "" {
		var err error
		if sum, err = f.sums.Get(ctx, o); err != nil {
			return nil, false, err
		}
	}
	file, err := f.cache.Get(ctx, segcache.Key{SHA256: sum, Size: o.Bytes}, func(ctx context.Context) (io.ReadCloser, error) {
		return f.OpenRange(ctx, o, 0, o.Bytes+1) // one more shows that it is longer
	})
	switch {
	case errors.Is(err, segcache.ErrPass):
		return nil, false, nil
	case errors.Is(err, segcache.ErrDamaged):
		return nil, false, fmt.Errorf("object %s: %w: %w", o.Path, serve.ErrDamaged, err)
	}
	return file, err == nil, err
}
