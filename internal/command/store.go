package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

// objectStore lets the worker use a store of s3sink.
type objectStore struct{ s3sink.Store }

func (s objectStore) Put(ctx context.Context, u offload.Upload) (offload.ObjectInfo, error) {
	createOnly, err := s.CreateOnly(ctx)
	if err != nil {
		return offload.ObjectInfo{}, err
	}
	info, err := s.Store.Put(ctx, s3sink.Upload{
		Key: u.Path, Body: u.Body, Size: u.Size, SHA256: u.SHA256, Meta: u.Meta,
		Unconditional: !createOnly, // the worker has made the path unique then
	})
	return objectInfo(info), storeError(err)
}

func (s objectStore) Stat(ctx context.Context, path string) (offload.ObjectInfo, error) {
	info, err := s.Store.Stat(ctx, path)
	return objectInfo(info), storeError(err)
}

func (s objectStore) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	body, err := s.Store.Open(ctx, path)
	if err != nil {
		return nil, storeError(err)
	}
	return objectBody{body}, nil
}

// objectBody says of what goes wrong in the middle of an object what it means
// to the worker.
type objectBody struct{ io.ReadCloser }

func (b objectBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, storeError(err) // io.EOF stays as it is
}

// Delete claims the root first, as Put does: one that belongs to somebody else,
// or has lost its marker, keeps its objects.
func (s objectStore) Delete(ctx context.Context, paths []string) []error {
	errs := make([]error, len(paths))
	if _, err := s.CreateOnly(ctx); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	for i, err := range s.Store.Delete(ctx, paths) {
		errs[i] = deleteError(err)
	}
	return errs
}

// deleteError is storeError where a right that is missing, or a lock, says
// nothing about putting and reading.
func deleteError(err error) error {
	switch s3sink.ClassOf(err) {
	case s3sink.ClassDenied, s3sink.ClassLocked:
		return fmt.Errorf("%w: %w", offload.ErrDeleteDenied, err)
	}
	return storeError(err)
}

func (s objectStore) CreateOnly(ctx context.Context) (bool, error) {
	ok, err := s.Store.CreateOnly(ctx)
	return ok, storeError(err)
}

func objectInfo(i s3sink.Info) offload.ObjectInfo {
	return offload.ObjectInfo{Size: i.Size, ETag: i.ETag, SHA256: i.SHA256, Meta: i.Meta}
}

// storeError adds to an error of the store what it means to the worker.
func storeError(err error) error {
	class := s3sink.ClassOf(err)
	switch {
	case err == nil:
		return nil
	case class == s3sink.ClassExists:
		return fmt.Errorf("%w: %w", offload.ErrObjectExists, err)
	case class == s3sink.ClassMissing:
		return fmt.Errorf("%w: %w", offload.ErrObjectMissing, err)
	case errors.Is(err, s3sink.ErrUnknown):
		return fmt.Errorf("%w: %w", offload.ErrObjectUnknown, err)
	case storeDown(class):
		return fmt.Errorf("%w: %w", offload.ErrStoreDown, err)
	}
	return err
}

// storeDown says whether the other objects will very likely fare the same.
func storeDown(c s3sink.Class) bool {
	switch c {
	case s3sink.ClassNoBucket, s3sink.ClassDenied, s3sink.ClassCredentials, s3sink.ClassThrottled, s3sink.ClassUnavailable,
		s3sink.ClassTimeout, s3sink.ClassClockSkew, s3sink.ClassWrongRegion, s3sink.ClassFull:
		return true
	}
	return false
}
