package parquetfile

import (
	"slices"

	"github.com/parquet-go/parquet-go"
)

// The leaf columns, in the order in which they lie in a row group.
const (
	colID = iota
	colKey
	colValue
	columns
)

// Levels of the map's leaves. Every group but key_value is required, so one
// bit says all: is there an entry of the map (definition), and is it a further
// one of the same row (repetition).
const (
	levelEmpty   = 0 // definition level of an empty map
	levelPresent = 1
	levelFirst   = 0 // repetition level that begins a row
	levelNext    = 1
)

// newSchema builds the schema of docs/file-format.md.
func newSchema() *parquet.Schema {
	return parquet.NewSchema("segment", root{parquet.Group{
		"id": parquet.Encoded(parquet.String(), &parquet.DeltaByteArray),
		"fields": parquet.Map(
			parquet.Encoded(parquet.String(), &parquet.RLEDictionary),
			parquet.Encoded(parquet.Leaf(parquet.ByteArrayType), &parquet.Plain),
		),
	}})
}

// root puts id before fields; a plain group of the library sorts its fields
// by name.
type root struct{ parquet.Group }

func (r root) Fields() []parquet.Field {
	fields := slices.Clone(r.Group.Fields())
	slices.Reverse(fields)
	return fields
}
