package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// Page is one reply of XRANGE, decoded in place: the bytes as they came, and
// for every entry its id and where its field names and values lie. It keeps
// the order of fields and their duplicates, and any byte. A page is reused:
// Reset keeps its memory. It is not safe for concurrent use.
type Page struct {
	buf     []byte
	entries []pageEntry
	fields  []pageField
}

type pageEntry struct {
	id  ID
	end uint32 // fields[:end] are this entry's and its predecessors'
}

// Offsets instead of slices: the buffer moves when it grows, and the garbage
// collector need not look at them.
type pageField struct{ name, nameLen, value, valueLen uint32 }

// MaxPageBytes is the largest reply that a page can hold: its offsets are 32
// bits wide.
const MaxPageBytes = math.MaxUint32

// Reset empties the page and keeps its memory.
func (p *Page) Reset() {
	p.buf, p.entries, p.fields = p.buf[:0], p.entries[:0], p.fields[:0]
}

// Len is the number of entries.
func (p *Page) Len() int { return len(p.entries) }

// ID is the id of entry i.
func (p *Page) ID(i int) ID { return p.entries[i].id }

// Fields is the half-open range of the fields of entry i, for Name and Value.
func (p *Page) Fields(i int) (lo, hi int) {
	if i > 0 {
		lo = int(p.entries[i-1].end)
	}
	return lo, int(p.entries[i].end)
}

// FieldCount is the number of fields of all entries.
func (p *Page) FieldCount() int { return len(p.fields) }

// Name is the name of field j. It is valid until the page is reset.
func (p *Page) Name(j int) []byte {
	f := &p.fields[j]
	return p.buf[f.name : f.name+f.nameLen : f.name+f.nameLen]
}

// Value is the value of field j. It is valid until the page is reset.
func (p *Page) Value(j int) []byte {
	f := &p.fields[j]
	return p.buf[f.value : f.value+f.valueLen : f.value+f.valueLen]
}

// Bytes is the size of what the page holds.
func (p *Page) Bytes() int { return len(p.buf) }

// Buffer is the page's memory for a decoder that works in place: it fills
// the buffer, tells the page with SetBuffer whenever it has moved or grown,
// and marks what it finds with Entry and FieldAt.
func (p *Page) Buffer() []byte { return p.buf }

// SetBuffer replaces the bytes that FieldAt's offsets refer to.
func (p *Page) SetBuffer(b []byte) { p.buf = b }

// Entry begins the next entry.
func (p *Page) Entry(id ID) {
	p.entries = append(p.entries, pageEntry{id: id, end: uint32(len(p.fields))})
}

// FieldAt adds to the last entry a field that lies in the buffer. The caller
// has checked that the offsets are below MaxPageBytes.
func (p *Page) FieldAt(name, nameLen, value, valueLen int) {
	p.fields = append(p.fields, pageField{uint32(name), uint32(nameLen), uint32(value), uint32(valueLen)})
	p.entries[len(p.entries)-1].end = uint32(len(p.fields))
}

// Field adds to the last entry a copy of a name and a value.
func (p *Page) Field(name, value []byte) error {
	at := len(p.buf)
	if uint64(at)+uint64(len(name))+uint64(len(value)) > MaxPageBytes {
		return fmt.Errorf("page of more than %d bytes", uint64(MaxPageBytes))
	}
	p.buf = append(append(p.buf, name...), value...)
	p.FieldAt(at, len(name), at+len(name), len(value))
	return nil
}

// Truncate keeps the first n entries.
func (p *Page) Truncate(n int) {
	p.entries = p.entries[:n]
	end := 0
	if n > 0 {
		end = int(p.entries[n-1].end)
	}
	p.fields = p.fields[:end]
}

// SameFields says whether entry i has the fields of entry j of another page: the
// same names and values in the same order.
func (p *Page) SameFields(i int, q *Page, j int) bool {
	lo, hi := p.Fields(i)
	other, end := q.Fields(j)
	if hi-lo != end-other {
		return false
	}
	for ; lo < hi; lo, other = lo+1, other+1 {
		if !bytes.Equal(p.Name(lo), q.Name(other)) || !bytes.Equal(p.Value(lo), q.Value(other)) {
			return false
		}
	}
	return true
}

// Digest adds all that is in the page to a CRC-32C, however entries were cut
// into pages: ids, and names and values with their lengths. It tells whether
// two readings of a range gave the same, not whether somebody has forged one.
func (p *Page) Digest(crc uint32) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	buf := make([]byte, 0, 64)
	for i := range p.Len() {
		buf = p.ID(i).Append(buf[:0])
		lo, hi := p.Fields(i)
		buf = binary.AppendUvarint(append(buf, ' '), uint64(hi-lo)) //nolint:gosec // a count
		crc = crc32.Update(crc, table, buf)
		for j := lo; j < hi; j++ {
			name, value := p.Name(j), p.Value(j)
			buf = binary.AppendUvarint(buf[:0], uint64(len(name)))
			buf = binary.AppendUvarint(buf, uint64(len(value)))
			crc = crc32.Update(crc, table, buf)
			crc = crc32.Update(crc, table, name)
			crc = crc32.Update(crc, table, value)
		}
	}
	return crc
}
