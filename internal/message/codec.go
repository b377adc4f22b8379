package message

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is how a producer's broker keeps values: in the standard frame of a
// format, with no marker of its own.
type Codec string

// The codecs.
const (
	None   Codec = "none"
	Gzip   Codec = "gzip"
	Snappy Codec = "snappy" // the framing format
	LZ4    Codec = "lz4"    // the frame format
	Zstd   Codec = "zstd"
)

// ParseCodec reads the name of a codec, whatever its case.
func ParseCodec(text string) (Codec, error) {
	switch c := Codec(strings.ToLower(strings.TrimSpace(text))); c {
	case None, Gzip, Snappy, LZ4, Zstd:
		return c, nil
	}
	return "", fmt.Errorf("codec %q: want %s, %s, %s, %s or %s", text, None, Gzip, Snappy, LZ4, Zstd)
}

// ErrTooLarge means that a value becomes larger than the limit when it is decompressed.
var ErrTooLarge = errors.New("the value is larger than the limit")

// decompressor takes values out of a codec, one at a time, into memory that it
// uses again. A nil one is that of None.
type decompressor struct {
	codec Codec
	limit int64
	from  bytes.Reader
	to    []byte

	// One of these, by the codec.
	zstd  *zstd.Decoder
	gzip  *gzip.Reader
	other interface {
		io.Reader
		Reset(from io.Reader)
	}
}

func newDecompressor(c Codec, limit int64) (*decompressor, error) {
	d := &decompressor{codec: c, limit: limit}
	switch c {
	case "", None:
		return nil, nil //nolint:nilnil // its methods know that
	case Zstd:
		var err error
		// Decoding a frame at once uses no goroutine of its own. A frame says with
		// what window it was made, however short it is.
		most := zstd.WithDecoderMaxMemory(uint64(max(limit, usualWindow)))
		if d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), most); err != nil {
			return nil, fmt.Errorf("set up the codec zstd: %w", err)
		}
	case Gzip:
		d.gzip = new(gzip.Reader)
	case Snappy:
		d.other = s2.NewReader(nil, s2.ReaderMaxBlockSize(64<<10))
	case LZ4:
		d.other = lz4.NewReader(nil)
	default:
		_, err := ParseCodec(string(c))
		return nil, err
	}
	return d, nil
}

func (d *decompressor) close() {
	if d != nil && d.zstd != nil {
		d.zstd.Close()
	}
}

// usualWindow is the largest window of zstd's usual levels.
const usualWindow = 8 << 20

// keepMemory is how much memory is kept for the next value.
const keepMemory = 4 << 20

// decompress gives what a value holds, valid until the next call. One that is
// empty is empty in every codec.
func (d *decompressor) decompress(v []byte) ([]byte, error) {
	if len(v) == 0 {
		return v, nil
	}
	if cap(d.to) > keepMemory {
		d.to = nil
	}
	var err error
	if d.zstd != nil {
		d.to, err = d.zstd.DecodeAll(v, d.to[:0])
	} else {
		err = d.stream(v)
	}
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) || err == nil && int64(len(d.to)) > d.limit:
		return nil, fmt.Errorf("decompress the value as %s: %w of %d bytes (--decompress-limit)", d.codec, ErrTooLarge, d.limit)
	case err != nil:
		return nil, fmt.Errorf("decompress the value as %s: %w", d.codec, plain(err))
	}
	return d.to, nil
}

// plain makes of the bare io.EOF what it means here.
func plain(err error) error {
	if err == io.EOF { //nolint:errorlint // only the bare one
		return io.ErrUnexpectedEOF
	}
	return err
}

// cutReader says of what ends too early that it does: the reader of LZ4 frames
// takes io.EOF for the end of a frame in some places where it is none, and does not
// read on behind a frame that is whole.
type cutReader struct{ *bytes.Reader }

func (r cutReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err == io.EOF { //nolint:errorlint // the bare one
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// stream decompresses by a reader, one byte beyond the limit at most. Nothing
// may be left behind the last frame.
func (d *decompressor) stream(v []byte) error {
	d.from.Reset(v)
	var r io.Reader = d.other
	switch d.codec {
	case Gzip:
		if err := d.gzip.Reset(&d.from); err != nil {
			return err
		}
		r = d.gzip
	case LZ4:
		d.other.Reset(cutReader{&d.from})
	default:
		d.other.Reset(&d.from)
	}
	buf := bytes.NewBuffer(d.to[:0])
	_, err := buf.ReadFrom(io.LimitReader(r, d.limit+1))
	d.to = buf.Bytes()
	if err == nil && d.from.Len() > 0 && int64(len(d.to)) <= d.limit {
		err = fmt.Errorf("%d bytes follow its end", d.from.Len())
	}
	return err
}
