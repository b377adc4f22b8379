package segment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ID is a Redis stream id. Ids order as two numbers, never as text: 5-10
// follows 5-9. The zero ID is never the id of an entry (XADD refuses 0-0), so
// it stands for "none".
type ID struct {
	Ms  uint64 // milliseconds since the epoch, by the clock of whoever chose the id
	Seq uint64 // sequence within the millisecond
}

// MaxID is the largest id that a stream can hold.
func MaxID() ID { return ID{Ms: math.MaxUint64, Seq: math.MaxUint64} }

// ParseID reads "ms-seq" in decimal. Anything else, the short form "ms" and
// the range words "-" and "+" included, is an error: a manifest holds whole
// ids.
func ParseID(s string) (ID, error) {
	ms, seq, ok := strings.Cut(s, "-")
	if !ok {
		return ID{}, fmt.Errorf("stream id %q: want <ms>-<sequence>", s)
	}
	m, err := parseUint(ms)
	if err != nil {
		return ID{}, fmt.Errorf("stream id %q: milliseconds: %w", s, err)
	}
	n, err := parseUint(seq)
	if err != nil {
		return ID{}, fmt.Errorf("stream id %q: sequence: %w", s, err)
	}
	return ID{Ms: m, Seq: n}, nil
}

// parseUint takes decimal digits only: strconv alone would also take a sign
// in some bases and an underscore in others, and its error repeats the input.
func parseUint(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", s, uint64(math.MaxUint64))
	}
	return n, nil
}

// String is the id as Redis prints it.
func (id ID) String() string { return string(id.Append(nil)) }

// Append appends the id as Redis prints it.
func (id ID) Append(b []byte) []byte {
	b = strconv.AppendUint(b, id.Ms, 10)
	b = append(b, '-')
	return strconv.AppendUint(b, id.Seq, 10)
}

// IsZero says whether the id stands for "none".
func (id ID) IsZero() bool { return id == ID{} }

// Compare is negative, zero or positive as id comes before, is, or follows o.
func (id ID) Compare(o ID) int {
	switch {
	case id.Ms < o.Ms, id.Ms == o.Ms && id.Seq < o.Seq:
		return -1
	case id == o:
		return 0
	}
	return 1
}

// Next is the smallest id above id; false when there is none.
func (id ID) Next() (ID, bool) {
	switch {
	case id.Seq < math.MaxUint64:
		return ID{Ms: id.Ms, Seq: id.Seq + 1}, true
	case id.Ms < math.MaxUint64:
		return ID{Ms: id.Ms + 1}, true
	}
	return ID{}, false
}

// Prev is the largest id below id; false when there is none.
func (id ID) Prev() (ID, bool) {
	switch {
	case id.Seq > 0:
		return ID{Ms: id.Ms, Seq: id.Seq - 1}, true
	case id.Ms > 0:
		return ID{Ms: id.Ms - 1, Seq: math.MaxUint64}, true
	}
	return ID{}, false
}
