package s3sink

import (
	"context"

	"github.com/minio/minio-go/v7"
)

// Delete removes an object; see Store. In a versioned bucket that puts a
// delete marker over it, and a rule of the bucket has to remove the versions.
func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return b.invalid("delete", err)
	}
	err := b.do(ctx, request{op: "delete", key: key}, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		return c.RemoveObject(ctx, b.name, b.path(key), minio.RemoveObjectOptions{})
	})
	if ClassOf(err) == ClassMissing {
		return nil
	}
	return err
}
