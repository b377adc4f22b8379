package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"golang.org/x/sync/errgroup"

	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// objects is what is needed of the object store.
type objects interface {
	Stat(ctx context.Context, key string) (s3sink.Info, error)
	OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error)
}

// footersAtOnce is how many objects are looked at at once.
const footersAtOnce = 16

// candidate is a segment that is to be added, and what a table is told of it.
type candidate struct {
	remote
	location string
	file     iceberg.DataFile
	err      error // why it is not added
}

// describe looks at every candidate's object, and makes what a table is told of it
// of the footer. A candidate that is not what its entry says has an err; the error is
// that of the context.
func describe(ctx context.Context, store objects, layout segment.Layout, t *table.Table, all []candidate) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(footersAtOnce)
	for i := range all {
		g.Go(func() error {
			all[i].err = all[i].look(ctx, store, layout, t)
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("look at the objects: %w", err)
	}
	return nil
}

// look compares the object with the entry.
func (c *candidate) look(ctx context.Context, store objects, layout segment.Layout, t *table.Table) error {
	o := c.entry.Object
	info, err := store.Stat(ctx, o.Path)
	switch {
	case err != nil:
		return err
	case info.Size != o.Bytes:
		return fmt.Errorf("the object has %d bytes, and by the manifest %d", info.Size, o.Bytes)
	case info.ETag != o.ETag && info.ETag != "" && o.ETag != "":
		return errors.New("the object is not the one that the manifest names: its ETag is another")
	}
	source := objectfile.New(ctx, store, o.Path, o.Bytes)
	defer source.Close()
	is, err := parquetfile.Check(source, o.Bytes, parquetfile.FileID{StreamKey: layout.StreamKey(c.partition), Segment: c.number})
	if err != nil {
		return err
	}
	if says := c.entry; is.Count != says.Count || is.FirstID != says.FirstID || is.LastID != says.LastID {
		return fmt.Errorf("the file holds %d messages from %s to %s, and by the manifest %d from %s to %s",
			is.Count, is.FirstID, is.LastID, says.Count, says.FirstID, says.LastID)
	}
	c.file, err = dataFile(ctx, source, c.location, t)
	if err == nil && (c.file.Count() != is.Count || c.file.FileSizeBytes() != o.Bytes) {
		err = fmt.Errorf("a table would be told of %d rows in %d bytes, and there are %d in %d", c.file.Count(), c.file.FileSizeBytes(), is.Count, o.Bytes)
	}
	return err
}

// dataFile is what a table is told of a file, with the bounds of its ids.
func dataFile(ctx context.Context, source *objectfile.Reader, location string, t *table.Table) (iceberg.DataFile, error) {
	f, err := table.FileToDataFile(ctx, oneFile{source, location}, location, t.Schema(), *iceberg.UnpartitionedSpec, 0, t.Properties())
	if err != nil {
		return nil, fmt.Errorf("describe the file: %w", err)
	}
	return f, nil
}

// oneFile is the files of a table that are to be looked at: one.
type oneFile struct {
	source   *objectfile.Reader
	location string
}

// Open opens the file.
func (o oneFile) Open(name string) (icebergio.File, error) {
	if name != o.location {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return openFile{io.NewSectionReader(o.source, 0, o.source.Size()), path.Base(name)}, nil
}

// Remove removes nothing.
func (o oneFile) Remove(name string) error {
	return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrPermission}
}

// openFile is the file, open.
type openFile struct {
	*io.SectionReader
	name string
}

// Close does nothing: the source is closed by whoever made it.
func (openFile) Close() error { return nil }

// Stat implements fs.File.
func (f openFile) Stat() (fs.FileInfo, error) { return f, nil }

// Name implements fs.FileInfo.
func (f openFile) Name() string { return f.name }

// Mode implements fs.FileInfo.
func (openFile) Mode() fs.FileMode { return 0o400 }

// ModTime implements fs.FileInfo.
func (openFile) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (openFile) IsDir() bool { return false }

// Sys implements fs.FileInfo.
func (openFile) Sys() any { return nil }
