package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const magic = "PAR1"

// trailer is the length of the footer and the magic that end a file.
const trailer = 4 + len(magic)

// writeFooter writes the page index and the footer. The library's own footer
// points to a column index of every column, also of those whose bounds it was
// told to skip; those would say that all their values are "", and a reader
// that trusts them finds nothing. So the library writes its tail into memory,
// and the footer is made again without them.
func (w *Writer) writeFooter() error {
	for _, kv := range (Meta{SchemaVersion, w.id, w.contents}).pairs() {
		w.lib.SetKeyValueMetadata(kv[0], kv[1])
	}
	w.out.tail = new(bytes.Buffer)
	if err := w.lib.Close(); err != nil {
		return err
	}
	tail := w.out.tail.Bytes()
	w.out.tail = nil

	index, err := withoutFooter(tail)
	if err != nil {
		return err
	}
	footer, err := encodeFooter(w.lib.File().Metadata())
	if err != nil {
		return err
	}
	for _, part := range [][]byte{index, footer} {
		if _, err := w.out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// withoutFooter cuts the footer off the end of a file.
func withoutFooter(tail []byte) ([]byte, error) {
	if len(tail) < trailer {
		return nil, io.ErrUnexpectedEOF
	}
	at := len(tail) - trailer
	size := int(binary.LittleEndian.Uint32(tail[at:]))
	if size > at {
		return nil, fmt.Errorf("footer of %d bytes in a tail of %d", size, at)
	}
	return tail[:at-size], nil
}

// encodeFooter encodes the metadata, less the column indexes without bounds,
// with the length and the magic that follow it.
func encodeFooter(meta *format.FileMetaData) ([]byte, error) {
	meta.CreatedBy = createdBy
	for g := range meta.RowGroups {
		for c := range meta.RowGroups[g].Columns {
			if c != colID {
				chunk := &meta.RowGroups[g].Columns[c]
				chunk.ColumnIndexOffset, chunk.ColumnIndexLength = 0, 0
			}
		}
	}
	var protocol thrift.CompactProtocol
	footer, err := thrift.Marshal(&protocol, meta)
	if err != nil {
		return nil, err
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return append(footer, magic...), nil
}
