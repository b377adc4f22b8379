package message

import (
	"encoding/base64"
	"errors"
	"strconv"
	"unicode/utf8"

	"korvet-offload/segment"
)

// appendFields writes {"id":"...","fields":[["name","value"],...]}: pairs keep
// the order and what occurs twice, which members of an object would not.
func (e *Encoder) appendFields(b []byte, p *segment.Page, i int) ([]byte, error) {
	b = appendID(append(b, '{'), p.ID(i))
	b = append(b, `,"fields":[`...)
	lo, hi := p.Fields(i)
	for j := lo; j < hi; j++ {
		if j > lo {
			b = append(b, ',')
		}
		var err error
		if b, err = e.appendPair(b, p, j); err != nil {
			return nil, err
		}
	}
	return append(b, "]}\n"...), nil
}

func appendID(b []byte, id segment.ID) []byte {
	b = id.Append(append(b, `"id":"`...))
	return append(b, '"')
}

func (e *Encoder) appendPair(b []byte, p *segment.Page, j int) ([]byte, error) {
	v, err := e.value(p, j)
	if err != nil {
		return nil, err
	}
	b = appendBytes(append(b, '['), p.Name(j))
	b = appendBytes(append(b, ','), v)
	return append(b, ']'), nil
}

// appendEnvelope writes the four fields of the broker by name, null where one
// is absent, and what else the message has as pairs.
func (e *Encoder) appendEnvelope(b []byte, p *segment.Page, i int) ([]byte, error) {
	b = appendID(append(b, '{'), p.ID(i))
	at := [4]int{find(p, i, fieldTimestamp), find(p, i, fieldKey), find(p, i, fieldValue), find(p, i, fieldHeaders)}
	for k, name := range [4]string{fieldTimestamp, fieldKey, fieldValue, fieldHeaders} {
		b = append(append(append(b, ',', '"'), name...), '"', ':')
		if at[k] < 0 {
			b = append(b, "null"...)
			continue
		}
		v, err := e.value(p, at[k])
		if err != nil {
			return nil, err
		}
		if name == fieldTimestamp && isNumber(v) {
			b = append(b, v...)
		} else {
			b = appendBytes(b, v)
		}
	}
	return e.appendOthers(b, p, i, at)
}

// appendOthers writes the fields that are not at one of the four places.
func (e *Encoder) appendOthers(b []byte, p *segment.Page, i int, at [4]int) ([]byte, error) {
	lo, hi := p.Fields(i)
	begun := false
	for j := lo; j < hi; j++ {
		if j == at[0] || j == at[1] || j == at[2] || j == at[3] {
			continue
		}
		if begun {
			b = append(b, ',')
		} else {
			b, begun = append(b, `,"fields":[`...), true
		}
		var err error
		if b, err = e.appendPair(b, p, j); err != nil {
			return nil, err
		}
	}
	if begun {
		b = append(b, ']')
	}
	return append(b, "}\n"...), nil
}

// isNumber says whether a text is a whole number from 0 upwards that every JSON
// reader takes exactly.
func isNumber(v []byte) bool {
	const most = 15 // digits
	if len(v) == 0 || len(v) > most || v[0] == '0' && len(v) > 1 {
		return false
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// appendBytes writes a text as a JSON string, and what is not UTF-8 as
// {"base64":"..."}.
func appendBytes(b, v []byte) []byte {
	if !utf8.Valid(v) {
		b = append(b, `{"base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, v)
		return append(b, `"}`...)
	}
	return appendString(b, v)
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string. U+2028 and U+2029 are escaped too: some
// readers take them for the end of a line.
func appendString(b, v []byte) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(v); i++ {
		c := v[i]
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f && c != 0xe2 {
			continue
		}
		if c == 0xe2 && (v[i+1] != 0x80 || v[i+2]&^1 != 0xa8) {
			continue
		}
		b = append(b, v[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case 0xe2:
			b = append(b, `\u202`...)
			b = append(b, hexDigits[v[i+2]&0xf])
			i += 2
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
		start = i + 1
	}
	b = append(b, v[start:]...)
	return append(b, '"')
}

// appendValue writes the first field value, and nothing where there is none.
func (e *Encoder) appendValue(b []byte, p *segment.Page, i int) ([]byte, error) {
	if j := find(p, i, fieldValue); j >= 0 {
		v, err := e.value(p, j)
		if err != nil {
			return nil, err
		}
		b = append(b, v...)
	}
	return append(b, e.options.Separator...), nil
}

// appendCommand writes XADD key id name value ... as redis-cli --pipe takes it.
func (e *Encoder) appendCommand(b []byte, p *segment.Page, i int) ([]byte, error) {
	lo, hi := p.Fields(i)
	if lo == hi {
		return nil, errors.New("it has no fields, and XADD takes no such message")
	}
	var id [41]byte
	b = append(strconv.AppendInt(append(b, '*'), int64(3+2*(hi-lo)), 10), '\r', '\n')
	b = appendBulk(b, "XADD")
	b = appendBulk(b, e.options.Key)
	b = appendBulk(b, p.ID(i).Append(id[:0]))
	for j := lo; j < hi; j++ {
		v, err := e.value(p, j)
		if err != nil {
			return nil, err
		}
		b = appendBulk(b, p.Name(j))
		b = appendBulk(b, v)
	}
	return b, nil
}

func appendBulk[T ~string | ~[]byte](b []byte, v T) []byte {
	b = strconv.AppendInt(append(b, '$'), int64(len(v)), 10)
	b = append(append(b, "\r\n"...), v...)
	return append(b, "\r\n"...)
}
