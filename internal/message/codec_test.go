package message

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

func codecs() []Codec { return []Codec{Gzip, Snappy, LZ4, Zstd} }

// pack compresses as a producer does.
func pack(t testing.TB, c Codec, v []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch c {
	case Gzip:
		w = gzip.NewWriter(&b)
	case Snappy:
		w = snappy.NewBufferedWriter(&b)
	case LZ4:
		w = lz4.NewWriter(&b)
	case Zstd:
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(v); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpacker(t testing.TB, c Codec, limit int64) *decompressor {
	t.Helper()
	d, err := newDecompressor(c, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

func values() map[string][]byte {
	random := make([]byte, 300_000)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	return map[string][]byte{"empty": {}, "one byte": {7}, "text": []byte(strings.Repeat("order 1 ", 1000)), "random": random, "large": make([]byte, 6<<20)}
}

func TestCodecsTakeBackWhatWasCompressed(t *testing.T) {
	for _, c := range codecs() {
		d := unpacker(t, c, DefaultLimit)
		for name, v := range values() {
			packed := pack(t, c, v)
			for range 2 {
				if got, err := d.decompress(packed); err != nil || !bytes.Equal(got, v) {
					t.Errorf("%s, %s: %d bytes, %v", c, name, len(got), err)
				}
			}
		}
		if got, err := d.decompress(nil); err != nil || len(got) != 0 {
			t.Errorf("%s: an empty value: %q, %v", c, got, err)
		}
	}
}

// What gzip 1.12, zstd 1.5 and lz4 1.9 print of "hello", and what the framing
// format's own description gives for it.
func TestFramesOfOtherPrograms(t *testing.T) {
	for c, text := range map[Codec]string{
		Gzip:   "1f8b0800000000000003 cb48cdc9c90700 86a6103605000000",
		Zstd:   "28b52ffd0458 290000 68656c6c6f a36d9f88",
		LZ4:    "04224d186440a7 05000080 68656c6c6f 00000000 f97700fb",
		Snappy: "ff060000734e61507059 01090000 bb1f1c19 68656c6c6f",
	} {
		if got, err := unpacker(t, c, DefaultLimit).decompress(frame(t, text)); err != nil || string(got) != "hello" {
			t.Errorf("%s: %q, %v", c, got, err)
		}
	}
}

// A value that is cut, flipped, followed by something or was never compressed is
// an error, and never another value. Snappy's frames have no end mark: one that
// is cut between two of its chunks looks whole.
func TestDamagedValuesAreErrors(t *testing.T) {
	v := []byte(strings.Repeat("some order or other ", 20))
	for _, c := range codecs() {
		d := unpacker(t, c, DefaultLimit)
		packed := pack(t, c, v)
		for n := 1; n < len(packed); n++ {
			if got, err := d.decompress(packed[:n]); err == nil && (c != Snappy || len(got) > 0) {
				t.Errorf("%s cut to %d of %d: %q", c, n, len(packed), got)
			}
		}
		for i := range packed {
			bad := bytes.Clone(packed)
			bad[i] ^= 0x10
			if got, err := d.decompress(bad); err == nil && !bytes.Equal(got, v) {
				t.Errorf("%s with byte %d flipped: %q", c, i, got)
			}
		}
		for _, other := range [][]byte{[]byte("plain text"), {0}, append(bytes.Clone(packed), 'x'), append(bytes.Clone(packed), "more of it"...)} {
			if got, err := d.decompress(other); err == nil {
				t.Errorf("%s of %.20q: %q", c, other, got)
			}
		}
		if got, err := d.decompress(packed); err != nil || !bytes.Equal(got, v) { // and it goes on
			t.Errorf("%s afterwards: %v", c, err)
		}
	}
}

// A bomb costs no more memory than the limit, and is an error.
func TestBombsAreRefused(t *testing.T) {
	const limit = 1 << 20 // zstd takes 8 MiB, the window of its usual levels
	bomb := make([]byte, 48<<20)
	for _, c := range codecs() {
		packed := pack(t, c, bomb)
		d := unpacker(t, c, limit)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := d.decompress(packed)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", c, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%s: %d bytes were allocated", c, used)
		}
		exact := pack(t, c, bomb[:limit])
		if got, err := d.decompress(exact); err != nil || len(got) != limit {
			t.Errorf("%s of just the limit: %d, %v", c, len(got), err)
		}
		if _, err := d.decompress(pack(t, c, bomb[:limit+1])); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s of one byte more: %v", c, err)
		}
	}
}

// Only the field value is compressed; the error names the message.
func TestOnlyTheValueIsDecompressed(t *testing.T) {
	packed := string(pack(t, Zstd, []byte("hello")))
	got := encode(t, Options{Codec: Zstd}, entry(1, "key", "k", "value", packed, "headers", "h"), entry(2, "key", "k"), entry(3, "value", ""))
	want := `{"id":"1-0","fields":[["key","k"],["value","hello"],["headers","h"]]}` + "\n" + `{"id":"2-0","fields":[["key","k"]]}` + "\n" + `{"id":"3-0","fields":[["value",""]]}` + "\n"
	if got != want {
		t.Errorf("%s", got)
	}
	if got := encode(t, Options{Codec: None}, entry(1, "value", "v")); got != `{"id":"1-0","fields":[["value","v"]]}`+"\n" {
		t.Error(got)
	}
	if got := encode(t, Options{Codec: Zstd, Format: Values}, entry(1, "value", packed)); got != "hello\n" {
		t.Error(got)
	}
	if got := encode(t, Options{Codec: Zstd, Envelope: true}, entry(1, "value", packed)); got != `{"id":"1-0","timestamp":null,"key":null,"value":"hello","headers":null}`+"\n" {
		t.Error(got)
	}
	e := newEncoder(t, Options{Codec: LZ4})
	p := dataset.Page(dataset.Entry{ID: segment.ID{Ms: 9, Seq: 4}, Fields: []dataset.Field{{Name: []byte("value"), Value: []byte("plain")}}})
	if _, err := e.Append(nil, p, 0); err == nil || !strings.HasPrefix(err.Error(), "message 9-4: decompress the value as lz4: ") {
		t.Error(err)
	}
}

func TestNamesOfCodecs(t *testing.T) {
	for text, want := range map[string]Codec{"zstd": Zstd, " LZ4 ": LZ4, "None": None, "GZIP": Gzip, "snappy": Snappy} {
		if got, err := ParseCodec(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "producer", "zstd-3"} {
		if _, err := ParseCodec(text); err == nil {
			t.Errorf("%q is a codec", text)
		}
	}
}

// frame is what a program has printed in hex.
func frame(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
