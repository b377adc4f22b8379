package objectfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"korvet-offload/internal/objectfile"
)

// A body that breaks off is asked for again from there.
//
//fault:network | The store cuts the body of a range | every request ends after a third of its bytes | the rest is asked for, and each byte comes once
func TestBrokenBodies(t *testing.T) {
	errReset := errors.New("connection reset")
	o := newObject(1000)
	o.spoil = func(_ int, body io.Reader) io.Reader {
		b, _ := io.ReadAll(body)
		if len(b) < 100 {
			return bytes.NewReader(b)
		}
		return io.MultiReader(bytes.NewReader(b[:len(b)*2/3]), iotest.ErrReader(errReset))
	}
	r := open(t, o)
	expect(t, r, o.body, 0, 1000)
	if s := r.Stats(); s.Bytes != 1000 || s.Requests < 2 {
		t.Errorf("%+v", s)
	}
	for name, spoil := range map[string]func(int, io.Reader) io.Reader{
		"nothing comes": func(int, io.Reader) io.Reader { return iotest.ErrReader(errReset) },
		"a byte at a time": func(_ int, body io.Reader) io.Reader {
			return io.MultiReader(io.LimitReader(body, 1), iotest.ErrReader(errReset))
		},
	} {
		o := newObject(1000)
		o.spoil = spoil
		r := open(t, o)
		for _, want := range []bool{false, true} {
			if want {
				r.Want([]objectfile.Extent{{At: 0, Size: 500}})
			}
			_, err := r.ReadAt(make([]byte, 100), 0)
			if !errors.Is(err, errReset) || !strings.Contains(err.Error(), "read object key") {
				t.Errorf("%s: error %v", name, err)
			}
		}
		if n := len(o.requests()); n > 15 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

// An object that is shorter than was said is an error, not its end.
func TestShortObject(t *testing.T) {
	o := newObject(1000)
	r := objectfile.New(t.Context(), o, "key", 2000)
	defer r.Close()
	o.gate = func(_ context.Context, e objectfile.Extent) error {
		if e.At > 1000 {
			return errors.New("range not satisfiable")
		}
		return nil
	}
	if _, err := r.ReadAt(make([]byte, 10), 990); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("error %v", err)
	}
}

// The end of the context, or Close, ends what is under way.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*objectfile.Reader, context.CancelFunc){
		"close":   func(r *objectfile.Reader, _ context.CancelFunc) { _ = r.Close() },
		"context": func(_ *objectfile.Reader, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := newObject(20 << 20)
			hung := make(chan struct{}, 20)
			o.gate = func(ctx context.Context, _ objectfile.Extent) error {
				hung <- struct{}{}
				<-ctx.Done()
				return fmt.Errorf("wait: %w", context.Cause(ctx))
			}
			r := objectfile.New(ctx, o, "key", int64(len(o.body)))
			defer r.Close()
			r.Want([]objectfile.Extent{{At: 0, Size: 19 << 20}})
			<-hung
			<-hung
			failed := make(chan error, 1)
			go func() {
				_, err := r.ReadAt(make([]byte, 10), 0)
				failed <- err
			}()
			end(r, cancel)
			if err := <-failed; err == nil {
				t.Error("a read under way gives no error")
			}
			if _, err := r.ReadAt(make([]byte, 10), 0); err == nil {
				t.Error("a read afterwards gives no error")
			}
			r.Want([]objectfile.Extent{{At: 0, Size: 10}})
		})
	}
}
