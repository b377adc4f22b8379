package s3sink

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/minio/minio-go/v7"
)

// errListing stands for a listing that would never end, or leave something out.
var errListing = errors.New("the store's listing repeats itself, or is not in the order of the keys")

// pageSize is how many keys S3 tells at once.
const pageSize = 1000

// List gives objects in the order of their keys; see Store. It holds one page
// at a time, and repeats a page that failed, not the whole.
func (b *bucket) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Info{}, b.invalid("list", err))
			return
		}
		after := ""
		for {
			page, err := b.page(ctx, "list", prefix, after, pageSize)
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, o := range page {
				if o.Key <= after {
					yield(Info{}, b.fault(request{op: "list"}, ClassOther, "", errListing))
					return
				}
				after = o.Key
				if key := strings.TrimPrefix(o.Key, b.path("")); key != MarkerKey && !yield(toListed(key, o), nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}

func toListed(key string, o minio.ObjectInfo) Info {
	return Info{Key: key, Size: o.Size, ETag: o.ETag, ModTime: o.LastModified}
}

// page reads at most n keys that follow after. Fewer means that there are no
// more: the library asks on if the store sent less than was asked for.
func (b *bucket) page(ctx context.Context, op, prefix, after string, n int) ([]minio.ObjectInfo, error) {
	noOwner := false
	var page []minio.ObjectInfo
	err := b.do(ctx, request{op: op}, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		page = page[:0]
		for o := range c.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{
			Prefix: b.path(prefix), StartAfter: after, MaxKeys: n, Recursive: true, FetchOwner: &noOwner,
		}) {
			if o.Err != nil {
				return o.Err
			}
			if page = append(page, o); len(page) == n {
				break
			}
		}
		return ctx.Err()
	})
	return page, err
}
