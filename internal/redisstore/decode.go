package redisstore

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"korvet-offload/segment"
)

// decoder reads the reply of one XRANGE into a page and decodes it in place,
// as the bytes come in:
//
//	*<entries> { *2 $<len> <id> *<2 x fields> { $<len> <name> $<len> <value> } }
//
// It trusts no length: memory grows with the bytes that have arrived, not
// with those that were announced.
type decoder struct {
	buf     []byte // what has come
	pos     int    // what lies before is decoded
	begun   bool   // the first line is decoded
	entries int    // still to come
	fields  int    // pairs still to come of the open entry
	whole   int    // where the last whole entry ends
	largest int    // bytes of the largest entry, whole or not, in a reply that was left
}

const (
	firstBuffer = 64 << 10
	keptBuffer  = 4 << 20 // a larger one is dropped when it is not needed any more
	maxErrLine  = 64 << 10
)

// reset begins a reply in the page's memory, unless that has become far too
// large for what the page last held.
func (d *decoder) reset(p *segment.Page) {
	buf := p.Buffer()
	if cap(buf) > keptBuffer && len(buf) < cap(buf)/4 {
		buf = nil
	}
	p.Reset()
	*d = decoder{buf: buf[:0]}
}

// read decodes a reply of at most count entries from r. progress is called
// after every read. When the reply grows beyond limit bytes and holds a whole
// entry, the page keeps the whole ones, and left is true: the connection is
// then in mid-reply. After an error the page holds nothing of use.
func (d *decoder) read(r io.Reader, p *segment.Page, count, limit int, progress func(total int)) (left bool, err error) {
	d.reset(p)
	defer func() { p.SetBuffer(d.buf) }()
	for {
		n, err := r.Read(d.room(limit))
		d.buf = d.buf[:len(d.buf)+n]
		if n > 0 {
			progress(len(d.buf))
			done, err := d.decode(p, count)
			if done || err != nil {
				return false, err
			}
			if d.whole > 0 && len(d.buf) > limit {
				d.leave(p)
				return true, nil
			}
		}
		if err != nil {
			return false, err
		}
		if len(d.buf) >= segment.MaxPageBytes {
			return false, fmt.Errorf("%w: one entry of more than %d bytes", errProtocol, uint64(segment.MaxPageBytes))
		}
	}
}

// room is where the next bytes go: not far beyond the limit, before it is
// known whether the reply is left there.
func (d *decoder) room(limit int) []byte {
	if len(d.buf) == cap(d.buf) {
		size := min(max(2*cap(d.buf), firstBuffer), segment.MaxPageBytes)
		d.buf = append(make([]byte, 0, size), d.buf...)
	}
	room := d.buf[len(d.buf):cap(d.buf)]
	if left := limit - len(d.buf); left >= 0 && left < len(room)-firstBuffer {
		room = room[:left+firstBuffer]
	}
	return room
}

// leave cuts the page behind its last whole entry.
func (d *decoder) leave(p *segment.Page) {
	d.largest = max(len(d.buf)-d.whole, d.whole/p.Len())
	if d.fields > 0 {
		p.Truncate(p.Len() - 1)
	}
	d.buf = d.buf[:d.whole]
}

// Results of the functions below in the place of the next offset.
const (
	short   = 0  // the bytes end before the thing does
	illegal = -1 // the bytes are no such thing
)

// decode goes on as far as the bytes reach. It is the program's hottest loop.
func (d *decoder) decode(p *segment.Page, count int) (done bool, err error) {
	if !d.begun {
		if next := d.begin(count); next <= 0 {
			return false, d.stuck(next)
		}
	}
	for {
		for d.fields > 0 {
			name, nameLen, next := bulk(d.buf, d.pos)
			if next <= 0 {
				return false, d.stuck(next)
			}
			value, valueLen, next := bulk(d.buf, next)
			if next <= 0 {
				return false, d.stuck(next)
			}
			p.FieldAt(name, nameLen, value, valueLen)
			d.pos = next
			if d.fields--; d.fields == 0 {
				d.whole = next
			}
		}
		if d.entries == 0 {
			return d.end()
		}
		if next := d.open(p); next <= 0 {
			return false, d.stuck(next)
		}
	}
}

