package parquetfile

import (
	"fmt"
	"math"

	"github.com/klauspost/compress/s2"
	"github.com/parquet-go/parquet-go/format"
)

// codec is SNAPPY by s2's better encoder, which writes plain Snappy blocks. It
// is named here, and not left to the library's default, because the bytes of
// files depend on it; docs/decisions/0001-parquet-library.md says why this one.
type codec struct{}

// String is the name by which the format knows the codec.
func (*codec) String() string { return "SNAPPY" }

// CompressionCodec is the format's number of the codec.
func (*codec) CompressionCodec() format.CompressionCodec { return format.Snappy }

// Encode compresses a page. A page that does not fit the format's 32-bit
// size is an error; without it the size in the page's header would wrap.
func (*codec) Encode(dst, src []byte) ([]byte, error) {
	out := s2.EncodeSnappyBetter(dst[:cap(dst)], src)
	if len(out) > math.MaxInt32 {
		return nil, fmt.Errorf("compressed page of %d bytes: %d at most", len(out), math.MaxInt32)
	}
	return out, nil
}

// Decode is the reverse of Encode.
func (*codec) Decode(dst, src []byte) ([]byte, error) {
	return s2.Decode(dst[:cap(dst)], src)
}
