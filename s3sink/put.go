package s3sink

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"

	"github.com/minio/minio-go/v7"
)

// Put stores an object whose key is free; see Store. Objects up to
// Config.MultipartThreshold go in one request, which is signed over the body's
// SHA-256 and has it as checksum, too: S3 verifies it and keeps it, and the
// body is neither read nor hashed once more here.
func (b *bucket) Put(ctx context.Context, u Upload) (Info, error) {
	r := request{op: "put", key: u.Key, size: u.Size}
	if err := b.checkUpload(u); err != nil {
		return Info{}, b.invalid("put", err)
	}
	if u.Unconditional {
		if err := b.mustBeFree(ctx, u.Key); err != nil {
			return Info{}, err
		}
	}
	put, err := b.wayOf(ctx, u)
	if err != nil {
		return Info{}, err
	}
	etag, err := put(ctx, r, u)
	if err == nil || ClassOf(err) == ClassExists {
		b.promised.add(u.Key, b.opt.Now())
	}
	if err != nil {
		return Info{}, err
	}
	return Info{Key: u.Key, Size: u.Size, ETag: etag, SHA256: u.SHA256, Meta: maps.Clone(u.Meta), ModTime: b.opt.Now()}, nil
}

func (b *bucket) checkUpload(u Upload) error {
	if err := u.check(); err != nil {
		return err
	}
	if n := len(b.path(u.Key)); n > maxKey {
		return fmt.Errorf("key and prefix are %d bytes; S3 takes %d", n, maxKey)
	}
	if most := int64(MaxPartSize) * maxParts; u.Size > most {
		return fmt.Errorf("object of %d bytes; S3 takes %d", u.Size, most)
	}
	return nil
}

func (b *bucket) putWhole(ctx context.Context, r request, u Upload) (string, error) {
	return b.putChecked(ctx, r, u, u.SHA256)
}

// putChecked is putWhole with the checksum that the store is to hold the body
// against.
func (b *bucket) putChecked(ctx context.Context, r request, u Upload, checksum string) (string, error) {
	opts := b.putOptions(u)
	opts.UserMetadata["x-amz-checksum-sha256"] = base64SHA256(checksum)
	if !u.Unconditional {
		opts.SetMatchETagExcept("*")
	}
	var etag string
	err := b.do(ctx, r, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		return b.send(ctx, u.section(0, u.Size), func(ctx context.Context, body io.Reader) error {
			info, err := c.PutObject(ctx, b.name, b.path(u.Key), body, u.Size, "", u.SHA256, opts)
			etag = info.ETag
			return err
		})
	})
	return etag, err
}

// putOptions are what single puts and multipart uploads have in common.
// DisableContentSha256 stops the library from cutting the body into signed
// chunks on plain http: the signature covers the hash of the whole instead.
func (b *bucket) putOptions(u Upload) minio.PutObjectOptions {
	meta := map[string]string{"x-amz-meta-" + metaSHA256: u.SHA256}
	for name, value := range u.Meta {
		meta["x-amz-meta-"+name] = escapeMeta(value)
	}
	return minio.PutObjectOptions{
		UserMetadata:         meta,
		ServerSideEncryption: b.sse,
		StorageClass:         b.cfg.StorageClass,
		DisableMultipart:     true,
		DisableContentSha256: true,
	}
}

// mustBeFree stands in for the condition where the store has none.
func (b *bucket) mustBeFree(ctx context.Context, key string) error {
	r := request{op: "put", key: key}
	_, err := b.Stat(ctx, key)
	switch ClassOf(err) {
	case "":
		return b.fault(r, ClassExists, "", ErrExists)
	case ClassMissing, ClassDenied: // not seen, and the caller says that the key is its own
		return nil
	}
	return err
}

func base64SHA256(inHex string) string {
	sum, _ := hex.DecodeString(inHex) // Upload.check has decoded it before
	return base64.StdEncoding.EncodeToString(sum)
}
