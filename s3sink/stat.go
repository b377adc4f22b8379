package s3sink

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Stat describes an object; see Store. Info.SHA256 is the checksum that S3
// keeps itself, where it does, and else the one that was put with the object.
//
// The answer 404 to a HEAD does not tell a missing object from a missing
// bucket, so a second request finds that out. It may also just be late: an
// object that the store has said it has, and has not shown since, is looked for
// several times, and then is an error of the class ClassUnavailable, not
// ErrMissing.
func (b *bucket) Stat(ctx context.Context, key string) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, b.invalid("stat", err)
	}
	r := request{op: "stat", key: key}
	info, err := b.head(ctx, r, true)
	if ClassOf(err) == ClassDenied {
		// The checksum of an encrypted object takes a permission more.
		if plain, perr := b.head(ctx, r, false); perr == nil {
			info, err = plain, nil
		}
	}
	if ClassOf(err) == ClassMissing || errors.Is(err, errNotShown) {
		if gone := b.headBucket(ctx, "stat"); ClassOf(gone) == ClassNoBucket {
			err = gone
		}
	}
	return info, err
}

func (b *bucket) head(ctx context.Context, r request, checksum bool) (Info, error) {
	var info Info
	err := b.do(ctx, r, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		got, err := c.StatObject(ctx, b.name, b.path(r.key), minio.StatObjectOptions{Checksum: checksum})
		if err != nil {
			return b.lateOr(r, err)
		}
		b.promised.kept(r.key)
		info = toInfo(r.key, got)
		return nil
	})
	return info, err
}

// lateOr is err, or what it means if it says that an object is missing which
// the store has just said is there: the look is worth repeating.
func (b *bucket) lateOr(r request, err error) error {
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound && b.promised.owes(r.key, b.opt.Now()) {
		return b.fault(r, ClassUnavailable, notShownHint, errNotShown)
	}
	return err
}

func (b *bucket) headBucket(ctx context.Context, op string) error {
	r := request{op: op}
	return b.do(ctx, r, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		there, err := c.BucketExists(ctx, b.name)
		if err == nil && !there {
			a := &answer{status: 404, code: "NoSuchBucket"}
			return b.fault(r, ClassNoBucket, b.hint(r, ClassNoBucket, a, "", new(exchange)), a)
		}
		return err
	})
}

func toInfo(key string, got minio.ObjectInfo) Info {
	info := Info{Key: key, Size: got.Size, ETag: got.ETag, ModTime: got.LastModified}
	for name, value := range got.UserMetadata {
		if name = strings.ToLower(name); name == metaSHA256 {
			info.SHA256 = value
			continue
		}
		if info.Meta == nil {
			info.Meta = make(map[string]string, len(got.UserMetadata))
		}
		info.Meta[name] = unescapeMeta(value)
	}
	if sum, err := base64.StdEncoding.DecodeString(got.ChecksumSHA256); err == nil && len(sum) == 32 {
		info.SHA256 = hex.EncodeToString(sum)
	}
	return info
}
