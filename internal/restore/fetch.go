package restore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// fetched is a file that was read whole and is what it should be.
type fetched struct {
	*parquetfile.File
	temp   Temp
	sha256 string
}

func (f *fetched) close() { _ = f.temp.Close() } // it is nobody's but ours

// fetch reads an object whole into a temporary file and checks it: size, SHA-256
// where want has one, footer, segment, every page and every id. Its messages may
// be written then.
func (r *Restorer) fetch(ctx context.Context, path string, want Object, of parquetfile.FileID) (*fetched, error) {
	temp, err := r.Temp()
	if err != nil {
		return nil, fmt.Errorf("restore object %s: make a temporary file: %w; see korvet.storage.offload.spool-dir", path, err)
	}
	f, err := r.fetchInto(ctx, temp, path, want, of)
	if err != nil {
		_ = temp.Close()
		return nil, fmt.Errorf("object %s: %w", path, err)
	}
	return f, nil
}

func (r *Restorer) fetchInto(ctx context.Context, temp Temp, path string, want Object, of parquetfile.FileID) (*fetched, error) {
	body, err := r.Objects.Open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	defer body.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(temp, sum), body)
	if err != nil {
		return nil, fmt.Errorf("read into a temporary file: %w", err)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if n != want.Size || want.SHA256 != "" && got != want.SHA256 {
		return nil, fmt.Errorf("%w: it has %d bytes with SHA-256 %s, want %d with %s", parquetfile.ErrDamaged, n, got, want.Size, want.SHA256)
	}
	file, err := parquetfile.Open(temp, n)
	if err != nil {
		return nil, err
	}
	if file.Meta().FileID != of {
		return nil, fmt.Errorf("%w: want %s, it is %.300s", parquetfile.ErrOtherSegment, of, file.Meta().FileID)
	}
	if err := file.Read(ctx, func(*segment.Page) error { return nil }); err != nil {
		return nil, err
	}
	return &fetched{File: file, temp: temp, sha256: got}, nil
}

// fileOf is what the footer of a segment's file has to say of it.
func (r *Restorer) fileOf(p segment.Partition, n segment.Number) parquetfile.FileID {
	return parquetfile.FileID{StreamKey: r.layout.StreamKey(p), Segment: n}
}
