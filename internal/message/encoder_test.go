package message

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// encode writes entries with the options.
func encode(t *testing.T, o Options, entries ...dataset.Entry) string {
	t.Helper()
	e := newEncoder(t, o)
	p := dataset.Page(entries...)
	var b []byte
	for i := range p.Len() {
		var err error
		if b, err = e.Append(b, p, i); err != nil {
			t.Fatal(err)
		}
	}
	return string(b)
}

func newEncoder(t *testing.T, o Options) *Encoder {
	t.Helper()
	e, err := NewEncoder(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func entry(ms uint64, pairs ...string) dataset.Entry {
	e := dataset.Entry{ID: segment.ID{Ms: ms}}
	for i := 0; i < len(pairs); i += 2 {
		e.Fields = append(e.Fields, dataset.Field{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return e
}

func TestTexts(t *testing.T) {
	full := entry(5, "key", "k1", "value", `say "hi"`+"\n", "headers", `{"a":1}`, "timestamp", "1708956789000")
	odd := entry(6, "value", "first", "x", "\xff\x00", "value", "second", "timestamp", "not a number")
	for _, tt := range []struct {
		name string
		o    Options
		e    dataset.Entry
		want string
	}{
		{"ndjson", Options{}, full, `{"id":"5-0","fields":[["key","k1"],["value","say \"hi\"\n"],["headers","{\"a\":1}"],["timestamp","1708956789000"]]}` + "\n"},
		{"ndjson, odd", Options{}, odd, `{"id":"6-0","fields":[["value","first"],["x",{"base64":"/wA="}],["value","second"],["timestamp","not a number"]]}` + "\n"},
		{"ndjson, no fields", Options{}, entry(7), `{"id":"7-0","fields":[]}` + "\n"},
		{"ndjson, name that is no text", Options{}, entry(7, "\xfe", ""), `{"id":"7-0","fields":[[{"base64":"/g=="},""]]}` + "\n"},
		{"ndjson, separators of lines", Options{}, entry(7, "a", "\u2028\u2029\u2027\u20ac\x7f\x01"), `{"id":"7-0","fields":[["a","\u2028\u2029` + "\u2027\u20ac" + `\u007f\u0001"]]}` + "\n"},
		{"envelope", Options{Envelope: true}, full, `{"id":"5-0","timestamp":1708956789000,"key":"k1","value":"say \"hi\"\n","headers":"{\"a\":1}"}` + "\n"},
		{"envelope, odd", Options{Envelope: true}, odd, `{"id":"6-0","timestamp":"not a number","key":null,"value":"first","headers":null,"fields":[["x",{"base64":"/wA="}],["value","second"]]}` + "\n"},
		{"envelope, nothing", Options{Envelope: true}, entry(7), `{"id":"7-0","timestamp":null,"key":null,"value":null,"headers":null}` + "\n"},
		{"envelope, empty is not null", Options{Envelope: true}, entry(7, "value", ""), `{"id":"7-0","timestamp":null,"key":null,"value":"","headers":null}` + "\n"},
		{"envelope, numbers that are none", Options{Envelope: true}, entry(7, "timestamp", "007"), `{"id":"7-0","timestamp":"007","key":null,"value":null,"headers":null}` + "\n"},
		{"envelope, too large a number", Options{Envelope: true}, entry(7, "timestamp", "9999999999999999"), `{"id":"7-0","timestamp":"9999999999999999","key":null,"value":null,"headers":null}` + "\n"},
		{"value", Options{Format: Values}, full, `say "hi"` + "\n\n"},
		{"value, none", Options{Format: Values, Separator: []byte{0}}, entry(7, "key", "k"), "\x00"},
		{"value, no separator", Options{Format: Values, Separator: []byte{}}, full, `say "hi"` + "\n"},
		{"xadd", Options{Format: XADD, Key: "to"}, entry(7, "a", "1", "", "\xff\r\n"), "*7\r\n$4\r\nXADD\r\n$2\r\nto\r\n$3\r\n7-0\r\n$1\r\na\r\n$1\r\n1\r\n$0\r\n\r\n$3\r\n\xff\r\n\r\n"},
	} {
		if got := encode(t, tt.o, tt.e); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// text is a field as NDJSON has it.
type text struct{ bytes []byte }

func (x *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		x.bytes = []byte(s)
		return nil
	}
	var coded struct {
		Base64 []byte `json:"base64"`
	}
	err := json.Unmarshal(b, &coded)
	x.bytes = coded.Base64
	return err
}

// decode reads what NDJSON has written.
func decode(t *testing.T, lines string) (all []dataset.Entry) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var m struct {
			ID     string    `json:"id"`
			Fields [][2]text `json:"fields"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %.200s", err, line)
		}
		id, err := segment.ParseID(m.ID)
		if err != nil {
			t.Fatal(err)
		}
		e := dataset.Entry{ID: id}
		for _, f := range m.Fields {
			e.Fields = append(e.Fields, dataset.Field{Name: f[0].bytes, Value: f[1].bytes})
		}
		all = append(all, e)
	}
	return all
}

func same(a, b []dataset.Entry) bool {
	return slices.EqualFunc(a, b, func(x, y dataset.Entry) bool {
		return x.ID == y.ID && slices.EqualFunc(x.Fields, y.Fields, func(f, g dataset.Field) bool {
			return bytes.Equal(f.Name, g.Name) && bytes.Equal(f.Value, g.Value)
		})
	})
}

// Every edge case comes back from NDJSON and from the commands as it was.
func TestNothingIsLost(t *testing.T) {
	for _, c := range dataset.Cases() {
		lines := encode(t, Options{}, c.Entries...)
		if got := decode(t, lines); !same(got, c.Entries) || strings.Count(lines, "\n") != len(c.Entries) {
			t.Errorf("%s: differs in NDJSON", c.Name)
		}
		var with []dataset.Entry
		for _, e := range c.Entries {
			if len(e.Fields) > 0 { // Redis has no others
				with = append(with, e)
			}
		}
		if got := commands(t, encode(t, Options{Format: XADD, Key: "k"}, with...)); !same(got, with) {
			t.Errorf("%s: differs in XADD", c.Name)
		}
	}
}

// commands reads RESP.
func commands(t *testing.T, wire string) (all []dataset.Entry) {
	t.Helper()
	r := bufio.NewReader(strings.NewReader(wire))
	for {
		var words, size int
		if _, err := fmt.Fscanf(r, "*%d\r\n", &words); err != nil {
			return all
		}
		var parts [][]byte
		for range words {
			if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, size+2)
			if _, err := io.ReadFull(r, b); err != nil {
				t.Fatal(err)
			}
			parts = append(parts, b[:size])
		}
		id, err := segment.ParseID(string(parts[2]))
		if err != nil || string(parts[0]) != "XADD" || string(parts[1]) != "k" {
			t.Fatalf("%q %v", parts[:3], err)
		}
		e := dataset.Entry{ID: id}
		for i := 3; i < len(parts); i += 2 {
			e.Fields = append(e.Fields, dataset.Field{Name: parts[i], Value: parts[i+1]})
		}
		all = append(all, e)
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", "a", "\xe2", "\xe2\x80", "\xe2\x80\xa8", "\xe2\x80\xa9\xe2", "\x00\x1f\"\\\x7f", "\xf0\x9f\x94\x91", "\xed\xa0\x80"} {
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, name, value []byte) {
		p := new(segment.Page)
		p.Entry(segment.ID{Ms: 1})
		if err := p.Field(name, value); err != nil {
			t.Fatal(err)
		}
		e := newEncoder(t, Options{})
		b, err := e.Append(nil, p, 0)
		if err != nil || !json.Valid(b) || bytes.Count(b, []byte("\n")) != 1 {
			t.Fatalf("%v in %q", err, b)
		}
		if got := decode(t, string(b)); !same(got, dataset.Entries(p)) {
			t.Fatalf("%q", b)
		}
	})
}

func TestWhatCanNotBeWritten(t *testing.T) {
	e := newEncoder(t, Options{Format: XADD, Key: "k"})
	b, err := e.Append([]byte("before"), dataset.Page(entry(7)), 0)
	if err == nil || !strings.Contains(err.Error(), "message 7-0: it has no fields") || string(b) != "before" {
		t.Errorf("%q %v", b, err)
	}
	for want, o := range map[string]Options{
		"format \"csv\": want ndjson":      {Format: "csv"},
		"format value has no envelope":     {Format: Values, Envelope: true},
		"want the key of the stream":       {Format: XADD},
		`codec "brotli": want none, gzip,`: {Codec: "brotli"},
		"value is below 0":                 {Limit: -1},
	} {
		if _, err := NewEncoder(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestNoMemoryPerMessage(t *testing.T) {
	p := dataset.Page(dataset.Envelope(1, 100, 100)...)
	for _, o := range []Options{{}, {Envelope: true}, {Format: Values}, {Format: XADD, Key: "k"}} {
		e := newEncoder(t, o)
		b := make([]byte, 0, 1<<20)
		n := testing.AllocsPerRun(10, func() {
			out := b
			for i := range p.Len() {
				out, _ = e.Append(out, p, i)
			}
		})
		if n > 0 {
			t.Errorf("%+v: %v allocations for %d messages", o, n, p.Len())
		}
	}
}

func BenchmarkNDJSON(b *testing.B) {
	p := dataset.Page(dataset.Envelope(1, 100, 1000)...)
	e, err := NewEncoder(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	out := make([]byte, 0, 1<<20)
	for b.Loop() {
		out = out[:0]
		for i := range p.Len() {
			out, _ = e.Append(out, p, i)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*p.Len()), "ns/message")
}
