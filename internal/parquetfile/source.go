package parquetfile

import (
	"fmt"
	"io"
)

// Extent is a stretch of a file: Size bytes from At on. It is an alias, so that
// sources need not know this package to be told extents.
type Extent = struct{ At, Size int64 }

// wanter is a source that is far away: each read that it was not told of is a
// request. What is read from it is read once, into memory, and the library
// never sees it, so that an error of the network is not taken for damage.
type wanter interface {
	// Want says what will be read next, in this order.
	Want(extents []Extent)
}

// input is where one reading takes pages from.
type input struct {
	from io.ReaderAt
	far  wanter // nil if reads of from cost little
	mem  memory
}

func newInput(from io.ReaderAt) *input {
	far, _ := from.(wanter)
	return &input{from: from, far: far}
}

// want announces loads.
func (in *input) want(loads []load) {
	if in.far == nil {
		return
	}
	var all []Extent
	for _, l := range loads {
		all = append(all, l.extents...)
	}
	in.far.Want(all)
}

// load returns where a load can be read, until the next one.
func (in *input) load(l load) (io.ReaderAt, error) {
	if in.far == nil {
		return in.from, nil
	}
	if err := in.mem.fill(in.from, l.extents); err != nil {
		return nil, err
	}
	return &in.mem, nil
}

// memory is some extents of a file. Its buffer is used again, unless an entry
// beyond the usual has made it large.
type memory struct {
	parts []part
	buf   []byte
}

type part struct {
	at    int64
	bytes []byte
}

const usualLoad = 2 * groupBytes

func (m *memory) fill(from io.ReaderAt, extents []Extent) error {
	var size int64
	for _, e := range extents {
		size += e.Size
	}
	if int64(cap(m.buf)) < size || cap(m.buf) > usualLoad && size <= usualLoad {
		m.parts, m.buf = nil, nil
		m.buf = make([]byte, size)
	}
	m.parts = m.parts[:0]
	rest := m.buf[:size]
	for _, e := range extents {
		if err := readAt(from, rest[:e.Size:e.Size], e.At); err != nil {
			return err
		}
		m.parts = append(m.parts, part{e.At, rest[:e.Size:e.Size]})
		rest = rest[e.Size:]
	}
	return nil
}

// ReadAt implements io.ReaderAt. What was not loaded is not there.
func (m *memory) ReadAt(b []byte, at int64) (int, error) {
	got := 0
	for _, p := range m.parts {
		if p.at <= at && at < p.at+int64(len(p.bytes)) {
			n := copy(b[got:], p.bytes[at-p.at:])
			got, at = got+n, at+int64(n)
		}
		if got == len(b) {
			return got, nil
		}
	}
	return got, io.EOF
}

// stretch is where pages of one column chunk lie: its dictionary, if it has
// one, and data pages one after the other. In a stretch of a whole chunk the
// dictionary is the first of the pages.
type stretch struct{ dict, pages Extent }

// splice shows a stretch where the library looks for the whole chunk.
type splice struct {
	from io.ReaderAt
	base int64 // where the chunk begins
	stretch
}

// ReadAt implements io.ReaderAt for the chunk's place in the file.
func (s splice) ReadAt(b []byte, at int64) (int, error) {
	rel, got := at-s.base, 0
	for _, e := range []Extent{s.dict, s.pages} {
		if rel < 0 {
			return got, fmt.Errorf("read at %d, before the chunk at %d", at, s.base)
		}
		if rel < e.Size && got < len(b) {
			n := int(min(int64(len(b)-got), e.Size-rel))
			if err := readAt(s.from, b[got:got+n], e.At+rel); err != nil {
				return got, err
			}
			got += n
			rel += int64(n)
		}
		rel -= e.Size
		if got == len(b) {
			return got, nil
		}
	}
	return got, io.EOF
}
