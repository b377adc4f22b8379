package command

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

// cutStore is a store whose only object ends in an error.
type cutStore struct {
	s3sink.Store
	err error
}

func (s cutStore) Open(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(s.err))), nil
}

// A store that breaks in the middle of an object is down, not an object that
// is other than it should be.
//
//fault:network | The connection breaks while an object is read back | A body that ends in an error of the store after some bytes | The error is that of a store that does not work, and a whole body ends as bodies do
func TestBodyThatBreaksOff(t *testing.T) {
	for _, end := range []error{&s3sink.Error{Op: "get", Key: "k", Class: s3sink.ClassUnavailable, Err: io.ErrUnexpectedEOF}, io.EOF} {
		body, err := objectStore{cutStore{err: end}}.Open(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		whole := errors.Is(end, io.EOF)
		if string(got) != "half" || errors.Is(err, offload.ErrStoreDown) == whole || (err == nil) != whole {
			t.Errorf("%v: read %q, %v", end, got, err)
		}
	}
}
