package dataset

import (
	"bytes"
	"math/rand/v2"
	"strconv"

	"korvet-offload/segment"
)

// Field is one name and value of an entry.
type Field struct{ Name, Value []byte }

// Entry is a stream entry that owns its memory.
type Entry struct {
	ID     segment.ID
	Fields []Field
}

// Case is a named list of entries at an edge of what a stream can hold.
type Case struct {
	Name    string
	Entries []Entry
}

// Cases lists the edge cases that every reader of segment files must agree on.
func Cases() []Case {
	return []Case{
		{"one-entry", []Entry{entry(1, 0, "value", "hello", "key", "k")}},
		{"no-entries", nil},
		{"duplicate-field", []Entry{entry(1, 0, "a", "1", "b", "2", "a", "3", "a", "3")}},
		{"empty-map", []Entry{entry(1, 0), entry(1, 1, "a", "1"), entry(1, 2), entry(1, 3)}},
		{"only-empty-maps", []Entry{entry(1, 0), entry(1, 1)}},
		{"empty-value", []Entry{entry(1, 0, "a", "", "", "", "", "b")}},
		{"all-bytes", []Entry{entry(1, 0, "value", allBytes(), "headers", allBytes()+allBytes())}},
		{"same-millisecond", sameMillisecond()},
		{"largest-id", []Entry{{ID: segment.MaxID(), Fields: []Field{{[]byte("a"), []byte("1")}}}}},
		{"names-in-utf8", []Entry{entry(1, 0, "ключ", "1", "鍵", "2", "\x00", "3", "🔑", "4")}},
		{"many-names", manyNames(20_000)},
		{"large-value", []Entry{entry(1, 0, "a", "before"), entry(2, 0, "value", largeValue(20<<20)), entry(3, 0, "a", "after")}},
		{"envelope", Envelope(1, 100, 10_000)},
	}
}

// Envelope is n messages of a Generator.
func Envelope(seed uint64, valueBytes, n int) []Entry {
	g := New(seed, valueBytes)
	out := make([]Entry, n)
	for i := range out {
		m := g.Next()
		out[i].ID = m.ID
		f := m.Fields()
		for j := 0; j < len(f); j += 2 {
			out[i].Fields = append(out[i].Fields, Field{bytes.Clone(f[j]), bytes.Clone(f[j+1])})
		}
	}
	return out
}

// Pages cuts entries into pages of per entries each.
func Pages(entries []Entry, per int) []*segment.Page {
	var out []*segment.Page
	for len(entries) > 0 {
		n := min(per, len(entries))
		out = append(out, Page(entries[:n]...))
		entries = entries[n:]
	}
	return out
}

// Page puts entries into a new page. They must fit it.
func Page(entries ...Entry) *segment.Page {
	p := new(segment.Page)
	for _, e := range entries {
		p.Entry(e.ID)
		for _, f := range e.Fields {
			if err := p.Field(f.Name, f.Value); err != nil {
				panic(err)
			}
		}
	}
	return p
}

// Entries copies the entries out of a page.
func Entries(p *segment.Page) []Entry {
	out := make([]Entry, p.Len())
	for i := range out {
		out[i].ID = p.ID(i)
		lo, hi := p.Fields(i)
		for j := lo; j < hi; j++ {
			out[i].Fields = append(out[i].Fields, Field{bytes.Clone(p.Name(j)), bytes.Clone(p.Value(j))})
		}
	}
	return out
}

func entry(ms, seq uint64, pairs ...string) Entry {
	e := Entry{ID: segment.ID{Ms: ms, Seq: seq}}
	for i := 0; i < len(pairs); i += 2 {
		e.Fields = append(e.Fields, Field{[]byte(pairs[i]), []byte(pairs[i+1])})
	}
	return e
}

func allBytes() string {
	var b [256]byte
	for i := range b {
		b[i] = byte(i)
	}
	return string(b[:])
}

// sameMillisecond has ids whose order as text is not their order.
func sameMillisecond() []Entry {
	var out []Entry
	for _, seq := range []uint64{9, 10, 11, 99, 100} {
		out = append(out, entry(FirstMs, seq, "n", strconv.FormatUint(seq, 10)))
	}
	return out
}

// manyNames outgrows the dictionary of field names.
func manyNames(n int) []Entry {
	var out []Entry
	for i := range n {
		out = append(out, entry(uint64(i)+1, 0, "field-"+strconv.Itoa(i), "v", "common", strconv.Itoa(i)))
	}
	return out
}

// largeValue is n bytes, each drawn on its own, so that nothing compresses.
func largeValue(n int) string {
	b := make([]byte, n)
	rnd := rand.New(rand.NewPCG(7, 7))
	for i := range b {
		b[i] = byte(rnd.Uint64())
	}
	return string(b)
}
