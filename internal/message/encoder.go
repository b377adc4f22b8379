package message

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"korvet-offload/segment"
)

// Format is how messages are written.
type Format string

// The formats.
const (
	NDJSON Format = "ndjson" // one JSON object per line
	Values Format = "value"  // the bytes of the field value, and a separator
	XADD   Format = "xadd"   // commands for redis-cli --pipe
)

// DefaultLimit is how large a value may become by decompressing, in bytes.
const DefaultLimit = 1 << 30

// Options of an Encoder.
type Options struct {
	Format    Format // "" = NDJSON
	Envelope  bool   // NDJSON: key, value, headers and timestamp by name
	Separator []byte // Values: what stands behind each; nil = a line break
	Key       string // XADD: of the stream
	Codec     Codec  // of the field value; "" = it is left as it is
	Limit     int64  // bytes of a decompressed value; 0 = DefaultLimit
}

// Encoder writes messages in one format. It is used by one goroutine at a time.
type Encoder struct {
	options Options
	codec   *decompressor // nil = none
}

// NewEncoder makes an Encoder. Close it.
func NewEncoder(o Options) (*Encoder, error) {
	o.Format = cmp.Or(o.Format, NDJSON)
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	if o.Separator == nil {
		o.Separator = []byte("\n")
	}
	switch {
	case o.Format != NDJSON && o.Format != Values && o.Format != XADD:
		return nil, fmt.Errorf("format %q: want %s, %s or %s", string(o.Format), NDJSON, Values, XADD)
	case o.Format != NDJSON && o.Envelope:
		return nil, fmt.Errorf("format %s has no envelope: only %s has", o.Format, NDJSON)
	case o.Format == XADD && o.Key == "":
		return nil, fmt.Errorf("format %s: want the key of the stream", XADD)
	case o.Limit < 0:
		return nil, errors.New("the limit of a decompressed value is below 0")
	}
	codec, err := newDecompressor(o.Codec, o.Limit)
	if err != nil {
		return nil, err
	}
	return &Encoder{o, codec}, nil
}

// Close gives back what the codec holds.
func (e *Encoder) Close() error {
	e.codec.close()
	return nil
}

// Append appends entry i of a page, with all that ends it. After an error, b is
// what it was.
func (e *Encoder) Append(b []byte, p *segment.Page, i int) ([]byte, error) {
	out, err := e.append(b, p, i)
	if err != nil {
		return b, fmt.Errorf("message %s: %w", p.ID(i), err)
	}
	return out, nil
}

func (e *Encoder) append(b []byte, p *segment.Page, i int) ([]byte, error) {
	switch e.options.Format {
	case Values:
		return e.appendValue(b, p, i)
	case XADD:
		return e.appendCommand(b, p, i)
	}
	if e.options.Envelope {
		return e.appendEnvelope(b, p, i)
	}
	return e.appendFields(b, p, i)
}

// value is the value of field j, decompressed where it is one that is.
func (e *Encoder) value(p *segment.Page, j int) ([]byte, error) {
	v := p.Value(j)
	if e.codec == nil || !bytes.Equal(p.Name(j), []byte(fieldValue)) {
		return v, nil
	}
	return e.codec.decompress(v)
}

// The fields of the broker's envelope.
const (
	fieldKey       = "key"
	fieldValue     = "value"
	fieldHeaders   = "headers"
	fieldTimestamp = "timestamp"
)

// find is the first field of a name; -1 where there is none.
func find(p *segment.Page, i int, name string) int {
	lo, hi := p.Fields(i)
	for j := lo; j < hi; j++ {
		if string(p.Name(j)) == name { // compared without a copy
			return j
		}
	}
	return -1
}