// begin decodes the first line; that of an error reply is left to stuck.
func (d *decoder) begin(count int) int {
	n, next := header(d.buf, 0, '*')
	if next <= 0 {
		return next
	}
	if n > count {
		return illegal
	}
	d.begun, d.entries, d.pos = true, n, next
	return next
}

// open decodes what comes before the fields of an entry.
func (d *decoder) open(p *segment.Page) int {
	two, next := header(d.buf, d.pos, '*')
	if next > 0 && two != 2 {
		return illegal
	}
	if next <= 0 {
		return next
	}
	at, n, next := bulk(d.buf, next)
	if next <= 0 {
		return next
	}
	items, next := header(d.buf, next, '*')
	if next <= 0 {
		return next
	}
	id, ok := parseID(d.buf[at : at+n])
	if !ok || items%2 != 0 {
		return illegal
	}
	p.Entry(id)
	d.entries--
	d.fields, d.pos = items/2, next
	if items == 0 {
		d.whole = next
	}
	return next
}

func (d *decoder) end() (bool, error) {
	if d.pos != len(d.buf) {
		return false, d.stuck(illegal)
	}
	return true, nil
}

// stuck tells bytes that are yet to come from those that make no sense, and
// from an error reply.
func (d *decoder) stuck(next int) error {
	if next == short {
		return nil
	}
	if d.begun || len(d.buf) == 0 || d.buf[0] != '-' {
		return fmt.Errorf("%w near byte %d", errProtocol, d.pos)
	}
	end := bytes.IndexByte(d.buf, '\n')
	if end < 0 && len(d.buf) < maxErrLine {
		return nil
	}
	if end < 2 || end != len(d.buf)-1 || d.buf[end-1] != '\r' {
		return fmt.Errorf("%w in an error line", errProtocol)
	}
	return errReply(d.buf[1 : end-1])
}

// maxDigits is how long the number in a header may be: that of MaxPageBytes.
const maxDigits = 10

// header decodes a line of a mark and a number at offset i.
func header(b []byte, i int, mark byte) (n, next int) {
	if i >= len(b) {
		return 0, short
	}
	if b[i] != mark {
		return 0, illegal
	}
	for j := i + 1; j < len(b); j++ {
		if c := b[j] - '0'; c <= 9 {
			if n = n*10 + int(c); j-i > maxDigits {
				return 0, illegal
			}
			continue
		}
		switch {
		case b[j] != '\r' || j == i+1 || n > segment.MaxPageBytes:
			return 0, illegal
		case j+1 == len(b):
			return 0, short
		case b[j+1] != '\n':
			return 0, illegal
		}
		return n, j + 2
	}
	return 0, short
}

// bulk decodes a text at offset i: where it begins and its length.
func bulk(b []byte, i int) (at, n, next int) {
	n, at = header(b, i, '$')
	if at <= 0 {
		return 0, 0, at
	}
	end := at + n
	switch {
	case end+2 > len(b):
		return 0, 0, short
	case b[end] != '\r' || b[end+1] != '\n':
		return 0, 0, illegal
	}
	return at, n, end + 2
}

// parseID reads a stream id as the server prints it.
func parseID(b []byte) (segment.ID, bool) {
	dash := bytes.IndexByte(b, '-')
	if dash < 0 {
		return segment.ID{}, false
	}
	ms, ok := parseUint(b[:dash])
	if !ok {
		return segment.ID{}, false
	}
	seq, ok := parseUint(b[dash+1:])
	return segment.ID{Ms: ms, Seq: seq}, ok
}

func parseUint(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		c -= '0'
		if c > 9 || n > math.MaxUint64/10 || n*10 > math.MaxUint64-uint64(c) {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	return n, len(b) > 0
}
