package s3sink

import (
	"context"
	"errors"
	"io"

	"github.com/minio/minio-go/v7"
)

// Open reads a whole object; see Store.
func (b *bucket) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	return b.get(ctx, key, minio.GetObjectOptions{})
}

// OpenRange reads a part of an object; see Store.
func (b *bucket) OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error) {
	if offset < 0 || n < 0 {
		return nil, b.invalid("get", errNegativeRange)
	}
	if n == 0 {
		return b.emptyRange(ctx, key)
	}
	var opts minio.GetObjectOptions
	if err := opts.SetRange(offset, offset+n-1); err != nil {
		return nil, b.invalid("get", err)
	}
	body, err := b.get(ctx, key, opts)
	if a, ok := errors.AsType[*answer](err); ok && a.code == minio.InvalidRange {
		return b.emptyRange(ctx, key) // it begins behind the end
	}
	return body, err
}

var errNegativeRange = errors.New("offset or length is negative")

// emptyRange gives nothing, but only of an object that is there: HTTP has no
// way to ask for no bytes.
func (b *bucket) emptyRange(ctx context.Context, key string) (io.ReadCloser, error) {
	if _, err := b.Stat(ctx, key); err != nil {
		return nil, err
	}
	return io.NopCloser(eof{}), nil
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// get opens a body that outlives the attempt: the attempt's deadline holds
// until the answer begins, then the watchdog takes over.
func (b *bucket) get(ctx context.Context, key string, opts minio.GetObjectOptions) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, b.invalid("get", err)
	}
	r := request{op: "get", key: key}
	var body io.ReadCloser
	err := b.do(ctx, r, func(actx context.Context, _ int) error {
		c, err := b.connect(actx)
		if err != nil {
			return err
		}
		bctx, cancel := context.WithCancelCause(context.WithoutCancel(actx))
		unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
		stop := context.AfterFunc(actx, func() { cancel(context.Cause(actx)) })
		from, _, _, err := c.GetObject(bctx, b.name, b.path(key), opts)
		if !stop() && err == nil {
			err = errors.Join(context.Cause(bctx), from.Close())
		}
		if err != nil {
			unlink()
			err = causeOf(bctx, err)
			cancel(nil)
			return b.lateOr(r, err)
		}
		b.promised.kept(key)
		body = watchDownload(from, b.opt.Limits.NoProgress, func(cause error) { unlink(); cancel(cause) },
			func(err error) error { return b.readFault(ctx, bctx, r, err) })
		return nil
	})
	return body, err
}

// causeOf tells why a context was ended, which the library does not pass on.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// readFault classifies an error in the middle of a body.
func (b *bucket) readFault(ctx, bctx context.Context, r request, err error) error {
	return b.classify(ctx, r, causeOf(bctx, err), new(exchange))
}
