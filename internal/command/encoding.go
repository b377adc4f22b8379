package command

import (
	"io"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// encoding makes Parquet files.
type encoding struct{}

func (encoding) NewEncoder(w io.Writer, of offload.FileOf) offload.Encoder {
	return parquetfile.NewWriter(w, parquetfile.FileID(of))
}

func (encoding) Check(r io.ReaderAt, size int64, of offload.FileOf) (segment.Contents, error) {
	return parquetfile.Check(r, size, parquetfile.FileID(of))
}
