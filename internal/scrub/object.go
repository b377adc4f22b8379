package scrub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// object looks at the object of a REMOTE segment: what the store says of it, and
// what is in it where that is asked for, or where what the store says does not
// suffice. nil: nothing is wrong.
func (r *round) object(ctx context.Context, w row) (*Finding, error) {
	e := w.entry
	whole := r.run.opt.Deep || r.run.opt.CompareLocal
	if o, there := r.f.object(e.Object.Path); there && o.Info.Size == e.Object.Bytes && (o.Info.ETag == "" || o.Info.ETag == e.Object.ETag) {
		obj := Object{Partition: r.f.partition, Segment: w.number, Path: e.Object.Path, Bytes: e.Object.Bytes, ETag: o.Info.ETag, Modified: o.Info.ModTime, Change: o.Info.Change,
			SHA256: e.Object.SHA256, Contents: contentsOf(e)}
		switch {
		case !whole || r.passes(w.number):
			return nil, nil //nolint:nilnil // nothing is wrong
		case r.run.opt.Verified != nil && (!r.run.opt.CompareLocal || e.Local != segment.Present) && r.run.opt.Verified(obj):
			r.run.report.Passed++
			return nil, nil //nolint:nilnil // nothing is wrong
		}
		out, sum, err := r.contents(ctx, w)
		if out == nil && err == nil && r.run.opt.Done != nil {
			obj.SHA256 = sum
			r.run.opt.Done(obj)
		}
		return out, err
	}
	info, err := r.run.ports.Store.Stat(ctx, e.Object.Path)
	switch {
	case errors.Is(err, offload.ErrObjectMissing):
		return r.wrong(MissingObject, w, "it is not there, and its entry tells of %d bytes", e.Object.Bytes), nil
	case err != nil:
		return nil, fmt.Errorf("look at object %s: %w", e.Object.Path, err)
	case info.Size < e.Object.Bytes:
		return r.wrong(Truncated, w, "it has %d bytes, and %d were put", info.Size, e.Object.Bytes), nil
	case info.Size > e.Object.Bytes:
		return r.wrong(ChecksumMismatch, w, "it has %d bytes, and %d were put", info.Size, e.Object.Bytes), nil
	case r.passes(w.number):
		return nil, nil //nolint:nilnil // nothing is wrong
	}
	out, _, err := r.contents(ctx, w) // another ETag says nothing by itself
	return out, err
}

func (r *round) wrong(k Kind, w row, format string, args ...any) *Finding {
	f := r.f.finding(k, w.number, format, args...)
	if w.entry.Object != nil {
		f.Path = w.entry.Object.Path
	}
	return &f
}

// contents reads an object whole, once.
func (r *round) contents(ctx context.Context, w row) (*Finding, string, error) {
	o := w.entry.Object
	body, err := r.run.ports.Store.Open(ctx, o.Path)
	if errors.Is(err, offload.ErrObjectMissing) {
		return r.wrong(MissingObject, w, "it is not there any more, and its entry tells of %d bytes", o.Bytes), "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read object %s: %w", o.Path, err)
	}
	defer body.Close()
	hash := sha256.New()
	from := io.TeeReader(pacedReader{ctx, io.LimitReader(body, o.Bytes+1), &r.run.pace, r.run.advanced}, hash)
	s, n, err := fill(from, o.Bytes, r.run.opt.SpoolDir)
	if s != nil {
		defer s.close()
	}
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("read object %s: %w", o.Path, err)
	case n < o.Bytes:
		return r.wrong(Truncated, w, "%d bytes came, and %d were put", n, o.Bytes), "", nil
	}
	r.run.report.Read++
	r.run.progress.Objects++
	r.run.tell()
	sum := hex.EncodeToString(hash.Sum(nil))
	out, err := r.file(ctx, w, s, sum)
	return out, sum, err
}

// file looks into a segment's file.
func (r *round) file(ctx context.Context, w row, s io.ReaderAt, sum string) (*Finding, error) {
	e := w.entry
	same := e.Object.SHA256 == "" || e.Object.SHA256 == sum
	f, held, err := r.rows(ctx, s, e.Object.Bytes)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil && !same && f.Meta().FileID == r.id(w.number) && held == contentsOf(e):
		return r.wrong(ChecksumMismatch, w, "it has SHA-256 %s, and %s was put; its rows can be read", sum, e.Object.SHA256), nil
	case err != nil && !same:
		return r.wrong(ChecksumMismatch, w, "it has SHA-256 %s, and %s was put: %v", sum, e.Object.SHA256, err), nil
	case err != nil:
		return r.wrong(Schema, w, "%v", err), nil
	case f.Meta().FileID != r.id(w.number):
		return r.wrong(WrongContents, w, "it is the file of %s", f.Meta().FileID), nil
	case held != contentsOf(e):
		return r.wrong(WrongContents, w, "it has %s, and its entry says %s", describe(held), describe(contentsOf(e))), nil
	}
	if r.run.opt.CompareLocal && e.Local == segment.Present {
		return r.compareLocal(ctx, w, f)
	}
	return nil, nil //nolint:nilnil // nothing is wrong
}

// rows reads a file to its last row.
func (r *round) rows(ctx context.Context, s io.ReaderAt, size int64) (*parquetfile.File, segment.Contents, error) {
	f, err := parquetfile.Open(s, size)
	if err != nil {
		return nil, segment.Contents{}, err
	}
	err = f.Read(ctx, func(p *segment.Page) error { return nil })
	return f, f.Meta().Contents, err // Read has compared the rows with the footer
}

func (r *round) id(n segment.Number) parquetfile.FileID {
	return parquetfile.FileID{StreamKey: r.run.layout.StreamKey(r.f.partition), Segment: n}
}

func contentsOf(e segment.Entry) segment.Contents {
	c := segment.Contents{FirstID: e.FirstID, LastID: e.LastID, Count: e.Count}
	if e.Count == 0 { // what was the least that the stream should hold is no matter
		c.FirstID, c.LastID = segment.ID{}, segment.ID{}
	}
	return c
}

func describe(c segment.Contents) string {
	if c.Count == 0 {
		return "no messages"
	}
	return fmt.Sprintf("%d from %s to %s", c.Count, c.FirstID, c.LastID)
}
