package s3sink

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

const (
	// partsAtOnce keeps the line busy while the next part is hashed.
	partsAtOnce = 2
	// abortTimeout is how long an upload that failed may still take to clean up.
	abortTimeout = 30 * time.Second
	// abortAtEnd is the same when the caller has been told to stop.
	abortAtEnd = 5 * time.Second
	abortTries = 3
	// hashBuffer is the size of the reads that only hash, in bytes.
	hashBuffer = 128 << 10
)

// errBodyChanged means that the bytes are not those that were announced.
var errBodyChanged = errors.New("body does not have the SHA-256 that was announced")

// putParts uploads in parts. The library's own multipart upload must not be
// used: it leaves the condition away without a word. Here it goes with the
// request that completes the upload, the only one that makes an object.
func (b *bucket) putParts(ctx context.Context, r request, u Upload) (string, error) {
	id, err := b.startParts(ctx, r, u)
	if err != nil {
		return "", err
	}
	parts, err := b.sendParts(ctx, r, u, id)
	var etag string
	if err == nil {
		etag, err = b.completeParts(ctx, r, u, id, parts)
	}
	if err != nil {
		b.abortParts(ctx, r, id)
		return "", err
	}
	return etag, nil
}

func (b *bucket) startParts(ctx context.Context, r request, u Upload) (string, error) {
	opts := b.putOptions(u)
	opts.UserMetadata["x-amz-checksum-algorithm"] = minio.ChecksumCRC32C.String()
	opts.UserMetadata["x-amz-checksum-type"] = minio.ChecksumFullObjectMode.String()
	r.step, r.size = "begin", 0
	var id string
	err := b.do(ctx, r, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		id, err = c.NewMultipartUpload(ctx, b.name, b.path(u.Key), opts)
		return err
	})
	return id, err
}

// sendParts hashes one part after the other, for the checksum of the part and
// of the whole, and sends them behind it. It returns when all are done.
func (b *bucket) sendParts(ctx context.Context, r request, u Upload, id string) ([]minio.ObjectPart, error) {
	size := partSize(u.Size, b.cfg.PartSize)
	parts := make([]minio.ObjectPart, (u.Size+size-1)/size)
	whole := hasher{hash: newSHA256()}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i := range parts {
		if gctx.Err() != nil {
			break
		}
		offset := int64(i) * size
		section := u.section(offset, min(size, u.Size-offset))
		crc, err := whole.add(section)
		if err != nil {
			group.Go(func() error { return b.fault(r, ClassInvalid, "", err) })
			break
		}
		group.Go(func() error {
			var err error
			parts[i], err = b.sendPart(gctx, r, id, i+1, section, crc)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, b.classify(ctx, r, err, new(exchange))
	}
	if whole.sum() != u.SHA256 {
		return nil, b.fault(r, ClassInvalid, "look for a bad disk or bad memory", errBodyChanged)
	}
	return parts, nil
}

func (b *bucket) sendPart(ctx context.Context, r request, id string, n int, s *io.SectionReader, crc string) (minio.ObjectPart, error) {
	r.step, r.size = "part", s.Size()
	opts := minio.PutObjectPartOptions{
		CustomHeader:         http.Header{minio.ChecksumCRC32C.Key(): {crc}},
		DisableContentSha256: true,
	}
	var part minio.ObjectPart
	err := b.do(ctx, r, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		again := io.NewSectionReader(s, 0, s.Size()) // the first attempt has read s to some point
		return b.send(ctx, again, func(ctx context.Context, body io.Reader) error {
			part, err = c.PutObjectPart(ctx, b.name, b.path(r.key), id, n, body, s.Size(), opts)
			return err
		})
	})
	part.ChecksumCRC32C = crc
	return part, err
}

func (b *bucket) completeParts(ctx context.Context, r request, u Upload, id string, parts []minio.ObjectPart) (string, error) {
	opts := minio.PutObjectOptions{}
	if !u.Unconditional {
		opts.SetMatchETagExcept("*")
	}
	if whole, err := minio.ChecksumCRC32C.FullObjectChecksum(parts); err == nil {
		opts.UserMetadata = map[string]string{
			minio.ChecksumCRC32C.Key(): whole.Encoded(),
			"x-amz-checksum-type":      minio.ChecksumFullObjectMode.String(),
		}
	}
	done := make([]minio.CompletePart, len(parts))
	for i, p := range parts {
		done[i] = minio.CompletePart{PartNumber: p.PartNumber, ETag: p.ETag, ChecksumCRC32C: p.ChecksumCRC32C}
	}
	r.step = "complete"
	var etag string
	err := b.do(ctx, r, func(ctx context.Context, n int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		info, err := c.CompleteMultipartUpload(ctx, b.name, b.path(u.Key), id, done, opts)
		if n > 1 && minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
			// An attempt before this one did it and its answer was lost.
			return b.fault(r, ClassExists, "", ErrExists)
		}
		etag = info.ETag
		return err
	})
	return etag, err
}

// abortParts removes the parts of an upload that failed, whatever became of
// the context that it ran under. A part that was on its way may arrive behind
// the abort, so it is repeated until the store knows of no such upload.
func (b *bucket) abortParts(ctx context.Context, r request, id string) {
	timeout := abortTimeout
	if ctx.Err() != nil {
		timeout = abortAtEnd
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	r.op, r.size = "abort", 0
	for range abortTries {
		err := b.abortOnce(ctx, r, id)
		if noSuchUpload(err) {
			return
		}
		if err != nil {
			b.opt.OnEvent(Event{Op: r.op, Key: r.key, Class: ClassOf(err), Err: err})
			return
		}
		if b.opt.Sleep(ctx, b.opt.Limits.BackoffBase) != nil {
			return
		}
	}
}

func (b *bucket) abortOnce(ctx context.Context, r request, id string) error {
	return b.do(ctx, r, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		return c.AbortMultipartUpload(ctx, b.name, b.path(r.key), id)
	})
}

func noSuchUpload(err error) bool {
	a, ok := errors.AsType[*answer](err)
	return ok && (a.code == minio.NoSuchUpload || a.status == http.StatusNotFound)
}

// partSize is the configured size, or more if there would be too many parts.
func partSize(total, configured int64) int64 {
	return max(configured, (total+maxParts-1)/maxParts)
}

// hasher hashes parts each for itself and all together.
type hasher struct {
	hash hash.Hash
	buf  []byte
}

// add reads a part to its end and returns its CRC32C as S3 writes it.
func (h *hasher) add(s *io.SectionReader) (string, error) {
	if h.buf == nil {
		h.buf = make([]byte, hashBuffer)
	}
	crc := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.CopyBuffer(io.MultiWriter(h.hash, crc), io.NewSectionReader(s, 0, s.Size()), h.buf)
	if err == nil && n < s.Size() {
		err = fmt.Errorf("%d bytes are missing: %w", s.Size()-n, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return "", fmt.Errorf("read body: %w", err)
	}
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc.Sum32())), nil
}

func (h *hasher) sum() string { return hex.EncodeToString(h.hash.Sum(nil)) }
