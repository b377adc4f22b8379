package parquetfile

import (
	"slices"

	"github.com/parquet-go/parquet-go"

	"korvet-offload/segment"
)

// batch holds rows on their way to the library: per column the values with
// their levels. Names and values are not copied; they lie in the page.
type batch struct {
	values [columns][]parquet.Value
	ids    []byte // the texts of the ids, never more than its capacity
}

func newBatch() batch {
	return batch{ids: make([]byte, 0, batchRows*maxIDBytes)}
}

func (b *batch) rows() int { return len(b.values[colID]) }

// add appends entry i of the page.
func (b *batch) add(p *segment.Page, i int) {
	at := len(b.ids)
	b.ids = p.ID(i).Append(b.ids)
	b.values[colID] = append(b.values[colID], parquet.ByteArrayValue(b.ids[at:]))
	lo, hi := p.Fields(i)
	if lo == hi {
		// The zero Value is null, at the levels of an empty map.
		b.values[colKey] = append(b.values[colKey], parquet.Value{})
		b.values[colValue] = append(b.values[colValue], parquet.Value{})
		return
	}
	keys, values := grow(b.values[colKey], hi-lo), grow(b.values[colValue], hi-lo)
	k, v := keys[len(keys)-(hi-lo):], values[len(values)-(hi-lo):]
	for j := range k {
		put(&k[j], p.Name(lo+j), min(j, levelNext))
		put(&v[j], p.Value(lo+j), min(j, levelNext))
	}
	b.values[colKey], b.values[colValue] = keys, values
}

// grow makes the slice n longer.
func grow(s []parquet.Value, n int) []parquet.Value {
	s = slices.Grow(s, n)
	return s[:len(s)+n]
}

// put is parquet.ByteArrayValue(b).Level(...) without the call: Level is not
// inlined, and takes a seventh of the writer's time. The column needs no
// index, since each is written on its own.
func put(v *parquet.Value, b []byte, repetition int) {
	*v = parquet.ByteArrayValue(b)
	v.SetRepetitionLevel(repetition)
	v.SetDefinitionLevel(levelPresent)
}

// reset empties the batch and keeps its memory.
func (b *batch) reset() {
	for c := range b.values {
		b.values[c] = b.values[c][:0]
	}
	b.ids = b.ids[:0]
}
