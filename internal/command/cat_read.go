package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/tieredlog"
	"korvet-offload/internal/words"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// readFile prints a file of this machine.
func (t *catting) readFile(ctx context.Context) error {
	f, err := os.Open(t.what.file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return t.readOne(ctx, f, info.Size(), t.what.file)
}

// readObject prints an object, whatever the manifest says of it.
func (t *catting) readObject(ctx context.Context, store s3sink.Store) error {
	info, err := store.Stat(ctx, t.what.object)
	if err != nil {
		return err
	}
	source := objectfile.New(ctx, t.ranges(store), t.what.object, info.Size)
	defer source.Close()
	return t.readOne(ctx, source, info.Size, "object "+t.what.object)
}

func (t *catting) readOne(ctx context.Context, source io.ReaderAt, size int64, name string) error {
	if err := t.settle(nowHere, nil); err != nil {
		return err
	}
	err := t.print(func(fn func(*segment.Page, int) error) error {
		f, err := parquetfile.Open(source, size)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := tieredlog.ReadFile(ctx, f, t.query, fn); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		return nil
	})
	return err
}

// ranges reads parts of objects and counts them.
func (t *catting) ranges(store s3sink.Store) objectfile.Ranges {
	return countedRanges{storeRanges{store}, &t.counted}
}

// storeRanges says of an object that is not there what it means to a log.
type storeRanges struct{ store objectfile.Ranges }

// OpenRange implements objectfile.Ranges.
func (s storeRanges) OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error) {
	body, err := s.store.OpenRange(ctx, key, offset, n)
	if s3sink.ClassOf(err) == s3sink.ClassMissing {
		return nil, fmt.Errorf("%w: %w", tieredlog.ErrMissing, err)
	}
	return body, err
}

// storeManifests makes manifests of what the store lists.
func storeManifests(store s3sink.Store, l segment.Layout) tieredlog.Manifests {
	return tieredlog.FromListing(func(ctx context.Context, p segment.Partition) ([]tieredlog.Found, error) {
		group, err := catalog.List(ctx, store, l, p)
		if err != nil {
			return nil, err
		}
		all := make([]tieredlog.Found, len(group.Objects))
		for i, o := range group.Objects {
			all[i] = tieredlog.Found{ObjectName: o.ObjectName, Bytes: o.Info.Size, ETag: o.Info.ETag, At: o.Info.ModTime}
		}
		return all, nil
	})
}

// counted is what was read and printed.
type counted struct {
	messages int64
	printed  int64
	requests atomic.Int64 // to the store
	fetched  atomic.Int64 // bytes from it
}

func (c *counted) line(took time.Duration) string {
	return fmt.Sprintf("%s, %s printed in %s (%d a second); %s to the store for %s", words.Count(int(c.messages), "message"), words.Size(c.printed), ago(took),
		rate(c.messages, took), words.Count(int(c.requests.Load()), "request"), words.Size(c.fetched.Load()))
}

type countedRanges struct {
	objectfile.Ranges
	*counted
}

// OpenRange implements objectfile.Ranges.
func (c countedRanges) OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error) {
	c.requests.Add(1)
	body, err := c.Ranges.OpenRange(ctx, key, offset, n)
	if err != nil {
		return nil, err
	}
	return countedBody{body, c.counted}, nil
}

type countedBody struct {
	io.ReadCloser
	*counted
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.fetched.Add(int64(n))
	return n, err
}
