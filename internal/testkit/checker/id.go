package checker

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// id is a stream id. Zero stands for none.
type id struct{ ms, seq uint64 }

func lastOfAll() id { return id{math.MaxUint64, math.MaxUint64} }

// parseID reads "<ms>-<sequence>"; false where the text is none.
func parseID(text string) (id, bool) {
	dash := strings.IndexByte(text, '-')
	if dash < 0 {
		return id{}, false
	}
	ms, ok := parseDecimal(text[:dash])
	seq, fits := parseDecimal(text[dash+1:])
	return id{ms, seq}, ok && fits
}

// parseDecimal takes digits only.
func parseDecimal(text string) (uint64, bool) {
	if text == "" || len(text) > 20 {
		return 0, false
	}
	var n uint64
	for i := range len(text) {
		digit := uint64(text[i] - '0')
		if digit > 9 || n > (math.MaxUint64-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, true
}

func (a id) none() bool            { return a == id{} }
func (a id) before(b id) bool      { return a.compare(b) < 0 }
func (a id) within(lo, hi id) bool { return !a.before(lo) && !hi.before(a) }

func (a id) compare(b id) int {
	if c := cmp.Compare(a.ms, b.ms); c != 0 {
		return c
	}
	return cmp.Compare(a.seq, b.seq)
}

func (a id) String() string {
	return strconv.FormatUint(a.ms, 10) + "-" + strconv.FormatUint(a.seq, 10)
}

// parseNumber reads a segment's number: decimal, without a leading zero or a
// sign, and at most 2^63-1.
func parseNumber(text string) (uint64, bool) {
	n, ok := parseDecimal(text)
	return n, ok && n <= math.MaxInt64 && (text == "0" || text[0] != '0')
}

// isObjectOf says whether a path is that of a copy of a segment:
// <folder>/<n>.parquet or <folder>/<n>-<copy>.parquet, on a store that can't
// put only if absent with something behind a dot that makes it unique.
func isObjectOf(path, folder, number string, copy int64) bool {
	rest, ok := strings.CutPrefix(path, folder)
	if !ok {
		return false
	}
	if rest, ok = strings.CutPrefix(rest, "/"+number); !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, ".parquet"); !ok {
		return false
	}
	if copy != 0 {
		if rest, ok = strings.CutPrefix(rest, "-"+strconv.FormatInt(copy, 10)); !ok {
			return false
		}
	}
	return rest == "" || len(rest) > 1 && rest[0] == '.' && !strings.Contains(rest, "/")
}

// folder is what the paths of a partition's objects begin with: its stream
// key, of a plain stream with every byte that is not plain written as %XX.
func (p *Partition) folder() string {
	if !p.Plain {
		return p.StreamKey
	}
	var b strings.Builder
	for i := range len(p.StreamKey) {
		c := p.StreamKey[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == ':'
		if letter || i > 0 && strings.IndexByte("._-", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
