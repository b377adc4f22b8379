package s3sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// errNoProgress is the cause of contexts that a watchdog ended.
var errNoProgress = errors.New("no byte moved")

// sentBody reads the body of a request and keeps a watchdog quiet while bytes
// move. It is deliberately no io.Seeker: the S3 library must not repeat
// anything by itself.
type sentBody struct {
	from  io.Reader
	left  int64
	limit time.Duration
	timer *time.Timer
	pace  func(n int) error // waits until so many bytes may go
	err   error             // of the body itself, and not of the network
}

// watchUpload returns a reader of a section and a context that ends if, before
// all of it is read, nothing is read for the limit; what pace takes does not
// count. The caller calls stop.
func watchUpload(ctx context.Context, s *io.SectionReader, limit time.Duration, pace func(context.Context, int) error) (context.Context, *sentBody, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &sentBody{from: s, left: s.Size(), limit: limit, pace: func(n int) error { return pace(ctx, n) }}
	b.timer = time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w for %s", errNoProgress, limit)) })
	if b.left == 0 {
		b.timer.Stop()
	}
	return ctx, b, func() {
		b.timer.Stop()
		cancel(nil)
	}
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	if n > 0 {
		b.timer.Stop()
		if ended := b.pace(n); ended != nil {
			return 0, ended
		}
	}
	switch {
	case b.left <= 0: // what is left to wait for is the answer
		b.timer.Stop()
	case n > 0:
		b.timer.Reset(b.limit)
	}
	if err == io.EOF && b.left > 0 { //nolint:errorlint // a reader ends with the bare one
		err = fmt.Errorf("%d bytes are missing: %w", b.left, io.ErrUnexpectedEOF)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // a reader ends with the bare one
		b.err = err
	}
	return n, err
}

// receivedBody is the body of an answer. It ends the request if a single Read
// takes longer than the limit; the time between two of them does not count.
type receivedBody struct {
	io.ReadCloser
	timer  *time.Timer
	limit  time.Duration
	cancel context.CancelCauseFunc
	wrap   func(error) error
}

func watchDownload(body io.ReadCloser, limit time.Duration, cancel context.CancelCauseFunc, wrap func(error) error) *receivedBody {
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w for %s", errNoProgress, limit)) })
	timer.Stop()
	return &receivedBody{ReadCloser: body, timer: timer, limit: limit, cancel: cancel, wrap: wrap}
}

func (b *receivedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.limit)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF { //nolint:errorlint // a reader ends with the bare one
		err = b.wrap(err)
	}
	return n, err
}

func (b *receivedBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}
