package repair

import (
	"context"
	"fmt"
	"io"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/redisstore"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// quiet hears nothing.
type quiet struct{}

func (quiet) Planned(offload.Plan)     {}
func (quiet) Advanced(int, int)        {}
func (quiet) Finished(offload.Outcome) {}
func (quiet) Failed(offload.Problem)   {}

// encoding makes Parquet files.
type encoding struct{}

func (encoding) NewEncoder(w io.Writer, of offload.FileOf) offload.Encoder {
	return parquetfile.NewWriter(w, parquetfile.FileID(of))
}

func (encoding) Check(r io.ReaderAt, size int64, of offload.FileOf) (segment.Contents, error) {
	return parquetfile.Check(r, size, parquetfile.FileID(of))
}

// redisPorts says ErrRedisDown.
type redisPorts struct{ *redisstore.Store }

func (p redisPorts) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	a, err := p.Store.Peek(ctx, q)
	if redisstore.ClassOf(err) == redisstore.Unavailable {
		err = fmt.Errorf("%w: %w", offload.ErrRedisDown, err)
	}
	return a, err
}

// storePorts says what errors of a store mean.
type storePorts struct{ s3sink.Store }

func (s storePorts) Owner(ctx context.Context) error { return s.CheckOwner(ctx) }

func (s storePorts) Put(ctx context.Context, u offload.Upload) (offload.ObjectInfo, error) {
	if _, err := s.CreateOnly(ctx); err != nil {
		return offload.ObjectInfo{}, err
	}
	info, err := s.Store.Put(ctx, s3sink.Upload{Key: u.Path, Body: u.Body, Size: u.Size, SHA256: u.SHA256, Meta: u.Meta})
	return told(info), meaning(err)
}

func (s storePorts) Stat(ctx context.Context, path string) (offload.ObjectInfo, error) {
	info, err := s.Store.Stat(ctx, path)
	return told(info), meaning(err)
}

func (s storePorts) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	body, err := s.Store.Open(ctx, path)
	return body, meaning(err)
}

func told(i s3sink.Info) offload.ObjectInfo {
	return offload.ObjectInfo{Size: i.Size, ETag: i.ETag, SHA256: i.SHA256, Meta: i.Meta}
}

func meaning(err error) error {
	switch s3sink.ClassOf(err) {
	case s3sink.ClassExists:
		return fmt.Errorf("%w: %w", offload.ErrObjectExists, err)
	case s3sink.ClassMissing:
		return fmt.Errorf("%w: %w", offload.ErrObjectMissing, err)
	case s3sink.ClassUnavailable:
		return fmt.Errorf("%w: %w", offload.ErrStoreDown, err)
	}
	return err
}
