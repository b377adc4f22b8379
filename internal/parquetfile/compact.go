package parquetfile

import (
	"encoding/binary"
	"errors"
)

// The footer is Thrift in its compact form. The library allocates a list as
// long as it says that it is, before it has seen one element. This walk over
// the footer comes first, and finds out whether all that is announced is there.

var errCompact = errors.New("it announces more than it has, or is no Thrift")

// maxNesting is more levels than any footer has.
const maxNesting = 16

// The compact form's types.
const (
	compactTrue = iota + 1
	compactFalse
	compactByte
	compactI16
	compactI32
	compactI64
	compactDouble
	compactBinary
	compactList
	compactSet
	compactMap
	compactStruct
)

// checkCompact checks that a struct in compact form is whole.
func checkCompact(b []byte) error {
	if w := (compactWalk{rest: b}); !w.fields(0) {
		return errCompact
	}
	return nil
}

// compactWalk passes over values; false means that they are not whole.
type compactWalk struct{ rest []byte }

func (w *compactWalk) skip(n uint64) bool {
	if n > uint64(len(w.rest)) {
		return false
	}
	w.rest = w.rest[n:]
	return true
}

func (w *compactWalk) one() (byte, bool) {
	if len(w.rest) == 0 {
		return 0, false
	}
	b := w.rest[0]
	w.rest = w.rest[1:]
	return b, true
}

func (w *compactWalk) number() (uint64, bool) {
	n, size := binary.Uvarint(w.rest)
	return n, size > 0 && w.skip(uint64(size)) //nolint:gosec // it is not negative
}

// fields passes over those of a struct.
func (w *compactWalk) fields(depth int) bool {
	for {
		head, ok := w.one()
		if !ok || head == 0 {
			return ok
		}
		if head>>4 == 0 { // the field's id is written out
			if _, ok := w.number(); !ok {
				return false
			}
		}
		kind := head & 15
		if kind != compactTrue && kind != compactFalse && !w.value(kind, depth) {
			return false
		}
	}
}

// value passes over one; true and false take a byte outside of a struct.
func (w *compactWalk) value(kind byte, depth int) bool {
	switch kind {
	case compactTrue, compactFalse, compactByte:
		return w.skip(1)
	case compactI16, compactI32, compactI64:
		_, ok := w.number()
		return ok
	case compactDouble:
		return w.skip(8)
	case compactBinary:
		n, ok := w.number()
		return ok && w.skip(n)
	case compactList, compactSet:
		return w.list(depth + 1)
	case compactMap:
		return w.pairs(depth + 1)
	case compactStruct:
		return depth < maxNesting && w.fields(depth+1)
	}
	return false
}

func (w *compactWalk) list(depth int) bool {
	head, ok := w.one()
	n := uint64(head >> 4)
	if ok && n == 15 {
		n, ok = w.number()
	}
	return ok && w.elements(n, depth, head&15)
}

func (w *compactWalk) pairs(depth int) bool {
	n, ok := w.number()
	if !ok || n == 0 {
		return ok
	}
	kinds, ok := w.one()
	return ok && w.elements(n, depth, kinds>>4, kinds&15)
}

// elements passes over n times a value of each kind. Each takes a byte at least.
func (w *compactWalk) elements(n uint64, depth int, kinds ...byte) bool {
	if n > uint64(len(w.rest)) || depth > maxNesting {
		return false
	}
	for range n {
		for _, kind := range kinds {
			if !w.value(kind, depth) {
				return false
			}
		}
	}
	return true
}
